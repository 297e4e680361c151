"""The bytes that a consumer gets for a slice of the log: the slice itself if it can be sent as it
is.

Stored wrappers hold the producer's bytes, whose inner offsets mostly are not the true ones; for
consumers such wrappers are rebuilt. A bounded cache spares them the wait: wrappers are put there
when their set is appended (for consumers near the log's end) or by the first one that asks, on
another thread if it is much, since a megabyte takes 10 to 20 ms. Entries of formats that a consumer
does not read are converted, and cached in the same way. A fetch has only so much of the log opened
for it; the rest comes with the next. Stored bytes that are right are not read at all: each open
file knows up to where that holds.
"""

from __future__ import annotations

import os
from typing import Final, cast

from kafka08.errors import KafkaError
from kafka08.log.numbering import RebuiltSet
from kafka08.log.segments.file_slice import FileSlice, SegmentFile
from kafka08.log.segments.file_walk import FileWalk
from kafka08.message import records
from kafka08.message.batch import BATCH_CODEC_AT, RECORDS_AT, Batch, header_of
from kafka08.message.compression import MAX_INFLATED, InflatesTooFarError
from kafka08.message.entry import BATCH, LOG_OVERHEAD, SIZE, SIZE_AT, codec_of, magic_of
from kafka08.message.leaves import leaves
from kafka08.message.scan import walk
from kafka08.message.wrappers import Rebuilt, absolute_slice
from kafka08.protocol.schemas import Sized
from kafka08.runtime import Lock, Runtime
from kafka08.server.rebuild.cache import RebuildCache
from kafka08.server.requests.long_work import LOOP_BYTES, LOOP_STORED_BYTES, LongWork

CACHE_BYTES = 128 << 20
# Ready bytes are sent alone if they are at least this many, although more were asked for. Fewer
# wait for the rest, so that a client with a few messages to get has them with one fetch.
READY_BYTES = 64 << 10
# Up to this many bytes of entries without a codec are converted on the loop. Compiled code takes up
# to 5 ms for them, interpreted code would take 50 ms for a quarter.
LOOP_CONVERTED_BYTES = READY_BYTES - 1 if records.native is None else LOOP_STORED_BYTES
# The log is read in pieces of this size.
READ_BYTES = 16 << 20

# The outcomes for a consumer and a slice of the log: see ``ConsumerView.decide``.
SEND: Final = 0
SEND_NOW: Final = 1
SKIP: Final = 2
REFUSE: Final = 3


class ConsumerVersions:
    """Consumers of some versions. ``target``: the highest format that they read. ``is_limited``:
    they may limit the bytes of all partitions together. ``refusal``: the code that tells them that
    messages are not converted. ``committed``: they read committed transactions only. Those that
    read all formats get entries of formats 0 and 1 or of format 2 in one answer: many choose a
    parser by the first one."""

    __slots__ = ("committed", "is_limited", "refusal", "target")

    def __init__(
        self, target: int, *, is_limited: bool, refusal: int, committed: bool = False
    ) -> None:
        self.target = target
        self.committed = committed
        self.is_limited = is_limited
        self.refusal = refusal


