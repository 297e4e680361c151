"""The last offset of each key in the dirty part of a log (kafka.log.SkimpyOffsetMap).

A dict bounded by what its entries really cost, so that log.cleaner.dedupe.buffer.size is a bound
on memory: a map that is full means one more pass over the log, never more memory. Also how the
entries of a stretch of a log file are walked for their keys. Knows no files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from hashlib import blake2b

from kafka08.errors import InvalidMessageError
from kafka08.message.crc import crc32
from kafka08.message.inner import Leaves, leaves, numbered_from
from kafka08.message.message import (
    CODEC_MASK,
    CRC_START,
    ENTRY_OVERHEAD,
    FIELDS,
    MIN_MESSAGE_SIZE,
    BytesLike,
    impossible_lengths,
)

MIN_ENTRY = ENTRY_OVERHEAD + MIN_MESSAGE_SIZE
KEY_AT = FIELDS.size
DIGEST_BYTES = 16

# What one key costs, as measured: 64 bytes for its bytes object, 32 for the offset, its share of a
# dict that has just grown, with the old table still there, and what the allocator wastes.
ENTRY_BYTES = 208

fields_at = FIELDS.unpack_from

# (position in the leaves' bytes, end, true offset, key, is the value null)
Leaf = tuple[int, int, int, "bytes | None", bool]


def max_entries(buffer_bytes: int, load_factor: float) -> int:
    """How many keys a buffer of that size stands for."""
    return max(int(buffer_bytes / ENTRY_BYTES * min(max(load_factor, 0.0), 1.0)), 1)


class KeyMap:
    """Key -> offset for up to ``room`` keys. Longer keys are kept as a digest of 16 bytes.

    The digests are keyed with ``secret``, so that nobody can send keys that collide.
    ``last_offset`` is that of the last message added (-1: none); ``latest`` reads the map.
    """

    def __init__(self, room: int, secret: bytes | None = None) -> None:
        self.room = room
        self.last_offset = -1
        self.messages = 0
        self._secret = os.urandom(16) if secret is None else secret
        self._offsets: dict[bytes, int] = {}
        self.latest: Callable[[bytes, int], int] = self._offsets.get

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        return len(self._offsets) >= self.room

    def digest(self, key: bytes) -> bytes:
        """What stands for a key longer than DIGEST_BYTES."""
        return blake2b(key, digest_size=DIGEST_BYTES, key=self._secret).digest()

    def is_superseded(self, key: bytes, offset: int) -> bool:
        """Whether a later message than that at ``offset`` has this key."""
        if len(key) > DIGEST_BYTES:
            key = self.digest(key)
        return self.latest(key, -1) > offset

    def add(self, data: bytes, first_offset: int) -> int:
        """Take in the whole entries of ``data`` from ``first_offset`` on, as far as there is
        room; bytes walked over. A wrapper is taken as a whole even if it is the one too many.

        Raises InvalidMessageError (crc, sizes, order) and what ``inner.leaves`` raises.
        """
        view = memoryview(data)
        end = len(data)
        position = count = 0
        last = self.last_offset
        offsets, room, crc_of, digest = self._offsets, self.room, crc32, self.digest
        while position + MIN_ENTRY <= end:
            offset, size, crc, _, attributes, key_length = fields_at(data, position)
            stop = position + ENTRY_OVERHEAD + size
            if size < MIN_MESSAGE_SIZE:
                raise short_entry(offset, size)
            if stop > end or len(offsets) >= room:
                break
            if crc_of(view[position + CRC_START : stop]) != crc:
                raise wrong_crc(offset)
            if offset >= first_offset:
                if offset <= last:
                    raise out_of_order(offset, last)
                if attributes & CODEC_MASK:
                    for _, _, at, key, _ in leaves_of(wrapper_leaves(data, position, stop), offset):
                        count += 1
                        if key is not None and at >= first_offset:
                            offsets[key if len(key) <= DIGEST_BYTES else digest(key)] = at
                elif key_length >= 0:
                    key_end = position + KEY_AT + key_length
                    if key_end + 4 > stop:
                        raise impossible_lengths(position)
                    key = data[position + KEY_AT : key_end]
                    offsets[key if key_length <= DIGEST_BYTES else digest(key)] = offset
                    count += 1
                else:
                    count += 1
                last = offset
            position = stop
        self.last_offset = last
        self.messages += count
        return position


def wrapper_leaves(data: BytesLike, position: int, stop: int) -> Leaves:
    """What the wrapper entry holds, crcs checked. Raises as ``inner.leaves``."""
    return leaves(data, position, stop, data[position + 17] & CODEC_MASK, check_crc=True)


def leaves_of(found: Leaves, wrapper_offset: int) -> Iterator[Leaf]:
    """The messages of a wrapper, with their true offsets."""
    data = found.data
    number = numbered_from(found, wrapper_offset)
    position = 0
    while position < len(data):
        offset, size, _, _, _, key_length = fields_at(data, position)
        stop = position + ENTRY_OVERHEAD + size
        value_at = position + KEY_AT + max(key_length, 0)
        if value_at + 4 > stop:
            raise impossible_lengths(position)
        key = data[position + KEY_AT : value_at] if key_length >= 0 else None
        if number is not None:
            offset = number
            number += 1
        # the sign bit of a length tells null from the rest
        yield position, stop, offset, key, data[value_at] >= 0x80
        position = stop


def short_entry(offset: int, size: int) -> InvalidMessageError:
    return InvalidMessageError(f"The entry at offset {offset} has the impossible size {size}")


def wrong_crc(offset: int) -> InvalidMessageError:
    return InvalidMessageError(f"The entry at offset {offset} fails its crc")


def out_of_order(offset: int, last: int) -> InvalidMessageError:
    return InvalidMessageError(f"Offset {offset} follows {last}: offsets must rise")
