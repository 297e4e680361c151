"""The direct stream: the driver plans ranges, executors read them, checkpoints keep them.

Mirrors org.apache.spark.streaming.kafka.DirectKafkaInputDStream, whose partitions are fixed when
it is created. The planner here is part of every checkpoint: it holds no connection, no lock and
no context, and its class must stay where it is for old checkpoints to be read.
"""

from __future__ import annotations

import logging

from pyspark import SparkContext
from pyspark.streaming import StreamingContext

from kafka08.common import Broker, TopicPartition
from kafka08.errors import KafkaError
from kafka08.spark.driver import contexts
from kafka08.spark.errors import RangeNotAvailableError
from kafka08.spark.files.offset_log import OffsetLog
from kafka08.spark.offsets import behind
from kafka08.spark.params import SourceParams
from kafka08.spark.planner import Range, cap_each, rate_limits
from kafka08.spark.rdd import Elements, PlannedRDD, make_rdd
from kafka08.spark.streams import BatchPlanner, StreamRun, conf_of

logger = logging.getLogger("kafka08.spark.direct")

MAX_RATE = "spark.streaming.kafka.maxRatePerPartition"
MAX_RETRIES = "spark.streaming.kafka.maxRetries"
DISCOVER = "spark.streaming.kafka.discoverPartitions"


def retries_of(sc: SparkContext) -> int | None:
    """How often leaders are asked again; None if the job does not say, which is until others are
    elected. 2.4's default of 1 ended jobs at the death of a broker."""
    given = conf_of(sc, MAX_RETRIES, "")
    return int(given) if given else None


class DirectRun(StreamRun):
    """``log``: None without a checkpoint."""

    def __init__(self, ssc: StreamingContext, stream: str, batch_ms: int) -> None:
        super().__init__(ssc, batch_ms)
        self.log: OffsetLog | None = contexts.offset_log(ssc, stream)
        if (rate := self.rate) is not None:
            completed = contexts.BatchListener(
                lambda batch_ms, ok, info: rate.completed(batch_ms, info)
            )
            ssc.addStreamingListener(completed)


class DirectPlanner(BatchPlanner[DirectRun]):
    """``offsets``: where the next batch begins.

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
        super().__init__(ssc, elements)
        self._params = params
        self._offsets = dict(offsets)

    def run(self, ssc: StreamingContext) -> DirectRun:
        return DirectRun(ssc, self.stream, self._batch_ms)

    def plan(self, sc: SparkContext, batch_ms: int, running: DirectRun | None) -> PlannedRDD:
        if running is None:
            logger.warning("No offset log, no limit by backpressure: the context is not known")
        known = self._known(batch_ms, running)
        ranges, leaders = self._plan(sc, running) if known is None else (known, {})
        rdd = make_rdd(sc, self._params, ranges, leaders, self._elements)
        if known is None and running is not None and running.log is not None:
            running.log.write(batch_ms, ranges)
        if batch_ms >= max(self._batches, default=0):
            self._offsets.update({each.topic_partition: each.end for each in ranges})
        self._remember(running, batch_ms, ranges)
        return rdd

    def _known(self, batch_ms: int, running: DirectRun | None) -> list[Range] | None:
        """The ranges that an earlier run planned for this batch, if they begin at our offsets."""
        if batch_ms in self._batches:
            return self._batches[batch_ms]
        log = running.log if running else None
        logged = log.read(batch_ms) if log else None
        if logged is None:
            if self._is_before(batch_ms):
                if log and log.reaches(batch_ms):
                    return []  # it was never planned, as brokers were away
                raise KafkaError(f"The ranges of batch {batch_ms} are not known any more")
            return None
        if batch_ms > max(self._batches, default=0) and any(
            self._offsets.get(r.topic_partition, r.start) != r.start for r in logged
        ):
            logger.warning("The offset log of batch %d does not fit: planning it again", batch_ms)
            return None
        return logged

    def _plan(
        self, sc: SparkContext, running: DirectRun | None
    ) -> tuple[list[Range], dict[TopicPartition, Broker]]:
        with self._params.offset_reader(retries_of(sc)) as reader:
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
