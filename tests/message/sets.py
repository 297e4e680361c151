"""Sets to test with: strategies, and a plain, slow reading of what a set means."""

from __future__ import annotations

import struct
from zlib import crc32

from hypothesis import strategies as st

from kafka08.message.compression import compress
from kafka08.message.entry import codec_of, encode_entry, offset_and_stop
from kafka08.message.leaves import Leaves, leaves
from kafka08.message.wrappers import is_right, rebuilt_entry

CODECS = (1, 2, 3)
LIMIT = 1_000_012

fields = st.none() | st.binary(max_size=30)
pairs = st.tuples(fields, fields)
offsets = st.integers(-1, 2**40)


@st.composite
def entries(draw: st.DrawFn, levels: int = 2) -> tuple[bytes, list[tuple]]:
    """One entry with any offsets, and its leaves as (key, value)."""
    if levels == 0 or draw(st.integers(0, 2)):
        pair = draw(pairs)
        return encode_entry(*pair, draw(offsets)), [pair]
    inner = draw(st.lists(entries(levels - 1), max_size=12))
    codec = draw(st.sampled_from(CODECS))
    value = compress(codec, b"".join([entry for entry, _ in inner]))
    key = draw(st.none() | st.binary(max_size=5))
    return encode_entry(key, value, draw(offsets), codec), [
        pair for _, leaves in inner for pair in leaves
    ]


@st.composite
def uniform_runs(draw: st.DrawFn) -> list[tuple]:
    """Messages in runs of equal sizes, long enough for blocks of rows and incomplete blocks."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        size = draw(st.integers(0, 12))
        rows = draw(st.sampled_from([1, 19, 20, 21, 63, 64, 65, 130]))
        seed = draw(st.integers(0, 255))
        found += [(None, bytes([(seed + row) % 256]) * size) for row in range(rows)]
    return found


def plain(messages: list[tuple], first: int = 0) -> bytes:
    return b"".join([encode_entry(*pair, first + i) for i, pair in enumerate(messages)])


def wrapper(inner: bytes, codec: int, offset: int = 0, key: bytes | None = None) -> bytes:
    return encode_entry(key, compress(codec, inner), offset, codec)


def has_absolute_offsets(entry: bytes) -> bool:
    """Whether a wrapper holds only plain messages with their true offsets."""
    return is_right(_leaves(entry), offset_and_stop(entry, 0)[0])


def rebuild(entry: bytes) -> bytes:
    """The wrapper with true offsets inside."""
    return rebuilt_entry(entry, _leaves(entry), offset_and_stop(entry, 0)[0])


def _leaves(entry: bytes) -> Leaves:
    return leaves(entry, 0, len(entry), codec_of(entry))


def cut(data: bytes) -> list[tuple[int, bytes]]:
    """(offset, bytes from crc on) of the whole entries, read the slow way."""
    found = []
    while len(data) >= 12:
        offset, size = struct.unpack_from(">qi", data)
        if len(data) < 12 + size:
            break
        found.append((offset, data[12 : 12 + size]))
        data = data[12 + size :]
    return found


def set_byte(data: bytes, at: int, value: int, *, right_crc: bool = False) -> bytearray:
    """One byte of a lone entry changed; its crc made right again on demand."""
    changed = bytearray(data)
    changed[at] = value
    if right_crc:
        struct.pack_into(">I", changed, 12, crc32(changed[16:]))
    return changed
