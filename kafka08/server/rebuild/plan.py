"""Chooses segments to rebuild and rebuilt entries to remove: the newest segments come first.

Each data directory has a number of bytes for them, and fewer when its file system fills up. The
caller opens, makes and removes files. Does not know tasks or replicas.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import NamedTuple

from kafka08.common import TopicPartition, WallClock
from kafka08.errors import KafkaError
from kafka08.log.log import Log
from kafka08.log.segments.segment import LogSegment
from kafka08.server.rebuild.files import disk_bytes, holds_wrappers, open_rebuilt, stored_until

# So much is rebuilt at a time, and from so much on while a segment takes appends.
LONGEST_BYTES, STRETCH_BYTES = 64 << 20, 16 << 20
# Less is enough if the segment has not changed for some time.
IDLE_BYTES, IDLE_MS = 256 << 10, 30_000
# Smaller segments are not worth two files.
LEAST_BYTES = 64 << 10
# Each counts for so much at least, so that not too many files are open.
COUNTED_BYTES = 4 << 20
# This share of a file system stays free.
FREE_SHARE = 0.1

LedUntil = Callable[[TopicPartition], int]


class SegmentToRebuild(NamedTuple):
    """Stored entries to rebuild: from position ``start`` to ``stop`` of a segment."""

    log: Log
    segment: LogSegment
    start: int
    stop: int


class Plan(NamedTuple):
    """``found``: rebuilt entries that are on disk from before. ``surplus``: segments whose rebuilt
    entries are to be removed. ``wanted``: the newest first."""

    found: list[tuple[Log, LogSegment, LogSegment]]
    surplus: list[LogSegment]
    wanted: list[SegmentToRebuild]


class _Candidate(NamedTuple):
    modified_ms: int
    log: Log
    segment: LogSegment
    following: LogSegment | None


class Planner:
    """Plans for ``max_bytes`` in each data directory. ``led_until`` is the high watermark of a
    partition that is led here, else 0."""

    def __init__(self, clock: WallClock, max_bytes: int, led_until: LedUntil) -> None:
        self._clock = clock
        self._max_bytes = max_bytes
        self._led_until = led_until
        self._compressed: set[LogSegment] = set()
        self._plain: dict[LogSegment, int] = {}  # the size at which it had no wrappers
        self._changed: dict[LogSegment, tuple[int, int]] = {}  # (size, since when)
        self._given_up: set[LogSegment] = set()

    def give_up(self, segment: LogSegment) -> None:
        """It needs no rebuilt entries, or they cannot be made."""
        self._given_up.add(segment)

    def plan(self, logs: Iterable[Log]) -> Plan:
        """Safe on any thread. Raises OSError if a file system does not answer."""
        plan = Plan([], [], [])
        by_directory: dict[str, list[_Candidate]] = {}
        alive: set[LogSegment] = set()
        for log in logs:
            if log.config.compact or log.config.compressed_sets == "normalised":
                continue
            segments = log.segments
            alive.update(segments)
            for segment, following in zip_longest(segments, segments[1:]):
                try:
                    if self._is_candidate(segment):
                        each = _Candidate(segment.last_modified_ms, log, segment, following)
                        by_directory.setdefault(log.data_dir, []).append(each)
                except (OSError, KafkaError, ValueError):
                    continue  # cut, replaced or deleted meanwhile
        self._forget_all_but(alive)
        for directory, candidates in by_directory.items():
            self._plan_directory(directory, candidates, plan)
        return plan

    def _is_candidate(self, segment: LogSegment) -> bool:
        size = segment.size
        if size < LEAST_BYTES or segment in self._given_up:
            return False
        if segment in self._compressed:
            return True
        if self._plain.get(segment) == size:
            return False
        if not holds_wrappers(segment):
            self._plain[segment] = size
            return False
        self._plain.pop(segment, None)
        self._compressed.add(segment)
        return True

    def _forget_all_but(self, alive: set[LogSegment]) -> None:
        for known in (self._plain, self._changed):
            for segment in known.keys() - alive:
                del known[segment]
        self._compressed &= alive
        self._given_up &= alive

    def _plan_directory(self, directory: str, candidates: list[_Candidate], plan: Plan) -> None:
        candidates.sort(key=lambda each: each.modified_ms, reverse=True)
        rebuilt = self._rebuilt(candidates, plan)
        used = sum(map(disk_bytes, rebuilt.values()))
        room = min(self._max_bytes, used + _free_bytes(directory))
        for _, log, segment, following in candidates:
            made = rebuilt.get(segment)
            room -= max(segment.size, COUNTED_BYTES, 0 if made is None else disk_bytes(made))
            if room < 0:
                if made is not None:
                    plan.surplus.append(segment)
                continue
            try:
                wanted = self._wanted(log, segment, following, made)
            except (OSError, KafkaError, ValueError):
                continue
            if wanted is not None:
                plan.wanted.append(wanted)

    def _rebuilt(self, candidates: list[_Candidate], plan: Plan) -> dict[LogSegment, LogSegment]:
        rebuilt = {}
        for _, log, segment, _ in candidates:
            made = segment.rebuilt
            if made is None:
                try:
                    made = open_rebuilt(segment)
                except (OSError, KafkaError, ValueError):
                    continue
                if made is not None:
                    plan.found.append((log, segment, made))
            if made is not None:
                rebuilt[segment] = made
        return rebuilt

    def _wanted(
        self, log: Log, segment: LogSegment, following: LogSegment | None, made: LogSegment | None
    ) -> SegmentToRebuild | None:
        stop = self._stop(log, segment, following)
        start = stored_until(segment, made)
        missing = stop - start
        if missing <= 0:
            return None
        is_short = following is None and missing < STRETCH_BYTES
        if is_short and (missing < IDLE_BYTES or not self._is_idle(segment)):
            return None
        return SegmentToRebuild(log, segment, start, min(stop, start + LONGEST_BYTES))

    def _stop(self, log: Log, segment: LogSegment, following: LogSegment | None) -> int:
        """Where the entries end that consumers may see."""
        until = self._led_until(log.topic_partition)
        size = segment.size
        if until <= segment.base_offset:
            return 0
        if following is not None and until >= following.base_offset:
            return size
        position = segment.position_of(until)
        return size if position is None else min(position, size)

    def _is_idle(self, segment: LogSegment) -> bool:
        now = self._clock.millis()
        size, since = self._changed.get(segment, (-1, now))
        if size != segment.size:
            self._changed[segment] = (segment.size, now)
            return False
        return now - since >= IDLE_MS


def _free_bytes(directory: str) -> int:
    """Bytes of a file system that may be used; negative if it is fuller than it should be."""
    found = os.statvfs(directory)
    return int((found.f_bavail - found.f_blocks * FREE_SHARE) * found.f_frsize)
