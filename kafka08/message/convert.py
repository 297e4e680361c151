"""Entries of formats 1 and 2 in format 0 or 1: for older clients, brokers and topics.

Offsets, keys, values and codec stay; headers, the producer's identity and, in format 0, timestamps
are lost. zstd, which formats 0 and 1 do not know, becomes gzip. A batch without a codec becomes
plain entries, one for each record. A compressed batch becomes one wrapper with the offset of its
last record; inside format 1 offsets count from the batch's base offset. A control batch and a batch
without records become nothing.
"""

from __future__ import annotations

from kafka08.errors import UnsupportedForMessageFormatError
from kafka08.message import records
from kafka08.message.batch import header_of
from kafka08.message.compression import FASTEST, GZIP, MAX_INFLATED, NONE, ZSTD, compress
from kafka08.message.entry import (
    BATCH,
    TIMED,
    BytesLike,
    codec_of,
    encode_entry,
    magic_of,
    offset_and_stop,
)
from kafka08.message.leaves import inflated_records, leaves
from kafka08.message.scan import newest_time, walk


def converted(entry: BytesLike, target: int, max_inflated: int) -> tuple[bytes, int]:
    """A whole entry of format 1 or 2 in the lower format ``target``, and the bytes inflated.

    Raises as ``leaves`` does.
    """
    if target == TIMED and magic_of(entry) == BATCH:
        return _timed(entry, max_inflated)
    codec = codec_of(entry)
    found = leaves(entry, 0, len(entry), codec, max_inflated=max_inflated)
    if codec == NONE or not found.count:
        return found.data, found.inflated
    codec = GZIP if codec == ZSTD else codec
    packed = compress(codec, found.data, level=FASTEST)
    return encode_entry(None, packed, found.last_stored, codec), found.inflated


def _timed(entry: BytesLike, max_inflated: int) -> tuple[bytes, int]:
    """A batch in format 1."""
    header = header_of(entry)
    if header.is_control:
        return b"", 0
    data = inflated_records(entry, 0, len(entry), max_inflated)
    base = header.base_offset if header.codec == NONE else 0
    stamped = header.is_stamped
    found, count, last = records.entries(data, 0, len(data), TIMED, base, header.time, stamped)
    if header.codec == NONE or not count:
        return found, len(data)
    codec = GZIP if header.codec == ZSTD else header.codec
    newest, _ = newest_time(found, 0, len(found))
    packed = compress(codec, found, level=FASTEST, magic=TIMED)
    offset = header.base_offset + last
    wrapper = encode_entry(None, packed, offset, codec, timestamp=newest, stamped=stamped)
    return wrapper, len(data)


def plain_run(data: BytesLike, position: int, target: int, room: int) -> tuple[bytes, int, bool]:
    """As ``records.batch_entries``, of plain entries of format 1 or 2 from ``position`` on.

    Messages of format 1 stop before one that is damaged or ends after ``room`` bytes, unless that
    is the first; whether the next one has room is not said, as it becomes shorter.
    """
    end = len(data)
    if magic_of(data, position) == BATCH:
        return records.batch_entries(data, position, end, target, room)
    _, first_stop = offset_and_stop(data, position)
    end = min(max(position + room, first_stop), end)
    stop = walk(data, position, end, check_crc=True, magic=TIMED).stop
    return records.untimed(data, position, stop, 0), stop, False


def converted_set(data: BytesLike, target: int) -> bytes:
    """A whole set of format 1 or 2, numbered already, in the lower format ``target``.

    Raises as ``leaves`` does.
    """
    parts = []
    position, end = 0, len(data)
    while position < end:
        walked = walk(data, position, end, magic=TIMED)
        if walked.count:
            parts.append(records.untimed(data, position, walked.stop, 0))
        position = walked.stop
        if position < end:
            _, stop = offset_and_stop(data, position)
            parts.append(converted(data[position:stop], target, MAX_INFLATED)[0])
            position = stop
    return b"".join(parts)


def count_headers(entry: BytesLike) -> int:
    """The headers of all records in a whole entry. Raises as ``leaves`` does."""
    if magic_of(entry) != BATCH or header_of(entry).is_control:
        return 0
    data = inflated_records(entry, 0, len(entry))
    return records.header_count(data, 0, len(data))


def refuse_headers(entry: BytesLike) -> None:
    """Raise UnsupportedForMessageFormatError if a record of the entry has headers."""
    if count_headers(entry):
        raise UnsupportedForMessageFormatError("The partition's message format has no headers")
