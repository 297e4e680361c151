"""Wrappers whose inner offsets are not the true ones, put right.

Sets are stored as producers sent them, so the messages inside a wrapper mostly carry offsets such
as 0 to n-1 (``inner.numbered_from`` tells the true ones), and 0.8.2.2 clients take the stored
ones at face value: consumers must be sent rebuilt wrappers.
Replicas get what is stored. ``normalise`` is what 0.8.2.2 does at append instead
(kafka.message.ByteBufferMessageSet.assignOffsets). Knows no log: positions are the caller's.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator

from kafka08.errors import InvalidMessageError, KafkaError
from kafka08.message.compression import FASTEST, MAX_INFLATED, NONE, compress
from kafka08.message.crc import crc32
from kafka08.message.inner import Leaves, leaves, numbered_from
from kafka08.message.message import (
    CODEC_MASK,
    CRC_START,
    ENTRY_OVERHEAD,
    HEADER,
    MIN_MESSAGE_SIZE,
    OFFSET,
    SIZE,
    BytesLike,
    encode_entry,
    key_and_value,
)
from kafka08.message.message_set import Entry, iter_entries
from kafka08.message.runs import MIN_RUN_BYTES, RETRY_AFTER, plain_run, write_offsets

_HEADER_BYTES = 16  # offset, size and crc: enough to tell one entry from another


class RebuildCache:
    """Rebuilt wrappers by a key of the caller's, the least recently used ones dropped.

    ``header`` is the first 16 bytes of the stored entry: a key that comes to stand for another
    entry (truncation, cleaning) misses by itself. What is kept is the rebuilt entry, or None when
    the stored one is right. ``max_bytes`` bounds the sum of the entries' sizes plus 200 each.
    """

    _OVERHEAD = 200

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.size = 0
        self._entries: OrderedDict[Hashable, tuple[bytes, bytes | None]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable, header: bytes) -> tuple[bool, bytes | None]:
        """Whether the entry is known, and its rebuilt bytes (None: it is right as stored)."""
        found = self._entries.get(key)
        if found is None or found[0] != header:
            return False, None
        self._entries.move_to_end(key)
        return True, found[1]

    def put(self, key: Hashable, header: bytes, rebuilt: bytes | None) -> None:
        """Remember an entry, unless it alone is larger than the cache."""
        old = self._entries.pop(key, None)
        if old is not None:
            self.size -= self._cost(old[1])
        if self._cost(rebuilt) > self.max_bytes:
            return
        self._entries[key] = (header, rebuilt)
        self.size += self._cost(rebuilt)
        while self.size > self.max_bytes:
            _, (_, dropped) = self._entries.popitem(last=False)
            self.size -= self._cost(dropped)

    def _cost(self, rebuilt: bytes | None) -> int:
        return self._OVERHEAD + len(rebuilt or b"")


def holds_wrappers(buffer: BytesLike) -> bool:
    """Whether any whole entry of a slice of the log is compressed."""
    view = memoryview(buffer)
    end = len(view)
    position = retry_at = 0
    while position + ENTRY_OVERHEAD + MIN_MESSAGE_SIZE <= end:
        _, size, _, attributes = HEADER.unpack_from(view, position)
        stop = position + ENTRY_OVERHEAD + size
        if position >= retry_at:
            table = plain_run(view, position, end, size, check_crc=False)
            if table is not None:
                position += len(table)
                continue
            retry_at = position + RETRY_AFTER * size
        if size < MIN_MESSAGE_SIZE or stop > end:
            return False
        if attributes & CODEC_MASK:
            return True
        position = stop
    return False


def has_absolute_offsets(entry: BytesLike, *, max_inflated: int = MAX_INFLATED) -> bool:
    """Whether a wrapper entry holds plain messages only, all with their true offsets.

    Raises as ``inner.leaves`` does, and InvalidMessageError when the entry fails its crc.
    """
    return _is_right(entry, _leaves_of(entry, max_inflated))


def rebuild(entry: BytesLike, *, max_inflated: int = MAX_INFLATED) -> bytes:
    """The wrapper with true offsets inside: same offset, codec and key, nesting flattened.

    Raises as ``inner.leaves`` does, and InvalidMessageError for a wrapper that fails its crc or
    is without messages.
    """
    return _rebuild(entry, _leaves_of(entry, max_inflated))


def absolute_slice(
    data: bytes,
    *,
    max_bytes: int,
    cache: RebuildCache | None = None,
    segment: Hashable = None,
    position: int = 0,
    max_inflated: int = MAX_INFLATED,
) -> bytes:
    """What a consumer must get for the stored bytes of a fetch; ``data`` itself if all is right.

    Wrappers with wrong inner offsets are rebuilt, which mostly makes them larger: the first
    rebuilt one is never cut, but from the first later entry on that would go past ``max_bytes``
    everything is left out. A cut last entry stays only if nothing was left out. A wrapper that
    cannot be decoded is passed on as it is. ``cache`` keys are (``segment``, ``position`` in it),
    ``position`` being that of ``data``.
    """
    if not holds_wrappers(data):
        return data
    parts: list[BytesLike] = []
    kept = done = grown = 0  # bytes of data in parts, bytes looked at, bytes gained by rebuilding
    for entry in _whole_entries(data):
        stop = entry.position + entry.size_total
        rebuilt = None
        if entry.codec:
            key = (segment, position + entry.position)
            rebuilt = _cached(data, entry, cache, key, max_inflated)
        growth = len(rebuilt) - entry.size_total if rebuilt is not None else 0
        # parts is empty until the first rebuilt entry, which may go past the limit
        if parts and stop + grown + growth > max_bytes:
            return b"".join((*parts, memoryview(data)[kept : entry.position]))
        if rebuilt is not None:
            parts += (memoryview(data)[kept : entry.position], rebuilt)
            grown += growth
            kept = stop
        done = stop
    if not parts:
        return data
    tail = len(data) if len(data) + grown <= max_bytes else done
    return b"".join((*parts, memoryview(data)[kept:tail]))


def normalise(buffer: BytesLike, base_offset: int, *, max_inflated: int = MAX_INFLATED) -> bytes:
    """The whole set as 0.8.2.2 stores it: one wrapper of the last codec seen, offsets absolute.

    A set without wrappers stays plain and is numbered; a cut last entry is left out; without any
    message the result is empty. Crcs are not checked. Raises as ``inner.leaves`` does.
    """
    parts: list[BytesLike] = []
    codec = NONE
    for entry in iter_entries(buffer):
        stop = entry.position + entry.size_total
        if entry.codec:
            codec = entry.codec
            found = leaves(buffer, entry.position, stop, codec, max_inflated=max_inflated)
            parts.append(found.data)
        else:
            parts.append(memoryview(buffer)[entry.position : stop])
    table = bytearray().join(parts)
    messages = number(table, base_offset)
    if codec == NONE or not messages:
        return bytes(table)
    return encode_entry(None, compress(codec, table), base_offset + messages - 1, codec)


def _whole_entries(data: bytes) -> Iterator[Entry]:
    """The entries up to a cut or damaged one: damage is passed on, the client reports it."""
    try:
        yield from iter_entries(data)
    except InvalidMessageError:
        return


def _cached(
    data: bytes, entry: Entry, cache: RebuildCache | None, key: Hashable, max_inflated: int
) -> bytes | None:
    """The rebuilt entry, None when the stored one is to be sent."""
    header = data[entry.position : entry.position + _HEADER_BYTES]
    if cache is not None:
        known, rebuilt = cache.get(key, header)
        if known:
            return rebuilt
    stored = memoryview(data)[entry.position : entry.position + entry.size_total]
    rebuilt = None
    try:
        found = _leaves_of(stored, max_inflated)
        if found.count and not _is_right(stored, found):
            rebuilt = _rebuild(stored, found)
    except KafkaError:
        pass  # the client meets the same damage, and says so in its own words
    if cache is not None:
        cache.put(key, header, rebuilt)
    return rebuilt


def _leaves_of(entry: BytesLike, max_inflated: int) -> Leaves:
    """A damaged wrapper must not get a new crc: its reader could not tell any more."""
    if crc32(memoryview(entry)[CRC_START:]) != HEADER.unpack_from(entry)[2]:
        raise InvalidMessageError("A compressed message fails its crc")
    codec = entry[17] & CODEC_MASK
    return leaves(entry, 0, len(entry), codec, max_inflated=max_inflated)


def _is_right(entry: BytesLike, found: Leaves) -> bool:
    return found.exact and numbered_from(found, OFFSET.unpack_from(entry)[0]) is None


def _rebuild(entry: BytesLike, found: Leaves) -> bytes:
    if not found.count:
        raise InvalidMessageError("A compressed message holds no messages")
    last = OFFSET.unpack_from(entry)[0]
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
            rows = plain_run(view, position, end, size, check_crc=False)
            if rows is not None:
                write_offsets(rows, size, offset)
                view[position : position + len(rows)] = rows
                offset += len(rows) // (ENTRY_OVERHEAD + size)
                position += len(rows)
                continue
            retry_at = position + RETRY_AFTER * size
        put(table, position, offset)
        offset += 1
        position += ENTRY_OVERHEAD + size
    return offset - first
