"""Encodes a batch of records as a message set: the same bytes as ``sets.encode_set``, faster.

If it was built, ``kafka08._native.encode`` writes the entries. Does not know batches or brokers.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import repeat
from typing import Any

from kafka08.message.compression import NONE, compress
from kafka08.message.entry import encode_entry

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
try:
    native: Any = import_module("kafka08._native.encode")
except ImportError:
    native = None
else:
    entries = native.entries
