"""Limits the memory of large requests that are incomplete or being served.

Each connection reads up to 256 KiB without a limit. Beyond that its buffer grows only while there
is room; otherwise its socket is not read. Room goes to the request that needs the least to be
whole: if all grew alike, many large ones would fill it together, and none would ever be whole.

Clients that begin large requests and never complete them must not occupy the room: after a short
wait, a connection that needs room causes the one that has held the most bytes for the longest to be
closed, unless that request is complete. Where all wait for room, the one that needs the most goes.
Does not know sockets.
"""

from __future__ import annotations

import itertools
import logging
import time
from typing import NamedTuple, Protocol

import gevent
from gevent.event import Event

logger = logging.getLogger("kafka.network.Processor")

# How long a connection waits for room before another one is closed.
PATIENCE_SECONDS = 0.1
# A buffer may take this long to fill before its request counts as never complete.
GRACE_SECONDS = 1.0
# A connection that has to go gets so long to give up its buffers, before others take their room.
_END_SECONDS = 0.001
UNBOUNDED = -1


class Holder(Protocol):
    """A connection. If it is not ``serving``, it waits for the rest of its request."""

    address: str
    serving: bool

    def shutdown(self) -> None: ...


class EvictedError(OSError):
    """There is no room, and this connection has held the most bytes for the longest."""


class _Place(NamedTuple):
    """``rank`` is lower for requests that need less, and of those that need the same for the first
    to come. ``freed`` is set when it may be its turn."""

    rank: tuple[int, int]
    since: float
    freed: Event


class RequestMemory:
    """``max_bytes`` for all large requests together; a single request always has room."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used = 0
        self._held: dict[Holder, tuple[int, float]] = {}  # bytes, and since when so many
        self._queue: dict[Holder, _Place] = {}
        self._first: Holder | None = None  # of the queue
        self._numbers = itertools.count()

    def hold(self, holder: Holder, size: int, needed: int = 0) -> None:
        """Wait for room, and record that ``holder`` has ``size`` bytes, of those that its request
        needs if that is more. Raises EvictedError."""
        held, _ = self._held.get(holder, (0, 0.0))
        if self._queue or not self._has_room(size, held):
            rank = max(size, needed) - held, next(self._numbers)
            place = self._queue[holder] = _Place(rank, time.monotonic(), Event())
            if self._first is None or rank < self._queue[self._first].rank:
                self._first = holder
            try:
                self._wait_for_room(holder, place.freed, size, held)
            finally:
                del self._queue[holder]
                if self._first is holder:
                    self._first = min(self._queue, key=self._rank, default=None)
                    self._wake_first()
        self.used += size - held
        self._held[holder] = size, time.monotonic()

    def _wait_for_room(self, holder: Holder, freed: Event, size: int, held: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._first is not holder or not self._has_room(size, held):
            if self._first is holder:
                freed.wait(max(deadline - time.monotonic(), 0))
                if time.monotonic() >= deadline:
                    self._evict()
                    gevent.sleep(_END_SECONDS)
                    deadline = time.monotonic() + PATIENCE_SECONDS
            else:
                freed.wait()
                deadline = time.monotonic() + PATIENCE_SECONDS
            freed.clear()
            if held and holder not in self._held:
                raise EvictedError("an unfinished request has to make room for others")

    def _rank(self, holder: Holder) -> tuple[int, int]:
        return self._queue[holder].rank

    def _wake_first(self) -> None:
        if self._first is not None:
            self._queue[self._first].freed.set()

    def _has_room(self, size: int, held: int) -> bool:
        others = self.used - held
        return self.max_bytes == UNBOUNDED or not others or others + size <= self.max_bytes

    def release(self, holder: Holder) -> None:
        """Record that the holder has released its memory."""
        held, _ = self._held.pop(holder, (0, 0.0))
        if held:
            self.used -= held
            self._wake_first()

    def _evict(self) -> None:
        holder = self._who_has_to_go()
        if holder is not None:
            logger.warning(
                "Closing socket connection to %s: it has sent a part of a large request, %d bytes "
                "are held for it, and others need room (queued.max.request.bytes=%d)",
                holder.address, self._held[holder][0], self.max_bytes,
            )  # fmt: skip
            self.release(holder)
            holder.shutdown()
            if holder in self._queue:
                self._queue[holder].freed.set()

    def _who_has_to_go(self) -> Holder | None:
        if self._held and self._queue.keys() >= self._held.keys():
            # None gets any room until one of them goes, however young they are.
            return max(self._held, key=self._rank)
        now = time.monotonic()
        costs = {}
        for holder, (held, since) in self._held.items():
            age = (self._queue[holder].since if holder in self._queue else now) - since
            if age >= GRACE_SECONDS and not holder.serving:
                costs[holder] = held * age
        return max(costs, key=lambda each: costs[each], default=None)
