"""Message sets: entries back to back, as produced, stored, replicated and fetched.

``assign_offsets`` is the leader's pass over a producer's set, ``check_follower_set`` the
follower's pass over a leader's set; ``iter_messages`` reads, ``encode_set`` writes. Sets are
stored as received: a wrapper gets the offset of its last message, and only these 8 bytes change
(0.8.2.2 re-packs the set instead, see ``wrappers.normalise``). Mirrors
kafka.message.ByteBufferMessageSet and Log.analyzeAndValidateMessageSet. Does not know logs.

Two differences from 0.8.2.2: the crcs of messages inside a wrapper are checked (a consumer could
not read past a wrong one), and the inflated size of a wrapper is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from kafka08.errors import InvalidRecordError, UnknownError, UnsupportedCompressionTypeError
from kafka08.message.batch import RECORDS_AT
from kafka08.message.compression import MAX_INFLATED, NAMES, NONE, ZSTD, compress
from kafka08.message.entry import (
    BATCH,
    CUT,
    END,
    KEYLESS,
    LOG_OVERHEAD,
    MAGIC_AT,
    MIN_ENTRY,
    OFFSET,
    PAUSED,
    SIZE,
    SIZE_AT,
    TIMED,
    WRAPPER,
    AnyMessage,
    Appended,
    BytesLike,
    TimedMessage,
    Walked,
    codec_of,
    encode_entry,
    is_later,
    magic_of,
    offset_and_stop,
)
from kafka08.message.leaves import Leaves, leaves
from kafka08.message.scan import ANY_SIZE, iter_entries, messages, refuse, walk
from kafka08.message.timed_messages import timed_messages
from kafka08.message.timed_sets import ANY_TIME, NOTHING, Rules, number_timed_set
from kafka08.message.wrappers import (
    Rebuilt,
    is_right,
    looks_true_with_gaps,
    numbered_from,
    rebuilt_entry,
)
from kafka08.named import named

T = TypeVar("T")

# Readers create Message objects for this many bytes at a time.
_STRETCH = 64 * 1024
_RUN = 500  # of later formats, which are made one by one


class Opened:
    """The bytes that all wrappers of a pass together may still inflate to, and the last inner
    offset of each wrapper that was kept."""

    __slots__ = ("last_stored", "room")

    def __init__(self, room: int) -> None:
        self.room = room
        self.last_stored: list[int] = []


def assign_offsets(
    buffer: BytesLike,
    base_offset: int,
    max_message_bytes: int,
    *,
    opened: Opened | None = None,
    rebuilt: list[Rebuilt] | None = None,
    renewed: list[Rebuilt] | None = None,
    rules: Rules = ANY_TIME,
) -> Appended:
    """Check a produced set and number its messages from ``base_offset``, in place.

    ``buffer`` must be writable. A cut last entry is left out of ``valid_bytes``. A wrapper
    without messages has no legal offset: it is removed and later entries move up; a set of only
    such wrappers counts 0. If the inner offsets of a wrapper could be mistaken for true ones with
    gaps, its messages get offsets one higher: ``first_offset`` may then be above ``base_offset``.
    After an error the offsets in the buffer are undefined. Each wrapper may inflate to MAX_INFLATED
    bytes; ``opened`` bounds all of them together. ``rebuilt`` collects the wrappers that consumers
    must get, by their positions among the valid bytes. A set of format 1 or 2 is numbered by
    ``timed_sets.number_timed_set``, by ``rules``; ``renewed`` collects its wrappers that cannot
    stay as they are, ``with_renewed`` puts them in.

    Raises InvalidMessageError (wrong crc, impossible size, nested too deep), its subclass
    InvalidRecordError (several formats in a set),
    MessageSizeTooLargeError (an entry above ``max_message_bytes``), its subclass
    InflatesTooFarError, CorruptCompressionError and UnknownError (codec 4 to 7), both -1.
    """
    view = memoryview(buffer)
    end = len(view)
    max_size = max_message_bytes - LOG_OVERHEAD
    if end > MAGIC_AT and is_later(view, 0):
        return _number_timed(view, base_offset, max_size, rules, opened, renewed)
    walked = walk(view, 0, end, number=base_offset, check_crc=True, max_size=max_size)
    stop, count, first, last, _, ended, _ = walked
    if ended != WRAPPER:
        if ended not in (END, CUT):
            refuse(view, walked, max_size)
        return named(Appended, (count, stop if count else 0, first, last, count, NONE, 0))
    if is_later(view, stop):
        raise InvalidRecordError("A set has messages of several formats")
    numbering = _Numbering(view, base_offset, opened, rebuilt)
    while numbering.plain(walked):
        stop = numbering.wrapper(walked.stop)
        number = numbering.offset
        walked = walk(view, stop, end, number=number, check_crc=True, max_size=max_size)
    refuse(view, walked, max_size)
    return numbering.appended(walked.stop)


def _number_timed(
    view: memoryview,
    base_offset: int,
    max_size: int,
    rules: Rules,
    opened: Opened | None,
    renewed: list[Rebuilt] | None,
) -> Appended:
    room = MAX_INFLATED if opened is None else opened.room
    found, inflated = number_timed_set(view, base_offset, max_size, rules, room, renewed)
    if opened is not None:
        opened.room -= inflated
    return found


class _Numbering:
    """The pass over a set of format 0 that has wrappers. The next message gets ``offset``."""

    def __init__(
        self,
        view: memoryview,
        offset: int,
        opened: Opened | None,
        rebuilt: list[Rebuilt] | None,
    ) -> None:
        self._view = view
        self._opened = opened
        self._rebuilt = rebuilt
        self._count = 0  # messages
        self._entries = 0
        self._first = -1
        self._codec = NONE
        self._empty: list[tuple[int, int]] = []  # the wrappers to remove
        self._empty_bytes = 0
        self.offset = offset

    def plain(self, walked: Walked) -> bool:
        """Add the messages that a walk has numbered; whether a wrapper follows."""
        if walked.count:
            self._add(walked.first, walked.count, walked.count)
        return walked.ended == WRAPPER

    def wrapper(self, position: int) -> int:
        """Number the wrapper at ``position``; returns where it ends. Raises as ``leaves`` does."""
        view, opened = self._view, self._opened
        if is_later(view, position):
            raise InvalidRecordError("A set has messages of several formats")
        _, stop = offset_and_stop(view, position)
        self._codec = codec_of(view, position)
        most = MAX_INFLATED if opened is None else min(MAX_INFLATED, opened.room)
        found = leaves(view, position, stop, self._codec, max_inflated=most, check_crc=True)
        if opened is not None:
            opened.room -= found.inflated
        if not found.count:
            self._empty.append((position, stop))
            self._empty_bytes += stop - position
            return stop
        if opened is not None:
            opened.last_stored.append(found.last_stored)
        skipped = looks_true_with_gaps(found, self.offset + found.count - 1)
        self._add(self.offset + skipped, found.count, 1)
        OFFSET.pack_into(view, position, self.offset - 1)
        if self._rebuilt is not None:
            data = _for_consumers(view[position:stop], found, self.offset - 1)
            self._rebuilt.append(Rebuilt(position - self._empty_bytes, stop - position, data))
        return stop

    def _add(self, first: int, count: int, entries: int) -> None:
        if not self._entries:
            self._first = first
        self._entries += entries
        self._count += count
        self.offset = first + count

    def appended(self, stop: int) -> Appended:
        """The result of the pass up to ``stop``. Removes the wrappers without messages."""
        if not self._entries:
            return NOTHING._replace(codec=self._codec)
        valid_bytes = _close_gaps(self._view, self._empty, stop)
        return Appended(
            self._count, valid_bytes, self._first, self.offset - 1, self._entries, self._codec
        )


def _for_consumers(entry: memoryview, found: Leaves, last: int) -> bytes:
    return bytes(entry) if is_right(found, last) else rebuilt_entry(entry, found, last)


def with_renewed(buffer: memoryview, renewed: Sequence[Rebuilt]) -> memoryview:
    """The numbered set with these wrappers, which may have other sizes, in their places."""
    parts: list[BytesLike] = []
    kept = 0
    for wrapper in renewed:
        parts += (buffer[kept : wrapper.position], wrapper.data)
        kept = wrapper.position + wrapper.stored_bytes
    return memoryview(bytearray().join((*parts, buffer[kept:])))


def move_offsets(buffer: memoryview, distance: int, last_stored: Sequence[int]) -> int:
    """Add at least ``distance`` to the offsets of a set that ``assign_offsets`` numbered.

    Returns the distance added. It is larger if the inner offsets of a wrapper (``last_stored`` has
    the last of each) would otherwise end at the wrapper's own offset and be mistaken for true ones.
    """
    entries = list(iter_entries(buffer))
    wrappers = [
        entry.offset for entry in entries if entry.codec and entry.magic not in (TIMED, BATCH)
    ]
    too_true = {stored - last for last, stored in zip(wrappers, last_stored, strict=True)}
    while distance in too_true:
        distance += 1
    for entry in entries:
        stored = OFFSET.unpack_from(buffer, entry.position)[0]
        OFFSET.pack_into(buffer, entry.position, stored + distance)
    return distance


def require_batch(buffer: memoryview, *, zstd: bool) -> None:
    """Check that a set is exactly one batch, which may be packed with zstd or not: all that later
    versions of Produce take. Raises InvalidRecordError, UnsupportedCompressionTypeError."""
    whole = len(buffer) >= RECORDS_AT and magic_of(buffer) == BATCH
    if not whole or LOG_OVERHEAD + SIZE.unpack_from(buffer, SIZE_AT)[0] != len(buffer):
        raise InvalidRecordError("A produce request of this version has one batch per partition")
    if codec_of(buffer) == ZSTD and not zstd:
        raise UnsupportedCompressionTypeError()


def begins_compressed(buffer: memoryview) -> bool:
    """Whether the first entry of a set is a wrapper of format 0."""
    return len(buffer) >= MIN_ENTRY and not is_later(buffer, 0) and codec_of(buffer) != NONE


def check_follower_set(buffer: BytesLike, max_message_bytes: int = ANY_SIZE) -> Appended:
    """Check a leader's set. Its offsets stay, and wrappers are not opened.

    Followers store entries of any size: their leader may have them from before the limit was
    lowered.

    Raises as ``assign_offsets`` does for entries, and UnknownError when offsets do not rise.
    """
    max_size = max_message_bytes - LOG_OVERHEAD
    walked = walk(buffer, 0, len(buffer), check_crc=True, max_size=max_size, last=-1, wrappers=True)
    refuse(buffer, walked, max_size)
    if walked.codec:
        for entry in iter_entries(buffer):
            if entry.codec not in NAMES or (entry.codec == ZSTD and entry.magic != BATCH):
                raise UnknownError(f"Unknown compression codec {entry.codec}")
    count = walked.count
    codec, magic = walked.codec, walked.magic
    return Appended(count, walked.stop, walked.first, walked.last, count, codec, magic)


def next_offset(buffer: BytesLike, default: int) -> int:
    """The offset after the last whole top-level entry; ``default`` without one.

    Raises InvalidMessageError at an entry shorter than any message.
    """
    walked = walk(buffer, 0, len(buffer), wrappers=True)
    refuse(buffer, walked)
    return walked.last + 1 if walked.count else default


def holds_null_key(buffer: BytesLike) -> bool:
    """Whether a message of a checked set, or one inside its wrappers, does not have a key.

    Sets of formats 1 and 2 are passed over: they were checked when they were numbered.
    Raises as ``wrappers.leaves`` does.
    """
    position, end = 0, len(buffer)
    while True:
        walked = walk(buffer, position, end, keyed=True)
        if walked.ended != WRAPPER:
            return walked.ended == KEYLESS
        _, position = offset_and_stop(buffer, walked.stop)
        if is_later(buffer, walked.stop):
            continue
        codec = codec_of(buffer, walked.stop)
        inner = leaves(buffer, walked.stop, position, codec).data
        if walk(inner, 0, len(inner), keyed=True).ended == KEYLESS:
            return True


def iter_messages(
    buffer: BytesLike, *, max_inflated: int = MAX_INFLATED, check_crc: bool = True
) -> Iterator[AnyMessage]:
    """All whole messages, including those inside wrappers and batches, with their true offsets.

    Messages of a wrapper are numbered back from its offset, unless their stored offsets are true
    (``wrappers.numbered_from``). Raises as ``assign_offsets`` does, but has no limit of size.
    """
    for run in iter_runs(
        buffer, messages, _unchanged, max_inflated=max_inflated, check_crc=check_crc
    ):
        yield from run


def iter_runs(
    buffer: BytesLike,
    read: Callable[..., Sequence[T]],
    timed: Callable[[TimedMessage], T],
    *,
    max_inflated: int = MAX_INFLATED,
    check_crc: bool = True,
) -> Iterator[Sequence[T]]:
    """The same in lists of at least one message. ``read`` makes those of format 0:
    ``scan.messages`` or a function with its arguments. ``timed`` makes one of a later format."""
    data = memoryview(bytes(buffer))
    position, end = 0, len(data)
    while True:
        walked = walk(data, position, end, check_crc=check_crc, until=position + _STRETCH)
        if walked.count:
            yield read(data, position, walked.stop)
        position = walked.stop
        if walked.ended == WRAPPER:
            offset, stop = offset_and_stop(data, position)
            if is_later(data, position):
                found = timed_messages(
                    data, position, stop, max_inflated=max_inflated, check_crc=check_crc
                )
                while run := list(map(timed, islice(found, _RUN))):
                    yield run
            else:
                codec = codec_of(data, position)
                inner = leaves(
                    data, position, stop, codec, max_inflated=max_inflated, check_crc=check_crc
                )
                yield from _leaf_runs(inner, read, offset, codec)
            position = stop
        elif walked.ended != PAUSED:
            refuse(data, walked)
            return


def _unchanged(message: TimedMessage) -> AnyMessage:
    return message


def _leaf_runs(
    found: Leaves, read: Callable[..., Sequence[T]], offset: int, codec: int
) -> Iterator[Sequence[T]]:
    """The messages of a wrapper at ``offset``."""
    number = numbered_from(found, offset)
    position, end = 0, len(found.data)
    while position < end:
        walked = walk(found.data, position, end, until=position + _STRETCH)
        yield read(found.data, position, walked.stop, codec, number)
        number = None if number is None else number + walked.count
        position = walked.stop


def encode_set(
    pairs: Iterable[tuple[bytes | None, bytes | None]], codec: int = NONE, base_offset: int = 0
) -> bytes:
    """The set of (key, value) pairs, numbered from ``base_offset``; with a codec, one wrapper.

    Raises UnknownError for an unknown codec.
    """
    encoded = [
        encode_entry(key, value, offset) for offset, (key, value) in enumerate(pairs, base_offset)
    ]
    inner = b"".join(encoded)
    if codec == NONE or not encoded:
        return inner
    return encode_entry(None, compress(codec, inner), base_offset + len(encoded) - 1, codec)


def _close_gaps(view: memoryview, gaps: list[tuple[int, int]], end: int) -> int:
    """Move the bytes after each gap up; returns the new end."""
    for start, stop in reversed(gaps):
        view[start : start + end - stop] = view[stop:end]
        end -= stop - start
    return end
