"""A log entry: the positions of its fields, functions to write one, and the value readers get.

An entry of magic 0 is a message with its log header: ``offset i64 | size i32 | crc u32 |
magic i8 | attributes i8 | key length i32, key | value length i32, value``. The length -1 means
null. ``size`` counts from the crc on; the crc (zlib's CRC-32) covers everything from magic to the
end. The magic byte is at the same place in all later formats too. Mirrors kafka.message.Message.
Does not know sets.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple, TypeAlias

from kafka08.errors import InvalidMessageError
from kafka08.message.crc import crc32

BytesLike: TypeAlias = "bytes | bytearray | memoryview"

# Positions within an entry.
SIZE_AT = 8
CRC_AT = 12
MAGIC_AT = 16
ATTRIBUTES_AT = 17
KEY_LENGTH_AT = 18
KEY_AT = 22

LOG_OVERHEAD = 12  # offset and size: not counted by size
MIN_MESSAGE_SIZE = 14  # crc, magic, attributes and two lengths
MIN_ENTRY = LOG_OVERHEAD + MIN_MESSAGE_SIZE
CODEC_MASK = 0x07

# offset, size, crc, magic, attributes
HEADER = Struct(">qiIBB")
OFFSET = Struct(">q")
SIZE = Struct(">i")
OFFSET_AND_SIZE = Struct(">qi")
_CRC = Struct(">I")

# Why a walk over entries stops (``Walked.ended``).
END = 0  # nothing is left
CUT = 1  # an entry begins and is not whole
SHORT = 2  # an entry claims to be shorter than a message can be
TOO_LARGE = 3  # an entry is above max_size
BAD_CRC = 4
WRAPPER = 5  # an entry is compressed; its size and crc were checked
DISORDER = 6  # an offset does not rise
ABOVE = 7  # an offset is above up_to
PAUSED = 8  # position reached until
KEYLESS = 9  # a plain message does not have a key


class Message(NamedTuple):
    """A message as a reader sees it.

    ``offset`` is the true, absolute one. ``codec`` is that of the top-level entry the message
    travelled in (0 when plain), ``attributes`` its own. A null key or value is None.
    """

    offset: int
    key: bytes | None
    value: bytes | None
    codec: int
    crc: int
    magic: int
    attributes: int


class Entry(NamedTuple):
    """A top-level entry: ``size_total`` bytes at ``position``, including its 12-byte header."""

    position: int
    offset: int
    size_total: int
    codec: int
    crc: int

    @property
    def stop(self) -> int:
        return self.position + self.size_total


class Walked(NamedTuple):
    """The result of a walk: it passed ``count`` entries and ended at the position ``stop``.

    ``first`` and ``last`` are their offsets after numbering (-1 without entries). ``codec`` is the
    last one seen other than 0. ``ended`` gives the reason why the walk stopped.
    """

    stop: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    first: int
    last: int
    codec: int
    ended: int


class Cells(NamedTuple):
    """The keys or values of some messages in one piece, laid out as Apache Arrow's binary arrays.

    The cell in row ``i`` is ``data`` from ``bounds[i]`` to ``bounds[i + 1]``. ``bounds`` holds one
    int32 more than there are rows, in the machine's byte order. ``valid`` has a bit for each row,
    the lowest of a byte first, which is 0 for a null; it is None if there are no nulls.
    """

    bounds: bytes
    data: bytes
    valid: bytes | None


def encode_entry(key: bytes | None, value: bytes | None, offset: int = 0, codec: int = 0) -> bytes:
    """The bytes of one entry with magic 0; its attributes contain only ``codec``."""
    body = b"".join(
        (
            bytes((0, codec)),
            SIZE.pack(-1 if key is None else len(key)),
            key or b"",
            SIZE.pack(-1 if value is None else len(value)),
            value or b"",
        )
    )
    return OFFSET_AND_SIZE.pack(offset, len(body) + 4) + _CRC.pack(crc32(body)) + body


def has_right_crc(buffer: BytesLike, position: int, stop: int) -> bool:
    """Whether the crc of the entry at ``position`` to ``stop`` is correct."""
    stored: int = _CRC.unpack_from(buffer, position + CRC_AT)[0]
    return crc32(memoryview(buffer)[position + MAGIC_AT : stop]) == stored


def offset_and_stop(buffer: BytesLike, position: int) -> tuple[int, int]:
    """The offset of the whole entry at ``position``, and its end position."""
    offset, size = OFFSET_AND_SIZE.unpack_from(buffer, position)
    return offset, position + LOG_OVERHEAD + size


def codec_of(buffer: BytesLike, position: int = 0) -> int:
    """The codec of the entry at ``position``; 0 is a plain message."""
    return buffer[position + ATTRIBUTES_AT] & CODEC_MASK


def key_and_value(
    buffer: BytesLike, position: int, stop: int
) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """The positions (start, end) of key and value of the entry at ``position`` to ``stop``.

    None stands for null. Any negative length is null, and bytes after the value are ignored, as in
    the original. Raises InvalidMessageError if a length reaches past the entry.
    """
    start = position + KEY_AT
    length = SIZE.unpack_from(buffer, position + KEY_LENGTH_AT)[0]
    key = None
    if length >= 0:
        key = (start, start + length)
        start += length
    if start + 4 <= stop:
        length = SIZE.unpack_from(buffer, start)[0]
        start += 4
        if length < 0:
            return key, None
        if start + length <= stop:
            return key, (start, start + length)
    raise impossible_lengths(position)


def impossible_lengths(position: int) -> InvalidMessageError:
    """The error of an entry whose key or value reaches past it."""
    return InvalidMessageError(f"Message at position {position} has impossible field lengths")
