"""What a consumer is sent for a slice of the log: the slice itself wherever that is right.

Stored wrappers hold the producer's bytes, whose inner offsets mostly are not the true ones; for
consumers such wrappers are rebuilt. A bounded cache spares them the wait: wrappers are put there
when their set is appended (for consumers near the log's end) or by the first one that asks. What
is right as stored is not read at all: each open file knows up to where that holds.
"""

from __future__ import annotations

from kafka08.log.log import Prepared
from kafka08.log.segment import FileSlice
from kafka08.message.wrapped import absolute_slice, whole_bytes
from kafka08.protocol.schemas import Sized
from kafka08.server.rebuild_cache import RebuildCache

CACHE_BYTES = 128 << 20
# What is ready is sent alone, although more is asked for, if it is at least this much. Less waits
# for the rest, so that a client with a few messages to get has them with one fetch.
READY_BYTES = 64 << 10


class ConsumerView:
    """Slices of the log as consumers must see them, with so much memory for rebuilt wrappers."""

    def __init__(self, cache_bytes: int = CACHE_BYTES) -> None:
        self._cache = RebuildCache(cache_bytes)

    def remember(self, prepared: Prepared) -> None:
        """Keep what was rebuilt while its set was appended."""
        serial, start, wrappers = prepared
        for position, stored_bytes, data in wrappers:
            self._cache.put(serial, start + position, stored_bytes, data)

    def of(self, stored: Sized, max_bytes: int) -> Sized:
        """``stored`` or the bytes to send instead, at most ``max_bytes`` past the first entry."""
        if not isinstance(stored, FileSlice):
            return stored
        file, position = stored.file, stored.position
        end = position + stored.size
        if end <= file.right_until:
            return stored
        if file.right_until >= position + READY_BYTES:
            return FileSlice(file, position, file.right_until - position, stored.base_offset)
        ready = self._cache.run(file.serial, position, end, max_bytes, READY_BYTES)
        if ready is not None:
            return ready
        data = stored.read()
        sent = absolute_slice(
            data,
            max_bytes=max_bytes,
            cache=self._cache,
            serial=file.serial,
            position=position,
        )
        if sent is data:
            if position == file.right_until:
                file.right_until += whole_bytes(data)
            return stored
        return sent
