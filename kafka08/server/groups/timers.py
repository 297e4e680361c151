"""Deadlines by key, for the one task that waits for the next of them. Pure: knows no clock."""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Timers(Generic[Key]):
    """At most one deadline per key, in seconds of a clock that the caller reads.

    A deadline that only moves later costs no heap operation: heartbeats are the common case. The
    heap may have ``useless`` entries of no use, and as many again as there are deadlines.
    """

    def __init__(self, useless: int = 100) -> None:
        self._useless = useless
        self._deadlines: dict[Key, float] = {}
        # The earliest heap entry of each key. Other entries of a key are skipped when they come up.
        self._queued: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._deadlines)

    def __contains__(self, key: Key) -> bool:
        return key in self._deadlines

    def set(self, key: Key, deadline: float) -> None:
        """Replace the key's deadline."""
        self._deadlines[key] = deadline
        queued = self._queued.get(key)
        if queued is None or queued > deadline:
            self._push(key, deadline)

    def cancel(self, key: Key) -> None:
        """Forget the key's deadline, if it has one."""
        if self._deadlines.pop(key, None) is not None:
            self._tidy()

    @property
    def next(self) -> float | None:
        """A time at which ``take_due`` is to be called; None if there is no deadline."""
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: float) -> Key | None:
        """The key of a deadline that has passed, which is forgotten; None if there is none."""
        while self._heap and self._heap[0][0] <= now:
            at, _, key = heapq.heappop(self._heap)
            if self._queued.get(key) != at:
                continue
            del self._queued[key]
            deadline = self._deadlines.get(key)
            if deadline is None:
                continue
            if deadline <= now:
                del self._deadlines[key]
                return key
            self._push(key, deadline)
        return None

    def _push(self, key: Key, deadline: float) -> None:
        self._queued[key] = deadline
        self._count += 1  # breaks ties: keys are never compared
        heapq.heappush(self._heap, (deadline, self._count, key))
        self._tidy()

    def _tidy(self) -> None:
        """Make a new heap if most of it is of no use: its entries may lie far ahead."""
        if len(self._heap) <= 2 * len(self._deadlines) + self._useless:
            return
        self._queued = dict(self._deadlines)
        self._heap = [(at, number, key) for number, (key, at) in enumerate(self._queued.items())]
        self._count = len(self._heap)
        heapq.heapify(self._heap)
