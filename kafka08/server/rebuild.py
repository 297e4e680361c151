"""What a consumer is sent for a slice of the log: the slice itself wherever that is right.

Stored wrappers hold the producer's bytes, whose inner offsets mostly are not the true ones; for
consumers such wrappers are rebuilt. Two bounded caches spare them the wait: one of wrappers, put
there when their set was appended (for consumers near the log's end) or by the first one that
asked, and one of whole slices, for groups that read in step. What is right as stored is not read
at all: each open file knows up to where that holds.
"""

from __future__ import annotations

from collections import OrderedDict

from kafka08.log.log import Prepared
from kafka08.log.segment import FileSlice
from kafka08.message.wrapped import RebuildCache, absolute_slice, whole_bytes
from kafka08.protocol.schemas import Sized

WRAPPER_BYTES = 96 << 20
SLICE_BYTES = 32 << 20

_SliceKey = tuple[int, int, int, int]


class ConsumerView:
    """Slices of the log as consumers must see them, with so much memory for wrappers and slices."""

    def __init__(self, wrapper_bytes: int = WRAPPER_BYTES, slice_bytes: int = SLICE_BYTES) -> None:
        self._wrappers = RebuildCache(wrapper_bytes)
        self._slices: OrderedDict[_SliceKey, bytes] = OrderedDict()
        self._slices_room = slice_bytes

    def remember(self, prepared: Prepared) -> None:
        """Keep what was rebuilt while its set was appended."""
        serial, start, wrappers = prepared
        for position, stored_bytes, data in wrappers:
            self._wrappers.put(serial, start + position, stored_bytes, data)

    def of(self, stored: Sized, max_bytes: int) -> Sized:
        """``stored`` or the bytes to send instead, at most ``max_bytes`` past the first entry."""
        if not isinstance(stored, FileSlice):
            return stored
        file, position = stored.file, stored.position
        end = position + stored.size
        if end <= file.right_until:
            return stored
        key = (file.serial, position, stored.size, max_bytes)
        known = self._slices.get(key)
        if known is not None:
            self._slices.move_to_end(key)
            return known
        sent = self._wrappers.run(file.serial, position, end, max_bytes)
        if sent is None:
            data = stored.read()
            sent = absolute_slice(
                data,
                max_bytes=max_bytes,
                cache=self._wrappers,
                segment=file.serial,
                position=position,
            )
            if sent is data:
                if position <= file.right_until:
                    file.right_until = max(file.right_until, position + whole_bytes(data))
                return stored
        self._keep(key, sent)
        return sent

    def _keep(self, key: _SliceKey, data: bytes) -> None:
        self._slices[key] = data
        self._slices_room -= len(data)
        while self._slices_room < 0:
            _, dropped = self._slices.popitem(last=False)
            self._slices_room += len(dropped)
