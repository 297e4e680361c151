"""Encodes a batch of records as a message set, of format 0 or of format 2.

In format 0 these are the bytes of ``sets.encode_set``, made faster. If they were built,
``kafka08._native.encode`` writes the entries and ``kafka08._native.batches`` the records of a
batch. Does not know partitions or brokers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

from kafka08._native import load
from kafka08.message.batch import NO_PRODUCER, Batch
from kafka08.message.batch import encode_batch as encode_record_batch
from kafka08.message.compression import NONE, compress
from kafka08.message.entry import BATCH, encode_entry
from kafka08.producer.errors import SerializationError
from kafka08.protocol.schemas import NO_EPOCH

Fields = Sequence[bytes | None]
_NO_HEADERS = b"\0"


def encode_batch(values: Fields, keys: Fields | None, codec: int = NONE) -> bytes:
    """The set; ``keys`` None means that no record has one. With a codec, one wrapper.

    Plain entries all have the offset 0, since the leader numbers them.
    """
    if codec == NONE:
        return entries(values, keys, False)
    inner = entries(values, keys, True)
    return encode_entry(None, compress(codec, inner), len(values) - 1, codec)


def plain_entries(values: Fields, keys: Fields | None, numbered: bool) -> bytes:
    """The entries back to back, with offsets from 0 on if ``numbered``, else all 0."""
    offsets = range(len(values)) if numbered else repeat(0)
    pairs = zip(repeat(None) if keys is None else keys, values, offsets)  # noqa: B905  (endless)
    return b"".join([encode_entry(key, value, offset) for key, value, offset in pairs])


entries = plain_entries
native = load("encode")
if native is not None:
    entries = native.entries


def encode_records(
    values: Fields,
    keys: Fields | None,
    times: Sequence[int],
    headers: Fields | None,
    codec: int = NONE,
) -> bytes:
    """The set as one batch of format 2, with offsets from 0 on.

    ``times``: ms of the epoch, one for each record. ``headers``: those of each record as
    ``encode_headers`` writes them, or None; as a whole None if no record has any.
    """
    first = times[0]
    data = records(values, keys, times, headers)
    header = Batch(
        base_offset=0,
        size=0,
        leader_epoch=NO_EPOCH,
        magic=BATCH,
        crc=0,
        attributes=codec,
        last_delta=len(values) - 1,
        base_timestamp=first,
        max_timestamp=max(times),
        producer_id=NO_PRODUCER,
        producer_epoch=NO_PRODUCER,
        base_sequence=NO_PRODUCER,
        count=len(values),
    )
    return encode_record_batch(header, compress(codec, data, magic=BATCH) if codec else data)


def encode_headers(headers: Iterable[tuple[str, bytes | None]]) -> bytes:
    """The headers of one record with their count. Raises SerializationError."""
    found = list(headers)
    out = bytearray()
    _put_varint(out, len(found))
    for name, value in found:
        if not isinstance(name, str) or not (value is None or isinstance(value, bytes)):
            raise SerializationError(
                f"A header must be a name (str) and a value (bytes or None), not "
                f"({type(name).__name__}, {type(value).__name__})"
            )
        _put_bytes(out, name.encode())
        _put_bytes(out, value)
    return bytes(out)


def plain_records(
    values: Fields, keys: Fields | None, times: Sequence[int], headers: Fields | None
) -> bytes:
    """The records back to back; their offset deltas count from 0, times from the first one."""
    out, body = bytearray(), bytearray()
    first = times[0] if times else 0
    for index, value in enumerate(values):
        body[:] = b"\0"  # attributes
        _put_varint(body, times[index] - first)
        _put_varint(body, index)
        _put_bytes(body, None if keys is None else keys[index])
        _put_bytes(body, value)
        body += (None if headers is None else headers[index]) or _NO_HEADERS
        _put_varint(out, len(body))
        out += body
    return bytes(out)


def _put_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        out.append(1)  # the varint -1
    else:
        _put_varint(out, len(value))
        out += value


def _put_varint(out: bytearray, number: int) -> None:
    zigzag = number << 1 if number >= 0 else ~number << 1 | 1
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)


records = plain_records
native_records = load("batches")
if native_records is not None:
    records = native_records.records
