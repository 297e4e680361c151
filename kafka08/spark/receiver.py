"""The stream of a consumer group: the driver is the member, executors fetch.

Stands in for org.apache.spark.streaming.kafka.KafkaReceiver, with stricter promises: an offset is
stored after the batch that read it has succeeded, and it is that of the next message.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from pyspark import SparkContext
from pyspark.storagelevel import StorageLevel
from pyspark.streaming import DStream, StreamingContext

from kafka08.client.cluster import Endpoint
from kafka08.client.security import ClientSecurity
from kafka08.common import Broker, TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.spark.driver import contexts
from kafka08.spark.driver.member import DriverMember, check_topics
from kafka08.spark.files.hadoop import Java
from kafka08.spark.params import SourceParams
from kafka08.spark.planner import Range, split_total
from kafka08.spark.rdd import Elements, PlannedRDD, make_rdd
from kafka08.spark.streams import BatchPlanner, StreamRun, conf_of, planned_stream
from kafka08.spark.values import Element

logger = logging.getLogger("kafka08.spark.receiver")

MAX_RATE = "spark.streaming.receiver.maxRate"


class GroupRun(StreamRun):
    """The driver's membership."""

    def __init__(
        self,
        ssc: StreamingContext,
        properties: Mapping[str, str],
        topics: Mapping[str, int],
        batch_ms: int,
    ) -> None:
        super().__init__(ssc, batch_ms)
        config = ConsumerConfig.from_properties(properties)
        self.kept = max(self.kept, contexts.batches_needed(ssc))
        self._params = SourceParams(
            (),
            fetch_bytes=config.fetch_message_max_bytes,
            backoff_ms=config.refresh_leader_backoff_ms,
            timeout_ms=config.socket_timeout_ms,
            client_id=config.client_id,
            isolation_level=config.isolation_level,
            option=f"The list of brokers in {config.zookeeper_connect}",
            # Executors do not get the login at ZooKeeper.
            security=ClientSecurity.from_properties(properties),
        )
        self.member = DriverMember(
            config,
            topics,
            alive=self._alive,
            offsets=lambda endpoints: (
                self.source(endpoints)._replace(backoff_ms=1000).offset_reader(retries=3)
            ),
        )
        ssc.addStreamingListener(contexts.BatchListener(self._completed, self.member.submitted))
        self.member.start()

    def source(self, endpoints: Iterable[Endpoint]) -> SourceParams:
        return self._params._replace(endpoints=tuple(endpoints))

    def _alive(self) -> bool:
        try:
            return str(self.ssc._jssc.getState().toString()) != "STOPPED"
        except Exception as error:
            logger.info("Lost the connection to Spark: %s", error)
            return False

    def _completed(self, batch_ms: int, ok: bool, info: Java) -> None:
        self.member.completed(batch_ms, ok)
        if self.rate is not None:
            self.rate.completed(batch_ms, info)


class GroupPlanner(BatchPlanner[GroupRun]):
    """Plans the partitions that this driver owns.

    In checkpoints are its settings, and the ranges of batches that may run again.
    """

    def __init__(
        self,
        ssc: StreamingContext,
        properties: Mapping[str, str],
        topics: Mapping[str, int],
        elements: Elements,
    ) -> None:
        check_topics(topics)
        ConsumerConfig.from_properties(properties)
        super().__init__(ssc, elements)
        self._properties = dict(properties)
        self._topics = dict(topics)

    def run(self, ssc: StreamingContext) -> GroupRun:
        return GroupRun(ssc, self._properties, self._topics, self._batch_ms)

    def plan(self, sc: SparkContext, batch_ms: int, running: GroupRun | None) -> PlannedRDD:
        assert running is not None, "the context of this stream is not known"
        member = running.member
        known = self._batches.get(batch_ms)
        if known is not None:
            source = running.source(member.brokers())
            rdd = make_rdd(sc, source, known, {}, self._elements)
            member.recovered(batch_ms, known)
            return rdd
        if self._is_before(batch_ms):
            # Nothing is lost: what it has not committed, the next batch reads.
            logger.error("The ranges of batch %d are not known any more: it is empty", batch_ms)
            return make_rdd(sc, SourceParams(()), [], {}, self._elements)
        token, start = member.positions()
        ranges: list[Range] = []
        leaders: dict[TopicPartition, Broker] = {}
        source = SourceParams(())
        if start:
            source = running.source(member.brokers())
            with source.offset_reader() as reader:
                latest = reader.latest_since(start, start, doubts=0)
                leaders = reader.leaders(start)
            ends = self._ends(sc, running, start, latest)
            ranges = [Range(*tp, start[tp], ends[tp]) for tp in sorted(start)]
        rdd = make_rdd(sc, source, ranges, leaders, self._elements)
        if ranges and not member.plan(token, batch_ms, ranges):
            ranges = []
            rdd = make_rdd(sc, source, ranges, {}, self._elements)
        self._remember(running, batch_ms, ranges)
        return rdd

    def _ends(
        self,
        sc: SparkContext,
        running: GroupRun,
        start: Mapping[TopicPartition, int],
        latest: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, int]:
        rates = [float(conf_of(sc, MAX_RATE, "0"))]
        rates += [running.rate.rate] if running.rate is not None else []
        limits = [rate for rate in rates if rate > 0]
        total = min(limits) * self._batch_ms / 1000 if limits else float(1 << 62)
        return split_total(max(int(total), 1), start, latest)


def group_stream(
    ssc: StreamingContext,
    properties: Mapping[str, str],
    topics: Mapping[str, int],
    storage_level: StorageLevel,
    elements: Elements,
) -> DStream[Element]:
    """The stream of what the group hands this driver, each batch kept at ``storage_level``."""
    planned = planned_stream(ssc, GroupPlanner(ssc, properties, topics, elements))
    stream: DStream[Element] = DStream(planned._jdstream, ssc, ssc._sc.serializer)
    if storage_level.useMemory or storage_level.useDisk:
        stream.persist(storage_level)
    return stream
