"""Encodes a batch of records as a message set of format 0, and the headers of records.

The bytes are those of ``sets.encode_set``, made faster. If it was built, ``kafka08._native.encode``
writes the entries. Does not know partitions or brokers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat

from kafka08._native import load
from kafka08.message.compression import NONE, compress
from kafka08.message.entry import encode_entry
from kafka08.message.record_sets import put_bytes, put_varint
from kafka08.producer.errors import SerializationError

Fields = Sequence[bytes | None]


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


def encode_headers(headers: Iterable[tuple[str, bytes | None]]) -> bytes:
    """The headers of one record with their count. Raises SerializationError."""
    found = list(headers)
    out = bytearray()
    put_varint(out, len(found))
    for name, value in found:
        if not isinstance(name, str) or not (value is None or isinstance(value, bytes)):
            raise SerializationError(
                f"A header must be a name (str) and a value (bytes or None), not "
                f"({type(name).__name__}, {type(value).__name__})"
            )
        put_bytes(out, name.encode())
        put_bytes(out, value)
    return bytes(out)
