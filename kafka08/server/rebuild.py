"""What a consumer is sent for a slice of the log: the slice itself wherever that is right.

Stored wrappers hold the producer's bytes, whose inner offsets mostly are not the true ones; for
consumers such wrappers are rebuilt. A bounded cache spares them the wait: wrappers are put there
when their set is appended (for consumers near the log's end) or by the first one that asks, on
another thread if it is much, since a megabyte takes 10 to 20 ms. What is right as stored is not
read at all: each open file knows up to where that holds.
"""

from __future__ import annotations

from kafka08.log.log import Prepared
from kafka08.log.segment import FileSlice
from kafka08.message.renumber import Rebuilt
from kafka08.message.wrapped import absolute_slice, whole_bytes
from kafka08.protocol.schemas import Sized
from kafka08.runtime import Runtime
from kafka08.server.rebuild_cache import RebuildCache

CACHE_BYTES = 128 << 20
# What is ready is sent alone, although more is asked for, if it is at least this much. Less waits
# for the rest, so that a client with a few messages to get has them with one fetch.
READY_BYTES = 64 << 10


class ConsumerView:
    """Slices of the log as consumers must see them, with so much memory for rebuilt wrappers."""

    def __init__(self, runtime: Runtime, cache_bytes: int = CACHE_BYTES) -> None:
        self._runtime = runtime
        self._lock = runtime.lock()
        self._cache = RebuildCache(cache_bytes)

    def remember(self, prepared: Prepared) -> None:
        """Keep what was rebuilt, mostly while its set was appended."""
        serial, start, wrappers = prepared
        for place, stored_bytes, data in wrappers:
            self._cache.put(serial, start + place, stored_bytes, data)

    def of(self, stored: Sized, max_bytes: int) -> Sized:
        """``stored`` or the bytes to send instead, at most ``max_bytes`` past the first entry."""
        if not isinstance(stored, FileSlice):
            return stored
        ready = self._ready(stored, max_bytes)
        if ready is not None:
            return ready
        if stored.size < READY_BYTES:
            return self._made(stored, *_rebuilt(stored, max_bytes, self._known(stored)))
        with self._lock:  # of those that want the same only the first one makes it
            ready = self._ready(stored, max_bytes)
            if ready is not None:
                return ready
            known = self._known(stored)
            return self._made(stored, *self._runtime.blocking(_rebuilt, stored, max_bytes, known))

    def _ready(self, stored: FileSlice, max_bytes: int) -> Sized | None:
        file, position = stored.file, stored.position
        end = position + stored.size
        if end <= file.right_until:
            return stored
        if file.right_until >= position + READY_BYTES:
            return FileSlice(file, position, file.right_until - position, stored.base_offset)
        return self._cache.run(file.serial, position, end, max_bytes, READY_BYTES)

    def _known(self, stored: FileSlice) -> dict[int, FileSlice]:
        position = stored.position
        return self._cache.known(stored.file.serial, position, position + stored.size)

    def _made(self, stored: FileSlice, prepared: Prepared, data: bytes, sent: bytes) -> Sized:
        file, position = stored.file, stored.position
        self.remember(prepared)
        if sent is not data:
            return sent
        if file.serial == prepared.serial and position <= file.right_until:
            file.right_until = max(file.right_until, position + whole_bytes(data))
        return stored


def _rebuilt(
    stored: FileSlice, max_bytes: int, known: dict[int, FileSlice]
) -> tuple[Prepared, bytes, bytes]:
    """What of the wrappers was not ``known``, the stored bytes, and what to send.

    To be called on any thread.
    """

    def find(place: int) -> bytes | None:
        found = known.get(stored.position + place)
        return None if found is None else found.read()

    made: list[Rebuilt] = []
    serial = stored.file.serial
    data = stored.read()
    sent = absolute_slice(data, max_bytes=max_bytes, known=find, made=made)
    return Prepared(serial, stored.position, made), data, sent
