"""RDDs over planned ranges: one task a partition, which fetches, decodes and handles.

PlannedRdds ranges are kept in this process by RDD id, so that the functions given to ``transform``
and ``foreachRDD`` see the Python RDD itself (their first step then runs in the same worker as the
fetch) and its offset ranges.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark import RDD, SparkContext, TaskContext
from pyspark.serializers import Serializer

from kafka08.common import Broker, TopicPartition
from kafka08.message.entry import AnyMessage
from kafka08.spark.files.hadoop import Java
from kafka08.spark.params import SourceParams
from kafka08.spark.planner import Range
from kafka08.spark.values import (
    Decoder,
    Element,
    KafkaMessageAndMetadata,
    OffsetRange,
    to_offset_range,
    utf8_decoder,
)
from kafka08.spark.versions.rdds import PipelinedRDD

RDDS_KEPT = 64
RANGES_KEPT = 10_000


class Elements(NamedTuple):
    """How messages become elements of an RDD: (key, value), or what ``handler`` returns."""

    key_decoder: Decoder = utf8_decoder
    value_decoder: Decoder = utf8_decoder
    handler: Callable[[KafkaMessageAndMetadata], Element] | None = None

    def of(self, wanted: Range, messages: Iterable[AnyMessage]) -> list[Element]:
        key, value = self.key_decoder, self.value_decoder
        if self.handler is None:
            return [(key(each.key), value(each.value)) for each in messages]
        return [self.handler(self._with_metadata(wanted, each)) for each in messages]

    def _with_metadata(self, wanted: Range, message: AnyMessage) -> KafkaMessageAndMetadata:
        made = KafkaMessageAndMetadata(
            wanted.topic, wanted.partition, message.offset, message.key, message.value
        )
        made._set_key_decoder(self.key_decoder)
        made._set_value_decoder(self.value_decoder)
        return made


@dataclass(frozen=True, eq=False)
class ReadTask:
    """The function that an executor runs: partition number -> the elements of that range.

    The leader the driver knew is asked by the first attempt only. ``strict``: when that leader
    fails, so does the attempt; else the leader is looked up again in the same attempt.
    """

    params: SourceParams
    ranges: Sequence[Range]
    leaders: Mapping[TopicPartition, Broker]
    elements: Elements
    strict: bool = False

    def __call__(self, index: int, iterator: Iterable[object]) -> Iterator[Element]:
        for _ in iterator:  # empty, and read to its end so that the worker can be used again
            pass
        wanted = self.ranges[index]
        context = TaskContext.get()
        first = context is None or context.attemptNumber() == 0
        leader = self.leaders.get(wanted.topic_partition) if first else None
        for messages in self._read(wanted, leader):
            yield from self.elements.of(wanted, messages)

    def _read(self, wanted: Range, leader: Broker | None) -> Iterator[list[AnyMessage]]:
        retries = 0 if leader is not None and self.strict else None
        with self.params.range_reader(retries) as reader:
            yield from reader.read(wanted, leader)


class KafkaRDD(RDD[Element]):
    """An RDD that knows the offsets it stands for."""

    def offsetRanges(self) -> list[OffsetRange]:
        """One for each RDD partition, in their order, empty ones included."""
        return [to_offset_range(each) for each in planned.ranges(self.id())]


class PlannedRDD(PipelinedRDD[Element, Element], KafkaRDD):
    """A KafkaRDD made here, not yet seen by the JVM."""

    def __init__(self, prev: RDD[Element], task: ReadTask, ranges: Sequence[Range]) -> None:
        super().__init__(prev, task)
        self._ranges = list(ranges)

    def offsetRanges(self) -> list[OffsetRange]:
        return [to_offset_range(each) for each in self._ranges]


class PlannedRdds:
    """The ranges that this driver planned, by RDD id; the oldest are forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rdds: OrderedDict[int, PlannedRDD] = OrderedDict()
        self._ranges: OrderedDict[int, list[Range]] = OrderedDict()

    def add(self, rdd: PlannedRDD, ranges: Sequence[Range]) -> None:
        with self._lock:
            self._rdds[rdd.id()] = rdd
            self._ranges[rdd.id()] = list(ranges)
            while len(self._rdds) > RDDS_KEPT:
                self._rdds.popitem(last=False)
            while len(self._ranges) > RANGES_KEPT:
                self._ranges.popitem(last=False)

    def ranges(self, rdd_id: int) -> list[Range]:
        with self._lock:
            return self._ranges.get(rdd_id, [])

    def rdd(self, jrdd: Java, sc: SparkContext, deserializer: Serializer) -> KafkaRDD:
        """The RDD behind a Java one, for TransformFunction."""
        with self._lock:
            found = self._rdds.get(jrdd.id())
        if found is None or found.ctx is not sc:
            return KafkaRDD(jrdd, sc, deserializer)
        level = jrdd.getStorageLevel()
        if level.useMemory() or level.useDisk() or level.useOffHeap():
            found.is_cached = True  # steps that follow must read what the JVM has stored
        return found


planned = PlannedRdds()


def planned_rdd(jrdd: Java, sc: SparkContext, deserializer: Serializer) -> KafkaRDD:
    """``planned.rdd`` as a function of this module, which checkpoints name instead of copying."""
    return planned.rdd(jrdd, sc, deserializer)


def make_rdd(
    sc: SparkContext,
    params: SourceParams,
    ranges: Sequence[Range],
    leaders: Mapping[TopicPartition, Broker],
    elements: Elements,
    *,
    strict: bool = False,
) -> PlannedRDD:
    """An RDD of one partition per range, in their order; empty without ranges."""
    empty = sc.parallelize(range(len(ranges)), len(ranges)) if ranges else sc.emptyRDD()
    rdd = PlannedRDD(empty, ReadTask(params, ranges, leaders, elements, strict), ranges)
    planned.add(rdd, ranges)
    return rdd


def attempts(sc: SparkContext) -> int:
    """How often Spark tries a task: once with the master ``local[N]``."""
    jsc: Java = sc._jsc
    return int(jsc.sc().taskScheduler().maxTaskFailures())
