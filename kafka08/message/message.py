"""One message of magic 0: where its fields lie, how an entry is written, what a reader gets.

An entry is a message with its log header: ``offset i64 | size i32 | crc u32 | magic i8 |
attributes i8 | key length i32, key | value length i32, value``; -1 is the length of null, and crc
(zlib's CRC-32) covers magic to the end. Mirrors kafka.message.Message. Knows nothing of sets.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple, TypeAlias

from kafka08.errors import InvalidMessageError
from kafka08.message.crc import crc32

BytesLike: TypeAlias = "bytes | bytearray | memoryview"

ENTRY_OVERHEAD = 12  # offset and size
MIN_MESSAGE_SIZE = 14  # crc, magic, attributes and the two lengths
CRC_START = 16  # crc covers an entry from here to its end
CODEC_MASK = 0x07

# offset, size, crc, and magic with attributes as one number: its low bits are the codec
HEADER = Struct(">qiIH")
# offset, size, crc, magic, attributes, key length
FIELDS = Struct(">qiIBBi")
OFFSET = Struct(">q")
SIZE = Struct(">i")
OFFSET_AND_SIZE = Struct(">qi")
_CRC = Struct(">I")
_KEY_LENGTH_AT = 18
_KEY_AT = 22


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


def encode_entry(key: bytes | None, value: bytes | None, offset: int = 0, codec: int = 0) -> bytes:
    """The bytes of one entry with magic 0; ``codec`` alone makes up its attributes."""
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


def refuse_short(buffer: BytesLike, position: int, end: int) -> None:
    """Judge what a walk over entries stopped at: fine if nothing, or an entry that is cut short.

    Raises InvalidMessageError for an entry that claims to be shorter than a message can be.
    """
    if position + ENTRY_OVERHEAD <= end:
        size = SIZE.unpack_from(buffer, position + 8)[0]
        if size < MIN_MESSAGE_SIZE:
            raise InvalidMessageError(f"Message found with corrupt size ({size})")


def key_and_value(
    buffer: BytesLike, position: int, stop: int
) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """Where key and value of the entry at ``position`` to ``stop`` lie: (start, end), None = null.

    Any negative length is null and slack after the value is ignored, as in the original.
    Raises InvalidMessageError when a length reaches past the entry.
    """
    start = position + _KEY_AT
    length = SIZE.unpack_from(buffer, position + _KEY_LENGTH_AT)[0]
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
