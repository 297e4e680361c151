"""Converts stored message sets to Arrow columns, with one copy of each column.

Does not create an object per message: ``message.scan`` gathers keys and values, and Arrow takes
them as they are. Offsets are the true ones (see ``message.wrappers``), and crcs are checked. Does
not know sockets or Spark.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kafka08.message.entry import WRAPPER, Cells, codec_of, offset_and_stop
from kafka08.message.leaves import leaves
from kafka08.message.scan import columns, refuse, walk
from kafka08.message.wrappers import numbered_from
from kafka08.spark.planner import Range

NO_TIMESTAMP_TYPE = -1
TIMESTAMP = pa.timestamp("us", tz="UTC")
# A record batch must have exactly the schema that Spark makes of the source's columns.
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", TIMESTAMP),
        ("timestampType", pa.int32()),
    ]
)


def record_batch(
    data: Any, wanted: Range, timestamp_ms: int
) -> tuple[pa.RecordBatch | None, int | None]:
    """The messages of ``wanted`` among those of a set, all with ``timestamp_ms`` of the epoch.

    This is what a ``Decode`` of RangeReader returns. Raises InvalidMessageError and what
    ``message.wrappers.leaves`` raises.
    """
    found = _Parts()
    found.take(memoryview(data), wanted)
    if not found.parts:
        return None, found.following
    keys, values, offsets = map(_joined, zip(*found.parts, strict=True))
    rows = len(offsets)
    arrays = [
        keys,
        values,
        pa.repeat(pa.scalar(wanted.topic, pa.string()), rows),
        pa.repeat(pa.scalar(wanted.partition, pa.int32()), rows),
        offsets,
        pa.repeat(pa.scalar(timestamp_ms * 1000, pa.int64()).cast(TIMESTAMP), rows),
        pa.repeat(pa.scalar(NO_TIMESTAMP_TYPE, pa.int32()), rows),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA), found.following


class _Parts:
    """Keys, values and true offsets of messages, for each stretch of plain entries."""

    def __init__(self) -> None:
        self.parts: list[tuple[pa.Array, pa.Array, pa.Array]] = []
        self.following: int | None = None

    def take(
        self, view: memoryview, wanted: Range, number: int | None = None, *, check_crc: bool = True
    ) -> None:
        """All whole entries of ``view``, numbered from ``number`` or with their own offsets."""
        position = 0
        while True:
            walked = walk(view, position, len(view), check_crc=check_crc)
            if walked.count:
                self._note(columns(view, position, walked.stop, number), wanted)
                number = None if number is None else number + walked.count
            position = walked.stop
            if walked.ended != WRAPPER:
                break
            offset, stop = offset_and_stop(view, position)
            found = leaves(view, position, stop, codec_of(view, position), check_crc=check_crc)
            inner = memoryview(found.data)
            self.take(inner, wanted, numbered_from(found, offset), check_crc=False)
            self.following = offset + 1
            position = stop
        refuse(view, walked)

    def _note(self, found: tuple[bytes, Cells | None, Cells | None], wanted: Range) -> None:
        offsets, keys, values = found
        numbers = memoryview(offsets).cast("q")
        self.following = numbers[-1] + 1
        low = bisect_left(numbers, wanted.start)
        rows = bisect_left(numbers, wanted.end, low) - low
        if rows:
            part = (
                _binary(keys, len(numbers)),
                _binary(values, len(numbers)),
                pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(offsets)]),
            )
            self.parts.append(tuple(column.slice(low, rows) for column in part))


def _binary(cells: Cells | None, rows: int) -> pa.Array:
    if cells is None:
        return pa.nulls(rows, pa.binary())
    valid = None if cells.valid is None else pa.py_buffer(cells.valid)
    buffers = [valid, pa.py_buffer(cells.bounds), pa.py_buffer(cells.data)]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


def _joined(arrays: Sequence[pa.Array]) -> pa.Array:
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