class ConsumerView:
    """Slices of the log as consumers must see them, with so much memory for rebuilt wrappers."""

    def __init__(self, runtime: Runtime, cache_bytes: int = CACHE_BYTES) -> None:
        self.long_work = LongWork(runtime)
        self._runtime = runtime
        self._cache = RebuildCache(cache_bytes)
        # by what is being rebuilt: a lock, and how many hold it or wait for it
        self._making: dict[tuple[int, int], tuple[Lock, list[None]]] = {}

    def remember(self, made: RebuiltSet) -> None:
        """Keep what was rebuilt, mostly while its set was appended."""
        self._keep(made, 0)

    def _keep(self, made: RebuiltSet, target: int) -> None:
        serial, start, wrappers = made
        for place, stored_bytes, data in wrappers:
            self._cache.put(_name(serial, target), start + place, stored_bytes, data)

    def decide(
        self,
        stored: FileSlice,
        offset: int,
        reader: ConsumerVersions,
        *,
        is_cut: bool,
        converts: bool,
    ) -> tuple[int, FileSlice, int]:
        """Decide how a consumer that asks for ``offset`` is answered: an outcome, the part of
        ``stored`` that is for it, and the offset to read from next.

        SEND: ``bytes_to_send`` of the part. SEND_NOW: the same, and waiting adds nothing to it.
        SKIP: the first entry has nothing that can be sent, a control batch, or a batch that was
        compacted. REFUSE: the part had to be converted, and the topic does not allow that
        (``converts``). ``is_cut``: a limit cut the slice, which is the first of its answer, in
        which readers with limits get a whole first entry. May wait. Raises OSError.
        """
        target = reader.target
        if target < BATCH and stored.end > stored.file.sendable_until:
            following = self._offset_after_nothing(stored, offset)
            if following != offset:
                return SKIP, stored, following
        part = _whole(stored, _header(stored), -1) if is_cut else stored
        if target == BATCH:
            one_family = part.of_one_family()
            return SEND if one_family is part else SEND_NOW, one_family, offset
        refused = not converts and _holds_later(part, target)
        return REFUSE if refused else SEND, part, offset

    def bytes_to_send(
        self, stored: Sized, max_bytes: int, *, offset: int = 0, target: int = 0
    ) -> Sized:
        """``stored`` or the bytes to send instead, at most ``max_bytes`` past the first entry.

        ``target`` is the highest format that the consumer reads. Plain messages of a converted
        batch that lie before ``offset`` are left out. The first entry is always converted
        whole, even if the answer is then cut.
        """
        if not isinstance(stored, FileSlice) or stored.end <= _until(stored.file, target):
            return stored
        header = _header(stored)
        batch = _batch(header) if target < BATCH else None
        whole = _whole(stored, header, target)
        is_plain = _is_later(header, target) and not codec_of(header)
        loop_bytes = LOOP_CONVERTED_BYTES if is_plain else READY_BYTES - 1
        sent = self._rebuilt_slice(whole, max_bytes, target, loop_bytes)
        if batch is None or batch.base_offset >= offset or batch.codec:
            return sent
        data = sent.read() if isinstance(sent, FileSlice) else cast(bytes, sent)
        return data[walk(data, 0, len(data), up_to=offset - 1, magic=target).stop :]

    def _offset_after_nothing(self, stored: FileSlice, offset: int) -> int:
        """The offset to read from instead of ``offset``, if the first entry of ``stored`` has
        nothing from there on that can be sent: a control batch, or a batch that was compacted."""
        batch = _batch(_header(stored))
        if batch is None:
            return offset
        if batch.is_control or not batch.count:
            return batch.last_offset + 1
        if offset <= batch.base_offset or batch.count > batch.last_delta:
            return offset
        whole = FileSlice(stored.file, stored.position, batch.size + LOG_OVERHEAD)

        def last(room: int) -> int:
            data = whole.read()
            found = leaves(data, 0, len(data), batch.codec, max_inflated=room)
            return found.last_stored

        try:
            newest = self.long_work.run(last, MAX_INFLATED, whole.size)
        except KafkaError:
            return offset  # the client finds the same damage and reports it
        return offset if newest >= offset else batch.last_offset + 1

    def _rebuilt_slice(
        self, stored: FileSlice, max_bytes: int, target: int, loop_bytes: int
    ) -> Sized:
        """A slice of at most ``loop_bytes`` bytes is rebuilt at once if it does not inflate to many
        more."""
        ready = self._ready(stored, max_bytes, target)
        if ready is not None:
            return ready
        if stored.size <= loop_bytes:
            known = self._known(stored, target)
            try:
                room = max(loop_bytes, LOOP_BYTES)
                made = _rebuilt(stored, max_bytes, known, room, target)
                return self._made(stored, target, *made)
            except InflatesTooFarError:
                pass
        if stored.size > READ_BYTES:
            stored = _first_part(stored)
        place = (_name(stored.file.serial, target), stored.position)
        lock, users = self._making.setdefault(place, (self._runtime.lock(), []))
        users.append(None)
        try:
            with lock:  # only the first of several requests for the same bytes rebuilds them
                ready = self._ready(stored, max_bytes, target)
                return self._make(stored, max_bytes, target) if ready is None else ready
        finally:
            users.pop()
            if not users:
                del self._making[place]

    def _make(self, stored: FileSlice, max_bytes: int, target: int) -> Sized:
        known = self._known(stored, target)

        def rebuilt(room: int) -> tuple[RebuiltSet, bytes, bytes]:
            return _rebuilt(stored, max_bytes, known, room, target)

        return self._made(stored, target, *self.long_work.run(rebuilt, MAX_INFLATED))

    def _ready(self, stored: FileSlice, max_bytes: int, target: int) -> Sized | None:
        file, position = stored.file, stored.position
        until = _until(file, target)
        if stored.end <= until:
            return stored
        if until >= position + READY_BYTES:
            return FileSlice(file, position, until - position, stored.base_offset)
        name = _name(file.serial, target)
        return self._cache.run(name, position, stored.end, max_bytes, READY_BYTES)

    def _known(self, stored: FileSlice, target: int) -> dict[int, FileSlice]:
        name = _name(stored.file.serial, target)
        return self._cache.known(name, stored.position, stored.end)

    def _made(
        self, stored: FileSlice, target: int, made: RebuiltSet, data: bytes, sent: bytes
    ) -> Sized:
        file, position = stored.file, stored.position
        self._keep(made, target)
        if sent is not data:
            return sent
        if file.serial == made.serial and position <= _until(file, target):
            until = position + walk(data, 0, len(data), wrappers=True).stop
            if target == BATCH:
                file.later_until = max(file.later_until, until)
            elif target == 0:
                file.sendable_until = max(file.sendable_until, until)
        return stored


