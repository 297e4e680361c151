"""Wrappers: compressed entries, the messages inside them, and how they are rebuilt.

A wrapper of format 0 is an entry with a codec whose value is a compressed message set. That set may
contain wrappers again (0.8.2.2 flattens any depth; one more level is supported here). The plain
messages inside are the leaves (``leaves.py``). Mirrors the deep half of
kafka.message.ByteBufferMessageSet.

Producers mostly number the leaves from 0 to n-1. Wrappers of 0.8.2.2 and of the cleaner have true
offsets, the cleaner's possibly with gaps. ``numbered_from`` is the only place that distinguishes
them: in a wrapper with offset W the stored offsets are true if and only if they rise strictly and
the last equals W; otherwise leaf i of n has W - (n-1) + i. ``sets.assign_offsets`` makes sure that
a producer's offsets cannot look true by accident.

0.8.2.2 clients use the stored inner offsets, so consumers must be sent wrappers whose inner
offsets are the true ones. ``rebuilt_entry`` creates them, at append or at a consumer's fetch
(``absolute_slice``); the same entry gives the same result. Replicas get the stored bytes.
``normalise`` does what 0.8.2.2 does at append instead (ByteBufferMessageSet.assignOffsets). Does
not know logs: positions are the caller's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kafka08.errors import (
    InvalidMessageError,
    KafkaError,
)
from kafka08.message.compression import (
    FASTEST,
    GZIP,
    LZ4,
    MAX_INFLATED,
    NONE,
    InflatesTooFarError,
    compress,
)
from kafka08.message.convert import converted, plain_run
from kafka08.message.entry import (
    BATCH,
    OFFSET,
    TIMED,
    WRAPPER,
    BytesLike,
    Entry,
    codec_of,
    encode_entry,
    has_right_crc,
    key_and_value,
    magic_of,
)
from kafka08.message.leaves import Leaves, leaves, offsets_rise
from kafka08.message.scan import iter_entries, walk


class Rebuilt(NamedTuple):
    """The bytes that consumers get for the wrapper with ``stored_bytes`` at ``position``: the same
    bytes if the wrapper's inner offsets are true."""

    position: int
    stored_bytes: int
    data: bytes


def numbered_from(found: Leaves, wrapper_offset: int) -> int | None:
    """The true offset of the first leaf if the leaves are numbered consecutively up to
    ``wrapper_offset``; None if their stored offsets are the true ones."""
    if found.converted:
        return None
    if found.last_stored == wrapper_offset and found.count and offsets_rise(found.data):
        return None
    return wrapper_offset - found.count + 1


def looks_true_with_gaps(found: Leaves, wrapper_offset: int) -> bool:
    """Whether the leaves' offsets would be mistaken for true ones though not consecutive."""
    if found.last_stored != wrapper_offset or not found.count or found.converted:
        return False
    first = OFFSET.unpack_from(found.data)[0]
    return first != wrapper_offset - found.count + 1 and offsets_rise(found.data)


def is_right(found: Leaves, last: int) -> bool:
    """Whether a wrapper with offset ``last`` may be sent unchanged: it contains only plain
    messages with their true offsets."""
    return found.exact and numbered_from(found, last) is None


def rebuilt_entry(
    entry: BytesLike,
    found: Leaves,
    last: int,
    level: int = FASTEST,
    *,
    codec: int | None = None,
) -> bytes:
    """The wrapper ``entry`` with leaves ``found``, rebuilt with true offsets up to ``last``, with
    its own codec or another. The key stays; nesting is flattened.

    Raises InvalidMessageError for a wrapper without messages.
    """
    if not found.count:
        raise InvalidMessageError("A compressed message holds no messages")
    codec = codec_of(entry) if codec is None else codec
    table = bytearray(found.data)
    first = numbered_from(found, last)
    if first is not None:
        number(table, first)
    span, _ = key_and_value(entry, 0, len(entry))
    key = None if span is None else bytes(entry[span[0] : span[1]])
    return encode_entry(key, compress(codec, table, level=level), last, codec)


def number(table: bytearray, first: int) -> int:
    """Write consecutive offsets into whole plain entries; returns their number."""
    return walk(table, 0, len(table), number=first).count


