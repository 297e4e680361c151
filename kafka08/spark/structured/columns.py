"""Converts stored message sets to Arrow columns, with one copy of each column.

Does not create an object per message: ``message.scan`` gathers keys and values, and Arrow takes
them as they are. Only headers are objects, of the messages that have any. Offsets are the true ones
(see ``message.wrappers``), and crcs are checked. Does not know sockets or Spark.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafka08.message import records
from kafka08.message.batch import header_of
from kafka08.message.entry import (
    APPEND_TIME,
    BATCH,
    CREATE_TIME,
    NO_TIMESTAMP_TYPE,
    WRAPPER,
    BytesLike,
    Cells,
    codec_of,
    is_later,
    magic_of,
    offset_and_stop,
)
from kafka08.message.leaves import inflated_records, leaves
from kafka08.message.scan import columns, refuse, walk
from kafka08.message.timed_messages import timed_messages
from kafka08.message.wrappers import numbered_from
from kafka08.spark.planner import Range

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
HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))
SCHEMA_WITH_HEADERS = SCHEMA.append(pa.field("headers", HEADERS))
# The largest number of ms that is a number of microseconds.
_LAST_MS = ((1 << 63) - 1) // 1000


def record_batch(
    data: BytesLike, wanted: Range, timestamp_ms: int | None, *, headers: bool = False
) -> tuple[pa.RecordBatch | None, int | None]:
    """The messages of ``wanted`` among those of a set; with ``headers`` there is a column of them.

    Messages without a timestamp have ``timestamp_ms`` (of the epoch; None for null) and
    NO_TIMESTAMP_TYPE.
    This is what a ``Decode`` of RangeReader returns. Raises InvalidMessageError and what
    ``message.leaves.leaves`` raises.
    """
    found = _Parts(headers)
    found.take(memoryview(data), wanted)
    if not found.parts:
        return None, found.following
    keys, values, offsets, added = zip(*found.parts, strict=True)
    rows = sum(map(len, offsets))
    arrays = [
        _joined(keys),
        _joined(values),
        pa.repeat(pa.scalar(wanted.topic, pa.string()), rows),
        pa.repeat(pa.scalar(wanted.partition, pa.int32()), rows),
        _joined(offsets),
    ]
    if any(added):
        counted = [(each or _NOTHING, len(part)) for each, part in zip(added, offsets, strict=True)]
        arrays.append(_joined([_times(*each, timestamp_ms) for each in counted]))
        arrays.append(_joined([pa.repeat(pa.scalar(e.kind, pa.int32()), n) for e, n in counted]))
    else:
        arrays.append(_times(_NOTHING, rows, timestamp_ms))
        arrays.append(pa.repeat(pa.scalar(NO_TIMESTAMP_TYPE, pa.int32()), rows))
    if not headers:
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA), found.following
    of_rows = [
        row
        for each, part in zip(added, offsets, strict=True)
        for row in (each.headers if each else [None] * len(part))
    ]
    arrays.append(pa.array(of_rows, HEADERS))  # a struct may be given as a tuple of its fields
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA_WITH_HEADERS), found.following


class _Added(NamedTuple):
    """The data that messages of formats 1 and 2 have beside keys and values.

    ``times``: int64, ms; -1 for none. ``kind`` is the timestamp type of all. ``headers``: None for
    a message without any; empty if they are not wanted.
    """

    times: pa.Array | None
    kind: int
    headers: list[list[tuple[str, bytes | None]] | None]

    def cut(self, low: int, rows: int) -> _Added:
        assert self.times is not None
        return _Added(self.times.slice(low, rows), self.kind, self.headers[low : low + rows])


_NOTHING = _Added(None, NO_TIMESTAMP_TYPE, [])


class _Parts:
    """Keys, values and true offsets of messages, for each stretch of plain entries, and what
    messages of later formats add."""

    def __init__(self, headers: bool) -> None:
        self.parts: list[tuple[pa.Array, pa.Array, pa.Array, _Added | None]] = []
        self.following: int | None = None
        self._headers = headers

    def take(
        self,
        view: memoryview,
        wanted: Range,
        number: int | None = None,
        added: _Added | None = None,
        *,
        check_crc: bool = True,
    ) -> None:
        """All whole entries of ``view``, numbered from ``number`` or with their own offsets.

        ``added`` belongs to plain entries that were made of one entry of a later format.
        """
        position = 0
        while True:
            walked = walk(view, position, len(view), check_crc=check_crc)
            if walked.count:
                self._note(columns(view, position, walked.stop, number), wanted, added)
                number = None if number is None else number + walked.count
            position = walked.stop
            if walked.ended != WRAPPER:
                break
            offset, stop = offset_and_stop(view, position)
            if is_later(view, position):
                inner, new = self._later(view, position, stop, check_crc)
                self.take(inner, wanted, None, new, check_crc=False)
            else:
                found = leaves(view, position, stop, codec_of(view, position), check_crc=check_crc)
                inner = memoryview(found.data)
                self.take(inner, wanted, numbered_from(found, offset), check_crc=False)
            self.following = offset + 1
            position = stop
        refuse(view, walked)

    def _later(
        self, view: memoryview, position: int, stop: int, check_crc: bool
    ) -> tuple[memoryview, _Added]:
        """An entry of format 1 or 2 as plain entries of format 0, and the rest of it."""
        if magic_of(view, position) == BATCH:
            return self._of_batch(view, position, stop)
        found = leaves(view, position, stop, codec_of(view, position), check_crc=check_crc)
        messages = list(timed_messages(view, position, stop))
        times = pa.array([message.timestamp for message in messages], pa.int64())
        kind = messages[0].timestamp_type if messages else NO_TIMESTAMP_TYPE
        return memoryview(found.data), _Added(times, kind, [None] * len(messages))

    def _of_batch(self, view: memoryview, position: int, stop: int) -> tuple[memoryview, _Added]:
        header = header_of(view, position)
        if header.is_control:
            return memoryview(b""), _NOTHING
        data = bytes(inflated_records(view, position, stop))
        plain, count, _ = records.entries(data, 0, len(data), 0, header.base_offset, 0, False)
        rows = records.rows(data, 0, len(data))
        if header.is_stamped:
            times = pa.repeat(pa.scalar(header.max_timestamp, pa.int64()), count)
        else:
            deltas = pa.Array.from_buffers(
                pa.int64(), count, [None, pa.py_buffer(rows[1 :: records.ROW])]
            )
            times = pc.add(deltas, pa.scalar(header.base_timestamp, pa.int64()))
        headers: list[list[tuple[str, bytes | None]] | None] = []
        if self._headers:
            each_row = zip(*[iter(rows)] * records.ROW, strict=True)
            headers = [list(records.headers(data, row)) or None for row in each_row]
        kind = APPEND_TIME if header.is_stamped else CREATE_TIME
        return memoryview(plain), _Added(times, kind, headers)

    def _note(
        self,
        found: tuple[bytes, Cells | None, Cells | None],
        wanted: Range,
        added: _Added | None,
    ) -> None:
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
            key, value, offset = (column.slice(low, rows) for column in part)
            self.parts.append((key, value, offset, added and added.cut(low, rows)))


def _times(added: _Added, rows: int, timestamp_ms: int | None) -> pa.Array:
    """``timestamp_ms`` for messages without a timestamp."""
    if added.times is None:
        micros = None if timestamp_ms is None else timestamp_ms * 1000
        return pa.repeat(pa.scalar(micros, pa.int64()).cast(TIMESTAMP), rows)
    own = pa.scalar(timestamp_ms, pa.int64())
    given = pc.min_element_wise(added.times, pa.scalar(_LAST_MS, pa.int64()))
    times = pc.if_else(pc.less(given, 0), own, given)
    return pc.multiply(times, 1000).cast(TIMESTAMP)


def _binary(cells: Cells | None, rows: int) -> pa.Array:
    if cells is None:
        return pa.nulls(rows, pa.binary())
    valid = None if cells.valid is None else pa.py_buffer(cells.valid)
    buffers = [valid, pa.py_buffer(cells.bounds), pa.py_buffer(cells.data)]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


def _joined(arrays: Sequence[pa.Array]) -> pa.Array:
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