def _holds_later(stored: FileSlice, target: int) -> bool:
    """Whether an entry of ``stored`` has a higher format than ``target``. Raises OSError."""
    if stored.end <= stored.file.sendable_until:
        return False
    if _is_later(_header(stored), target):
        return True  # also if not even one entry is whole
    fd, start = stored.file.fd, stored.position
    return FileWalk(fd, start, stored.end, headers_only=True).step().magic > target


def _header(stored: FileSlice) -> bytes:
    """The bytes that a slice begins with: as many as a batch has before its records."""
    return os.pread(stored.file.fd, RECORDS_AT, stored.position)


def _batch(header: bytes) -> Batch | None:
    """The header of a batch; None if another entry begins there."""
    if len(header) < RECORDS_AT or magic_of(header) != BATCH:
        return None
    return header_of(header)


def _is_later(header: bytes, target: int) -> bool:
    """Whether an entry of a later format than ``target`` begins there."""
    return len(header) > BATCH_CODEC_AT and target < magic_of(header) <= BATCH


def _whole(stored: FileSlice, header: bytes, target: int) -> FileSlice:
    """The slice, with all of its first entry if that has a later format than ``target``."""
    if not _is_later(header, target):
        return stored
    size = SIZE.unpack_from(header, SIZE_AT)[0] + LOG_OVERHEAD
    if size <= stored.size:
        return stored
    return FileSlice(stored.file, stored.position, size, stored.base_offset)


def _until(file: SegmentFile, target: int) -> int:
    """Up to where stored bytes can be sent to consumers that read formats up to ``target``."""
    return file.later_until if target == BATCH else file.sendable_until


def _name(serial: int, target: int) -> int:
    """The key in the cache of a file as these consumers see it."""
    return serial * (BATCH + 1) + target


def _first_part(stored: FileSlice) -> FileSlice:
    """As much of a long slice as one fetch is given at a time; all of it if no entry ends there."""
    part = FileSlice(stored.file, stored.position, READ_BYTES, stored.base_offset)
    size = int.from_bytes(
        FileSlice(stored.file, stored.position + 8, 4, stored.base_offset).read(), "big"
    )
    return part if size + LOG_OVERHEAD <= READ_BYTES else stored


def _rebuilt(
    stored: FileSlice, max_bytes: int, known: dict[int, FileSlice], room: int, target: int
) -> tuple[RebuiltSet, bytes, bytes]:
    """The wrappers that were not ``known``, the stored bytes, and the bytes to send.

    ``room`` is how many bytes may be inflated: less is sent if that does not do for all, and
    InflatesTooFarError raised if it does not do for the first. To be called on any thread.
    """

    def find(place: int) -> bytes | None:
        found = known.get(stored.position + place)
        return None if found is None else found.read()

    made: list[Rebuilt] = []
    serial = stored.file.serial
    data = stored.read()
    sent = absolute_slice(
        data,
        max_bytes=max_bytes,
        known=find,
        made=made,
        room=room,
        target=target,
        # Consumers near the log's end, who get less than they ask for, share what is converted. For
        # those who are behind, keeping plain batches costs more than the conversion.
        keep_plain=stored.size < min(max_bytes, READ_BYTES),
    )
    return RebuiltSet(serial, stored.position, made), data, sent
