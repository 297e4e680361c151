"""The producers of one log and their transactions, and the snapshots of their states beside its
segments.

``<20 digits>.snapshot`` is the state that all batches below that offset lead to. It is written
before a segment begins at that offset, and at a clean stop. The state at any other offset comes
from the newest snapshot below it and the headers of the batches behind that. A log that such
producers have never written to has no snapshots. Once it has one, each new segment gets one, and a
start on a full disk may leave it out. Batches that are read again make the
segments' indexes of aborted transactions again, too.

Threads: as ``Log``, whose lock is held while snapshots are removed, and by ``open_for_sync``, which
may run on any thread. Mirrors the files of kafka.log.ProducerStateManager.
"""

from __future__ import annotations

import contextlib
import logging
import os
from bisect import insort
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kafka08.errors import (
    InvalidRecordError,
    InvalidTxnStateError,
    KafkaError,
    OutOfOrderSequenceError,
)
from kafka08.log.directory import sync_directory, unlink_if_there
from kafka08.log.disk import is_shortage
from kafka08.log.producer_state import (
    CLIENT,
    BatchMetadata,
    CompletedTransaction,
    CorruptSnapshotError,
    Origin,
    ProducerStates,
)
from kafka08.log.segments.file_slice import SegmentFile
from kafka08.log.segments.file_walk import stretches
from kafka08.log.segments.names import SNAPSHOT_SUFFIX
from kafka08.log.segments.segment import LogSegment
from kafka08.log.segments.transaction_index import AbortedTransaction
from kafka08.message.entry import BytesLike, offset_and_stop
from kafka08.message.markers import ABORT, COMMIT, IN_TRANSACTION
from kafka08.message.scan import producer_batches
from kafka08.named import named

logger = logging.getLogger("kafka.log.ProducerStateManager")

_EVERYTHING_SAVED: Final = 1 << 63  # above all offsets


class Verification:
    """A question to a coordinator: whether a producer's transaction includes this partition.

    ``sequence``: the lowest of the batches that were asked about. The batches behind it are sent
    before the coordinator has answered, and must not be the first in the log if it says nothing:
    the log takes any sequence of a producer that it does not know, and a lower one never after.
    """

    __slots__ = ("asked_ms", "epoch", "is_confirmed", "sequence")

    def __init__(self, epoch: int, sequence: int, asked_ms: int) -> None:
        self.epoch = epoch
        self.sequence = sequence
        self.asked_ms = asked_ms
        self.is_confirmed = False


