"""Entries that 0.8.2.2 cannot read, as messages of format 0.

These are entries of formats 1 and 2, and records of ``__consumer_offsets`` in later versions.
Offsets, keys, values and codecs stay; zstd becomes gzip. Headers, timestamps, control batches and
groups are lost, and counted.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from kafka08.errors import ProtocolError
from kafka08.groups.records import (
    GroupPartition,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    is_original,
)
from kafka08.message.batch import header_of
from kafka08.message.compression import GZIP, ZSTD
from kafka08.message.convert import count_headers
from kafka08.message.entry import BATCH, TIMED, BytesLike, codec_of, encode_entry, magic_of, time_of
from kafka08.message.leaves import leaves
from kafka08.message.sets import iter_messages

LOSSES = ("headers", "timestamps", "groups", "control", "aborted")


class Lowered(NamedTuple):
    """Plain entries of format 0, to be packed with ``codec``, and how much of LOSSES was lost:
    headers, messages with a timestamp, records of groups, control batches, messages of aborted
    transactions."""

    table: bytes
    codec: int
    lost: Counter[str]


def lowered(entry: BytesLike) -> Lowered | None:
    """A whole entry with a right crc; None if it has format 0. Raises KafkaError."""
    magic, codec = magic_of(entry), codec_of(entry)
    if magic not in (TIMED, BATCH):
        return None
    found = leaves(entry, 0, len(entry), codec)
    packed = GZIP if codec == ZSTD else codec
    if magic == TIMED:
        timestamps = found.count if time_of(entry, 0) >= 0 else 0
        return Lowered(found.data, packed, Counter(timestamps=timestamps))
    header = header_of(entry)
    if header.is_control:
        return Lowered(b"", packed, Counter(control=1))
    timestamps = found.count if header.max_timestamp >= 0 else 0
    lost = Counter(headers=count_headers(entry), timestamps=timestamps)
    return Lowered(found.data, packed, lost)


def lowered_offsets(entry: BytesLike) -> Lowered | None:
    """The same for an entry of ``__consumer_offsets``; None if 0.8.2.2 reads all of it."""
    low = lowered(entry)
    kept = []
    lost, changed = Counter(low.lost if low else ()), low is not None
    for message in iter_messages(entry):
        key, value = message.key or b"", message.value
        if not is_original(key, value):
            changed = True
            record = _original_record(key, value)
            if record is None:
                lost["groups"] += 1
                continue
            key, value = record
        kept.append(encode_entry(key, value, message.offset))
    if not changed:
        return None
    return Lowered(b"".join(kept), low.codec if low else codec_of(entry), lost)


def _original_record(key: bytes, value: bytes | None) -> tuple[bytes, bytes | None] | None:
    """A committed offset in version 0; None for a group and for records without a reader."""
    try:
        found = decode_key(key)
        if not isinstance(found, GroupPartition):
            return None
        return encode_key(found), None if value is None else encode_value(decode_value(value))
    except ProtocolError:
        return None


def filler(offset: int, *, offsets_topic: bool) -> bytes:
    """A message for the last offset of a log whose last entry is lost: without it the log would end
    earlier, and consumers that have read it would be out of its range."""
    if offsets_topic:
        return encode_entry(encode_key(GroupPartition("", "", 0)), None, offset)
    return encode_entry(b"", b"", offset)
