"""Message sets: entries back to back, as produced, stored, replicated and fetched.

``assign_offsets`` is the leader's pass over what a producer sent, ``check_follower_set`` the
follower's over what a leader sent; ``iter_entries`` and ``iter_messages`` read, ``encode_set``
writes. Sets are stored as they came: a wrapper gets the offset of its last message, and only
these 8 bytes change (0.8.2.2 re-packs the set instead, see ``wrapped.normalise``). Mirrors
kafka.message.ByteBufferMessageSet and Log.analyzeAndValidateMessageSet. Knows no log.

Two deviations from 0.8.2.2: the crcs of messages inside a wrapper are checked (no consumer could
ever read past a wrong one), and what a wrapper may inflate to is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import lt
from struct import Struct
from typing import NamedTuple

from kafka08.errors import InvalidMessageError, MessageSizeTooLargeError, UnknownError
from kafka08.message.compression import MAX_INFLATED, NAMES, NONE, compress
from kafka08.message.crc import crc32
from kafka08.message.inner import leaves, looks_true_with_gaps, numbered_from
from kafka08.message.message import (
    CODEC_MASK,
    CRC_START,
    ENTRY_OVERHEAD,
    FIELDS,
    HEADER,
    MIN_MESSAGE_SIZE,
    OFFSET,
    OFFSET_AND_SIZE,
    SIZE,
    BytesLike,
    Message,
    encode_entry,
    impossible_lengths,
    refuse_short,
)
from kafka08.message.renumber import Rebuilt, is_right, rebuilt_entry
from kafka08.message.runs import MIN_RUN_BYTES, RETRY_AFTER, offsets_of, plain_run, stamp_run

_MIN_ENTRY = ENTRY_OVERHEAD + MIN_MESSAGE_SIZE


class Appended(NamedTuple):
    """What a pass over a set found.

    ``count`` messages (a follower does not look into wrappers: there it equals ``entries``) in
    ``entries`` top-level entries, which are the first ``valid_bytes`` of the buffer. ``codec`` is
    the last one seen. Without any whole entry both offsets are -1.
    """

    count: int  # type: ignore[assignment]  # hides tuple.count
    valid_bytes: int
    first_offset: int
    last_offset: int
    entries: int
    codec: int


class Opened:
    """How many bytes the wrappers of a pass may still inflate to, all together, and the last
    offset that each of those that were kept holds."""

    __slots__ = ("last_stored", "room")

    def __init__(self, room: int) -> None:
        self.room = room
        self.last_stored: list[int] = []


class Entry(NamedTuple):
    """A top-level entry: ``size_total`` bytes at ``position``, its 12-byte header included."""

    position: int
    offset: int
    size_total: int
    codec: int
    crc: int


def assign_offsets(
    buffer: BytesLike,
    base_offset: int,
    max_message_bytes: int,
    *,
    max_inflated: int = MAX_INFLATED,
    opened: Opened | None = None,
    rebuilt: list[Rebuilt] | None = None,
) -> Appended:
    """Check a produced set and number its messages from ``base_offset``, in place.

    ``buffer`` must be writable. A cut last entry is left out of ``valid_bytes``. A wrapper that
    holds no message has no legal offset: it is taken out, what follows moves up, and a set of
    nothing else counts 0. One whose inner offsets would pass for true ones with gaps (see
    ``inner``) is moved on by one, so that they do not: ``first_offset`` may then be above
    ``base_offset``. After an error the offsets in the buffer are undefined. Each wrapper may
    inflate to ``max_inflated`` bytes; ``opened`` bounds all of them together. ``rebuilt`` gathers
    what consumers must get for the wrappers, by their positions among the valid bytes.

    Raises InvalidMessageError (wrong crc, impossible size, nested too deep),
    MessageSizeTooLargeError (an entry above ``max_message_bytes``), InflatesTooFarError, which is
    one too, CorruptCompressionError and UnknownError (codec 4 to 7), both -1.
    """
    view = memoryview(buffer)
    end = len(view)
    offset = base_offset
    skipped = 0  # offsets that no message got
    first = -1
    position = entries = last_codec = retry_at = 0
    last_try = end - MIN_RUN_BYTES
    limit = max_message_bytes - ENTRY_OVERHEAD
    empty = []
    emptied = 0  # bytes of the wrappers that are taken out
    # the names of the loop's functions are bound here: this is the broker's hottest loop
    header, put, crc_of = HEADER.unpack_from, OFFSET.pack_into, crc32
    while position + _MIN_ENTRY <= end:
        _, size, crc, attributes = header(view, position)
        if retry_at <= position <= last_try:
            octets = stamp_run(view, position, end, size, offset) if size <= limit else 0
            if octets:
                first = first if entries else offset
                rows = octets // (ENTRY_OVERHEAD + size)
                offset += rows
                entries += rows
                position += octets
                continue
            retry_at = position + RETRY_AFTER * size
        stop = position + ENTRY_OVERHEAD + size
        if size < MIN_MESSAGE_SIZE or stop > end:
            break
        if size > limit or crc_of(view[position + CRC_START : stop]) != crc:
            raise _refusal(view, position, size, limit)
        codec = attributes & CODEC_MASK
        if codec:
            last_codec = codec
            most = max_inflated if opened is None else min(max_inflated, opened.room)
            found = leaves(view, position, stop, codec, max_inflated=most, check_crc=True)
            if opened is not None:
                opened.room -= found.inflated
            count = found.count
            if not count:
                empty.append((position, stop))
                emptied += stop - position
                position = stop
                continue
            if looks_true_with_gaps(found, offset + count - 1):
                offset += 1
                skipped += 1
            last = offset + count - 1
            if opened is not None:
                opened.last_stored.append(found.last_stored)
            if rebuilt is not None:
                put(view, position, last)
                entry = view[position:stop]
                data = bytes(entry) if is_right(found, last) else rebuilt_entry(entry, found, last)
                rebuilt.append(Rebuilt(position - emptied, stop - position, data))
        else:
            count = 1
        first = first if entries else offset
        offset += count
        put(view, position, offset - 1)
        entries += 1
        position = stop
    refuse_short(view, position, end)
    valid_bytes = _close_gaps(view, empty, position) if empty else position
    if not entries:
        return Appended(0, 0, -1, -1, 0, last_codec)
    count = offset - base_offset - skipped
    # half the time of the constructor
    return tuple.__new__(Appended, (count, valid_bytes, first, offset - 1, entries, last_codec))


def move_offsets(buffer: memoryview, distance: int, last_stored: Sequence[int]) -> int:
    """Add at least ``distance`` to the offsets of a set that ``assign_offsets`` numbered.

    Returns what was added: more where a wrapper's inner offsets, whose last ones are
    ``last_stored``, would otherwise end at the wrapper's own offset and pass for true ones.
    """
    entries = list(iter_entries(buffer))
    wrappers = [entry.offset for entry in entries if entry.codec]
    too_true = {stored - last for last, stored in zip(wrappers, last_stored, strict=True)}
    while distance in too_true:
        distance += 1
    for entry in entries:
        OFFSET.pack_into(buffer, entry.position, entry.offset + distance)
    return distance


def begins_compressed(buffer: memoryview) -> bool:
    """Whether the first entry of a set is a wrapper."""
    return len(buffer) >= _MIN_ENTRY and buffer[17] & CODEC_MASK != 0


def check_follower_set(buffer: BytesLike, max_message_bytes: int) -> Appended:
    """Check a set that a leader sent; its offsets stand, and wrappers are not opened.

    Raises as ``assign_offsets`` does for entries, and UnknownError when offsets do not rise.
    """
    view = memoryview(buffer)
    end = len(view)
    position = entries = last_codec = retry_at = 0
    first = last = -1
    limit = max_message_bytes - ENTRY_OVERHEAD
    rising = True
    while position + _MIN_ENTRY <= end:
        offset, size, crc, attributes = HEADER.unpack_from(view, position)
        table = None
        if position >= retry_at:
            retry_at = position + RETRY_AFTER * size
            if size <= limit:
                table = plain_run(view, position, end, size, check_crc=True)
        if table is not None:
            offsets = offsets_of(table, size)
            rising = rising and all(map(lt, offsets, offsets[1:]))
            stop = retry_at = position + len(table)
        else:
            offsets = (offset,)
            stop = position + ENTRY_OVERHEAD + size
            if size < MIN_MESSAGE_SIZE or stop > end:
                break
            if size > limit or crc32(view[position + CRC_START : stop]) != crc:
                raise _refusal(view, position, size, limit)
            last_codec = _known_codec(attributes) or last_codec
        rising = rising and (not entries or offset > last)
        first = first if entries else offset
        last = offsets[-1]
        entries += len(offsets)
        position = stop
    refuse_short(view, position, end)
    if not rising:
        raise UnknownError("Out of order offsets found in a replicated message set")
    return Appended(entries, position, first, last, entries, last_codec)


def iter_entries(buffer: BytesLike, start: int = 0) -> Iterator[Entry]:
    """The whole top-level entries from position ``start``; nothing but sizes is checked.

    Raises InvalidMessageError at an entry shorter than a message can be.
    """
    end = len(buffer)
    position = start
    while position + _MIN_ENTRY <= end:
        offset, size, crc, attributes = HEADER.unpack_from(buffer, position)
        stop = position + ENTRY_OVERHEAD + size
        if size < MIN_MESSAGE_SIZE or stop > end:
            break
        yield Entry(position, offset, stop - position, attributes & CODEC_MASK, crc)
        position = stop
    refuse_short(buffer, position, end)


def next_offset(buffer: BytesLike, default: int) -> int:
    """What follows the offset of the last whole top-level entry; ``default`` without one.

    Raises as ``iter_entries`` does.
    """
    view = memoryview(buffer)
    end = len(view)
    position = retry_at = 0
    last = default - 1
    header = OFFSET_AND_SIZE.unpack_from
    while position + _MIN_ENTRY <= end:
        offset, size = header(view, position)
        if position >= retry_at:
            table = plain_run(view, position, end, size, check_crc=False)
            if table is not None:
                position += len(table)
                last = OFFSET.unpack_from(view, position - ENTRY_OVERHEAD - size)[0]
                continue
            retry_at = position + RETRY_AFTER * size
        stop = position + ENTRY_OVERHEAD + size
        if size < MIN_MESSAGE_SIZE or stop > end:
            break
        last = offset
        position = stop
    refuse_short(view, position, end)
    return last + 1


def has_right_crc(buffer: BytesLike, entry: Entry) -> bool:
    """Whether the crc of an entry of ``buffer`` is right."""
    body = memoryview(buffer)[entry.position + CRC_START : entry.position + entry.size_total]
    return crc32(body) == entry.crc


def iter_messages(
    buffer: BytesLike, *, max_inflated: int = MAX_INFLATED, check_crc: bool = True
) -> Iterator[Message]:
    """All whole messages, those inside wrappers included, with their true offsets.

    Messages of a wrapper are numbered back from its offset unless those they carry are true
    (``inner.numbered_from``). Raises as ``assign_offsets`` does, without a limit of size.
    """
    data = bytes(buffer)
    start = 0
    for entry in _wrappers(data):
        stop = entry.position + entry.size_total
        yield from _plain_messages(data, start, entry.position, check_crc)
        start = stop
        if check_crc and not has_right_crc(data, entry):
            raise _wrong_crc(data, entry.position)
        found = leaves(
            data, entry.position, stop, entry.codec, max_inflated=max_inflated, check_crc=check_crc
        )
        first = numbered_from(found, entry.offset)
        yield from _plain_messages(found.data, 0, len(found.data), False, first, entry.codec)
    yield from _plain_messages(data, start, len(data), check_crc)


def encode_set(
    messages: Iterable[tuple[bytes | None, bytes | None]], codec: int = NONE, base_offset: int = 0
) -> bytes:
    """The set of (key, value) pairs, numbered from ``base_offset``; with a codec, one wrapper.

    Raises UnknownError for a codec that is none.
    """
    entries = [
        encode_entry(key, value, offset)
        for offset, (key, value) in enumerate(messages, base_offset)
    ]
    inner = b"".join(entries)
    if codec == NONE or not entries:
        return inner
    return encode_entry(None, compress(codec, inner), base_offset + len(entries) - 1, codec)


def _wrappers(data: bytes) -> Iterator[Entry]:
    """The wrappers up to the end or the first impossible size, which is its reader's to report."""
    position = 0
    while position + _MIN_ENTRY <= len(data):
        offset, size, crc, attributes = HEADER.unpack_from(data, position)
        stop = position + ENTRY_OVERHEAD + size
        if size < MIN_MESSAGE_SIZE or stop > len(data):
            return
        if attributes & CODEC_MASK:
            yield Entry(position, offset, stop - position, attributes & CODEC_MASK, crc)
        position = stop


