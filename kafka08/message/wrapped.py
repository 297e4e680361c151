"""Wrappers whose inner offsets are not the true ones, put right.

Sets are stored as producers sent them, so the messages inside a wrapper mostly carry offsets such
as 0 to n-1 (``inner.numbered_from`` tells the true ones), and 0.8.2.2 clients take the stored
ones at face value: consumers must be sent rebuilt wrappers.
Replicas get what is stored. ``normalise`` is what 0.8.2.2 does at append instead
(kafka.message.ByteBufferMessageSet.assignOffsets). Knows no log: positions are the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kafka08.errors import InvalidMessageError, KafkaError
from kafka08.message.compression import MAX_INFLATED, NONE, InflatesTooFarError, compress
from kafka08.message.crc import crc32
from kafka08.message.inner import Leaves, leaves
from kafka08.message.message import (
    CODEC_MASK,
    CRC_START,
    ENTRY_OVERHEAD,
    HEADER,
    MIN_MESSAGE_SIZE,
    OFFSET,
    BytesLike,
    encode_entry,
)
from kafka08.message.message_set import Entry, iter_entries
from kafka08.message.renumber import Rebuilt, is_right, number, rebuilt_entry
from kafka08.message.runs import RETRY_AFTER, plain_run


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
    return is_right(_leaves_of(entry, max_inflated), OFFSET.unpack_from(entry)[0])


def rebuild(entry: BytesLike, *, max_inflated: int = MAX_INFLATED) -> bytes:
    """The wrapper with true offsets inside: same offset, codec and key, nesting flattened.

    Raises as ``inner.leaves`` does, and InvalidMessageError for a wrapper that fails its crc or
    is without messages.
    """
    return rebuilt_entry(entry, _leaves_of(entry, max_inflated), OFFSET.unpack_from(entry)[0])


def absolute_slice(
    data: bytes,
    *,
    max_bytes: int,
    known: Callable[[int], BytesLike | None] | None = None,
    made: list[Rebuilt] | None = None,
    max_inflated: int = MAX_INFLATED,
    room: int | None = None,
) -> bytes:
    """What a consumer must get for the stored bytes of a fetch; ``data`` itself if all is right.

    Wrappers with wrong inner offsets are rebuilt, which mostly makes them larger: the first
    rebuilt one is never cut, but from the first later entry on that would go past ``max_bytes``
    everything is left out. A cut last entry stays only if nothing was left out. A wrapper that
    cannot be decoded is passed on as it is. ``known`` may tell what to send for the wrapper at a
    position; what it does not know goes into ``made``, if anything is to be rebuilt at all.

    With a ``room`` all wrappers together inflate to no more than that: from the first one that
    would go past it everything is left out. Raises InflatesTooFarError if that is the first entry
    (with a room of ``max_inflated`` or more it never is).
    """
    if not holds_wrappers(data):
        return data
    view = memoryview(data)
    parts: list[BytesLike] = []
    found: list[Rebuilt] = []
    kept = done = grown = 0  # bytes of data in parts, bytes looked at, bytes gained by rebuilding
    for entry in _whole_entries(data):
        start, stop = entry.position, entry.position + entry.size_total
        rebuilt: BytesLike | None = None
        if entry.codec:
            rebuilt = None if known is None else known(start)
            if rebuilt is None:
                most = max_inflated if room is None else min(max_inflated, room)
                try:
                    rebuilt, inflated = _rebuilt_or_none(view[start:stop], most)
                except InflatesTooFarError:
                    if most < max_inflated:
                        if not start:
                            raise
                        parts.append(view[kept:start])
                        kept = start
                        break
                    rebuilt, inflated = None, max_inflated
                if room is not None:
                    room = max(room - inflated, 0)
                sent = data[start:stop] if rebuilt is None else bytes(rebuilt)
                found.append(Rebuilt(start, stop - start, sent))
        growth = len(rebuilt) - entry.size_total if rebuilt is not None else 0
        # parts is empty until the first rebuilt entry, which may go past the limit
        if parts and stop + grown + growth > max_bytes:
            parts.append(view[kept:start])
            break
        if rebuilt is not None:
            parts += (view[kept:start], rebuilt)
            grown += growth
            kept = stop
        done = stop
    else:
        parts.append(view[kept : len(data) if len(data) + grown <= max_bytes else done])
    if not kept:
        return data
    if made is not None:
        made += found
    return b"".join(parts)


def whole_bytes(data: bytes) -> int:
    """How many bytes of a slice of the log are whole entries."""
    end = 0
    for entry in _whole_entries(data):
        end = entry.position + entry.size_total
    return end


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


def _rebuilt_or_none(entry: memoryview, max_inflated: int) -> tuple[bytes | None, int]:
    """The rebuilt entry, None when the stored one is to be sent; and how much was inflated.

    Raises InflatesTooFarError.
    """
    try:
        found = _leaves_of(entry, max_inflated)
        last = OFFSET.unpack_from(entry)[0]
        if found.count and not is_right(found, last):
            return rebuilt_entry(entry, found, last), found.inflated
        return None, found.inflated
    except InflatesTooFarError:
        raise
    except KafkaError:
        return None, 0  # the client meets the same damage, and says so in its own words


def _leaves_of(entry: BytesLike, max_inflated: int) -> Leaves:
    """A damaged wrapper must not get a new crc: its reader could not tell any more."""
    if crc32(memoryview(entry)[CRC_START:]) != HEADER.unpack_from(entry)[2]:
        raise InvalidMessageError("A compressed message fails its crc")
    codec = entry[17] & CODEC_MASK
    return leaves(entry, 0, len(entry), codec, max_inflated=max_inflated)
