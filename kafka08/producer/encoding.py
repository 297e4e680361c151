"""A batch of records as a message set: the same bytes as ``sets.encode_set``, sooner.

Records of one size without keys, which is what fast producers send, are laid out by one join and
get their crcs column by column; others take one call per field. Knows no batch and no broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, repeat
from struct import Struct, pack

from kafka08.message.compression import NONE, compress
from kafka08.message.crc import crc32
from kafka08.message.entry import MAGIC_AT, encode_entry

RECORD_OVERHEAD = 26  # of an entry: all but key and value

# offset, size, crc, magic and attributes, length of the key (-1: none), length of the value
_UNKEYED = Struct(">qiIHii")
_KEYED = Struct(">qiIHi")
_LENGTH = Struct(">i")
_SMALLEST_TABLE = 4


def encode_batch(
    values: Sequence[bytes | None], keys: Sequence[bytes | None] | None, codec: int = NONE
) -> bytes | bytearray:
    """The set; ``keys`` None means that no record has one. With a codec, one wrapper."""
    if codec == NONE:
        return _plain(values, keys, False)
    inner = _plain(values, keys, True)
    return encode_entry(None, compress(codec, inner), len(values) - 1, codec)


def _plain(
    values: Sequence[bytes | None], keys: Sequence[bytes | None] | None, numbered: bool
) -> bytes | bytearray:
    """Back to back; offsets from 0 if ``numbered``, else all 0: the leader writes them anyway."""
    if keys is None and len(values) >= _SMALLEST_TABLE:
        try:
            if len(set(map(len, values))) == 1:  # type: ignore[arg-type]
                return _table(values, numbered)  # type: ignore[arg-type]
        except TypeError:
            pass  # a null among them
    return _entries(values, keys, numbered)


def _table(values: Sequence[bytes], numbered: bool) -> bytearray:
    size = len(values[0])
    count = len(values)
    head = _UNKEYED.pack(0, RECORD_OVERHEAD - 12 + size, 0, 0, -1, size)
    table = bytearray(head).join(chain((b"",), values))
    width = RECORD_OVERHEAD + size
    crcs = pack(f">{count}I", *map(crc32, values, repeat(crc32(head[MAGIC_AT:]))))
    for index in range(4):
        table[12 + index :: width] = crcs[index::4]
    if numbered:
        offsets = pack(f">{count}I", *range(count))
        for index in range(4):
            table[4 + index :: width] = offsets[index::4]
    return table


def _entries(
    values: Sequence[bytes | None], keys: Sequence[bytes | None] | None, numbered: bool
) -> bytes:
    parts: list[bytes] = []
    offset = 0
    for index, value in enumerate(values):
        if numbered:
            offset = index
        key = None if keys is None else keys[index]
        length = -1 if value is None else len(value)
        value = value or b""
        size = RECORD_OVERHEAD - 12 + len(value)
        if key is None:
            crc = crc32(value, _unkeyed_crc(length))
            parts += (_UNKEYED.pack(offset, size, crc, 0, -1, length), value)
        else:
            middle = key + _LENGTH.pack(length)
            crc = crc32(value, crc32(middle, _keyed_crc(len(key))))
            head = _KEYED.pack(offset, size + len(key), crc, 0, len(key))
            parts += (head, middle, value)
    return b"".join(parts)


@lru_cache(maxsize=4096)
def _unkeyed_crc(length: int) -> int:
    """Of what comes before the value."""
    return crc32(pack(">Hii", 0, -1, length))


@lru_cache(maxsize=4096)
def _keyed_crc(length: int) -> int:
    """Of what comes before the key."""
    return crc32(pack(">Hi", 0, length))