def holds_wrappers(buffer: BytesLike) -> bool:
    """Whether any whole entry of a slice of the log is compressed or of a later format."""
    return walk(buffer, 0, len(buffer)).ended == WRAPPER


def same_messages(entry: BytesLike, other: BytesLike) -> bool:
    """Whether two entries hold the same messages, whatever offsets these have inside wrappers.

    False for a damaged wrapper, unless the bytes are the same.
    """
    if entry == other:
        return True
    if not codec_of(entry) or codec_of(entry) != codec_of(other):
        return False
    try:
        tables = [bytearray(_leaves_of(each, MAX_INFLATED).data) for each in (entry, other)]
    except KafkaError:
        return False
    for table in tables:
        number(table, 0)
    return tables[0] == tables[1]


def absolute_slice(
    data: bytes,
    *,
    max_bytes: int,
    known: Callable[[int], BytesLike | None] | None = None,
    made: list[Rebuilt] | None = None,
    room: int | None = None,
    level: int = FASTEST,
    target: int = 0,
    keep_plain: bool = True,
) -> bytes:
    """The bytes to send to a consumer for the stored bytes of a fetch; ``data`` if none change.

    ``target`` is the highest format that the consumer reads: entries of later ones are converted.
    Wrappers of format 0 with wrong inner offsets are rebuilt, which mostly makes them larger. All
    of these are called rebuilt; some entries are rebuilt to nothing. The first rebuilt one is never
    cut. All bytes from the first later entry that would exceed ``max_bytes`` are left out. A cut
    last entry stays only if no entry was left out and whole ones precede it. A wrapper that cannot
    be decoded is passed on unchanged. ``known`` may return the bytes for the wrapper at a position.
    Wrappers it does not know are added to ``made``, if any wrapper is rebuilt at all. Messages of
    format 1 without a codec are converted many at once, and not added; if ``keep_plain`` is false,
    neither are batches without a codec.

    ``level`` is gzip's. With a ``room`` all wrappers together inflate to at most that: all bytes
    from the first wrapper that would exceed it are left out. Raises InflatesTooFarError if that is
    the first entry (with a room of MAX_INFLATED or more it never is).
    """
    if not holds_wrappers(data):
        return data
    rebuilding = _Rebuilding(known, room, level, target)
    sent = rebuilding.slice(data, max_bytes, TIMED if keep_plain else BATCH)
    if made is not None and sent is not data:
        made += rebuilding.made
    return sent


class _Rebuilding:
    """The wrappers of one slice as consumers get them, found with ``known`` or ``made``. Together
    the made ones inflate to at most ``room`` bytes, if there is such a limit."""

    def __init__(
        self,
        known: Callable[[int], BytesLike | None] | None,
        room: int | None,
        level: int,
        target: int,
    ) -> None:
        self._known = known
        self._room = room
        self._level = level
        self._target = target
        self.made: list[Rebuilt] = []

    def slice(self, data: bytes, max_bytes: int, runs_to: int) -> bytes:
        """``data`` as it is sent, or itself. Entries without a codec up to format ``runs_to`` are
        converted in runs."""
        view, target = memoryview(data), self._target
        parts: list[BytesLike] = []
        kept = done = grown = 0  # bytes of data in parts, bytes processed, bytes gained
        is_first = True  # nothing was rebuilt, except to nothing
        while (entry := _entry_at(data, done)) is not None:
            position = stop = entry.position
            rebuilt: BytesLike | None = None
            is_full = False
            if target < entry.magic <= runs_to and not entry.codec:
                room_left = max_bytes - position - grown
                rebuilt, stop, is_full = plain_run(data, position, target, room_left)
            if stop == position:  # also where a run cannot begin
                stop = entry.stop
                try:
                    rebuilt = self._sent(entry, view[position:stop])
                except InflatesTooFarError:
                    if not done:
                        raise
                    break
            growth = 0 if rebuilt is None else len(rebuilt) - (stop - position)
            if not is_first and stop + grown + growth > max_bytes:
                break
            if rebuilt is not None:
                is_first = is_first and not len(rebuilt)
                parts += (view[kept:position], rebuilt) if kept < position else (rebuilt,)
                grown += growth
                kept = stop
            done = stop
            if is_full:
                break
        else:
            if not kept:
                return data
            if len(data) + grown <= max_bytes and done + grown > 0:
                done = len(data)  # the cut last entry stays
        if kept < done:
            parts.append(view[kept:done])
        return b"".join(parts)

    def _sent(self, entry: Entry, stored: memoryview) -> BytesLike | None:
        """The bytes for the ``stored`` ones, or None to send these. Raises InflatesTooFarError if
        the room is too small."""
        if not _may_change(entry, self._target):
            return None
        found = None if self._known is None else self._known(entry.position)
        return self._make(entry, stored) if found is None else found

    def _make(self, entry: Entry, stored: memoryview) -> bytes | None:
        most = MAX_INFLATED if self._room is None else min(MAX_INFLATED, self._room)
        try:
            rebuilt, inflated = _rebuilt_or_none(stored, most, self._level, self._target)
        except InflatesTooFarError:
            if most < MAX_INFLATED:
                raise
            rebuilt, inflated = None, most
        if self._room is not None:
            self._room = max(self._room - inflated, 0)
        sent = bytes(stored) if rebuilt is None else rebuilt
        self.made.append(Rebuilt(entry.position, entry.size_total, sent))
        return rebuilt


