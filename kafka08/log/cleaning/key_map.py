"""The last offset of each key in the dirty part of a log, as far as there is room.

The map is bounded by the real memory of its entries, so that log.cleaner.dedupe.buffer.size limits
memory: a full map causes another pass over the log, not more memory. Also walks the entries of a
stretch of a log file for their keys. Does not know files.
"""

from __future__ import annotations

import os

from kafka08.errors import InvalidMessageError
from kafka08.log.cleaning.offset_map import ENTRY_BYTES, OffsetMap
from kafka08.log.cleaning.transactions import Aborted
from kafka08.message.batch import header_of
from kafka08.message.entry import (
    ABOVE,
    BAD_CRC,
    BAD_DELTA,
    BATCH,
    CUT,
    DISORDER,
    END,
    OFFSET_AND_SIZE,
    PAUSED,
    SHORT,
    WRAPPER,
    BytesLike,
    Walked,
    codec_of,
    magic_of,
    offset_and_stop,
)
from kafka08.message.leaves import Leaves, leaves
from kafka08.message.scan import iter_fields, walk
from kafka08.message.wrappers import number, numbered_from

_STRETCH = 64 * 1024  # bytes of messages processed at a time


def max_entries(buffer_bytes: int, load_factor: float) -> int:
    """How many keys fit into a buffer of that size."""
    return max(int(buffer_bytes / ENTRY_BYTES * min(max(load_factor, 0.0), 1.0)), 1)


class KeyMap:
    """Key -> offset for up to ``room`` keys. ``last_offset`` is that of the last message added
    (-1: none)."""

    def __init__(self, room: int, aborted: Aborted | None = None) -> None:
        """Messages of ``aborted`` transactions are left out."""
        self.room = room
        self._aborted = aborted or Aborted()
        self.last_offset = -1
        self._map = OffsetMap(room, os.urandom(16))

    def __len__(self) -> int:
        return len(self._map)

    @property
    def is_full(self) -> bool:
        return len(self) >= self.room

    def is_superseded(self, key: bytes, offset: int) -> bool:
        """Whether a message after the one at ``offset`` has this key."""
        return self._map.get(key) > offset

    def survivors(
        self, data: bytes, position: int, stop: int, tombstones_below: int
    ) -> tuple[list[tuple[int, int]], int]:
        """See ``PlainOffsetMap.survivors``."""
        return self._map.survivors(data, position, stop, tombstones_below)

    def add(self, data: bytes, first_offset: int) -> int:
        """Add the whole entries of ``data`` from ``first_offset`` on, as long as there is room;
        returns the bytes processed. A wrapper is added as a whole, even if it exceeds the room.

        Raises InvalidMessageError (crc, sizes, order) and what ``wrappers.leaves`` raises.
        """
        known = walk(data, 0, len(data), check_crc=True, up_to=first_offset - 1, wrappers=True)
        if known.ended != ABOVE:
            refuse(data, known, first_offset)
            return known.stop
        position, end = known.stop, len(data)
        while len(self) < self.room:
            walked = walk(
                data,
                position,
                end,
                check_crc=True,
                last=self.last_offset,
                until=position + _STRETCH,
            )
            position, count, last = self._map.add_plain(data, position, walked.stop)
            self.last_offset = last if count else self.last_offset
            if len(self) >= self.room:
                break
            if walked.ended == WRAPPER:
                offset, position = self._add_wrapper(data, position, first_offset)
                self.last_offset = offset
            elif walked.ended != PAUSED:
                refuse(data, walked, self.last_offset)
                break
        return position

    def _add_wrapper(self, data: bytes, position: int, first_offset: int) -> tuple[int, int]:
        """Add the messages of a wrapper; returns its offset and where it ends."""
        offset, stop = offset_and_stop(data, position)
        if magic_of(data, position) == BATCH and header_of(data, position) in self._aborted:
            return offset, stop
        found = wrapper_leaves(data, position, stop)
        table = with_true_offsets(found, offset)
        start = walk(table, 0, len(table), up_to=first_offset - 1).stop
        if len(self) + found.count <= self.room:
            self._map.add_plain(table, start, len(table))
        else:
            for at, key_at, key_end, _, _ in iter_fields(table, start, len(table)):
                if key_end >= 0:
                    self._map.put(table[key_at:key_end], at)
        return offset, stop


def wrapper_leaves(data: BytesLike, position: int, stop: int) -> Leaves:
    """The leaves of a wrapper entry, with crcs checked. Raises as ``wrappers.leaves``."""
    return leaves(data, position, stop, codec_of(data, position), check_crc=True)


def with_true_offsets(found: Leaves, wrapper_offset: int) -> bytes:
    """The messages of a wrapper as plain entries with their true offsets; ``found.data`` itself if
    it has them."""
    first = numbered_from(found, wrapper_offset)
    if first is None:
        return found.data
    table = bytearray(found.data)
    number(table, first)
    return bytes(table)


def refuse(data: bytes, walked: Walked, last: int) -> None:
    """Raise InvalidMessageError if the walk ended at a damaged entry.

    ``last`` is the offset of the entry before it.
    """
    if walked.ended in (END, CUT):
        return
    offset, size = OFFSET_AND_SIZE.unpack_from(data, walked.stop)
    raise InvalidMessageError(
        {
            SHORT: f"The entry at offset {offset} has the impossible size {size}",
            BAD_CRC: f"The entry at offset {offset} fails its crc",
            BAD_DELTA: f"The batch at offset {offset} has an impossible last offset",
            DISORDER: f"Offset {offset} follows {last}: offsets must rise",
        }[walked.ended]
    )
