"""Stored message sets as Arrow columns: where keys and values stand, and one copy of each column.

No object is made per message: the walk notes places, a run of entries of one size at a time, and
Arrow gathers. Offsets are the true ones (see ``message.inner``), crcs are checked. Knows neither
sockets nor Spark.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Any

import pyarrow as pa

from kafka08.errors import InvalidMessageError
from kafka08.message.compression import MAX_INFLATED
from kafka08.message.crc import crc32
from kafka08.message.inner import leaves, numbered_from
from kafka08.message.message import (
    CODEC_MASK,
    CRC_START,
    ENTRY_OVERHEAD,
    FIELDS,
    MIN_MESSAGE_SIZE,
    SIZE,
    impossible_lengths,
    refuse_short,
)
from kafka08.message.runs import MIN_RUN_BYTES, RETRY_AFTER, offsets_of, plain_run
from kafka08.spark.planner import Range

NO_TIMESTAMP_TYPE = -1
# A record batch must have exactly the schema that Spark makes of the source's columns.
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
    ]
)
_MIN_ENTRY = ENTRY_OVERHEAD + MIN_MESSAGE_SIZE


def record_batch(data: Any, wanted: Range) -> tuple[pa.RecordBatch | None, int | None]:
    """The messages of ``wanted`` among those of a set; a ``Decode`` of RangeReader's.

    Raises InvalidMessageError and what ``message.inner.leaves`` raises.
    """
    walk = _Walk()
    walk.entries(memoryview(data))
    if walk.following is None:
        return None, None
    low = bisect_left(walk.offsets, wanted.start)
    high = bisect_left(walk.offsets, wanted.end, low)
    if low == high:
        return None, walk.following
    rows = high - low
    offsets = pa.py_buffer(walk.offsets[low:high])
    columns = [
        walk.column(0, low, high),
        walk.column(1, low, high),
        pa.repeat(pa.scalar(wanted.topic, pa.string()), rows),
        pa.repeat(pa.scalar(wanted.partition, pa.int32()), rows),
        pa.Array.from_buffers(pa.int64(), rows, [None, offsets]),
        pa.nulls(rows, SCHEMA.field("timestamp").type),
        pa.repeat(pa.scalar(NO_TIMESTAMP_TYPE, pa.int32()), rows),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA), walk.following


class _Walk:
    """Notes where keys and values stand in ``parts``, joined: four places a row, and a byte that
    says which of the two are there (1: the key, 2: the value)."""

    def __init__(self) -> None:
        self.offsets = array("q")
        self.parts: list[Any] = []
        self.following: int | None = None
        self._places = array("i")
        self._there = bytearray()
        self._total = 0

    def entries(
        self, view: memoryview, first: int | None = None, *, check_crc: bool = True
    ) -> None:
        """All whole entries of ``view``, numbered from ``first`` or with their own offsets."""
        end = len(view)
        start = position = retry_at = 0
        last_try = end - MIN_RUN_BYTES
        number = first
        shift = self._total
        # The names of the loop's functions are bound here: it runs for every entry of odd size.
        fields, length_at, crc_of = FIELDS.unpack_from, SIZE.unpack_from, crc32
        note, note_there, note_offset = (
            self._places.extend,
            self._there.append,
            self.offsets.append,
        )
        while position + _MIN_ENTRY <= end:
            offset, size, crc, _, attributes, key_length = fields(view, position)
            if retry_at <= position <= last_try:
                rows = self._run(view, position, end, size, position + shift, number, check_crc)
                if rows:
                    position += rows * (ENTRY_OVERHEAD + size)
                    number = None if number is None else number + rows
                    continue
                retry_at = position + RETRY_AFTER * size
            stop = position + ENTRY_OVERHEAD + size
            if size < MIN_MESSAGE_SIZE or stop > end:
                break
            if check_crc and crc_of(view[position + CRC_START : stop]) != crc:
                raise InvalidMessageError(
                    f"Message at position {position}, offset {offset}, is corrupt "
                    f"(stored crc = {crc})"
                )
            codec = attributes & CODEC_MASK
            if codec:
                self._keep(view[start:position])
                found = leaves(
                    view, position, stop, codec, max_inflated=MAX_INFLATED, check_crc=check_crc
                )
                self.entries(memoryview(found.data), numbered_from(found, offset), check_crc=False)
                self.following = offset + 1
                start = position = stop
                shift = self._total - start
                continue
            key = position + FIELDS.size
            key_end, there = (key + key_length, 1) if key_length >= 0 else (key, 0)
            value = value_end = key_end + SIZE.size
            if value > stop:
                raise impossible_lengths(position)
            (length,) = length_at(view, key_end)
            if length >= 0:
                value_end += length
                there |= 2
                if value_end > stop:
                    raise impossible_lengths(position)
            note((key + shift, key_end + shift, value + shift, value_end + shift))
            note_there(there)
            if number is not None:
                offset = number
                number += 1
            note_offset(offset)
            position = stop
        refuse_short(view, position, end)
        self._keep(view[start:position])
        if self.offsets and check_crc:
            self.following = max(self.following or 0, self.offsets[-1] + 1)

    def _keep(self, part: memoryview) -> None:
        if len(part):
            self.parts.append(part)
            self._total += len(part)

    def _run(
        self,
        view: memoryview,
        position: int,
        end: int,
        size: int,
        at: int,
        number: int | None,
        check_crc: bool,
    ) -> int:
        """How many entries from ``position`` on are a run whose lengths are all the same; it
        stands at ``at`` in the joined parts."""
        table = plain_run(view, position, end, size, check_crc=check_crc)
        if table is None:
            return 0
        width = ENTRY_OVERHEAD + size
        rows = len(table) // width
        (key_length,) = SIZE.unpack_from(table, FIELDS.size - SIZE.size)
        length_at = FIELDS.size + max(key_length, 0)
        if length_at + SIZE.size > width:
            return 0
        (length,) = SIZE.unpack_from(table, length_at)
        if length_at + SIZE.size + max(length, 0) > width:
            return 0
        for start in (FIELDS.size - SIZE.size, length_at):
            for index in range(start, start + SIZE.size):
                if table[index::width].count(table[index]) != rows:
                    return 0
        value = length_at + SIZE.size
        places = array("i", bytes(16 * rows))
        for column, place in enumerate((FIELDS.size, length_at, value, value + max(length, 0))):
            begin = at + place
            places[column::4] = array("i", range(begin, begin + rows * width, width))
        self._places += places
        self._there += bytes(((key_length >= 0) + 2 * (length >= 0),)) * rows
        if number is None:
            self.offsets.extend(offsets_of(table, size))
        else:
            self.offsets.extend(range(number, number + rows))
        return rows

    def column(self, which: int, low: int, high: int) -> pa.Array:
        """The keys (0) or values (1) of the rows from ``low`` to ``high``."""
        rows = high - low
        there = self._there[low:high].translate(_FLAGS[which])
        nulls = there.count(0)
        if nulls == rows:
            return pa.nulls(rows, pa.binary())
        # Of all stretches between the bounds, which rise throughout, every other one is a cell.
        bounds = array("i", bytes(8 * rows))
        bounds[0::2] = self._places[4 * low + 2 * which : 4 * high : 4]
        bounds[1::2] = self._places[4 * low + 2 * which + 1 : 4 * high : 4]
        data = pa.py_buffer(self.parts[0] if len(self.parts) == 1 else b"".join(self.parts))
        stretches = pa.Array.from_buffers(
            pa.binary(), 2 * rows - 1, [None, pa.py_buffer(bounds), data]
        )
        bitmap = None
        if nulls:
            flags = pa.Array.from_buffers(pa.uint8(), rows, [None, pa.py_buffer(there)])
            bitmap = flags.cast(pa.bool_()).buffers()[1]
        numbers = pa.py_buffer(array("i", range(0, 2 * rows, 2)))
        return stretches.take(pa.Array.from_buffers(pa.int32(), rows, [bitmap, numbers]))


# Of the bytes that say what is there: whether the key is, whether the value is.
_FLAGS = [bytes((byte >> which) & 1 for byte in range(256)) for which in (0, 1)]