class ProducerStateManager:
    """``states`` of the log in ``directory``, and the offsets of its ``snapshots``, ascending.

    ``uncommitted``: (first offset, offset of the marker) of transactions that have ended, as long
    as the marker may not be below the high watermark; in the order of the markers.
    """

    __slots__ = ("_asked", "_directory", "_unsaved", "snapshots", "states", "uncommitted")

    def __init__(self, directory: str) -> None:
        self.states = ProducerStates()
        self.snapshots: list[int] = []
        self.uncommitted: deque[tuple[int, int]] = deque()
        self._directory = directory
        # By producer: of a transaction that has no batch here.
        self._asked: dict[int, Verification] = {}
        # From where to read the batches as long as no snapshot has them.
        self._unsaved = _EVERYTHING_SAVED

    def load(self, segments: Sequence[LogSegment], known: int, now: int, *, clean: bool) -> None:
        """Find the state at the log's end. ``known`` is the recovery point, which is that end after
        a ``clean`` stop; otherwise the log may have lost batches that snapshots above it include.

        Raises OSError.
        """
        self.snapshots = _found(self._directory)
        if clean and not self.snapshots:
            return
        known = max(known, segments[0].base_offset)
        damaged = [s.base_offset for s in segments if s.aborted.is_damaged(s.base_offset)]
        known = min([known, *damaged])
        self.remove_above(known)
        plain = [s.base_offset for s in segments if s.magic_found in (0, 1)]
        self._restore(segments, known, now, plain)
        bases = {segment.base_offset for segment in segments}
        self._remove([offset for offset in self.snapshots[:-1] if offset not in bases])
        for segment in segments[:-1]:
            segment.release()

    def _restore(
        self, segments: Sequence[LogSegment], known: int, now: int, plain: Collection[int] = ()
    ) -> None:
        """The state from the newest snapshot that can be read, and the batches behind it. There is
        no snapshot above ``known``; those of segments are written again. ``plain``: the segments
        that do not have batches."""
        bases = [segment.base_offset for segment in segments if segment.base_offset <= known]
        start = bases[0] if self.snapshots else bases[-1]
        self._unsaved = _EVERYTHING_SAVED
        self.uncommitted.clear()
        self._asked.clear()
        corrupt = self._read_snapshot(now)
        if self.snapshots:
            start = max(self.snapshots[-1], start)
        missing = []
        ends = [segment.base_offset for segment in segments[1:]]
        for segment, end in zip(segments, [*ends, None], strict=True):
            base = segment.base_offset
            if base > start and base not in self.snapshots:
                try:
                    self.snapshot(base)
                except OSError as error:
                    # A start must not need space. A snapshot below leads to the same state, and
                    # without one the batches from the segment of the recovery point on.
                    if not is_shortage(error) or (corrupt and not self.snapshots):
                        raise
                    logger.warning("Leaving out the snapshot %s: %s", self._path(base), error)
                    if not self.snapshots:
                        self._unsaved = start
                missing.append(base)
            if end is not None and end <= start:
                continue
            if base in plain:
                segment.aborted.truncate_to(start)  # its markers may be lost
            else:
                self._read(segment, start, now)
        self._sync(missing)
        for offset in corrupt:
            if offset not in self.snapshots:
                unlink_if_there(self._path(offset))

    def _read_snapshot(self, now: int) -> list[int]:
        """The state of the newest snapshot that can be read. Those above it are in ``snapshots`` no
        more: the result."""
        self.states = ProducerStates()
        corrupt = []
        while self.snapshots:
            path = self._path(self.snapshots[-1])
            try:
                with open(path, "rb") as file:
                    self.states = ProducerStates.restore(file.read(), now, self.snapshots[-1])
                break
            except CorruptSnapshotError as error:
                logger.warning("Ignoring the snapshot %s: %s", path, error)
                corrupt.append(self.snapshots.pop())
        return corrupt

    def _read(self, segment: LogSegment, start: int, now: int) -> None:
        """Add the batches of a segment from offset ``start`` on, and make what its index of aborted
        transactions has from there on again."""
        try:
            position = segment.position_of(start)
        except KafkaError as error:
            logger.warning("Producers are not known from %d on: %s", start, error)
            return
        aborted: list[AbortedTransaction] = []
        if position is not None:
            for data, stop in stretches(segment.file.fd, position, segment.size):
                for batch in batches_in(data, stop):
                    done = self._update(batch, min(batch.timestamp, now))
                    if done is not None and done.is_aborted:
                        aborted.append(_aborted(done, self.states.open))
        segment.aborted.replace_from(start, aborted)

    # Changes of the log

    def check(
        self, buffer: memoryview, first_offset: int, origin: Origin = CLIENT
    ) -> tuple[Sequence[BatchMetadata], BatchMetadata | None]:
        """The batches to ``record`` of a produced set of format 2, numbered from ``first_offset``,
        and the batch that is stored already if the set came again.

        Raises as ``ProducerStates.check`` does, InvalidRecordError for a set that has a batch of an
        idempotent producer and more, and InvalidTxnStateError for a client's batch that would begin
        a transaction without a ``verification``, or OutOfOrderSequenceError without the batch
        before it.
        """
        batches = batches_in(buffer, len(buffer))
        if not batches:
            return (), None
        if offset_and_stop(buffer, 0)[1] != len(buffer):
            raise InvalidRecordError("A set of an idempotent producer has more than one batch")
        batch = batches[0]
        if batch.base_offset != first_offset:  # the set was converted
            batch = batch._replace(base_offset=first_offset)
        stored = self.states.check(batch, origin)
        if stored is None and origin is CLIENT and batch.part == IN_TRANSACTION:
            self._require_verified(batch)
        return (batch,), stored

    def record(self, batches: Sequence[BatchMetadata], now: int) -> None:
        """Add these batches, which are in the log now."""
        for batch in batches:
            self._update(batch, now)

    def _update(self, batch: BatchMetadata, heard_ms: int) -> CompletedTransaction | None:
        done = self.states.update(batch, heard_ms)
        if self._asked:
            self._asked.pop(batch.producer_id, None)
        if done is not None:
            self.uncommitted.append((done.first_offset, done.last_offset))
        return done

    def aborted_by(self, batches: Sequence[BatchMetadata]) -> list[AbortedTransaction]:
        """The transactions that these batches, which are not recorded yet, abort."""
        if all(batch.part != ABORT for batch in batches):
            return []
        found = []
        open_ = dict(self.states.open)
        for batch in batches:
            if batch.part == IN_TRANSACTION:
                open_.setdefault(batch.producer_id, batch.base_offset)
            elif batch.part in (ABORT, COMMIT):
                start = open_.pop(batch.producer_id, None)
                if start is not None and batch.part == ABORT:
                    ends = batch.last_offset
                    done = CompletedTransaction(batch.producer_id, start, ends, is_aborted=True)
                    found.append(_aborted(done, open_))
        return found

    @property
    def has_any(self) -> bool:
        """Whether there are producers, or there were when a snapshot was taken."""
        return bool(self.states or self.snapshots)

    # Transactions

    def stable_offset(self, high_watermark: int, start: int = 0) -> int:
        """The last stable offset: at most the high watermark, and not behind a transaction that is
        open or whose marker is not committed, but for what was deleted of it: the log begins at
        ``start`` for consumers."""
        stable = high_watermark
        if self.states.open:
            stable = min(stable, next(iter(self.states.open.values())))
        for first, last in self.uncommitted:
            if last >= high_watermark:
                stable = min(stable, first)
        return min(max(stable, start), high_watermark)

    def open_since(self) -> int | None:
        """When a producer with an open transaction was last heard of, the one that has been silent
        for longest (ms); None without open transactions."""
        return min((self.states[each].heard_ms for each in self.states.open), default=None)

    def committed(self, high_watermark: int) -> None:
        """All below the high watermark is committed."""
        uncommitted = self.uncommitted
        while uncommitted and uncommitted[0][1] < high_watermark:
            uncommitted.popleft()

    def verification(
        self, producer_id: int, epoch: int, sequence: int, now: int
    ) -> Verification | None:
        """To be confirmed before this batch of a client can begin a transaction; None if the
        producer has one open here."""
        if producer_id in self.states.open:
            return None
        asked = self._asked.get(producer_id)
        if asked is None or asked.epoch < epoch:
            asked = self._asked[producer_id] = Verification(epoch, sequence, now)
        elif asked.epoch == epoch:
            asked.sequence = min(asked.sequence, sequence)
        return asked

    def confirm(self, producer_id: int, verification: Verification) -> None:
        """The coordinator says that the producer's transaction includes this partition. A marker
        that came after the question makes the answer void."""
        if self._asked.get(producer_id) is verification:
            verification.is_confirmed = True

    def _require_verified(self, batch: BatchMetadata) -> None:
        """Raises InvalidTxnStateError for the first batch of a transaction of which the coordinator
        may not know: nothing would ever end it. Raises OutOfOrderSequenceError if a batch before it
        was asked about, and is not here."""
        if batch.producer_id in self.states.open:
            return
        asked = self._asked.get(batch.producer_id)
        if asked is None or not asked.is_confirmed:
            raise InvalidTxnStateError(
                f"The transaction of producer {batch.producer_id} does not include this partition"
            )
        if batch.first_sequence > asked.sequence:
            raise OutOfOrderSequenceError(
                f"Producer {batch.producer_id} sent sequence {batch.first_sequence} before "
                f"{asked.sequence}"
            )

    def expire(self, before_ms: int) -> int:
        """Forget producers, and questions about them, from before that time; returns how many
        producers."""
        left = {id_: asked for id_, asked in self._asked.items() if asked.asked_ms >= before_ms}
        self._asked = left
        return self.states.expire(before_ms)

    def truncate_to(self, end: int, segments: Sequence[LogSegment], now: int) -> None:
        """Go back to the state at ``end``, where the log was cut. Raises OSError."""
        self.remove_above(end)
        if not self.states.truncate(end):
            self._restore(segments, end, now)

    def clear(self) -> None:
        """Forget all producers: the log was emptied. Raises OSError."""
        self.states, self._unsaved = ProducerStates(), _EVERYTHING_SAVED
        self.uncommitted.clear()
        self._asked.clear()
        self.remove_above(-1)

    def recovery_point(self, synced: int) -> int:
        """The recovery point of a log that is on disk up to the offset ``synced``. The next start
        finds the producers up to there."""
        saved = bool(self.snapshots) and self.snapshots[0] <= synced
        return synced if saved else min(synced, self._unsaved)

    # Snapshots

    def snapshot(self, end: int) -> None:
        """Write the state at the log's end, if there ever was a producer. Raises OSError."""
        if (not self.states and not self.snapshots) or end in self.snapshots:
            return
        path = self._path(end)
        try:
            with open(path, "wb") as file:
                file.write(self.states.snapshot())
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(path)
            raise
        insort(self.snapshots, end)

    def close(self, end: int) -> None:
        """Write the state at a clean stop; it is on disk on return. Raises OSError."""
        self.snapshot(end)
        self._sync([end])

    def _sync(self, offsets: Collection[int]) -> None:
        """Sync these snapshots, if there are any. Raises OSError."""
        found = [offset for offset in self.snapshots if offset in offsets]
        for offset in found:
            for file in self.open_for_sync(offset, offset):
                os.fsync(file.fd)
        if found:
            sync_directory(self._directory)

    def open_for_sync(self, first: int, last: int) -> list[SegmentFile]:
        """The snapshots at offsets from ``first`` to ``last``, for fsync on any thread."""
        found = []
        for offset in self.snapshots:
            if first <= offset <= last:
                with contextlib.suppress(FileNotFoundError):
                    found.append(SegmentFile.open(self._path(offset)))
        return found

    def remove_below(self, start: int) -> None:
        """Remove the snapshots below ``start``, where the log now begins, but for the last of all:
        those of segments behind it may have been left out."""
        self._remove([offset for offset in self.snapshots[:-1] if offset < start])

    def remove_above(self, end: int) -> None:
        """Remove the snapshots above this offset, which no longer match the log."""
        self._remove([offset for offset in self.snapshots if offset > end])

    def _remove(self, offsets: Sequence[int]) -> None:
        for offset in offsets:
            self.snapshots.remove(offset)
            unlink_if_there(self._path(offset))

    def _path(self, offset: int) -> str:
        return os.path.join(self._directory, f"{offset:020d}{SNAPSHOT_SUFFIX}")


def batches_in(buffer: BytesLike, stop: int) -> list[BatchMetadata]:
    """The batches of idempotent producers among the entries that begin before ``stop``."""
    return [named(BatchMetadata, row) for row in producer_batches(buffer, 0, stop)]


def _aborted(done: CompletedTransaction, open_: Mapping[int, int]) -> AbortedTransaction:
    """``open_``: the first offsets of the transactions that are open then, the lowest first."""
    producer_id, first, last, _ = done
    return AbortedTransaction(producer_id, first, last, next(iter(open_.values()), last + 1))


def _found(directory: str) -> list[int]:
    """The offsets of the snapshots in a directory, ascending."""
    with os.scandir(directory) as entries:
        names = [entry.name for entry in entries if entry.name.endswith(SNAPSHOT_SUFFIX)]
    stems = [name[: -len(SNAPSHOT_SUFFIX)] for name in names]
    return sorted(int(s) for s in stems if len(s) == 20 and s.isascii() and s.isdigit())
