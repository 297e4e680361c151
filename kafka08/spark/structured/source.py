"""Spark's side of the ``kafka08`` source: batch and streaming readers over plan and read.

Planning runs in a Python process of the query's own, reading on executors; what travels between
is options and ranges.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from pyspark import TaskContext

from kafka08.common import Broker
from kafka08.spark.planner import Offsets, Range
from kafka08.spark.structured.source_offsets import (
    OffsetsJson,
    from_json,
    read_time,
    to_json,
)
from kafka08.spark.structured.source_options import SourceOptions
from kafka08.spark.structured.source_plan import SourcePlanner
from kafka08.spark.versions.sources import (
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

if TYPE_CHECKING:
    import pyarrow as pa

# Imported by name where a range is read: the process that plans a query does without it.
_READ = "kafka08.spark.structured.source_read"


class PlannedRange(NamedTuple):
    """A range, who led its partition when it was planned, and the time of messages without one
    (ms of the epoch; None for none)."""

    wanted: Range
    leader: Broker | None
    read_ms: int | None


def tasks(
    planner: SourcePlanner, start: Offsets, end: Offsets, read_ms: int | None
) -> list[InputPartition]:
    ranges = planner.ranges(start, end)
    leaders = planner.leaders(ranges)
    return [
        InputPartition(PlannedRange(each, leaders.get(each.topic_partition), read_ms))
        for each in ranges
    ]


class RangeTasks:
    """The tasks of a query, each of which reads a planned range."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Spark makes one partition with the value None where there is none."""
        if partition.value is None:
            return
        planned: PlannedRange = partition.value
        context = TaskContext.get()
        first = context is None or context.attemptNumber() == 0
        leader = planned.leader if first else None
        read_range = import_module(_READ).read_range
        yield from read_range(self._options, planned.wanted, leader, timestamp_ms=planned.read_ms)

    def _now(self, planner: SourcePlanner) -> int | None:
        """The time of messages that have none of their own."""
        return planner.now_ms() if self._options.settings.time_of_reading else None


class BatchReader(RangeTasks, DataSourceReader):
    """Reads the log between ``startingOffsets`` and ``endingOffsets``; planned once."""

    def partitions(self) -> list[InputPartition]:
        planner = SourcePlanner(self._options)
        try:
            return tasks(planner, *planner.bounds(), self._now(planner))
        finally:
            planner.close()


class SourceStreamReader(RangeTasks, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Everything from ``startingOffsets`` on, in batches."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._made: SourcePlanner | None = None
        self._initial: OffsetsJson | None = None
        self._target: Offsets | None = None
        self._latest: Offsets | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return SourceStreamReader, (self._options,)  # executors need no connection of the planner's

    @property
    def _planner(self) -> SourcePlanner:
        if self._made is None:
            self._made = SourcePlanner(self._options)
        return self._made

    def initialOffset(self) -> OffsetsJson:
        # Spark asks twice, and would skip what came in between.
        if self._initial is None:
            self._initial = to_json(self._planner.initial())
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        settings = self._options.settings
        if settings.max_offsets:
            return ReadMaxRows(settings.max_offsets)
        if settings.min_offsets:
            return ReadMinRows(settings.min_offsets)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._planner.latest({})

    def latestOffset(self, start: OffsetsJson, limit: ReadLimit) -> OffsetsJson:
        begin = from_json(start)
        if self._target is None:
            self._latest = self._planner.latest(begin)
        else:
            self._latest = self._target = self._planner.until(begin, self._target)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else 0
        # All that is there must be read when it is asked for, or an AvailableNow query would end
        # with messages waiting.
        wait = self._target is None and not isinstance(limit, ReadAllAvailable)
        least = self._options.settings.min_offsets if wait else 0
        ends = self._planner.limited(begin, self._latest, most=most, least=least)
        before, now = read_time(start), self._now(self._planner)
        if ends == begin and (before is None or now is not None):
            return start  # another time would be news to Spark
        # Were the clock to go back, a watermark would drop the rows as late.
        return to_json(ends, None if now is None else max(now, before or 0))

    def reportLatestOffset(self) -> OffsetsJson | None:
        return to_json(self._latest) if self._latest else None

    def partitions(self, start: OffsetsJson, end: OffsetsJson) -> list[InputPartition]:
        read_ms = read_time(end) or self._now(self._planner)
        return tasks(self._planner, from_json(start), from_json(end), read_ms)

    def commit(self, end: OffsetsJson) -> None:
        """The checkpoint keeps the offsets; see ``listener`` for a group's."""

    def stop(self) -> None:
        if self._made is not None:
            self._made.close()
