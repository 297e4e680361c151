"""Entries of formats 1 and 2 without the messages that compaction removes.

All that stays keeps its bytes: records and inner messages their relative offsets, a batch its base
offset, last offset delta and producer, an entry its codec. Does not know which messages go.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from kafka08.message import records
from kafka08.message.batch import encode_batch, header_of
from kafka08.message.compression import NONE, compress
from kafka08.message.entry import (
    BATCH,
    TIMED,
    BytesLike,
    codec_of,
    encode_entry,
    is_stamped,
    key_and_value,
    magic_of,
    offset_and_stop,
    time_of,
)
from kafka08.message.leaves import inflated_records, timed_leaves
from kafka08.message.scan import iter_entries, newest_time

# (key, offset, is the value null) -> whether the message goes
Goes = Callable[[bytes, int, bool], bool]


def retained(entry: BytesLike, goes: Goes, producer_ends: Container[int] = ()) -> bytes | None:
    """The whole entry of format 1 or 2 without the messages that go: empty if none is left, None
    if all stay.

    A control batch stays. A batch that ends at one of ``producer_ends`` stays without its records:
    it holds what an idempotent producer has sent last. Raises as ``leaves`` does.
    """
    if magic_of(entry) == BATCH:
        return _batch(entry, goes, producer_ends)
    if codec_of(entry) == NONE:
        offset, _ = offset_and_stop(entry, 0)
        return b"" if _message_goes(entry, offset, goes) else None
    return _wrapper(entry, goes)


def _batch(entry: BytesLike, goes: Goes, producer_ends: Container[int]) -> bytes | None:
    header = header_of(entry)
    if header.is_control:
        return None
    parts = _records_left(entry, header.base_offset, goes) if header.count else []
    if not parts and (header.producer_id < 0 or header.last_offset not in producer_ends):
        return b""
    if len(parts) == header.count:
        return None
    kept = b"".join(parts)
    if header.codec:
        kept = compress(header.codec, kept, magic=BATCH)
    return encode_batch(header._replace(count=len(parts)), kept)


def emptied(entry: BytesLike) -> bytes:
    """The batch without its records."""
    header = header_of(entry)
    records_ = compress(header.codec, b"", magic=BATCH) if header.codec else b""
    return encode_batch(header._replace(count=0), records_)


def _records_left(entry: BytesLike, base: int, goes: Goes) -> list[memoryview]:
    data = memoryview(inflated_records(entry, 0, len(entry)))
    return [
        data[start:end]
        for delta, _, start, end, key, key_end, _, value_end in records.iter_rows(data)
        if key_end < 0 or not goes(bytes(data[key:key_end]), base + delta, value_end < 0)
    ]


def _wrapper(entry: BytesLike, goes: Goes) -> bytes | None:
    offset, _ = offset_and_stop(entry, 0)
    found = timed_leaves(entry, 0, len(entry))
    if not found.ordered:
        return None
    base = offset - found.last
    inner = [found.data[each.position : each.stop] for each in iter_entries(found.data)]
    kept = [one for one in inner if not _message_goes(one, base + offset_and_stop(one, 0)[0], goes)]
    if len(kept) == len(inner):
        return None
    if not kept:
        return b""
    data = b"".join(kept)
    last = base + offset_and_stop(kept[-1], 0)[0]
    codec = codec_of(entry)
    stamped = is_stamped(entry, 0)
    time = time_of(entry, 0) if stamped else newest_time(data, 0, len(data))[0]
    packed = compress(codec, data, magic=TIMED)
    return encode_entry(None, packed, last, codec, timestamp=time, stamped=stamped)


def _message_goes(message: BytesLike, offset: int, goes: Goes) -> bool:
    key, value = key_and_value(message, 0, len(message))
    return key is not None and goes(bytes(message[key[0] : key[1]]), offset, value is None)
