"""The direct stream: the driver plans ranges, executors read them, checkpoints keep them.

Mirrors org.apache.spark.streaming.kafka.DirectKafkaInputDStream, whose partitions are fixed when
it is created. The planner here is part of every checkpoint: it holds no connection, no lock and
no context, and its class must stay where it is for old checkpoints to be read.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from typing import Any

from pyspark import SparkContext
from pyspark.streaming import StreamingContext

from kafka08.common import Broker, TopicPartition
from kafka08.errors import KafkaError
from kafka08.spark import contexts
from kafka08.spark.backpressure import PidRateEstimator
from kafka08.spark.errors import RangeNotAvailableError
from kafka08.spark.offset_log import OffsetLog
from kafka08.spark.offsets import behind
from kafka08.spark.params import SourceParams
from kafka08.spark.planner import Range, cap_each, rate_limits
from kafka08.spark.rdd import Elements, PlannedRDD, make_rdd
from kafka08.spark.streams import KafkaDStream, planned_stream, tick_directory

logger = logging.getLogger("kafka08.spark.direct")

BATCHES_KEPT = 100
MAX_RATE = "spark.streaming.kafka.maxRatePerPartition"
MAX_RETRIES = "spark.streaming.kafka.maxRetries"
DISCOVER = "spark.streaming.kafka.discoverPartitions"
BACKPRESSURE = "spark.streaming.backpressure.enabled"
INITIAL_RATE = "spark.streaming.backpressure.initialRate"
PID = "spark.streaming.backpressure.pid."


def conf_of(sc: SparkContext, key: str, default: str) -> str:
    return str(sc._conf.get(key, default))


class Rate:
    """The rate that backpressure allows, learnt from the batches of one run."""

    def __init__(self, sc: SparkContext, batch_ms: int) -> None:
        pid = [
            float(conf_of(sc, PID + name, default))
            for name, default in (
                ("proportional", "1.0"),
                ("integral", "0.2"),
                ("derived", "0.0"),
                ("minRate", "100"),
            )
        ]
        self._estimator = PidRateEstimator(batch_ms, *pid)
        self.rate = float(conf_of(sc, INITIAL_RATE, "0"))
        self._sizes: dict[int, int] = {}

    def planned(self, batch_ms: int, size: int) -> None:
        self._sizes[batch_ms] = size

    def completed(self, batch_ms: int, info: Any) -> None:
        found = self._estimator.compute(
            int(info.processingEndTime()),
            self._sizes.pop(batch_ms, 0),
            int(info.processingDelay()),
            int(info.schedulingDelay()),
        )
        self.rate = self.rate if found is None else found


class Running:
    """A planner's objects while its stream runs, which a checkpoint must not contain."""

    def __init__(self, ssc: StreamingContext, stream: str, batch_ms: int) -> None:
        self.ssc = ssc
        self.log: OffsetLog | None = contexts.offset_log(ssc, stream)
        self.rate: Rate | None = None
        if conf_of(ssc._sc, BACKPRESSURE, "false").lower() == "true":
            self.rate = Rate(ssc._sc, batch_ms)
            ssc.addStreamingListener(contexts.BatchListener(self._completed))

    def _completed(self, batch_ms: int, ok: bool, info: Any) -> None:
        if self.rate is not None:
            self.rate.completed(batch_ms, info)


