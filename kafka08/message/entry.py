"""A log entry: the positions of its fields, functions to write one, and the value readers get.

Every entry begins with ``offset i64 | size i32``, and has its format, the magic, at byte 16. In
formats 0 and 1 it is a message: ``crc u32 | magic i8 | attributes i8 | timestamp i64 (format 1
only) | key length i32, key | value length i32, value``. The length -1 means null. ``size`` counts
from the crc on; the crc (zlib's CRC-32) covers everything from magic to the end. In format 2 the
entry is a record batch (``batch.py``). Other magics are read as 0, as 0.8.2.2 does.

The offset of an entry is that of its last message: of a wrapper the stored one, of a batch the
stored one (that of its first record) plus its last offset delta. Mirrors kafka.message.Message.
Does not read sets.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from kafka08.errors import InvalidMessageError
from kafka08.message.batch import (
    BATCH_ATTRIBUTES_AT,
    BATCH_CODEC_AT,
    BATCH_CRC_AT,
    LAST_DELTA_AT,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
)
from kafka08.message.crc import crc32, crc32c

BytesLike: TypeAlias = "bytes | bytearray | memoryview"
# Names and values in their order. A name may come more than once, a value may be null.
Headers: TypeAlias = "tuple[tuple[str, bytes | None], ...]"

# Timestamp types: whose time a timestamp is.
NO_TIMESTAMP_TYPE: Final = -1  # messages of format 0 have no timestamp
CREATE_TIME: Final = 0  # its producer's
APPEND_TIME: Final = 1  # the broker's, when it wrote the message to its log

# Positions within an entry.
SIZE_AT: Final = 8
CRC_AT: Final = 12
MAGIC_AT: Final = 16
ATTRIBUTES_AT: Final = 17
KEY_LENGTH_AT: Final = 18
KEY_AT: Final = 22
# Positions within an entry of format 1.
TIMESTAMP_AT: Final = 18
TIMED_KEY_LENGTH_AT: Final = 26
TIMED_KEY_AT: Final = 30

LOG_OVERHEAD: Final = 12  # offset and size: not counted by size
MIN_MESSAGE_SIZE: Final = 14  # crc, magic, attributes and two lengths
MIN_TIMED_SIZE: Final = MIN_MESSAGE_SIZE + 8  # of format 1
MIN_ENTRY: Final = LOG_OVERHEAD + MIN_MESSAGE_SIZE
CODEC_MASK: Final = 0x07

# offset, size, crc, magic, attributes
HEADER: Final = Struct(">qiIBB")
OFFSET: Final = Struct(">q")
SIZE: Final = Struct(">i")
OFFSET_AND_SIZE: Final = Struct(">qi")
_CRC: Final = Struct(">I")

TIMED: Final = 1  # the magic of format 1
BATCH: Final = 2  # the magic of format 2
# The last offset is within this many bytes of an entry, whatever its format.
LAST_OFFSET_BYTES: Final = LAST_DELTA_AT + 4

# Why a walk over entries stops (``Walked.ended``).
END: Final = 0  # nothing is left
CUT: Final = 1  # an entry begins and is not whole
SHORT: Final = 2  # an entry claims to be shorter than a message can be
TOO_LARGE: Final = 3  # an entry is above max_size
BAD_CRC: Final = 4
WRAPPER: Final = 5  # an entry is compressed or of another format; its size and crc were checked
DISORDER: Final = 6  # an offset does not rise
ABOVE: Final = 7  # an offset is above up_to
PAUSED: Final = 8  # position reached until
KEYLESS: Final = 9  # a plain message does not have a key
BAD_DELTA: Final = 10  # the last offset of a batch is impossible


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

    @property
    def timestamp(self) -> int:
        return NO_TIMESTAMP

    @property
    def timestamp_type(self) -> int:
        return NO_TIMESTAMP_TYPE

    @property
    def headers(self) -> Headers:
        return ()


class TimedMessage(NamedTuple):
    """A message of format 1 or 2, as a reader sees it: a ``Message`` with what those formats add.

    In format 2 ``crc`` and ``attributes`` are those of the batch. ``timestamp`` is in ms, -1 if
    the producer gave none; ``timestamp_type`` is CREATE_TIME or APPEND_TIME. Only format 2 has
    headers.
    """

    offset: int
    key: bytes | None
    value: bytes | None
    codec: int
    crc: int
    magic: int
    attributes: int
    timestamp: int
    timestamp_type: int
    headers: Headers = ()


AnyMessage: TypeAlias = "Message | TimedMessage"


class Entry(NamedTuple):
    """A top-level entry: ``size_total`` bytes at ``position``, including its 12-byte header."""

    position: int
    offset: int
    size_total: int
    codec: int
    crc: int
    magic: int

    @property
    def stop(self) -> int:
        return self.position + self.size_total


class Walked(NamedTuple):
    """The result of a walk: it passed ``count`` entries and ended at the position ``stop``.

    ``first`` and ``last`` are the first and the last offset in them after numbering (-1 without
    entries); of a wrapper only the last one is known. ``codec`` is the last one seen other than 0.
    ``ended`` gives the reason why the walk stopped. ``magic`` is the highest format seen.
    """

    stop: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    first: int
    last: int
    codec: int
    ended: int
    magic: int = 0


class Appended(NamedTuple):
    """The result of a pass over a message set.

    The set has ``count`` messages (a follower does not open wrappers: there it equals ``entries``)
    in ``entries`` top-level entries, which are the first ``valid_bytes`` of the buffer. ``codec``
    is the last one seen, ``magic`` the highest. Without a whole entry both offsets are -1.
    """

    count: int  # type: ignore[assignment]  # hides tuple.count
    valid_bytes: int
    first_offset: int
    last_offset: int
    entries: int
    codec: int
    magic: int = 0


class Cells(NamedTuple):
    """The keys or values of some messages in one piece, laid out as Apache Arrow's binary arrays.

    The cell in row ``i`` is ``data`` from ``bounds[i]`` to ``bounds[i + 1]``. ``bounds`` holds one
    int32 more than there are rows, in the machine's byte order. ``valid`` has a bit for each row,
    the lowest of a byte first, which is 0 for a null; it is None if there are no nulls.
    """

    bounds: bytes
    data: bytes
    valid: bytes | None


def encode_entry(
    key: BytesLike | None,
    value: BytesLike | None,
    offset: int = 0,
    codec: int = 0,
    *,
    timestamp: int | None = None,
    stamped: bool = False,
) -> bytes:
    """The bytes of one entry of format 0, or with a ``timestamp`` of format 1; ``stamped``: it is
    the broker's. The attributes contain nothing else but ``codec``."""
    start = bytes((0, codec))
    if timestamp is not None:
        start = bytes((TIMED, codec | (LOG_APPEND_TIME if stamped else 0))) + OFFSET.pack(timestamp)
    body = b"".join(
        (
            start,
            SIZE.pack(-1 if key is None else len(key)),
            key or b"",
            SIZE.pack(-1 if value is None else len(value)),
            value or b"",
        )
    )
    return with_header(offset, body)