def normalise(buffer: BytesLike, base_offset: int) -> bytes:
    """The set as 0.8.2.2 stores it: one wrapper with the last codec seen and absolute offsets.

    A set without wrappers stays plain and is numbered. A cut last entry is left out. Without
    messages the result is empty. Crcs are not checked. Raises as ``leaves`` does.
    """
    parts: list[BytesLike] = []
    codec = NONE
    for entry in iter_entries(buffer):
        stop = entry.stop
        if entry.codec:
            codec = entry.codec
            parts.append(leaves(buffer, entry.position, stop, codec).data)
        else:
            parts.append(memoryview(buffer)[entry.position : stop])
    table = bytearray().join(parts)
    messages = number(table, base_offset)
    if codec == NONE or not messages:
        return bytes(table)
    return encode_entry(None, compress(codec, table), base_offset + messages - 1, codec)


def _entry_at(data: bytes, position: int) -> Entry | None:
    """The entry there; None if it is cut or damaged. Damage is passed on; the client reports it."""
    try:
        return next(iter_entries(data, position), None)
    except InvalidMessageError:
        return None


def _may_change(entry: Entry, target: int) -> bool:
    """Whether an entry may have to be rebuilt for consumers that read formats up to ``target``."""
    if entry.magic in (TIMED, BATCH):
        return entry.magic > target
    return entry.codec != NONE


def _rebuilt_or_none(
    entry: memoryview, max_inflated: int, level: int, target: int
) -> tuple[bytes | None, int]:
    """The rebuilt entry, or None to send the stored one; and the number of bytes inflated.

    Raises InflatesTooFarError.
    """
    try:
        if target < magic_of(entry) <= BATCH:
            _check_crc(entry)
            return converted(entry, target, max_inflated)
        return _rebuilt_wrapper(entry, max_inflated, level, target)
    except InflatesTooFarError:
        raise
    except KafkaError:
        return None, 0  # the client finds the same damage and reports it


def _rebuilt_wrapper(
    entry: memoryview, max_inflated: int, level: int, target: int
) -> tuple[bytes | None, int]:
    """As ``_rebuilt_or_none``, of a wrapper of format 0. Raises as ``leaves`` does."""
    found = _leaves_of(entry, max_inflated)
    last = OFFSET.unpack_from(entry)[0]
    # Not all clients of later versions read lz4 with the historical checksum.
    codec = GZIP if target == BATCH and codec_of(entry) == LZ4 else None
    if found.count and (codec or not is_right(found, last)):
        return rebuilt_entry(entry, found, last, level, codec=codec), found.inflated
    return None, found.inflated


def _leaves_of(entry: BytesLike, max_inflated: int) -> Leaves:
    _check_crc(entry)
    return leaves(entry, 0, len(entry), codec_of(entry), max_inflated=max_inflated)


def _check_crc(entry: BytesLike) -> None:
    """A damaged entry must not get a new crc, which would hide the damage."""
    if not has_right_crc(entry, 0, len(entry)):
        raise InvalidMessageError("A compressed message fails its crc")
