"""When the end of each log was where: lag in time where messages have no time.

A message's age is not known in 0.8. The ends seen in the past show between which two moments an
offset was appended.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import NamedTuple

from kafka08.common import TopicPartition

POINTS = 128
"""Kept for a log. With more of them every second one of the older half is dropped, so the points
reach far back and are dense where they are young."""


class Seen(NamedTuple):
    """A log's end at a time, ms since the epoch."""

    time_ms: int
    end: int


class LogEnds:
    """The ends of all logs over time. Times must not go back."""

    def __init__(self, points: int = POINTS) -> None:
        self._points = points
        self._seen: dict[TopicPartition, list[Seen]] = {}

    def note(self, tp: TopicPartition, time_ms: int, end: int) -> None:
        """Remember an end. A log that became shorter was created again: its past is forgotten."""
        seen = self._seen.setdefault(tp, [])
        if seen and (end < seen[-1].end or time_ms < seen[-1].time_ms):
            seen.clear()
        if len(seen) > 1 and seen[-1].end == seen[-2].end == end:
            seen.pop()  # a log at rest has two points: its first and its last moment
        seen.append(Seen(time_ms, end))
        if len(seen) > self._points:
            middle = len(seen) // 2
            seen[1:middle] = seen[2:middle:2]

    def keep(self, existing: set[TopicPartition]) -> None:
        """Forget logs that are not among ``existing``."""
        for tp in self._seen.keys() - existing:
            del self._seen[tp]

    def end_at(self, tp: TopicPartition, time_ms: int) -> int | None:
        """The end at a time, None before the first one was seen."""
        seen = self._seen.get(tp, [])
        at = bisect_right(seen, time_ms, key=attrgetter("time_ms"))
        if at == len(seen):
            return seen[-1].end if seen else None
        return _between(seen[at - 1], seen[at], time_ms) if at else None

    def end_since(self, tp: TopicPartition, time_ms: int) -> int | None:
        """The first end at a time or later: the end at the time, or that with which the log was
        seen first. None if it was never seen."""
        since = self.since(tp)
        return None if since is None else self.end_at(tp, max(time_ms, since))

    def passed_at(self, tp: TopicPartition, offset: int) -> int | None:
        """When the message at ``offset`` was appended, ms; None if that was before the first end
        that was seen, or is still to come."""
        seen = self._seen.get(tp, [])
        at = bisect_right(seen, offset, key=attrgetter("end"))
        return _between(seen[at - 1][::-1], seen[at][::-1], offset) if 0 < at < len(seen) else None

    def since(self, tp: TopicPartition) -> int | None:
        """When the log was first seen, ms."""
        seen = self._seen.get(tp)
        return seen[0].time_ms if seen else None


def _between(before: tuple[int, int], after: tuple[int, int], place: int) -> int:
    """The value at ``place``, of two points with the place and the value of each."""
    share = (place - before[0]) / (after[0] - before[0])
    return before[1] + int((after[1] - before[1]) * share)
