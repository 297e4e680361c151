"""The task that has old compressed sets rebuilt before a consumer asks for them.

``plan`` chooses them; a child process (``process``) works while the processors have nothing else to
do. Fetches of consumers read rebuilt entries instead of the stored ones
(``LogSegment.read_for_consumer``). The rest is rebuilt at the fetch (``view``).
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from kafka08.common import TopicPartition
from kafka08.errors import KafkaError
from kafka08.log.child_process import ChildProcess
from kafka08.log.disk import is_shortage
from kafka08.log.log import Log
from kafka08.log.segments.names import rebuilt_paths, remove_rebuilt
from kafka08.runtime import Loop, Runtime
from kafka08.server.rebuild import process as rebuilding
from kafka08.server.rebuild.files import open_rebuilt
from kafka08.server.rebuild.plan import LedUntil, Planner, SegmentToRebuild
from kafka08.server.rebuild.process import RebuildOutcome, Stretch

PAUSE_S = 10.0
POLL_S = 0.1
# This many stretches for one process, which takes a tenth of a second to start.
MOST_AT_ONCE = 8

logger = logging.getLogger("kafka.server.RebuildTasks")


class RebuildProcess(Protocol):
    """A running child process."""

    def lines(self) -> list[bytes]: ...

    @property
    def exit_status(self) -> int | None: ...

    def kill(self) -> None: ...


def start_process(stretches: Sequence[Stretch]) -> RebuildProcess:
    """Raises OSError."""
    descriptors = [fd for each in stretches for fd in each[:3]]
    return ChildProcess(
        "kafka08.server.rebuild.process", rebuilding.encode_job(stretches), descriptors
    )


class RebuildTasks(Loop):
    """One loop over the live mapping ``logs``; ``max_bytes`` in each data directory."""

    def __init__(
        self,
        runtime: Runtime,
        logs: Mapping[TopicPartition, Log],
        led_until: LedUntil,
        max_bytes: int,
        start: Callable[[Sequence[Stretch]], RebuildProcess] = start_process,
    ) -> None:
        super().__init__(runtime, "kafka-log-rebuilder", self.work)
        self._logs = logs
        self._start = start
        self._planner = Planner(runtime.clock, max_bytes, led_until)

    def work(self) -> None:
        """Rebuild what the plan asks for, or wait."""
        plan = self._runtime.blocking(self._planner.plan, list(self._logs.values()))
        for log, segment, rebuilt in plan.found:
            if self._has(log, segment) and segment.rebuilt is None:
                segment.rebuilt = rebuilt
        for segment in plan.surplus:
            segment.rebuilt = None
            self._runtime.blocking(remove_rebuilt, segment.path)
        wanted = [each for each in plan.wanted if self._has(*each[:2])]
        if wanted:
            self._rebuild(wanted[:MOST_AT_ONCE])
        else:
            self.stopping.wait(PAUSE_S)

    def _has(self, log: Log, segment: object) -> bool:
        return self._logs.get(log.topic_partition) is log and segment in log.segments

    def _rebuild(self, wanted: list[SegmentToRebuild]) -> None:
        stretches: list[Stretch] = []
        try:
            try:
                stretches.extend(map(_open, wanted))
                process = self._start(stretches)
            except OSError as error:
                self._failed(wanted[len(stretches) :][:1] or wanted, error)
                return
            try:
                self._follow(process, wanted)
            finally:
                process.kill()
        finally:
            for stretch in stretches:
                for fd in stretch[:3]:
                    os.close(fd)

    def _follow(self, process: RebuildProcess, wanted: list[SegmentToRebuild]) -> None:
        """Take the results in turn as they come."""
        left = list(wanted)
        while left and not self.stopping.is_set():
            ended = process.exit_status is not None
            lines = process.lines()
            for line in lines:
                self._take(left.pop(0), rebuilding.parse_event(line))
            if ended and left and not lines:
                self._failed(left[:1], KafkaError(f"the process ended: {process.exit_status}"))
                return
            if left:
                self.stopping.wait(POLL_S)

    def _take(self, done: SegmentToRebuild, result: RebuildOutcome | OSError | KafkaError) -> None:
        log, segment, start, _ = done
        if not self._has(log, segment):
            return
        if not isinstance(result, RebuildOutcome):
            self._failed([done], result)
            return
        try:
            if result.differs:
                segment.rebuilt = open_rebuilt(segment)
            else:
                segment.drop_rebuilt()
        except (OSError, KafkaError) as error:
            self._failed([done], error)
        if result.stored_until == start:
            self._planner.give_up(segment)

    def _failed(self, given_up: list[SegmentToRebuild], error: Exception) -> None:
        """Give up on segments, unless the failure was a shortage that may end."""
        full = is_shortage(error)
        for log, segment, _, _ in given_up:
            logger.warning("Cannot rebuild messages of %s for consumers: %s", segment.path, error)
            if self._has(log, segment):
                segment.drop_rebuilt()
            if not full:
                self._planner.give_up(segment)
        if full:
            self.stopping.wait(PAUSE_S)


def _open(wanted: SegmentToRebuild) -> Stretch:
    """Open the files of a stretch. Raises OSError."""
    log, segment, start, stop = wanted
    rebuilt = segment.rebuilt
    size = entries = 0
    if rebuilt is not None:
        size, entries = rebuilt.size, rebuilt.index.entries
    entries_path, index_path = rebuilt_paths(segment.path)
    with contextlib.ExitStack() as opened:

        def descriptor(path: str, flags: int) -> int:
            fd = os.open(path, flags | os.O_CLOEXEC, 0o666)
            opened.callback(os.close, fd)
            return fd

        stretch = Stretch(
            descriptor(segment.path, os.O_RDONLY),
            descriptor(entries_path, os.O_RDWR | os.O_CREAT),
            descriptor(index_path, os.O_RDWR | os.O_CREAT),
            segment.base_offset,
            start,
            stop,
            size,
            entries,
            log.config.index_interval_bytes,
        )
        opened.pop_all()
    return stretch
