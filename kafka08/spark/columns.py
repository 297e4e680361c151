"""Converts stored message sets to Arrow columns, with one copy of each column.

Does not create an object per message: ``message.scan`` returns positions, and Arrow gathers the
bytes. Offsets are the true ones (see ``message.wrappers``), and crcs are checked. Does not know
sockets or Spark.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka08.message.entry import WRAPPER, codec_of, offset_and_stop
from kafka08.message.scan import FIELDS, fields, refuse, walk
from kafka08.message.wrappers import leaves, numbered_from
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


def record_batch(data: Any, wanted: Range) -> tuple[pa.RecordBatch | None, int | None]:
    """The messages of ``wanted`` among those of a set; a ``Decode`` of RangeReader's.

    Raises InvalidMessageError and what ``message.wrappers.leaves`` raises.
    """
    found = _Places()
    found.take(memoryview(data))
    if found.following is None:
        return None, None
    low = bisect_left(found.offsets, wanted.start)
    high = bisect_left(found.offsets, wanted.end, low)
    if low == high:
        return None, found.following
    rows = high - low
    offsets = pa.py_buffer(found.offsets[low:high])
    columns = [
        found.column(0, low, high),
        found.column(1, low, high),
        pa.repeat(pa.scalar(wanted.topic, pa.string()), rows),
        pa.repeat(pa.scalar(wanted.partition, pa.int32()), rows),
        pa.Array.from_buffers(pa.int64(), rows, [None, offsets]),
        pa.nulls(rows, SCHEMA.field("timestamp").type),
        pa.repeat(pa.scalar(NO_TIMESTAMP_TYPE, pa.int32()), rows),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA), found.following


class _Places:
    """The true offsets of messages, and where their keys and values stand in ``parts``, joined."""

    def __init__(self) -> None:
        self.offsets = array("q")
        self.parts: list[memoryview] = []
        self.following: int | None = None
        self._rows: list[array[int]] = []  # of each part

    def take(self, view: memoryview, number: int | None = None, *, check_crc: bool = True) -> None:
        """All whole entries of ``view``, numbered from ``number`` or with their own offsets."""
        position = 0
        while True:
            walked = walk(view, position, len(view), check_crc=check_crc)
            if walked.count:
                self._note(view[position : walked.stop], number)
                self.following = self.offsets[-1] + 1
                number = None if number is None else number + walked.count
            position = walked.stop
            if walked.ended != WRAPPER:
                break
            offset, stop = offset_and_stop(view, position)
            found = leaves(view, position, stop, codec_of(view, position), check_crc=check_crc)
            self.take(memoryview(found.data), numbered_from(found, offset), check_crc=False)
            self.following = offset + 1
            position = stop
        refuse(view, walked)

    def _note(self, part: memoryview, number: int | None) -> None:
        rows = fields(part, 0, len(part), number)
        self.offsets += rows[0::FIELDS]
        self.parts.append(part)
        self._rows.append(rows)

    def column(self, which: int, low: int, high: int) -> pa.Array:
        """The keys (0) or values (1) of the rows from ``low`` to ``high``."""
        rows = high - low
        starts, ends = self._bounds(which)
        starts, ends = starts.slice(low, rows), ends.slice(low, rows)
        if ends.null_count == rows:
            return pa.nulls(rows, pa.binary())
        # Of all stretches between the bounds, which rise throughout, every other one is a cell.
        bounds = array("i", bytes(8 * rows))
        bounds[0::2] = _int32s(starts)
        bounds[1::2] = _int32s(pc.coalesce(ends, starts))
        data = pa.py_buffer(self.parts[0] if len(self.parts) == 1 else b"".join(self.parts))
        stretches = pa.Array.from_buffers(
            pa.binary(), 2 * rows - 1, [None, pa.py_buffer(bounds), data]
        )
        cells = pa.array(range(0, 2 * rows, 2), pa.int32())
        if ends.null_count:
            cells = pc.if_else(ends.is_valid(), cells, None)
        return stretches.take(cells)

    def _bounds(self, which: int) -> tuple[pa.Array, pa.Array]:
        """Starts and ends of a column, counted from the first part; the end of a null is null."""
        starts, ends, shift = [], [], 0
        for part, rows in zip(self.parts, self._rows, strict=True):
            begin = _int64s(rows[1 + 2 * which :: FIELDS])
            end = _int64s(rows[2 + 2 * which :: FIELDS])
            starts.append(pc.add(begin, shift))
            ends.append(pc.if_else(pc.greater_equal(end, 0), pc.add(end, shift), None))
            shift += len(part)
        return pa.concat_arrays(starts), pa.concat_arrays(ends)


def _int64s(numbers: array[int]) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def _int32s(numbers: pa.Array) -> array[int]:
    cast = numbers.cast(pa.int32())
    found = array("i")
    found.frombytes(memoryview(cast.buffers()[1])[4 * cast.offset : 4 * (cast.offset + len(cast))])
    return found