class DirectPlanner:
    """``planner(time, _)``: the RDD of a batch. ``offsets``: where the next batch begins.

    Nothing changes before a batch is planned, logged and made: a batch that fails here leaves
    its messages to the next one.
    """

    def __init__(
        self,
        ssc: StreamingContext,
        params: SourceParams,
        offsets: dict[TopicPartition, int],
        elements: Elements,
    ) -> None:
        self.stream = uuid.uuid4().hex
        self._stream_id = int(ssc._jssc.ssc().getNewInputStreamId())
        self._batch_ms = contexts.batch_ms(ssc)
        self._params = params
        self._offsets = dict(offsets)
        self._elements = elements
        self._batches: dict[int, list[Range]] = {}
        self._running: Running | None = None
        self._ssc: StreamingContext | None = contexts.take(ssc, self.stream)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_running": None, "_ssc": None}

    def __call__(self, time: Any, _: Any = None) -> PlannedRDD:
        batch_ms = round(time.timestamp() * 1000)
        sc = SparkContext._active_spark_context
        assert sc is not None
        running = self._run(sc)
        known = self._known(batch_ms, running)
        leaders: dict[TopicPartition, Broker] = {}
        if known is not None:
            ranges = known
        else:
            ranges, leaders = self._plan(sc, running)
        rdd = make_rdd(sc, self._params, ranges, leaders, self._elements)
        if known is None and running is not None and running.log is not None:
            running.log.write(batch_ms, ranges)
        self._remember(batch_ms, ranges)
        if running is not None:
            self._tell(running, batch_ms, ranges)
        return rdd

    def _run(self, sc: SparkContext) -> Running | None:
        if self._running is None:
            tick_directory()
            ssc = self._ssc or contexts.recovered_context(sc, self.stream)
            if ssc is None:
                logger.warning("No offset log, no limit by backpressure: the context is not known")
                return None
            self._running = Running(ssc, self.stream, self._batch_ms)
        return self._running

    def _known(self, batch_ms: int, running: Running | None) -> list[Range] | None:
        """The ranges that an earlier run planned for this batch, if they begin at our offsets."""
        if batch_ms in self._batches:
            return self._batches[batch_ms]
        logged = running.log.read(batch_ms) if running and running.log else None
        if logged is None:
            if self._batches and batch_ms < min(self._batches):
                raise KafkaError(f"The ranges of batch {batch_ms} are not known any more")
            return None
        if batch_ms > max(self._batches, default=0) and any(
            self._offsets.get(r.topic_partition, r.start) != r.start for r in logged
        ):
            logger.warning("The offset log of batch %d does not fit: planning it again", batch_ms)
            return None
        return logged

    def _plan(
        self, sc: SparkContext, running: Running | None
    ) -> tuple[list[Range], dict[TopicPartition, Broker]]:
        with self._params.offset_reader(int(conf_of(sc, MAX_RETRIES, "1"))) as reader:
            start = dict(self._offsets)
            if conf_of(sc, DISCOVER, "false").lower() == "true":
                found = reader.partitions(sorted({tp.topic for tp in start}))
                start.update(reader.earliest([tp for tp in found if tp not in start]))
            latest = reader.latest_since(start, start)
            leaders = reader.leaders(start)
        if late := behind(latest, start):
            there = "; ".join(f"{start[tp]} of {tp}, whose log ends at {latest[tp]}" for tp in late)
            raise RangeNotAvailableError(
                f"Offsets beyond the end of the log: {there}. fromOffsets is wrong, or messages "
                "were lost"
            )
        limits = rate_limits(
            start,
            latest,
            batch_seconds=self._batch_ms / 1000,
            max_rate_per_partition=float(conf_of(sc, MAX_RATE, "0")),
            estimated_rate=running.rate.rate if running and running.rate else None,
        )
        ends = cap_each(start, latest, limits)
        return [Range(*tp, start[tp], ends[tp]) for tp in sorted(start)], leaders

    def _remember(self, batch_ms: int, ranges: Sequence[Range]) -> None:
        if batch_ms >= max(self._batches, default=0):
            self._offsets.update({each.topic_partition: each.end for each in ranges})
        self._batches[batch_ms] = list(ranges)
        while len(self._batches) > BATCHES_KEPT:
            del self._batches[min(self._batches)]

    def _tell(self, running: Running, batch_ms: int, ranges: Sequence[Range]) -> None:
        if running.rate is not None:
            running.rate.planned(batch_ms, sum(each.size for each in ranges))
        contexts.report_input(running.ssc, self._stream_id, batch_ms, ranges)


def direct_stream(
    ssc: StreamingContext,
    params: SourceParams,
    offsets: dict[TopicPartition, int],
    elements: Elements,
) -> KafkaDStream:
    """The stream that begins at ``offsets``."""
    return planned_stream(ssc, DirectPlanner(ssc, params, offsets, elements))
