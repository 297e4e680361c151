"""Queues of work that requests and fetchers leave for other tasks: segments to flush, isrs.

A request or fetcher puts a value here and goes on. Each kind of value has one task that takes the
values and acts on them: ``log_maintenance`` for segments, ``isr`` for partitions.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka08.cluster.partition import Partition
from kafka08.log.log import Log
from kafka08.runtime import Queue, Runtime


class Rolled(NamedTuple):
    """A log has begun a new segment: the entries below ``up_to`` must be flushed."""

    log: Log
    up_to: int


class Effects:
    """Two queues. After ``stop_*`` the next take from that queue returns None."""

    def __init__(self, runtime: Runtime) -> None:
        self._rolled: Queue[Rolled | None] = runtime.queue()
        self._isr_changes: Queue[Partition | None] = runtime.queue()
        self._queued: set[Partition] = set()

    def rolled(self, log: Log) -> None:
        """A segment of ``log`` was rolled away just now."""
        self._rolled.put(Rolled(log, log.segments[-1].base_offset))

    def take_rolled(self) -> Rolled | None:
        """Wait for the next one."""
        return self._rolled.get()

    def stop_rolled(self) -> None:
        self._rolled.put(None)

    def isr_may_change(self, partition: Partition) -> None:
        """A replica has caught up or fallen behind; a partition is queued once."""
        if partition not in self._queued:
            self._queued.add(partition)
            self._isr_changes.put(partition)

    def take_isr_change(self, timeout: float) -> Partition | None:
        """Wait for the next partition. Raises Empty after ``timeout`` seconds."""
        found = self._isr_changes.get(timeout=timeout)
        if found is not None:
            self._queued.discard(found)
        return found

    def stop_isr_changes(self) -> None:
        self._isr_changes.put(None)

    @property
    def has_isr_changes(self) -> bool:
        return not self._isr_changes.empty()
