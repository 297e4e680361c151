"""What a consumer is sent for a slice of the log: the slice itself wherever that is right.

Stored wrappers hold the producer's bytes, whose inner offsets mostly are not the true ones; for
consumers such wrappers are rebuilt. Two bounded caches spare the next reader the work: whole
slices, for groups that read in step (as all do at the log's end), and single wrappers, for those
whose slices lie differently. Plain slices are not read at all: each open file knows up to where
it holds nothing but plain entries.
"""

from __future__ import annotations

from collections import OrderedDict

from kafka08.log.segment import FileSlice
from kafka08.message.message_set import iter_entries
from kafka08.message.wrapped import RebuildCache, absolute_slice, holds_wrappers
from kafka08.protocol.schemas import Sized

CACHE_BYTES = 32 << 20

_SliceKey = tuple[int, int, int, int]


class ConsumerView:
    """Slices of the log as consumers must see them; ``cache_bytes`` for each of the caches."""

    def __init__(self, cache_bytes: int = CACHE_BYTES) -> None:
        self._wrappers = RebuildCache(cache_bytes)
        self._slices: OrderedDict[_SliceKey, bytes] = OrderedDict()
        self._slices_room = cache_bytes

    def of(self, stored: Sized, max_bytes: int) -> Sized:
        """``stored`` or the bytes to send instead, at most ``max_bytes`` past the first entry."""
        if not isinstance(stored, FileSlice):
            return stored
        file = stored.file
        if stored.position + stored.size <= file.plain_until:
            return stored
        key = (file.serial, stored.position, stored.size, max_bytes)
        known = self._slices.get(key)
        if known is not None:
            self._slices.move_to_end(key)
            return known
        data = stored.read()
        if holds_wrappers(data):
            right = absolute_slice(
                data,
                max_bytes=max_bytes,
                cache=self._wrappers,
                segment=file.serial,
                position=stored.position,
            )
            self._keep(key, right)
            return stored if right is data else right
        if stored.position <= file.plain_until:
            end = 0
            for entry in iter_entries(data):
                end = entry.position + entry.size_total
            file.plain_until = max(file.plain_until, stored.position + end)
        return stored

    def _keep(self, key: _SliceKey, data: bytes) -> None:
        self._slices[key] = data
        self._slices_room -= len(data)
        while self._slices_room < 0:
            _, dropped = self._slices.popitem(last=False)
            self._slices_room += len(dropped)
