"""The messages inside an entry: of a wrapper, inflated, and of a batch.

The leaves of a wrapper of format 0 are the plain messages in it, as stored, at any depth that is
allowed. The leaves of entries of formats 1 and 2 are converted: they are messages of format 0 with
their true offsets, which ``scan.fields`` and others read. Does not know sets, nor which stored
offsets are true (``wrappers.numbered_from``).
"""

from __future__ import annotations

from typing import NamedTuple

from kafka08.errors import InvalidMessageError, InvalidRecordError, UnknownError
from kafka08.message import records
from kafka08.message.batch import RECORDS_AT, header_of
from kafka08.message.compression import (
    MAX_INFLATED,
    NONE,
    ZSTD,
    CorruptCompressionError,
    decompress,
)
from kafka08.message.entry import (
    BAD_CRC,
    BATCH,
    DISORDER,
    TIMED,
    WRAPPER,
    BytesLike,
    codec_of,
    is_later,
    key_and_value,
    magic_of,
    offset_and_stop,
)
from kafka08.message.scan import refuse, walk

MAX_NESTING = 1
_BEFORE_ALL = -(1 << 63)


class Leaves(NamedTuple):
    """The leaf entries of a wrapper as stored, including their offsets.

    ``exact``: ``data`` is the inflated value itself, without nested wrappers or a cut tail.
    ``last_stored`` is the stored offset of the last leaf (-1 if there is none).
    ``inflated`` counts all inflated bytes, including those of nested wrappers.
    ``converted``: they are made from a later format, and their offsets are the true ones.
    """

    data: bytes
    count: int  # type: ignore[assignment]  # hides tuple.count
    exact: bool
    last_stored: int
    inflated: int
    converted: bool = False


def leaves(
    buffer: BytesLike,
    position: int,
    stop: int,
    codec: int,
    *,
    max_inflated: int = MAX_INFLATED,
    check_crc: bool = False,
) -> Leaves:
    """Inflate the wrapper entry at ``position`` to ``stop`` to at most ``max_inflated`` bytes.

    It may also be a batch or a plain message of format 1. A control batch has no leaves.

    Raises CorruptCompressionError (null or undecodable value), InflatesTooFarError (inflates
    too far), UnknownError (unknown codec), InvalidMessageError (an inner entry is shorter than any
    message, has a wrong crc if crcs are checked, or is nested too deep; a record is malformed).
    """
    magic = magic_of(buffer, position)
    if magic == BATCH:
        return _of_batch(buffer, position, stop, max_inflated)
    if magic == TIMED:
        return _of_timed(buffer, position, stop, max_inflated, check_crc)
    return _leaves(buffer, position, stop, codec, max_inflated, check_crc, MAX_NESTING)


def offsets_rise(data: bytes, magic: int = 0) -> bool:
    """Whether the offsets of whole plain entries of format ``magic`` (0 or 1) rise strictly."""
    return walk(data, 0, len(data), last=_BEFORE_ALL, magic=magic).ended != DISORDER


def inflated_records(
    buffer: BytesLike, position: int, stop: int, max_inflated: int = MAX_INFLATED
) -> BytesLike:
    """The records of the batch at ``position`` to ``stop``, inflated. Raises as ``leaves``."""
    stored = memoryview(buffer)[position + RECORDS_AT : stop]
    codec = codec_of(buffer, position)
    return stored if codec == NONE else decompress(codec, stored, max_inflated)


def _of_batch(buffer: BytesLike, position: int, stop: int, room: int) -> Leaves:
    header = header_of(buffer, position)
    if header.is_control:
        return Leaves(b"", 0, False, -1, 0, True)
    data = inflated_records(buffer, position, stop, room)
    found, count, last = records.entries(data, 0, len(data), 0, header.base_offset, 0, False)
    return Leaves(found, count, False, last, len(data), True)


