"""Encodes records as a batch of format 2. If it was built, ``kafka08._native.batches`` writes the
records. ``records`` reads what stands here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafka08._native import load
from kafka08.message.batch import NO_PRODUCER, Batch, encode_batch
from kafka08.message.compression import NONE, compress
from kafka08.message.entry import BATCH

Fields = Sequence[bytes | None]
_NO_HEADERS = b"\0"


class Sender(NamedTuple):
    """The producer of a batch and the sequence of its first record; ``attributes`` of the batch
    besides the codec."""

    producer_id: int = NO_PRODUCER
    epoch: int = NO_PRODUCER
    first_sequence: int = NO_PRODUCER
    attributes: int = 0


NOBODY = Sender()


def encode_records(
    values: Fields,
    keys: Fields | None,
    times: Sequence[int],
    headers: Fields | None,
    codec: int = NONE,
    sender: Sender = NOBODY,
) -> bytes:
    """The set as one batch of format 2, with offsets from 0 on.

    ``times``: ms of the epoch, one for each record. ``headers``: those of each record with their
    count, encoded, or None; as a whole None if no record has any.
    """
    first = times[0]
    data = records(values, keys, times, headers)
    header = Batch(
        base_offset=0,
        size=0,
        leader_epoch=-1,
        magic=BATCH,
        crc=0,
        attributes=codec | sender.attributes,
        last_delta=len(values) - 1,
        base_timestamp=first,
        max_timestamp=max(times),
        producer_id=sender.producer_id,
        producer_epoch=sender.epoch,
        base_sequence=sender.first_sequence,
        count=len(values),
    )
    return encode_batch(header, compress(codec, data, magic=BATCH) if codec else data)


def plain_records(
    values: Fields, keys: Fields | None, times: Sequence[int], headers: Fields | None
) -> bytes:
    """The records back to back; their offset deltas count from 0, times from the first one."""
    out, body = bytearray(), bytearray()
    first = times[0] if times else 0
    for index, value in enumerate(values):
        body[:] = b"\0"  # attributes
        put_varint(body, times[index] - first)
        put_varint(body, index)
        put_bytes(body, None if keys is None else keys[index])
        put_bytes(body, value)
        body += (None if headers is None else headers[index]) or _NO_HEADERS
        put_varint(out, len(body))
        out += body
    return bytes(out)


def put_bytes(out: bytearray, value: bytes | None) -> None:
    """Append bytes behind their length, a varint; -1 for None."""
    if value is None:
        out.append(1)  # the varint -1
    else:
        put_varint(out, len(value))
        out += value


def put_varint(out: bytearray, number: int) -> None:
    """Append a zigzag varint."""
    zigzag = number << 1 if number >= 0 else ~number << 1 | 1
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)


records = plain_records
native = load("batches")
if native is not None:
    records = native.records