def with_header(offset: int, body: BytesLike) -> bytes:
    """The entry of format 0 or 1 whose bytes from the magic on are ``body``."""
    return OFFSET_AND_SIZE.pack(offset, len(body) + 4) + _CRC.pack(crc32(body)) + body


def time_of(buffer: BytesLike, position: int) -> int:
    """The timestamp of the entry of format 1 at ``position``."""
    timestamp: int = OFFSET.unpack_from(buffer, position + TIMESTAMP_AT)[0]
    return timestamp


def is_stamped(buffer: BytesLike, position: int) -> bool:
    """Whether the timestamp of the entry of format 1 at ``position`` is the broker's."""
    return bool(buffer[position + ATTRIBUTES_AT] & LOG_APPEND_TIME)


def set_time(
    buffer: bytearray | memoryview, position: int, stop: int, time: int, *, stamped: bool = False
) -> None:
    """Write the timestamp of an entry of format 1, and its crc; ``stamped``: it is the broker's."""
    attributes = buffer[position + ATTRIBUTES_AT] & ~LOG_APPEND_TIME
    buffer[position + ATTRIBUTES_AT] = attributes | (LOG_APPEND_TIME if stamped else 0)
    OFFSET.pack_into(buffer, position + TIMESTAMP_AT, time)
    crc = crc32(memoryview(buffer)[position + MAGIC_AT : stop])
    _CRC.pack_into(buffer, position + CRC_AT, crc)


