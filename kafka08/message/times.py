"""The first message with a timestamp at or after a time, in a stretch of entries of any format.

``newest`` finds the newest time instead. Messages of format 0 do not have a timestamp. Inside a
compressed entry the message counts, not the entry. The header of a batch that was appended
unchecked, by an earlier release or another broker, may have no largest timestamp although its
records have times. If it is below the base timestamp, the records are read instead. Does not know
files.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka08.errors import KafkaError
from kafka08.message import records
from kafka08.message.batch import NO_TIMESTAMP, RECORDS_AT, header_of
from kafka08.message.compression import MAX_INFLATED, NONE
from kafka08.message.entry import (
    BATCH,
    BytesLike,
    codec_of,
    is_stamped,
    magic_of,
    offset_and_stop,
    time_of,
)
from kafka08.message.leaves import inflated_records, timed_leaves
from kafka08.message.scan import iter_entries, newest_time, walk
from kafka08.message.sets import iter_messages

_ANY = -(1 << 63)
_UNCLEAR = (1 << 63) - 1


class Found(NamedTuple):
    """A message: its offset and its timestamp (ms)."""

    offset: int
    timestamp: int


def first_since(
    buffer: BytesLike,
    time: int,
    start: int = 0,
    *,
    max_inflated: int = MAX_INFLATED,
    stop: int | None = None,
) -> Found | None:
    """The first message of whole entries, which end at ``stop``, from the offset ``start`` on whose
    timestamp is at least ``time``.

    Raises as ``leaves`` does for the entry that holds it, InflatesTooFarError above
    ``max_inflated``.
    """
    position, end = 0, len(buffer) if stop is None else stop
    if start > 0:
        position = walk(buffer, 0, end, up_to=start - 1, reach=end, wrappers=True).stop
    while newest_time(buffer, position, end, _UNCLEAR)[0] >= time:
        position, after = _first_entry(buffer, position, end, time)
        found = _first_in(buffer, position, after, time, max_inflated)
        if found is not None and found.offset < start:
            found = _first_from(memoryview(buffer)[position:after], time, start)
        if found is not None:
            return found
        position = after  # the header names a later timestamp than any record has, or none
    return None


def has_unclear(buffer: BytesLike) -> bool:
    """Whether a batch in a stretch of entries, of which the last may be cut, has a largest
    timestamp that cannot be right."""
    return newest_time(buffer, 0, len(buffer), _UNCLEAR)[0] == _UNCLEAR


def newest(buffer: BytesLike) -> tuple[int, int]:
    """As ``scan.newest_time`` of whole entries, with the times of the records where the header of
    a batch cannot be right. A batch that cannot be read counts with its header."""
    found = newest_time(buffer, 0, len(buffer), _UNCLEAR)
    if found[0] < _UNCLEAR:
        return found
    view = memoryview(buffer)
    best = (NO_TIMESTAMP, NO_TIMESTAMP)
    for entry in iter_entries(view):
        one = view[entry.position : entry.stop]
        time, offset = newest_time(one, 0, len(one))
        if has_unclear(one):
            time, offset = max(time, _newest_in_batch(one)), entry.offset
        if time > best[0]:
            best = time, offset
    return best


def _newest_in_batch(batch: memoryview) -> int:
    try:
        data = inflated_records(batch, 0, len(batch))
        base = header_of(batch).base_timestamp
        return records.newest_time_of(data, 0, len(data), base)
    except KafkaError:
        return NO_TIMESTAMP


def _first_entry(buffer: BytesLike, position: int, stop: int, time: int) -> tuple[int, int]:
    """Position and end of the first entry with at least this time; there is one."""
    span = stop - position
    while span > 1:
        span //= 2
        half = walk(buffer, position, stop, until=position + span, wrappers=True).stop
        if half >= stop:
            continue
        if newest_time(buffer, position, half, _UNCLEAR)[0] >= time:
            stop = half
        else:
            position = half
        span = stop - position
    return position, stop


def _first_in(
    buffer: BytesLike, position: int, stop: int, time: int, max_inflated: int
) -> Found | None:
    if magic_of(buffer, position) == BATCH:
        return _first_in_batch(buffer, position, stop, time, max_inflated)
    offset, _ = offset_and_stop(buffer, position)
    if codec_of(buffer, position) == NONE:
        return Found(offset, time_of(buffer, position))
    inside = timed_leaves(buffer, position, stop, max_inflated=max_inflated)
    data, end = inside.data, len(inside.data)
    if not inside.count:
        return None
    at = 0
    timestamp = time_of(buffer, position)
    if not is_stamped(buffer, position):
        if newest_time(data, 0, end)[0] < time:
            return None
        at, _ = _first_entry(data, 0, end, time)
        timestamp = time_of(data, at)
    if inside.ordered:
        return Found(offset - inside.last + offset_and_stop(data, at)[0], timestamp)
    before = walk(data, 0, at, wrappers=True).count
    return Found(offset - inside.count + 1 + before, timestamp)


def _first_from(entry: memoryview, time: int, start: int) -> Found | None:
    """In an entry of which a part counts."""
    found = (Found(each.offset, each.timestamp) for each in iter_messages(entry, check_crc=False))
    return next((each for each in found if each.offset >= start and each.timestamp >= time), None)


def _first_in_batch(
    buffer: BytesLike, position: int, stop: int, time: int, max_inflated: int
) -> Found | None:
    header = header_of(buffer, position)
    if header.codec:
        data = inflated_records(buffer, position, stop, max_inflated)
        start, end = 0, len(data)
    else:
        data, start, end = buffer, position + RECORDS_AT, stop
    least = _ANY if header.is_stamped else time
    found = records.first_since(data, start, end, header.base_timestamp, least)
    if found is None:
        return None
    delta, timestamp = found
    timestamp = header.max_timestamp if header.is_stamped else timestamp
    return Found(header.base_offset + delta, timestamp)
