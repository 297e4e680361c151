"""The last offset of each key, by a digest of the key (kafka.log.SkimpyOffsetMap).

Where it was built, ``kafka08._native.offset_map`` replaces the plain map. The digest is
computed with a secret, so that clients cannot send keys that collide. Does not know files.
"""

from __future__ import annotations

from hashlib import blake2b

from kafka08._native import load
from kafka08.message.entry import KEY_AT
from kafka08.message.scan import iter_fields

_DIGEST_BYTES = 16


class PlainOffsetMap:
    """A dict of digests for ``room`` keys; short keys stand for themselves."""

    # The cost of one key, as measured: 64 bytes for its bytes object, 32 for the offset, its share
    # of a dict that has just grown, with the old table still there, and what the allocator wastes.
    ENTRY_BYTES = 208

    def __init__(self, room: int, secret: bytes) -> None:
        self.room = room
        self._secret = secret
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def _digest(self, key: bytes) -> bytes:
        if len(key) <= _DIGEST_BYTES:
            return key
        return blake2b(key, digest_size=_DIGEST_BYTES, key=self._secret).digest()

    def put(self, key: bytes, offset: int) -> None:
        """Note the offset of a key, also beyond the room."""
        self._offsets[self._digest(key)] = offset

    def get(self, key: bytes) -> int:
        """The offset noted last, or -1."""
        return self._offsets.get(self._digest(key), -1)

    def add_plain(self, data: bytes, position: int, stop: int) -> tuple[int, int, int]:
        """Note the keys of whole plain entries while there is room.

        (where the room ended, messages passed, the last one's offset or -1). Raises
        InvalidMessageError for impossible lengths.
        """
        count, last = 0, -1
        for offset, start, key_end, _, _ in iter_fields(data, position, stop):
            if len(self._offsets) >= self.room:
                return start - KEY_AT, count, last
            if key_end >= 0:
                self.put(data[start:key_end], offset)
            count += 1
            last = offset
        return stop, count, last

    def survivors(
        self, data: bytes, position: int, stop: int, tombstones_below: int
    ) -> tuple[list[tuple[int, int]], int]:
        """The stretches of whole plain entries that stay, as (start, end), and how many do.

        A message goes when a later one has its key, and a tombstone below ``tombstones_below``.
        Raises InvalidMessageError for impossible lengths.
        """
        stretches = []
        kept, start, gone = 0, position, False
        for offset, key_at, key_end, _, value_end in iter_fields(data, position, stop):
            at = key_at - KEY_AT
            if gone:
                start = at
            gone = key_end >= 0 and (
                self.get(data[key_at:key_end]) > offset
                or (value_end < 0 and offset < tombstones_below)
            )
            if not gone:
                kept += 1
            elif at > start:
                stretches.append((start, at))
                start = at
        if not gone and stop > start:
            stretches.append((start, stop))
        return stretches, kept


native = load("offset_map")
OffsetMap: type[PlainOffsetMap] = native.OffsetMap if native else PlainOffsetMap
# The cost of one key: 24 bytes for its slot, a fifth of the slots empty, and the old table while
# the map grows.
ENTRY_BYTES = 45 if native else PlainOffsetMap.ENTRY_BYTES
