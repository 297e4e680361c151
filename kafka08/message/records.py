"""The records of a batch, inflated: checked, located, or written as messages of older formats.

A record is ``length varint | attributes i8 | timestamp delta varlong | offset delta varint | key
length varint, key | value length varint, value | header count varint, headers``, a header ``key
length varint, key | value length varint, value``. Varints are zigzag, seven bits a byte, low ones
first. A negative length of a key or value means null.

``untimed`` writes messages of format 1 as messages of format 0. All functions have a compiled
twin, ``kafka08._native.records``, which replaces them if it was built. It does not create a Python
object per record. Does not know codecs.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from struct import Struct

from kafka08._native import load
from kafka08.errors import InvalidRecordError
from kafka08.message.batch import (
    LOG_APPEND_TIME,
    MIN_BATCH_SIZE,
    NO_TIMESTAMP,
    RECORDS_AT,
    header_of,
)
from kafka08.message.entry import (
    BATCH,
    LOG_OVERHEAD,
    MIN_TIMED_SIZE,
    SIZE,
    TIMED_KEY_LENGTH_AT,
    BytesLike,
    Headers,
    check_bounds,
    has_right_crc,
    impossible_lengths,
    magic_of,
    with_header,
)
from kafka08.message.scan import iter_entries

ROW = 8  # numbers that ``rows`` gives for each record
_MIN_HEADER_BYTES = 2
_INT32_BYTES, _INT64_BYTES = 5, 10
_TIME = Struct(">q")
_LATEST = (1 << 63) - 1

# (offset delta, timestamp delta, start, end, key start, key end, value start, value end)
Row = tuple[int, int, int, int, int, int, int, int]


def check(
    data: BytesLike, position: int, stop: int, count: int, base: int
) -> tuple[bool, int, int]:
    """Check that exactly ``count`` whole records are stored from ``position`` to ``stop``, with
    the offset deltas 0, 1, 2 and so on. ``base`` is the base timestamp.

    Returns whether one of them has no key, and their oldest and newest timestamp (ms). Records
    with the timestamp -1 do not count for the oldest, which is the largest int64 without others.
    The newest is at least -1. Raises InvalidRecordError.
    """
    found = 0
    keyless = False
    oldest, newest = _LATEST, NO_TIMESTAMP
    for delta, time_delta, start, _, _, key_end, _, _ in _decoded(data, position, stop):
        if delta != found:
            raise wrong_delta(start, delta)
        found += 1
        keyless = keyless or key_end < 0
        timestamp = wrapped(base + time_delta)
        newest = max(newest, timestamp)
        if timestamp != NO_TIMESTAMP:
            oldest = min(oldest, timestamp)
    if found != count:
        raise wrong_count(found, count)
    return keyless, oldest, newest


def newest_time_of(data: BytesLike, position: int, stop: int, base: int) -> int:
    """The newest timestamp of the records; -1 without any. ``base`` is the base timestamp. Raises
    InvalidRecordError."""
    newest = NO_TIMESTAMP
    for _, time_delta, *_ in _decoded(data, position, stop):
        newest = max(newest, wrapped(base + time_delta))
    return newest


def rows(data: BytesLike, position: int, stop: int) -> array[int]:
    """The positions of all records: ROW numbers for each. See ``Row``; the end of a null is -1.

    Raises InvalidRecordError.
    """
    found = array("q")
    for row in _decoded(data, position, stop):
        found.extend(row)
    return found


def headers(data: bytes, row: Row) -> Headers:
    """The headers of the record that ``rows`` describes by ``row``. Raises InvalidRecordError."""
    _, _, start, end, _, _, value, value_end = row
    at = max(value, value_end)
    if data[at] == 0:
        return ()
    view = memoryview(data)
    count, at = _varint(view, at, end, start)
    found = []
    for _ in range(count):
        name, name_end, at = _bytes(view, at, end, start)
        content, content_end, at = _bytes(view, at, end, start)
        found.append(
            (
                data[name:name_end].decode(errors="replace"),
                data[content:content_end] if content_end >= 0 else None,
            )
        )
    return tuple(found)


def first_since(
    data: BytesLike, position: int, stop: int, base: int, time: int
) -> tuple[int, int] | None:
    """(offset delta, timestamp) of the first record whose timestamp is at least ``time``, if there
    is one. ``base`` is the base timestamp. Raises InvalidRecordError.
    """
    for delta, time_delta, *_ in _decoded(data, position, stop):
        timestamp = wrapped(base + time_delta)
        if timestamp >= time:
            return delta, timestamp
    return None


def entries(
    data: BytesLike, position: int, stop: int, magic: int, base: int, time: int, stamped: bool
) -> tuple[bytes, int, int]:
    """The records as plain entries of format ``magic``, 0 or 1: (bytes, count, last offset).

    Offsets count from ``base``. ``time`` is the base timestamp, or with ``stamped`` that of all
    records. Headers are left out. Without records the last offset is -1.
    Raises InvalidRecordError.
    """
    parts: list[bytes] = []
    last, count = -1, 0
    view = memoryview(data)
    for delta, time_delta, _, _, key, key_end, value, value_end in _decoded(data, position, stop):
        body = bytearray((magic, LOG_APPEND_TIME if stamped and magic else 0))
        if magic:
            body += _TIME.pack(time if stamped else wrapped(time + time_delta))
        for start, end in ((key, key_end), (value, value_end)):
            body += SIZE.pack(end - start if end >= 0 else -1) + view[start : max(end, start)]
        last = wrapped(base + delta)
        parts.append(with_header(last, body))
        count += 1
    return b"".join(parts), count, last


def batch_entries(
    data: BytesLike, position: int, end: int, magic: int, room: int
) -> tuple[bytes, int, bool]:
    """The records of whole batches without a codec, as plain entries of format ``magic``; where
    these batches stop; and whether they stop because there is no room.

    They stop before something else, a control batch or a damaged one, and before a batch that would
    make more than ``room`` bytes in all, unless nothing has been made.
    """
    parts: list[bytes] = []
    made = 0
    is_full = False
    check_bounds(data, position, end)
    while end - position >= RECORDS_AT and magic_of(data, position) == BATCH:
        header = header_of(data, position)
        stop = position + LOG_OVERHEAD + header.size
        if header.size < MIN_BATCH_SIZE or stop > end or header.codec or header.is_control:
            break
        if not has_right_crc(data, position, stop):
            break
        base, first = header.base_offset, position + RECORDS_AT
        try:
            found, _, _ = entries(data, first, stop, magic, base, header.time, header.is_stamped)
        except InvalidRecordError:
            break
        is_full = made > 0 and made + len(found) > room
        if is_full:
            break
        made += len(found)
        parts.append(found)
        position = stop
    return b"".join(parts), position, is_full


def header_count(data: BytesLike, position: int, stop: int) -> int:
    """The number of headers that all records have together. Raises InvalidRecordError."""
    view = memoryview(data)
    table = rows(data, position, stop)
    ends, values, value_ends = table[3::ROW], table[6::ROW], table[7::ROW]
    found = 0
    for end, value, value_end in zip(ends, values, value_ends, strict=True):
        at = max(value, value_end)
        if view[at]:
            found += _varint(view, at, end, at)[0]
    return found


def untimed(data: BytesLike, position: int, stop: int, distance: int) -> bytes:
    """Whole plain entries of format 1 as entries of format 0, with offsets higher by ``distance``.

    Raises InvalidMessageError for impossible lengths.
    """
    parts: list[bytes] = []
    view = memoryview(data)[:stop]
    for entry in iter_entries(view, position):
        if entry.size_total < LOG_OVERHEAD + MIN_TIMED_SIZE:
            raise impossible_lengths(position)
        position = entry.stop
        body = bytes(2) + view[entry.position + TIMED_KEY_LENGTH_AT : position]
        parts.append(with_header(wrapped(entry.offset + distance), body))
    if position < stop:
        raise impossible_lengths(position)
    return b"".join(parts)


def _decoded(data: BytesLike, position: int, stop: int) -> Iterator[Row]:
    check_bounds(data, position, stop)
    view = memoryview(data)
    while position < stop:
        row = _row(view, position, stop)
        yield row
        position = row[3]


def _row(view: memoryview, start: int, stop: int) -> Row:
    length, at = _varint(view, start, stop, start)
    end = at + length
    if length < 1 or end > stop:
        raise malformed(start)
    at += 1  # attributes
    time_delta, at = _varint(view, at, end, start, _INT64_BYTES)
    delta, at = _varint(view, at, end, start)
    key, key_end, at = _bytes(view, at, end, start)
    value, value_end, at = _bytes(view, at, end, start)
    headers, at = _varint(view, at, end, start)
    if not 0 <= headers <= (end - at) // _MIN_HEADER_BYTES:
        raise malformed(start)
    for _ in range(headers):
        _, name_end, at = _bytes(view, at, end, start)
        if name_end < 0:
            raise malformed(start)
        _, _, at = _bytes(view, at, end, start)
    if at != end:
        raise malformed(start)
    return delta, time_delta, start, end, key, key_end, value, value_end


def _bytes(view: memoryview, at: int, end: int, start: int) -> tuple[int, int, int]:
    """(start, end or -1 for null, position after it)"""
    length, at = _varint(view, at, end, start)
    if length < 0:
        return at, -1, at
    if length > end - at:
        raise malformed(start)
    return at, at + length, at + length


def _varint(
    view: memoryview, at: int, end: int, start: int, most: int = _INT32_BYTES
) -> tuple[int, int]:
    found = shift = 0
    for byte in view[at : min(at + most, end)]:
        found |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < 0x80:
            if found >> (64 if most == _INT64_BYTES else 32):
                break
            return found >> 1 ^ -(found & 1), at
    raise malformed(start)


def wrapped(number: int) -> int:
    """As an int64: a sum of two overflows as that of the original does."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def malformed(position: int) -> InvalidRecordError:
    """The error of a record whose lengths do not add up."""
    return InvalidRecordError(f"The record at position {position} is malformed")