def _plain_messages(
    data: bytes,
    position: int,
    end: int,
    check_crc: bool,
    first: int | None = None,
    codec: int = NONE,
) -> Iterator[Message]:
    """The messages of plain entries only, with their own offsets or numbered from ``first``."""
    view = memoryview(data)
    number = first
    retry_at = position
    last_try = end - MIN_RUN_BYTES
    # tuple.__new__ makes a Message in half the time of its constructor
    fields, length_at, make = FIELDS.unpack_from, SIZE.unpack_from, tuple.__new__
    while position + _MIN_ENTRY <= end:
        offset, size, crc, magic, attributes, length = fields(data, position)
        if retry_at <= position <= last_try:
            run = _run_messages(view, position, end, size, length, check_crc, number, codec)
            if run:
                yield from run
                position += len(run) * (ENTRY_OVERHEAD + size)
                number = None if number is None else number + len(run)
                continue
            retry_at = position + RETRY_AFTER * size
        stop = position + ENTRY_OVERHEAD + size
        if size < MIN_MESSAGE_SIZE or stop > end:
            break
        if check_crc and crc32(view[position + CRC_START : stop]) != crc:
            raise _wrong_crc(data, position)
        start = position + FIELDS.size
        key = None
        if length >= 0:
            key = data[start : start + length]
            start += length
        if start + 4 > stop:
            raise impossible_lengths(position)
        (length,) = length_at(data, start)
        value = None
        if length >= 0:
            start += 4
            if start + length > stop:
                raise impossible_lengths(position)
            value = data[start : start + length]
        if number is not None:
            offset = number
            number += 1
        yield make(Message, (offset, key, value, codec, crc, magic, attributes))
        position = stop
    refuse_short(data, position, end)


