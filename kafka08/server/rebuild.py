"""The bytes that a consumer is sent for a slice of the log: the slice itself where it is right.

Stored wrappers hold the producer's bytes, whose inner offsets mostly are not the true ones; for
consumers such wrappers are rebuilt. A bounded cache spares them the wait: wrappers are put there
when their set is appended (for consumers near the log's end) or by the first one that asks, on
another thread if it is much, since a megabyte takes 10 to 20 ms. A fetch has only so much of the
log opened for it; the rest comes with the next. Stored bytes that are right are
not read at all: each open file knows up to where that holds.
"""

from __future__ import annotations

from kafka08.log.log import RebuiltSet
from kafka08.log.segment import FileSlice
from kafka08.message.compression import MAX_INFLATED, InflatesTooFarError
from kafka08.message.entry import LOG_OVERHEAD
from kafka08.message.wrappers import Rebuilt, absolute_slice, whole_bytes
from kafka08.protocol.schemas import Sized
from kafka08.runtime import Lock, Runtime
from kafka08.server.long_work import LOOP_BYTES, LongWork
from kafka08.server.rebuild_cache import RebuildCache

CACHE_BYTES = 128 << 20
# Ready bytes are sent alone if they are at least this many, although more were asked for. Fewer
# wait for the rest, so that a client with a few messages to get has them with one fetch.
READY_BYTES = 64 << 10
# The log is read in pieces of this size.
READ_BYTES = 16 << 20


class ConsumerView:
    """Slices of the log as consumers must see them, with so much memory for rebuilt wrappers."""

    def __init__(self, runtime: Runtime, cache_bytes: int = CACHE_BYTES) -> None:
        self.long_work = LongWork(runtime)
        self._runtime = runtime
        self._cache = RebuildCache(cache_bytes)
        # who makes what begins there: a lock and how many hold it or wait for it
        self._making: dict[tuple[int, int], tuple[Lock, list[None]]] = {}

    def remember(self, made: RebuiltSet) -> None:
        """Keep what was rebuilt, mostly while its set was appended."""
        serial, start, wrappers = made
        for place, stored_bytes, data in wrappers:
            self._cache.put(serial, start + place, stored_bytes, data)

    def bytes_to_send(self, stored: Sized, max_bytes: int) -> Sized:
        """``stored`` or the bytes to send instead, at most ``max_bytes`` past the first entry."""
        if not isinstance(stored, FileSlice):
            return stored
        ready = self._ready(stored, max_bytes)
        if ready is not None:
            return ready
        if stored.size < READY_BYTES:
            known = self._known(stored)
            try:
                return self._made(stored, *_rebuilt(stored, max_bytes, known, LOOP_BYTES))
            except InflatesTooFarError:
                pass
        if stored.size > READ_BYTES:
            stored = _first_part(stored)
        place = (stored.file.serial, stored.position)
        lock, users = self._making.setdefault(place, (self._runtime.lock(), []))
        users.append(None)
        try:
            with lock:  # of those that want the same only the first one makes it
                ready = self._ready(stored, max_bytes)
                return self._make(stored, max_bytes) if ready is None else ready
        finally:
            users.pop()
            if not users:
                del self._making[place]

    def _make(self, stored: FileSlice, max_bytes: int) -> Sized:
        known = self._known(stored)

        def rebuilt(room: int) -> tuple[RebuiltSet, bytes, bytes]:
            return _rebuilt(stored, max_bytes, known, room)

        return self._made(stored, *self.long_work.run(rebuilt, MAX_INFLATED))

    def _ready(self, stored: FileSlice, max_bytes: int) -> Sized | None:
        file, position = stored.file, stored.position
        end = position + stored.size
        if end <= file.sendable_until:
            return stored
        if file.sendable_until >= position + READY_BYTES:
            return FileSlice(file, position, file.sendable_until - position, stored.base_offset)
        return self._cache.run(file.serial, position, end, max_bytes, READY_BYTES)

    def _known(self, stored: FileSlice) -> dict[int, FileSlice]:
        position = stored.position
        return self._cache.known(stored.file.serial, position, position + stored.size)

    def _made(self, stored: FileSlice, made: RebuiltSet, data: bytes, sent: bytes) -> Sized:
        file, position = stored.file, stored.position
        self.remember(made)
        if sent is not data:
            return sent
        if file.serial == made.serial and position <= file.sendable_until:
            file.sendable_until = max(file.sendable_until, position + whole_bytes(data))
        return stored


def _first_part(stored: FileSlice) -> FileSlice:
    """As much of a long slice as one fetch is given at a time; all of it if no entry ends there."""
    part = FileSlice(stored.file, stored.position, READ_BYTES, stored.base_offset)
    size = int.from_bytes(
        FileSlice(stored.file, stored.position + 8, 4, stored.base_offset).read(), "big"
    )
    return part if size + LOG_OVERHEAD <= READ_BYTES else stored


def _rebuilt(
    stored: FileSlice, max_bytes: int, known: dict[int, FileSlice], room: int
) -> tuple[RebuiltSet, bytes, bytes]:
    """The wrappers that were not ``known``, the stored bytes, and the bytes to send.

    ``room`` is how many bytes may be inflated: less is sent if that does not do for all, and
    InflatesTooFarError raised if it does not do for the first. To be called on any thread.
    """

    def find(place: int) -> bytes | None:
        found = known.get(stored.position + place)
        return None if found is None else found.read()

    made: list[Rebuilt] = []
    serial = stored.file.serial
    data = stored.read()
    sent = absolute_slice(data, max_bytes=max_bytes, known=find, made=made, room=room)
    return RebuiltSet(serial, stored.position, made), data, sent
