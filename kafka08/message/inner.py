"""What is inside a compressed wrapper: its leaf messages, back to back.

A wrapper is an entry with a codec whose value is a compressed message set. That set may hold
wrappers again (0.8.2.2 flattens any depth, here one more level is followed); the messages that
are none are the leaves. Mirrors the deep half of kafka.message.ByteBufferMessageSet.

What the leaves carry as offsets is mostly the producer's affair, such as 0 to n-1; but the
cleaner's wrappers, which may have gaps, and those of 0.8.2.2 carry true ones. ``numbered_from``
is the one place that tells these apart: in a wrapper with offset W the stored offsets are true
if and only if they rise strictly and the last equals W; otherwise leaf i of n has W - (n-1) + i.
Whoever gives a produced wrapper its offset sees to it that odd bytes cannot look true
(``message_set.assign_offsets``).
"""

from __future__ import annotations

from operator import lt
from typing import NamedTuple

from kafka08.errors import InvalidMessageError
from kafka08.message.compression import MAX_INFLATED, CorruptCompressionError, decompress
from kafka08.message.crc import crc32
from kafka08.message.message import (
    CODEC_MASK,
    CRC_START,
    ENTRY_OVERHEAD,
    HEADER,
    MIN_MESSAGE_SIZE,
    OFFSET,
    OFFSET_AND_SIZE,
    BytesLike,
    key_and_value,
    refuse_short,
)
from kafka08.message.runs import MIN_RUN_BYTES, RETRY_AFTER, offsets_of, plain_run

MAX_NESTING = 1


class Leaves(NamedTuple):
    """The leaf entries of a wrapper as they came, offsets included.

    ``exact`` says that ``data`` is the inflated value itself: no nested wrapper, no cut tail.
    ``last_stored`` is the offset that the last leaf carries (-1 when there is none).
    ``inflated`` counts every byte that was inflated on the way, those of nested wrappers too.
    """

    data: bytes
    count: int  # type: ignore[assignment]  # hides tuple.count
    exact: bool
    last_stored: int
    inflated: int


def leaves(
    buffer: BytesLike,
    position: int,
    stop: int,
    codec: int,
    *,
    max_inflated: int = MAX_INFLATED,
    check_crc: bool = False,
) -> Leaves:
    """Inflate the wrapper entry at ``position`` to ``stop``; all of it within ``max_inflated``.

    Raises CorruptCompressionError (null or undecodable value), InflatesTooFarError (inflates
    too far), UnknownError (codec 4 to 7), InvalidMessageError (an inner entry is shorter than a
    message can be, has a wrong crc when these are checked, or is nested too deep).
    """
    return _leaves(buffer, position, stop, codec, max_inflated, check_crc, MAX_NESTING)


def numbered_from(found: Leaves, wrapper_offset: int) -> int | None:
    """The true offset of the first leaf when all are consecutive up to ``wrapper_offset``, or
    None: the offsets that the leaves carry are the true ones."""
    if found.last_stored == wrapper_offset and found.count and _rise(found.data):
        return None
    return wrapper_offset - found.count + 1


def looks_true_with_gaps(found: Leaves, wrapper_offset: int) -> bool:
    """Whether the leaves' own offsets would be taken for true ones without being consecutive."""
    if found.last_stored != wrapper_offset or not found.count:
        return False
    first = OFFSET.unpack_from(found.data)[0]
    return first != wrapper_offset - found.count + 1 and _rise(found.data)


def _rise(data: bytes) -> bool:
    """Whether the offsets of whole plain entries rise strictly."""
    view = memoryview(data)
    end = len(data)
    position = retry_at = 0
    last = -(1 << 63) - 1
    while position < end:
        offset, size = OFFSET_AND_SIZE.unpack_from(data, position)
        if offset <= last:
            return False
        if position >= retry_at:
            table = plain_run(view, position, end, size, check_crc=False)
            if table is not None:
                offsets = offsets_of(table, size)
                if not all(map(lt, offsets, offsets[1:])):
                    return False
                last = offsets[-1]
                position += len(table)
                continue
            retry_at = position + RETRY_AFTER * size
        last = offset
        position += ENTRY_OVERHEAD + size
    return True


def _leaves(
    buffer: BytesLike,
    position: int,
    stop: int,
    codec: int,
    room: int,
    check_crc: bool,
    levels: int,
) -> Leaves:
    data = decompress(codec, _value(buffer, position, stop), room)
    inflated = len(data)
    room -= inflated
    view = memoryview(data)
    parts: list[BytesLike] = []
    count = 0
    last, last_at = -1, -1  # the last leaf's offset, or where it stands in data
    start = position = 0  # where the leaves not yet in parts begin, and where the walk stands
    end = len(data)
    retry_at = 0
    last_try = end - MIN_RUN_BYTES
    header, crc_of = HEADER.unpack_from, crc32
    while position + ENTRY_OVERHEAD + MIN_MESSAGE_SIZE <= end:
        _, size, crc, attributes = header(data, position)
        if retry_at <= position <= last_try:
            table = plain_run(view, position, end, size, check_crc=check_crc)
            if table is not None:
                position += len(table)
                count += len(table) // (ENTRY_OVERHEAD + size)
                last_at = position - ENTRY_OVERHEAD - size
                continue
            retry_at = position + RETRY_AFTER * size
        stop = position + ENTRY_OVERHEAD + size
        if size < MIN_MESSAGE_SIZE or stop > end:
            break
        if check_crc and crc_of(view[position + CRC_START : stop]) != crc:
            raise InvalidMessageError("A message inside a compressed one fails its crc")
        codec = attributes & CODEC_MASK
        if codec:
            if not levels:
                raise InvalidMessageError("Compressed messages are nested too deep")
            nested = _leaves(data, position, stop, codec, room, check_crc, levels - 1)
            room -= nested.inflated
            inflated += nested.inflated
            parts += (view[start:position], nested.data)
            count += nested.count
            if nested.count:
                last, last_at = nested.last_stored, -1
            start = stop
        else:
            count += 1
            last_at = position
        position = stop
    refuse_short(data, position, end)
    if last_at >= 0:
        last = OFFSET.unpack_from(data, last_at)[0]
    if start == 0 and position == end:
        return Leaves(data, count, True, last, inflated)
    parts.append(view[start:position])
    return Leaves(b"".join(parts), count, False, last, inflated)


def _value(buffer: BytesLike, position: int, stop: int) -> BytesLike:
    try:
        _, value = key_and_value(buffer, position, stop)
    except InvalidMessageError as error:
        raise CorruptCompressionError(str(error)) from error
    if value is None:
        raise CorruptCompressionError("A compressed message has a null value")
    return buffer[value[0] : value[1]]