def _run_messages(
    view: memoryview,
    position: int,
    end: int,
    size: int,
    key_length: int,
    check_crc: bool,
    first: int | None,
    codec: int,
) -> list[Message]:
    """The messages of a run whose keys are of one length, too; none if there is no such run."""
    table = plain_run(view, position, end, size, check_crc=check_crc)
    if table is None:
        return []
    width = ENTRY_OVERHEAD + size
    rows = len(table) // width
    value_at = FIELDS.size + max(key_length, 0)
    value_length = width - value_at - SIZE.size
    if value_length < 0:
        return []
    for at, length in ((FIELDS.size - SIZE.size, key_length), (value_at, value_length)):
        for index, byte in enumerate(SIZE.pack(length), at):
            if table[index::width].count(byte) != rows:
                return []
    make = tuple.__new__
    if key_length < 0:
        unkeyed = _layout(f">q4xIBB8x{value_length}s").iter_unpack(table)
        found = [
            make(Message, (offset, None, value, codec, crc, magic, attributes))
            for offset, crc, magic, attributes, value in unkeyed
        ]
    else:
        keyed = _layout(f">q4xIBB4x{key_length}s4x{value_length}s").iter_unpack(table)
        found = [
            make(Message, (offset, key, value, codec, crc, magic, attributes))
            for offset, crc, magic, attributes, key, value in keyed
        ]
    if first is not None:
        found = [make(Message, (n, *message[1:])) for n, message in enumerate(found, first)]
    return found


@lru_cache(maxsize=256)
def _layout(text: str) -> Struct:
    return Struct(text)


def _known_codec(attributes: int) -> int:
    codec = attributes & CODEC_MASK
    if codec not in NAMES:
        raise UnknownError(f"Unknown compression codec {codec}")
    return codec


def _refusal(view: memoryview, position: int, size: int, limit: int) -> Exception:
    """Why an entry is refused: its size first, as in the original, then its crc."""
    if size > limit:
        return MessageSizeTooLargeError(
            f"Message size is {size + ENTRY_OVERHEAD} bytes which exceeds the maximum configured "
            f"message size of {limit + ENTRY_OVERHEAD}"
        )
    return _wrong_crc(view, position)


def _wrong_crc(buffer: BytesLike, position: int) -> InvalidMessageError:
    stored = HEADER.unpack_from(buffer, position)[2]
    return InvalidMessageError(f"Message at position {position} is corrupt (stored crc = {stored})")


def _close_gaps(view: memoryview, gaps: list[tuple[int, int]], end: int) -> int:
    """Move up what follows each gap; returns the new end."""
    for start, stop in reversed(gaps):
        view[start : start + end - stop] = view[stop:end]
        end -= stop - start
    return end
