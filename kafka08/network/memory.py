"""Limits the memory of large requests that are incomplete or being served.

Each connection reads up to 256 KiB without a limit. Beyond that its buffer grows only while there
is room; otherwise its socket is not read. Clients that begin large requests and never complete
them must not occupy the room: after a short wait, a connection that needs room causes the one that
has held the most bytes for the longest to be closed, unless that request is complete. Does not
know sockets.
"""

from __future__ import annotations

import logging
import time
from typing import Protocol

from gevent.event import Event

logger = logging.getLogger("kafka.network.Processor")

# How long a connection waits for room before another one is closed.
PATIENCE_SECONDS = 0.1
# A request may take this long to arrive before it counts as never complete.
GRACE_SECONDS = 1.0
UNBOUNDED = -1


class Holder(Protocol):
    """A connection. If it is not ``serving``, it waits for the rest of its request."""

    address: str
    serving: bool

    def shutdown(self) -> None: ...


class EvictedError(OSError):
    """There is no room, and this connection has held the most bytes for the longest."""


class RequestMemory:
    """``max_bytes`` for all large requests together; a single request always has room."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used = 0
        self._held: dict[Holder, tuple[int, float]] = {}  # bytes, and since when
        self._waiting: dict[Holder, float] = {}  # those that hold bytes and need more, since when
        self._freed = Event()

    def hold(self, holder: Holder, size: int) -> None:
        """Wait for room, and record that ``holder`` has ``size`` bytes. Raises EvictedError."""
        begun = time.monotonic()
        held, since = self._held.get(holder, (0, begun))
        if not self._has_room(size, held):
            if held:
                self._waiting[holder] = begun
            try:
                self._wait_for_room(holder, size, held)
            finally:
                self._waiting.pop(holder, None)
            since += time.monotonic() - begun
        self.used += size - held
        self._held[holder] = size, since

    def _wait_for_room(self, holder: Holder, size: int, held: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._has_room(size, held):
            self._freed.wait(max(deadline - time.monotonic(), 0))
            if time.monotonic() >= deadline:
                self._evict()
                deadline = time.monotonic() + PATIENCE_SECONDS
            if held and holder not in self._held:
                raise EvictedError("an unfinished request has to make room for others")

    def _has_room(self, size: int, held: int) -> bool:
        others = self.used - held
        return self.max_bytes == UNBOUNDED or not others or others + size <= self.max_bytes

    def release(self, holder: Holder) -> None:
        """Record that the holder has released its memory."""
        held, _ = self._held.pop(holder, (0, 0.0))
        if held:
            self.used -= held
            self._freed.set()
            self._freed.clear()

    def _evict(self) -> None:
        now = time.monotonic()
        unfinished = [each for each in self._held if not each.serving]
        # Where all wait for room, none gets any until one of them goes, however young they are.
        grace = 0.0 if self._waiting.keys() >= self._held.keys() else GRACE_SECONDS
        costs = {}
        for holder in unfinished:
            held, since = self._held[holder]
            age = self._waiting.get(holder, now) - since
            if age >= grace:
                costs[holder] = held * age
        if costs:
            holder = max(costs, key=lambda each: costs[each])
            logger.warning(
                "Closing socket connection to %s: it has sent a part of a large request, %d bytes "
                "are held for it, and others need room (queued.max.request.bytes=%d)",
                holder.address, self._held[holder][0], self.max_bytes,
            )  # fmt: skip
            self.release(holder)
            holder.shutdown()
