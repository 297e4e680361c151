"""How much memory requests take that have not come in as a whole, or are in work.

Each connection reads up to 256 KiB without asking. Beyond that its buffer grows only while there
is room; until then its socket is not read. So that clients who begin large requests and never end
them cannot keep the room: whoever has waited for a moment has that connection closed which has
held the most bytes for the longest, unless its request is whole. Knows nothing of sockets.
"""

from __future__ import annotations

import logging
import time
from typing import Protocol

from gevent.event import Event

logger = logging.getLogger("kafka.network.Processor")

# How long one waits for others to finish before one of them has to go.
PATIENCE_SECONDS = 0.1
# A request may take that long to come in before it counts as one that does not end.
GRACE_SECONDS = 1.0
UNBOUNDED = -1


class Holder(Protocol):
    """A connection. Not ``serving``: it waits for the rest of its request."""

    address: str
    serving: bool

    def shutdown(self) -> None: ...


class EvictedError(OSError):
    """There is no room for a request, and it is the one that has held the most for the longest."""


class RequestMemory:
    """``max_bytes`` for all large requests together; a single one always has room."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used = 0
        self._held: dict[Holder, tuple[int, float]] = {}  # bytes, and since when
        self._freed = Event()

    def hold(self, holder: Holder, size: int) -> None:
        """From now on ``holder`` has ``size`` bytes; waits for room. Raises EvictedError."""
        held, since = self._held.get(holder, (0, time.monotonic()))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._has_room(size, held):
            self._freed.wait(max(deadline - time.monotonic(), 0))
            if time.monotonic() >= deadline:
                self._evict()
                deadline = time.monotonic() + PATIENCE_SECONDS
            if held and holder not in self._held:
                raise EvictedError("an unfinished request has to make room for others")
        self.used += size - held
        self._held[holder] = size, since

    def _has_room(self, size: int, held: int) -> bool:
        others = self.used - held
        return self.max_bytes == UNBOUNDED or not others or others + size <= self.max_bytes

    def release(self, holder: Holder) -> None:
        """It has nothing any more."""
        held, _ = self._held.pop(holder, (0, 0.0))
        if held:
            self.used -= held
            self._freed.set()
            self._freed.clear()

    def _evict(self) -> None:
        now = time.monotonic()
        costs = {
            holder: held * (now - since)
            for holder, (held, since) in self._held.items()
            if not holder.serving and now - since >= GRACE_SECONDS
        }
        if costs:
            holder = max(costs, key=lambda each: costs[each])
            logger.warning(
                "Closing socket connection to %s: it has sent a part of a large request, %d bytes "
                "are held for it, and others need room (queued.max.request.bytes=%d)",
                holder.address, self._held[holder][0], self.max_bytes,
            )  # fmt: skip
            self.release(holder)
            holder.shutdown()