def wrong_delta(position: int, delta: int) -> InvalidRecordError:
    """The error of a record out of its order."""
    return InvalidRecordError(f"The record at position {position} has the offset delta {delta}")


def wrong_count(found: int, count: int) -> InvalidRecordError:
    """The error of a batch that does not hold what its header says."""
    return InvalidRecordError(f"A batch holds {found} records, its header says {count}")


plain_check, plain_rows, plain_entries, plain_untimed = check, rows, entries, untimed
plain_first_since, plain_batch_entries = first_since, batch_entries
plain_newest_time_of = newest_time_of


def number_plain(
    buffer: memoryview, base: int, epoch: int, max_size: int, oldest: int, newest: int
) -> int:
    """Check and number, in place and in one step, a set that is most common: one batch without a
    codec, all of whose claims are right, with times from ``oldest`` to ``newest`` (ms) and a size
    of at most ``max_size`` as stored in it.

    Returns the number of its records. It is 0 for any other set, which does not change: then
    ``timed_sets.number_timed_set`` says what it is. ``epoch``: the leader's. Only the compiled twin
    has this step.
    """
    return 0


native = load("records")
if native is not None:
    number_plain = native.number_plain
    check, rows, entries, untimed = native.check, native.rows, native.entries, native.untimed
    first_since, batch_entries = native.first_since, native.batch_entries
    newest_time_of = native.newest_time_of


def iter_rows(data: BytesLike) -> Iterator[tuple[int, ...]]:
    """The rows of all of ``data`` one at a time. Raises InvalidRecordError."""
    numbers = iter(rows(data, 0, len(data)))
    return zip(*[numbers] * ROW, strict=True)