def magic_of(buffer: BytesLike, position: int = 0) -> int:
    """The format of the entry at ``position``."""
    return buffer[position + MAGIC_AT]


def is_later(buffer: BytesLike, position: int = 0) -> bool:
    """Whether the entry at ``position`` is of format 1 or 2."""
    return buffer[position + MAGIC_AT] in (TIMED, BATCH)


def has_right_crc(buffer: BytesLike, position: int, stop: int) -> bool:
    """Whether the crc of the entry at ``position`` to ``stop`` is correct."""
    view = memoryview(buffer)
    stored: int
    if view[position + MAGIC_AT] == BATCH:
        stored = _CRC.unpack_from(view, position + BATCH_CRC_AT)[0]
        return crc32c(view[position + BATCH_ATTRIBUTES_AT : stop]) == stored
    stored = _CRC.unpack_from(view, position + CRC_AT)[0]
    return crc32(view[position + MAGIC_AT : stop]) == stored


def crc_of(buffer: BytesLike, position: int = 0) -> int:
    """The stored crc of the entry at ``position``."""
    at = BATCH_CRC_AT if buffer[position + MAGIC_AT] == BATCH else CRC_AT
    stored: int = _CRC.unpack_from(buffer, position + at)[0]
    return stored


def offset_and_stop(buffer: BytesLike, position: int) -> tuple[int, int]:
    """The (last) offset of the whole entry at ``position``, and its end position."""
    offset, size = OFFSET_AND_SIZE.unpack_from(buffer, position)
    if buffer[position + MAGIC_AT] == BATCH:
        offset += SIZE.unpack_from(buffer, position + LAST_DELTA_AT)[0]
    return offset, position + LOG_OVERHEAD + size


def codec_of(buffer: BytesLike, position: int = 0) -> int:
    """The codec of the entry at ``position``; 0 is a plain message, or a batch of plain records."""
    at = BATCH_CODEC_AT if buffer[position + MAGIC_AT] == BATCH else ATTRIBUTES_AT
    return buffer[position + at] & CODEC_MASK


def key_and_value(
    buffer: BytesLike, position: int, stop: int
) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """The positions (start, end) of key and value of the entry at ``position`` to ``stop``.

    The entry is of format 0 or 1. None stands for null. Any negative length is null, and bytes
    after the value are ignored, as in the original. Raises InvalidMessageError if a length reaches
    past the entry.
    """
    timed = buffer[position + MAGIC_AT] == TIMED
    start = position + (TIMED_KEY_AT if timed else KEY_AT)
    if start > stop:
        raise impossible_lengths(position)
    length = SIZE.unpack_from(buffer, start - SIZE.size)[0]
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


def check_bounds(data: BytesLike, position: int, stop: int) -> None:
    """Raise IndexError if ``position`` to ``stop`` is not within the data."""
    if position < 0 or stop > len(data):
        raise IndexError(f"{position} to {stop} of {len(data)} bytes")


def impossible_lengths(position: int) -> InvalidMessageError:
    """The error of an entry whose key or value reaches past it."""
    return InvalidMessageError(f"Message at position {position} has impossible field lengths")
