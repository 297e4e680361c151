"""A wrapper written anew, with the true offsets inside.

The one way there is, whether it happens when a set is appended (``message_set.assign_offsets``)
or when a consumer asks for it (``wrapped``): from the same entry comes the same result. Knows
neither what sets are nor who keeps the result.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka08.errors import InvalidMessageError
from kafka08.message.compression import FASTEST, compress
from kafka08.message.inner import Leaves, numbered_from
from kafka08.message.message import (
    CODEC_MASK,
    ENTRY_OVERHEAD,
    OFFSET,
    SIZE,
    BytesLike,
    encode_entry,
    key_and_value,
)
from kafka08.message.runs import MIN_RUN_BYTES, RETRY_AFTER, stamp_run


class Rebuilt(NamedTuple):
    """What consumers get for the wrapper whose ``stored_bytes`` lie at ``position``; of one that
    is right as it is the same bytes."""

    position: int
    stored_bytes: int
    data: bytes


def is_right(found: Leaves, last: int) -> bool:
    """Whether a wrapper with offset ``last`` may be sent as it is: plain messages only, all with
    their true offsets."""
    return found.exact and numbered_from(found, last) is None


def rebuilt_entry(entry: BytesLike, found: Leaves, last: int) -> bytes:
    """The wrapper ``entry``, whose leaves are ``found``, as one with offset ``last`` must be.

    Raises InvalidMessageError for one without messages.
    """
    if not found.count:
        raise InvalidMessageError("A compressed message holds no messages")
    codec = entry[17] & CODEC_MASK
    table = bytearray(found.data)
    first = numbered_from(found, last)
    if first is not None:
        number(table, first)
    span, _ = key_and_value(entry, 0, len(entry))
    key = None if span is None else bytes(entry[span[0] : span[1]])
    return encode_entry(key, compress(codec, table, level=FASTEST), last, codec)


def number(table: bytearray, first: int) -> int:
    """Write consecutive offsets into whole plain entries; returns how many there are."""
    view = memoryview(table)
    end = len(table)
    offset = first
    position = retry_at = 0
    last_try = end - MIN_RUN_BYTES
    size_at, put = SIZE.unpack_from, OFFSET.pack_into
    while position < end:
        (size,) = size_at(table, position + 8)
        if retry_at <= position <= last_try:
            octets = stamp_run(view, position, end, size, offset)
            if octets:
                offset += octets // (ENTRY_OVERHEAD + size)
                position += octets
                continue
            retry_at = position + RETRY_AFTER * size
        put(table, position, offset)
        offset += 1
        position += ENTRY_OVERHEAD + size
    return offset - first