class TimedLeaves(NamedTuple):
    """The leaves of a wrapper of format 1 as stored, with their relative offsets from ``first`` to
    ``last``. ``ordered``: these rise."""

    data: bytes
    count: int  # type: ignore[assignment]  # hides tuple.count
    first: int
    last: int
    ordered: bool


def timed_leaves(
    buffer: BytesLike,
    position: int,
    stop: int,
    *,
    max_inflated: int = MAX_INFLATED,
    check_crc: bool = False,
) -> TimedLeaves:
    """Inflate a wrapper of format 1. Raises as ``leaves``; only messages of format 1 may be in
    it."""
    codec = codec_of(buffer, position)
    if codec == ZSTD:
        raise UnknownError(f"Unknown compression codec {codec}")
    data = decompress(codec, _value(buffer, position, stop), max_inflated)
    walked = walk(data, 0, len(data), check_crc=check_crc, magic=TIMED)
    if walked.ended == BAD_CRC:
        raise InvalidMessageError("A message inside a compressed one fails its crc")
    if walked.ended == WRAPPER:
        raise InvalidRecordError("A compressed message of format 1 holds something else inside")
    refuse(data, walked)
    whole = data[: walked.stop]
    ordered = offsets_rise(whole, TIMED)
    return TimedLeaves(whole, walked.count, walked.first, walked.last, ordered)


def _of_timed(buffer: BytesLike, position: int, stop: int, room: int, check_crc: bool) -> Leaves:
    offset, _ = offset_and_stop(buffer, position)
    if codec_of(buffer, position) == NONE:
        return Leaves(records.untimed(buffer, position, stop, 0), 1, False, offset, 0, True)
    found = timed_leaves(buffer, position, stop, max_inflated=room, check_crc=check_crc)
    data = records.untimed(found.data, 0, len(found.data), offset - found.last)
    if not found.ordered:
        table = bytearray(data)
        walk(table, 0, len(table), number=offset - found.count + 1)
        data = bytes(table)
    last = offset if found.count else -1
    return Leaves(data, found.count, False, last, len(found.data), True)


def _leaves(
    buffer: BytesLike,
    position: int,
    stop: int,
    codec: int,
    room: int,
    check_crc: bool,
    levels: int,
) -> Leaves:
    if codec == ZSTD:
        raise UnknownError(f"Unknown compression codec {codec}")
    data = decompress(codec, _value(buffer, position, stop), room)
    inflated = len(data)
    room -= inflated
    view = memoryview(data)
    parts: list[BytesLike] = []
    count, last = 0, -1
    start = at = 0  # start of the leaves not yet in parts, and the position of the walk
    while True:
        walked = walk(data, at, len(data), check_crc=check_crc)
        at = walked.stop
        if walked.count:
            count += walked.count
            last = walked.last
        if walked.ended != WRAPPER:
            break
        if is_later(data, at):
            raise InvalidRecordError("A compressed message of format 0 holds something else inside")
        if not levels:
            raise InvalidMessageError("Compressed messages are nested too deep")
        _, stop = offset_and_stop(data, at)
        nested = _leaves(data, at, stop, codec_of(data, at), room, check_crc, levels - 1)
        room -= nested.inflated
        inflated += nested.inflated
        parts += (view[start:at], nested.data)
        if nested.count:
            count += nested.count
            last = nested.last_stored
        start = at = stop
    if walked.ended == BAD_CRC:
        raise InvalidMessageError("A message inside a compressed one fails its crc")
    refuse(data, walked)
    if start == 0 and at == len(data):
        return Leaves(data, count, True, last, inflated)
    parts.append(view[start:at])
    return Leaves(b"".join(parts), count, False, last, inflated)


def _value(buffer: BytesLike, position: int, stop: int) -> BytesLike:
    try:
        _, value = key_and_value(buffer, position, stop)
    except InvalidMessageError as error:
        raise CorruptCompressionError(str(error)) from error
    if value is None:
        raise CorruptCompressionError("A compressed message has a null value")
    return buffer[value[0] : value[1]]
