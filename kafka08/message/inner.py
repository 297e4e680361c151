"""What is inside a compressed wrapper: its leaf messages, back to back.

A wrapper is an entry with a codec whose value is a compressed message set. That set may hold
wrappers again (0.8.2.2 flattens any depth, here one more level is followed); the messages that
are none are the leaves. Mirrors the deep half of kafka.message.ByteBufferMessageSet. Never looks
at stored inner offsets.
"""

from __future__ import annotations

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
    BytesLike,
    key_and_value,
    refuse_short,
)
from kafka08.message.runs import MIN_RUN_BYTES, RETRY_AFTER, plain_run

MAX_NESTING = 1


class Leaves(NamedTuple):
    """The leaf enretry_at of a wrapper as they came, offsets included.

    ``exact`` says that ``data`` is the inflated value itself: no nested wrapper, no cut tail.
    """

    data: bytes
    count: int  # type: ignore[assignment]  # hides tuple.count
    exact: bool


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

    Raises CorruptCompressionError (null or undecodable value), MessageSizeTooLargeError (inflates
    too far), UnknownError (codec 4 to 7), InvalidMessageError (an inner entry is shorter than a
    message can be, has a wrong crc when these are checked, or is nested too deep).
    """
    return _leaves(buffer, position, stop, codec, max_inflated, check_crc, MAX_NESTING)


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
    room -= len(data)
    view = memoryview(data)
    parts: list[BytesLike] = []
    count = 0
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
            room -= len(nested.data)
            parts += (view[start:position], nested.data)
            count += nested.count
            start = stop
        else:
            count += 1
        position = stop
    refuse_short(data, position, end)
    if start == 0 and position == end:
        return Leaves(data, count, True)
    parts.append(view[start:position])
    return Leaves(b"".join(parts), count, False)


def _value(buffer: BytesLike, position: int, stop: int) -> BytesLike:
    try:
        _, value = key_and_value(buffer, position, stop)
    except InvalidMessageError as error:
        raise CorruptCompressionError(str(error)) from error
    if value is None:
        raise CorruptCompressionError("A compressed message has a null value")
    return buffer[value[0] : value[1]]
