"""The stream of a consumer group: the driver is the member, executors fetch.

Stands in for org.apache.spark.streaming.kafka.KafkaReceiver, with stricter promises: an offset is
stored after the batch that read it has succeeded, and it is that of the next message.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark import SparkContext
from pyspark.storagelevel import StorageLevel
from pyspark.streaming import DStream, StreamingContext

from kafka08.client.security import ClientSecurity, runtime_for
from kafka08.common import Broker, TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.spark import contexts
from kafka08.spark.direct import BACKPRESSURE, BATCHES_KEPT, Rate, conf_of
from kafka08.spark.member import GroupMember, check_topics
from kafka08.spark.offsets import OffsetReader
from kafka08.spark.params import SourceParams
from kafka08.spark.planner import Range, split_total
from kafka08.spark.rdd import Elements, PlannedRDD, make_rdd
from kafka08.spark.streams import planned_stream, tick_directory

logger = logging.getLogger("kafka08.spark.receiver")

MAX_RATE = "spark.streaming.receiver.maxRate"


class Running:
    """The planner's objects while its stream runs: the member and the batch listener."""

    def __init__(
        self,
        ssc: StreamingContext,
        properties: Mapping[str, str],
        topics: Mapping[str, int],
        batch_ms: int,
    ) -> None:
        self.ssc = ssc
        config = ConsumerConfig.from_properties(properties)
        self.rate: Rate | None = None
        if conf_of(ssc._sc, BACKPRESSURE, "false").lower() == "true":
            self.rate = Rate(ssc._sc, batch_ms)
        self.member = GroupMember(
            config,
            topics,
            alive=self._alive,
            offsets=lambda endpoints: OffsetReader(
                endpoints,
                client_id=config.client_id,
                timeout_ms=config.socket_timeout_ms,
                runtime=runtime_for(config),
            ),
        )
        ssc.addStreamingListener(contexts.BatchListener(self._completed, self.member.submitted))
        self.member.start()

    def _alive(self) -> bool:
        try:
            return str(self.ssc._jssc.getState().toString()) != "STOPPED"
        except Exception as error:
            logger.info("Lost the connection to Spark: %s", error)
            return False

    def _completed(self, batch_ms: int, ok: bool, info: Any) -> None:
        self.member.completed(batch_ms, ok)
        if self.rate is not None:
            self.rate.completed(batch_ms, info)


class GroupPlanner:
    """``planner(time, _)``: the RDD of a batch, of the partitions that this driver owns.

    Part of checkpoints: it holds settings, and the ranges of batches that may run again.
    """

    def __init__(
        self,
        ssc: StreamingContext,
        properties: Mapping[str, str],
        topics: Mapping[str, int],
        elements: Elements,
    ) -> None:
        check_topics(topics)
        self._config(properties)
        self.stream = uuid.uuid4().hex
        self._stream_id = int(ssc._jssc.ssc().getNewInputStreamId())
        self._batch_ms = contexts.batch_ms(ssc)
        self._properties = dict(properties)
        self._topics = dict(topics)
        self._elements = elements
        self._batches: dict[int, list[Range]] = {}
        self._running: Running | None = None
        self._ssc: StreamingContext | None = contexts.take(ssc, self.stream)

    @staticmethod
    def _config(properties: Mapping[str, str]) -> ConsumerConfig:
        """Raises ConfigError."""
        return ConsumerConfig.from_properties(properties)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_running": None, "_ssc": None}

    def __call__(self, time: Any, _: Any = None) -> PlannedRDD:
        batch_ms = round(time.timestamp() * 1000)
        sc = SparkContext._active_spark_context
        assert sc is not None
        running = self._run(sc)
        member = running.member
        known = self._batches.get(batch_ms)
        if known is not None:
            rdd = make_rdd(sc, self._source(member), known, {}, self._elements)
            member.recovered(batch_ms, known)
        else:
            rdd = self._plan(sc, running, batch_ms)
        return rdd

    def _run(self, sc: SparkContext) -> Running:
        if self._running is None:
            tick_directory()
            ssc = self._ssc or contexts.recovered_context(sc, self.stream)
            assert ssc is not None, "the context of this stream is not known"
            self._running = Running(ssc, self._properties, self._topics, self._batch_ms)
        return self._running

    def _source(self, member: GroupMember) -> SourceParams:
        config = self._config(self._properties)
        return SourceParams(
            tuple(member.brokers()),
            fetch_bytes=config.fetch_message_max_bytes,
            backoff_ms=config.refresh_leader_backoff_ms,
            timeout_ms=config.socket_timeout_ms,
            client_id=config.client_id,
            option=f"The list of brokers in {config.zookeeper_connect}",
            # Executors do not get the login at ZooKeeper.
            security=ClientSecurity.from_properties(self._properties),
        )

    def _plan(self, sc: SparkContext, running: Running, batch_ms: int) -> PlannedRDD:
        token, start = running.member.positions()
        ranges: list[Range] = []
        leaders: dict[TopicPartition, Broker] = {}
        source = SourceParams(())
        if start:
            source = self._source(running.member)
            with source.offset_reader() as reader:
                latest = reader.latest(start)
                leaders = reader.leaders(start)
            ends = self._ends(sc, running, start, latest)
            ranges = [Range(*tp, start[tp], ends[tp]) for tp in sorted(start)]
        rdd = make_rdd(sc, source, ranges, leaders, self._elements)
        if ranges and not running.member.plan(token, batch_ms, ranges):
            ranges = []
            rdd = make_rdd(sc, source, ranges, {}, self._elements)
        self._remember(batch_ms, ranges)
        if running.rate is not None:
            running.rate.planned(batch_ms, sum(each.size for each in ranges))
        contexts.report_input(running.ssc, self._stream_id, batch_ms, ranges)
        return rdd

    def _ends(
        self,
        sc: SparkContext,
        running: Running,
        start: Mapping[TopicPartition, int],
        latest: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, int]:
        rates = [float(conf_of(sc, MAX_RATE, "0"))]
        rates += [running.rate.rate] if running.rate is not None else []
        limits = [rate for rate in rates if rate > 0]
        total = min(limits) * self._batch_ms / 1000 if limits else float(1 << 62)
        return split_total(max(int(total), 1), start, latest)

    def _remember(self, batch_ms: int, ranges: Sequence[Range]) -> None:
        self._batches[batch_ms] = list(ranges)
        while len(self._batches) > BATCHES_KEPT:
            del self._batches[min(self._batches)]


def group_stream(
    ssc: StreamingContext,
    properties: Mapping[str, str],
    topics: Mapping[str, int],
    storage_level: StorageLevel,
    elements: Elements,
) -> DStream[Any]:
    """The stream of what the group hands this driver, each batch kept at ``storage_level``."""
    planned = planned_stream(ssc, GroupPlanner(ssc, properties, topics, elements))
    stream: DStream[Any] = DStream(planned._jdstream, ssc, ssc._sc.serializer)
    if storage_level.useMemory or storage_level.useDisk:
        stream.persist(storage_level)
    return stream
