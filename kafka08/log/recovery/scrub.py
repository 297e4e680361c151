"""Checks sealed segments for damage, slowly and periodically, before readers find it.

A sealed and synced segment without a side file gets one. A segment with a side file is read and
compared once per interval. The side file's mtime is the time of the last successful check, so a
restart continues where the last broker stopped. Damage is logged and remembered. The log stays in
service, since each message has a crc of its own.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from kafka08.common import TopicPartition, WallClock
from kafka08.log.log import Log
from kafka08.log.segments import integrity
from kafka08.log.segments.segment import LogSegment

logger = logging.getLogger("kafka.log.Scrub")


class Scrubber:
    """Scrubs ``logs``: each segment every ``interval_ms``.

    ``damaged``: paths of the segments found damaged so far, with descriptions.
    """

    def __init__(
        self, logs: Mapping[TopicPartition, Log], clock: WallClock, *, interval_ms: int
    ) -> None:
        self.damaged: dict[str, str] = {}
        self._logs = logs
        self._clock = clock
        self._interval = interval_ms

    def one_pass(self) -> Iterator[int]:
        """Seal and check all segments that are due; yields the bytes read after each piece.

        Each step may run on a different thread.
        """
        for log in list(self._logs.values()):
            for segment, following in pairwise(log.segments):
                try:
                    if integrity.read(segment.path) is None:
                        yield from self._seal(log, segment, following.base_offset)
                    elif self._is_due(segment.path):
                        yield from self._check(log, segment)
                except FileNotFoundError:
                    continue  # deleted or replaced meanwhile
                except OSError as error:
                    self._tell(segment.path, f"cannot be read: {error}")

    def seal_rolled(self, log: Log) -> None:
        """Seal segments rolled and synced recently: back to the newest one with a side file.

        Raises OSError. Safe on any thread.
        """
        for segment, following in reversed(list(pairwise(log.segments))):
            if os.path.exists(integrity.seal_path(segment.path)):
                return
            with contextlib.suppress(FileNotFoundError):  # deleted or replaced meanwhile
                for _ in self._seal(log, segment, following.base_offset):
                    pass

    def _seal(self, log: Log, segment: LogSegment, end: int) -> Iterator[int]:
        truncations = log.truncations
        if log.recovery_point >= end:
            found = yield from integrity.sum_up(segment.path)
            if found.size == segment.size:
                log.seal(segment, found, truncations)

    def _check(self, log: Log, segment: LogSegment) -> Iterator[int]:
        truncations = log.truncations
        seal = integrity.read(segment.path)
        found = yield from integrity.sum_up(segment.path)
        if seal is None or log.truncations != truncations or segment not in log.segments[:-1]:
            return
        if seal == found:
            self.damaged.pop(segment.path, None)
            os.utime(integrity.seal_path(segment.path))
        else:
            self._tell(segment.path, f"{_shown(found)}, sealed with {_shown(seal)}")

    def _is_due(self, path: str) -> bool:
        checked_ms = os.stat(integrity.seal_path(path)).st_mtime_ns // 1_000_000
        return self._clock.millis() - checked_ms >= self._interval

    def _tell(self, path: str, what: str) -> None:
        self.damaged[path] = what
        try:
            found = integrity.find_damage(path)
        except OSError as error:
            where = str(error)
        else:
            where = (
                "every message is whole: a header or the side file"
                if found is None
                else f"first at position {found.position}, offset {found.offset}: {found.reason}"
            )
        logger.error("Segment %s is damaged: %s; %s", path, what, where)


def run_throttled(
    pieces: Iterator[int],
    bytes_per_second: float,
    *,
    step: Callable[[Callable[[], int | None]], int | None],
    wait: Callable[[float], object],
) -> None:
    """Process all ``pieces`` at most at the given rate. ``step`` runs one of them, perhaps on
    another thread. ``wait`` sleeps some seconds and returns true when it is time to stop."""
    while True:
        read = step(lambda: next(pieces, None))
        if read is None or wait(read / bytes_per_second):
            return


def _shown(seal: integrity.Seal) -> str:
    return f"{seal.size} bytes with crc-32c {seal.crc:08x}"
