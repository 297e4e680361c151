"""The API of ``pyspark.streaming.kafka``, gone since Spark 3, on today's Spark.

A job written against it needs its import changed and nothing else. Names, arguments, defaults and
errors are those of Spark 2.4; how streams come about is in ``direct`` and ``receiver``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

try:
    from pyspark import SparkContext
    from pyspark.storagelevel import StorageLevel
    from pyspark.streaming import DStream, StreamingContext
except ImportError as error:
    raise ImportError(
        "kafka08.spark.dstream needs PySpark 3.5 or later: pip install 'pyspark>=3.5', or have it "
        f"on the path ({error})"
    ) from error

from kafka08.common import Broker as Leader
from kafka08.common import TopicPartition
from kafka08.errors import (
    KafkaError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
)
from kafka08.spark.direct import DirectPlanner, retries_of
from kafka08.spark.errors import JobError
from kafka08.spark.offsets import LogOffsetReader
from kafka08.spark.params import SourceParams, source_params
from kafka08.spark.planner import Range
from kafka08.spark.rdd import Elements, KafkaRDD, attempts, make_rdd
from kafka08.spark.receiver import group_stream
from kafka08.spark.streams import KafkaDStream, KafkaTransformedDStream, planned_stream
from kafka08.spark.values import (
    Broker,
    Decoder,
    Element,
    KafkaMessageAndMetadata,
    OffsetRange,
    TopicAndPartition,
    to_range,
    to_topic_partition,
    utf8_decoder,
)

__all__ = [
    "Broker",
    "KafkaDStream",
    "KafkaMessageAndMetadata",
    "KafkaRDD",
    "KafkaTransformedDStream",
    "KafkaUtils",
    "OffsetRange",
    "TopicAndPartition",
    "utf8_decoder",
]

Handler = Callable[[KafkaMessageAndMetadata], Element]


class KafkaUtils:
    """Streams and RDDs over topics. The three methods are static, as they were."""

    @staticmethod
    def createStream(
        ssc: StreamingContext,
        zkQuorum: str,
        groupId: str,
        topics: dict[str, int],
        kafkaParams: dict[str, str] | None = None,
        storageLevel: StorageLevel = StorageLevel.MEMORY_AND_DISK_2,
        keyDecoder: Decoder = utf8_decoder,
        valueDecoder: Decoder = utf8_decoder,
    ) -> DStream[Element]:
        """A stream of (key, value) that consumes as a member of ``groupId``.

        ``topics``: topic -> consumer threads, which is this member's weight in the group.
        ``kafkaParams`` are the settings of a consumer, and are updated in place. Raises TypeError
        and ConfigError.
        """
        _deprecated()
        if kafkaParams is None:
            kafkaParams = {}
        if not isinstance(topics, dict):
            raise TypeError("topics should be dict")
        kafkaParams.update(
            {
                "zookeeper.connect": zkQuorum,
                "group.id": groupId,
                "zookeeper.connection.timeout.ms": "10000",
            }
        )
        elements = Elements(keyDecoder, valueDecoder)
        return group_stream(ssc, kafkaParams, topics, storageLevel, elements)

    @staticmethod
    def createDirectStream(
        ssc: StreamingContext,
        topics: list[str],
        kafkaParams: dict[str, str],
        fromOffsets: dict[TopicAndPartition, int] | None = None,
        keyDecoder: Decoder = utf8_decoder,
        valueDecoder: Decoder = utf8_decoder,
        messageHandler: Handler | None = None,
    ) -> KafkaDStream:
        """A stream of (key, value), or of what ``messageHandler`` makes of each message.

        Begins at ``fromOffsets``, else where ``auto.offset.reset`` says. Raises TypeError,
        JobError, and UnreachableError or KafkaError when the brokers do not answer.
        """
        _deprecated()
        if not isinstance(topics, list):
            raise TypeError("topics should be list")
        if not isinstance(kafkaParams, dict):
            raise TypeError("kafkaParams should be dict")
        params = source_params(kafkaParams)
        if fromOffsets:
            offsets = _given(topics, fromOffsets)
        else:
            offsets = _starting_offsets(topics, params, retries_of(ssc._sc))
        elements = Elements(keyDecoder, valueDecoder, messageHandler)
        return planned_stream(ssc, DirectPlanner(ssc, params, offsets, elements))

    @staticmethod
    def createRDD(
        sc: SparkContext,
        kafkaParams: dict[str, str],
        offsetRanges: list[OffsetRange],
        leaders: dict[TopicAndPartition, Broker] | None = None,
        keyDecoder: Decoder = utf8_decoder,
        valueDecoder: Decoder = utf8_decoder,
        messageHandler: Handler | None = None,
    ) -> KafkaRDD:
        """An RDD of the ranges given, one partition each.

        ``leaders``, when given, must name one for every range; where Spark tries tasks again, a
        first attempt at a broker that no longer leads fails. Raises TypeError, JobError (a
        range that is not in the log too), and UnreachableError or KafkaError.
        """
        _deprecated()
        if not isinstance(kafkaParams, dict):
            raise TypeError("kafkaParams should be dict")
        if not isinstance(offsetRanges, list):
            raise TypeError("offsetRanges should be list")
        params = source_params(kafkaParams)
        ranges = [to_range(each) for each in offsetRanges]
        with params.offset_reader(retries_of(sc)) as reader:
            _check_offsets(ranges, reader)
            wanted = [each.topic_partition for each in ranges]
            known = _given_leaders(wanted, leaders) if leaders else reader.leaders(wanted)
        elements = Elements(keyDecoder, valueDecoder, messageHandler)
        strict = bool(leaders) and attempts(sc) > 1
        return make_rdd(sc, params, ranges, known, elements, strict=strict)


def _deprecated() -> None:
    warnings.warn(
        "The DStream API is a legacy one; kafka08.spark.datasource serves Structured Streaming",
        DeprecationWarning,
        stacklevel=3,
    )


def _given(
    topics: list[str], offsets: Mapping[TopicAndPartition, int]
) -> dict[TopicPartition, int]:
    found = {to_topic_partition(tp): int(offset) for tp, offset in offsets.items()}
    named = {tp.topic for tp in found}
    if named != set(topics):
        raise JobError(
            f"The specified topics: {' '.join(sorted(set(topics)))} "
            f"do not equal to the topic from offsets: {' '.join(sorted(named))}"
        )
    return found


def _starting_offsets(
    topics: list[str], params: SourceParams, retries: int | None
) -> dict[TopicPartition, int]:
    with params.offset_reader(retries) as reader:
        found: list[TopicPartition] = []
        for topic in topics:
            try:
                found += reader.partitions([topic])
            except UnknownTopicOrPartitionError:
                raise JobError(
                    f"Error getting partition metadata for '{topic}'. Does the topic exist?"
                ) from None
        try:
            return reader.earliest(found) if params.from_smallest else reader.latest(found)
        except LeaderNotAvailableError:
            known = reader.leaders(found)
            without = ", ".join(str(tp) for tp in found if tp not in known)
            raise JobError(f"Couldn't find leaders for {without}") from None


def _check_offsets(ranges: list[Range], reader: LogOffsetReader) -> None:
    partitions = {each.topic_partition for each in ranges}
    try:
        low, high = reader.earliest(partitions), reader.ends(partitions)
    except KafkaError as error:
        if isinstance(error, OSError):
            raise  # of brokers that do not answer, more is said by the caller
        raise JobError(f"Couldn't find leader offsets: {error}") from error
    bad = [
        each
        for each in ranges
        if not low[each.topic_partition] <= each.start <= each.end <= high[each.topic_partition]
    ]
    if bad:
        there = "; ".join(
            f"{each} (the log has [{low[each.topic_partition]}, {high[each.topic_partition]}))"
            for each in bad
        )
        raise JobError(f"Offsets not available on leader: {there}")


def _given_leaders(
    wanted: list[TopicPartition], leaders: Mapping[TopicAndPartition, Broker]
) -> dict[TopicPartition, Leader]:
    found = {
        to_topic_partition(tp): Leader(-1, broker._host, int(broker._port))
        for tp, broker in leaders.items()
    }
    missing = [str(tp) for tp in wanted if tp not in found]
    if missing:
        raise JobError(f"leaders names no broker for {', '.join(missing)}")
    return found
