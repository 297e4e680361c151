"""A partition's log: append-only segments, the newest taking appends (kafka.log.Log).

Threads: all methods run on one thread (the broker's loop) and do not switch greenlets, so appends
need no lock. ``flush`` may run on another thread at the same time, since fsync takes long: it
copies the list of segments under a lock that roll, truncate and deletion share, syncs without it,
and moves the recovery point only if there was no truncation meanwhile. ``delete`` may run on any
thread once the log is out of use. Attributes may be read on any thread.

Does not know replicas, high watermarks (a reader's bound is an argument) or other logs. It has no
timers: it reports to the caller what is due later.
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from kafka08.common import TopicPartition, WallClock
from kafka08.errors import (
    KafkaError,
    MessageSetSizeTooLargeError,
    OffsetOutOfRangeError,
    UnknownError,
)
from kafka08.log import numbering
from kafka08.log.aborted import AbortedTransactions
from kafka08.log.directory import (
    parse_log_name,
    remove_directory,
    sync_directory,
    unlink_if_there,
)
from kafka08.log.disk import SyncError
from kafka08.log.leader_epochs import LeaderEpochs
from kafka08.log.numbering import NOTHING_APPENDED, LogAppendInfo, Numbered, RebuiltSet, moved
from kafka08.log.producer_state import BatchMetadata
from kafka08.log.producers import ProducerStateManager, batches_in
from kafka08.log.recovery import recovery
from kafka08.log.segments import integrity
from kafka08.log.segments.file_slice import FileSlice
from kafka08.log.segments.later_formats import LaterFormats
from kafka08.log.segments.retention import deletable
from kafka08.log.segments.segment import LogSegment
from kafka08.log.segments.segment_files import SegmentFiles
from kafka08.log.segments.time_index import NO_TIME, MessageTime
from kafka08.log.segments.transaction_index import AbortedTransaction
from kafka08.log.tail import FRESH_MS, Freshness, TailReaders
from kafka08.message.batch import NO_TIMESTAMP
from kafka08.message.entry import BATCH, MAGIC_AT, Appended
from kafka08.message.sets import Opened
from kafka08.message.timed_sets import ANY_TIME
from kafka08.message.times import newest as newest_time
from kafka08.named import named
from kafka08.settings.topic import LogConfig

logger = logging.getLogger("kafka.log.Log")


_NO_CUT: Final = 1 << 63  # above all offsets


class Log:
    """The log in ``directory`` (named ``<topic>-<partition>``); opened, and recovered if needed.

    ``recovery_point`` is the first offset that may not be on disk. ``clean_shutdown``: the last
    broker to use it closed its logs. ``config`` may be replaced at any time. ``deleted_until``: the
    records below were deleted by request; not used if it is beyond the end of the log. ``tell`` is
    called with the numbers of bytes recovered.
    """

    def __init__(
        self,
        directory: str,
        config: LogConfig,
        *,
        recovery_point: int = 0,
        clean_shutdown: bool = False,
        deleted_until: int = 0,
        clock: WallClock,
        tell: Callable[[int], object] = recovery.tell_nobody,
    ) -> None:
        self.directory = os.path.abspath(directory)
        self.data_dir = os.path.dirname(self.directory)
        self.name = os.path.basename(self.directory)
        topic_partition = parse_log_name(self.name)
        if topic_partition is None:
            raise KafkaError(f"{directory} is not named <topic>-<partition>")
        self.topic_partition: TopicPartition = topic_partition
        self.config = config
        # For sets of formats 1 and 2. Replaced as a whole when they change.
        self.rules = ANY_TIME
        self._clock = clock
        # How often the log was cut or deleted: code that works on its files checks it.
        self.truncations = 0
        # The changes of names that are durable; with the first one, the directory's own name is.
        self._synced_changes = 0
        self._lowest_truncation: int | None = None
        self._is_deleted = False
        now = clock.millis()
        self.last_flush_ms = now
        loaded = recovery.load(self.directory, config, recovery_point, clean_shutdown, now, tell)
        self.files = SegmentFiles(self.directory, loaded.segments)
        self._lock = self.files.lock  # also for what must agree with the list of segments
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self.deleted_until = deleted_until
        if deleted_until > self.log_end_offset:
            logger.warning("Ignoring the start %d of %s: it ends before", deleted_until, self.name)
            self.deleted_until = 0
        self.later_formats = LaterFormats(not self.size)
        known = None if clean_shutdown else self.recovery_point
        self.epochs = LeaderEpochs(self.directory, loaded.segments, self.log_end_offset, known)
        self.producers = ProducerStateManager(self.directory)
        self.producers.load(loaded.segments, self.recovery_point, now, clean=clean_shutdown)
        self.aborted = AbortedTransactions(self.files, has_producers=self.producers.has_any)
        self.tail_readers = TailReaders(self.log_end_offset)
        self._fresh = Freshness(self.log_end_offset, now)
        # Base of the first segment cut since the last flush: its old end may come back until it is
        # synced. An earlier process may have cut that of the recovery point, or the one before.
        self._first_cut, self._cuts = _NO_CUT, 0
        if not clean_shutdown:
            holds = self.files.index_of(self.recovery_point)
            self._first_cut = self.files.bases[max(holds - 1, 0)]
        self.delete_files(loaded.dropped)
        self.files.active.jitter_ms = self._random_jitter()
        logger.info(
            "Completed load of log %s with log end offset %d", self.name, self.log_end_offset
        )

    def __repr__(self) -> str:
        return f"Log({self.directory})"

    @property
    def log_start_offset(self) -> int:
        """The first offset of the first segment, where replicas begin."""
        return self.files.bases[0]

    @property
    def first_offset(self) -> int:
        """The first offset for consumers. Deleted records before it may still be on disk."""
        return max(self.files.bases[0], self.deleted_until)

    @property
    def size(self) -> int:
        """Bytes of entries in all segments."""
        return sum([segment.size for segment in self.files.list])

    @property
    def segments(self) -> tuple[LogSegment, ...]:
        """Oldest first; the last is the active one. Callers must not change the list."""
        return tuple(self.files.list)

    def take_lowest_truncation(self) -> int | None:
        """The lowest offset truncated to since the last call; None if there was no truncation.
        Safe on any thread."""
        with self._lock:
            lowest, self._lowest_truncation = self._lowest_truncation, None
            return lowest

    # Append

    def number(
        self,
        buffer: memoryview,
        base: int,
        *,
        opened: Opened | None = None,
        rebuild: bool = True,
    ) -> Numbered:
        """Check a produced set and number it from ``base`` for ``append``, on any thread.

        See ``numbering.number``; a set for which no consumers are near has nothing rebuilt.
        """
        rebuild = rebuild and self.tail_readers.are_near
        config, rules = self.config, self.rules
        if len(buffer) > MAGIC_AT and buffer[MAGIC_AT]:
            rules = numbering.timed_rules(rules, config, self._clock.millis())
        name = self.topic_partition
        return numbering.number(
            name, config, buffer, base, opened=opened, rebuild=rebuild, rules=rules
        )

    def append(
        self,
        buffer: memoryview,
        *,
        assign_offsets: bool = True,
        opened: Opened | None = None,
        numbered: Numbered | None = None,
    ) -> LogAppendInfo:
        """Append a message set: all of it or, after an error, none.

        A leader (``assign_offsets``) writes offsets from the log's end into ``buffer``. A follower
        keeps the set's offsets, which must rise; its sets have any size. A partial last entry is
        left out. ``opened`` is passed to ``number``. A set that was ``numbered`` before is moved to
        the log's end; one that is not movable must have been numbered from it.

        Raises MessageSizeTooLargeError, InvalidMessageError (also for a produced message without
        a key in a compacted topic), MessageSetSizeTooLargeError, UnknownError (undecodable
        wrapper), KafkaError (a follower's offsets are below the log's end), OSError (disk) and
        SyncError, after which the set may or may not be in the log; and as
        ``ProducerStateManager.check``.
        """
        leo = self.log_end_offset
        if not assign_offsets:
            numbered = numbering.copied(buffer)
        elif numbered is None:
            numbered = self.number(buffer, leo, opened=opened)
        else:
            numbered = moved(numbered, leo)
        found, data = numbered.found, numbered.data
        if not found.entries or not data:
            return NOTHING_APPENDED
        batches: Sequence[BatchMetadata] = ()
        if not assign_offsets:
            batches = self._check_copied(found, data)
        else:
            if buffer[MAGIC_AT] == BATCH:
                origin = numbered.origin
                batches, stored = self.producers.check(buffer, found.first_offset, origin)
                if stored is not None:
                    return self._stored_before(stored)
            if len(data) > self.config.segment_bytes:
                self._refuse_size(len(data))
        now = self._clock.millis()
        newest = named(MessageTime, newest_time(data)) if found.magic else NO_TIME
        rolled = self._maybe_roll(len(data), found.last_offset, now, newest.timestamp)
        aborted = self.producers.aborted_by(batches) if batches else ()
        position = self._write(numbered, newest, aborted, one_epoch=assign_offsets)
        self._move_end(found, batches, now)
        rebuilt = None
        if numbered.rebuilt:
            rebuilt = RebuiltSet(self.files.active.file.serial, position, numbered.rebuilt)
            self.tail_readers.prepared(sum([len(each.data) for each in rebuilt.wrappers]))
        time = newest.timestamp if found.magic and self.config.stamps else NO_TIMESTAMP
        count, _, first, last, _, codec, _ = found
        appended = first, last, count, len(data), codec, rolled, rebuilt, time
        return named(LogAppendInfo, appended)

    def _check_copied(self, found: Appended, data: memoryview) -> Sequence[BatchMetadata]:
        """The batches of idempotent producers in a leader's set. Raises KafkaError if it begins
        below the log's end."""
        if found.first_offset < self.log_end_offset:
            # 0.8.2.2 intends to check this but does not; its log end then goes backwards.
            raise KafkaError(
                f"Out of order offsets found in a set for {self.topic_partition}: it begins at "
                f"{found.first_offset}, the log ends at {self.log_end_offset}"
            )
        return batches_in(data, len(data)) if found.magic == BATCH else ()

    def _refuse_size(self, size: int) -> NoReturn:
        raise MessageSetSizeTooLargeError(
            f"Message set size is {size} bytes which exceeds the maximum configured "
            f"segment size of {self.config.segment_bytes}."
        )

    def _write(
        self,
        numbered: Numbered,
        newest: MessageTime,
        aborted: Sequence[AbortedTransaction],
        *,
        one_epoch: bool,
    ) -> int:
        """Add a set to the active segment; returns its position there. ``newest``: its largest
        timestamp. ``aborted``: the transactions that its markers abort. ``one_epoch``: all its
        batches have the same leader epoch. Raises OSError, after which no part of the set is
        left."""
        active, data = self.files.active, numbered.data
        position = active.size
        if numbered.found.magic == BATCH:
            self.epochs.appended(data, one_epoch=one_epoch)
        if aborted and self.aborted.note(aborted):
            self._sync_again(active)
        try:
            made_file = active.append(
                self.log_end_offset,
                data,
                self.config.index_interval_bytes,
                sendable=numbered.sendable,
                later=numbered.later,
                newest=newest,
            )
        except OSError:
            self._sync_again(active)  # the part of the set that was written has been cut again
            if aborted:
                self.aborted.take_back(self.log_end_offset)
            raise
        if made_file:
            self._sync_again(active)  # for its time index
        return position

    def _move_end(self, found: Appended, batches: Sequence[BatchMetadata], now: int) -> None:
        """The log ends after a set that was written at its end. Raises SyncError."""
        leo, end = self.log_end_offset, found.last_offset + 1
        self.log_end_offset = end
        if found.magic:
            self.later_formats.end = end
        if batches:
            self.producers.record(batches, now)
        if not 0 <= now - self._fresh.began < FRESH_MS:
            self._fresh.begin_period(leo, now)
        self.maybe_flush()

    def _stored_before(self, batch: BatchMetadata) -> LogAppendInfo:
        """The answer to a batch that came again, which is what the first one should have got."""
        self.maybe_flush()
        first, last, count = batch.base_offset, batch.last_offset, batch.last_delta + 1
        time = batch.timestamp if self.config.stamps else NO_TIMESTAMP
        return LogAppendInfo(first, last, count, 0, 0, append_time=time)

    def _maybe_roll(self, set_bytes: int, last_offset: int, now: int, newest: int) -> bool:
        """``newest``: the largest timestamp of the set to append, -1 without one."""
        active = self.files.active
        if not active.size and active.base_offset == self.log_end_offset:
            return False
        must = active.should_roll(self.config, set_bytes, last_offset, now, newest)
        return must and self.roll()

    def roll(self) -> bool:
        """Begin a new active segment after the last entry, as a gap would look like a lost end;
        False if the active one is empty. Existing files with the segment's name are removed."""
        old = self.files.active
        if not old.size:
            return False
        base, _ = old.next_offset()
        if old.indexes.complete(old.newest):
            self._sync_again(old)  # all else of it may be synced already
        self.files.make_way(base)
        self.producers.snapshot(base)
        segment = self._new_segment(base)
        with self._lock:
            self.files.add(segment)
        old.index.trim()
        logger.info("Rolled new log segment for '%s' at offset %d.", self.name, base)
        return True

    def _sync_again(self, segment: LogSegment) -> None:
        """The next flush is to include this segment and the names of its files; a flush that is
        under way does not count."""
        with self._lock:
            self.files.changes += 1
            self._first_cut = min(segment.base_offset, self._first_cut)
            self._cuts += 1

    def _new_segment(self, base_offset: int) -> LogSegment:
        segment = LogSegment(
            self.directory, base_offset, self._clock.millis(), self._random_jitter()
        )
        segment.index.preallocate(self.config.segment_index_bytes)
        return segment

    def _random_jitter(self) -> int:
        limit = min(self.config.segment_jitter_ms, self.config.segment_ms)
        return random.getrandbits(31) % limit if limit > 0 else 0

    # Read

    def read(
        self,
        offset: int,
        max_bytes: int,
        max_offset: int | None = None,
        *,
        for_consumer: bool = False,
    ) -> FileSlice:
        """Stored entries from the first at or above ``offset``, from one segment, not decoded.

        At most ``max_bytes``, cut anywhere; entries at or above ``max_offset`` (a consumer's
        high watermark) stay out, and a wrapper that contains it. Empty at the log's end and when
        ``max_offset`` <= ``offset`` (where 0.8.2.2 raises). ``for_consumer``: entries that were
        rebuilt are read from there.

        Raises OffsetOutOfRangeError; UnknownError for a negative ``max_bytes``.
        """
        leo = self.log_end_offset
        segments, start = self.files.list, self.log_start_offset
        if offset == leo:
            return _nothing(segments[-1])
        if offset > leo or offset < start:
            raise OffsetOutOfRangeError(
                f"Request for offset {offset} but we only have log segments in the range "
                f"{start} to {leo}."
            )
        if max_bytes < 0:
            raise UnknownError(f"Invalid max size for log read ({max_bytes})")
        if max_offset is not None:
            if max_offset >= leo:
                max_offset = None
            elif max_offset < offset:
                max_offset = offset
        for number in range(self.files.index_of(offset), len(segments)):
            segment = segments[number]
            read = segment.read_for_consumer if for_consumer else segment.read
            found = read(offset, max_bytes, max_offset)
            if found is not None:
                return found
        return _nothing(segments[-1])  # all messages from the offset on were compacted away

    def is_fresh(self, offset: int) -> bool:
        """Whether all data from ``offset`` on was appended recently."""
        return offset >= self.log_end_offset or self._fresh.holds(offset, self._clock.millis())

    def segment_of(self, offset: int) -> LogSegment | None:
        """The segment to search for ``offset``; None if it is out of the log's range."""
        if self._is_deleted or not self.log_start_offset <= offset < self.log_end_offset:
            return None
        return self.files.list[self.files.index_of(offset)]

    # Flush

    def settle(self) -> None:
        """Write what the indexes have gathered, for the next flush to sync. Raises OSError."""
        if self.files.active.indexes.settle():
            self._sync_again(self.files.active)

    def maybe_flush(self) -> None:
        """Sync all if flush.messages may not be on disk. Raises as ``flush``."""
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            self.flush()

    def flush(self, up_to: int | None = None) -> None:
        """Sync everything below ``up_to`` (default: the log's end); the new recovery point.

        Safe on any thread (see the module). Raises SyncError or another OSError, and the
        recovery point stays; as it does if a full disk has no room for the leader epochs.
        """
        with self._lock:
            truncations, changes = self.truncations, self.files.changes
            up_to = self.log_end_offset if up_to is None else up_to
            first_cut, cuts = self._first_cut, self._cuts
            unsynced = min(self.recovery_point, first_cut)
            end = up_to + (first_cut <= up_to == self.log_end_offset)  # it may be empty now
            if end <= unsynced or self._is_deleted:
                return
            first = max(self.files.index_of(unsynced), 0)
            files = [
                file
                for segment in self.files.list[first:]
                if segment.base_offset < end
                for file in segment.open_for_sync()
            ]
            files += self.producers.open_for_sync(unsynced, up_to)
        try:
            wrote = self.epochs.write(self.log_start_offset)
            for file in files:
                os.fsync(file.fd)
            if changes != self._synced_changes:
                sync_directory(self.directory)
                if not self._synced_changes:
                    sync_directory(self.data_dir)
        except FileNotFoundError:
            if truncations != self.truncations:
                return  # deleted meanwhile
            raise
        except OSError as error:
            raise SyncError(error.errno, f"Could not sync {self.directory}: {error}") from error
        with self._lock:
            self._synced_changes = max(self._synced_changes, changes)
            if wrote and truncations == self.truncations:
                recovery_point = self.producers.recovery_point(up_to)
                self.recovery_point = max(self.recovery_point, recovery_point)
                if cuts == self._cuts:
                    self._first_cut = _NO_CUT if end > up_to else max(first_cut, up_to)
                self.last_flush_ms = self._clock.millis()

    def seal(self, segment: LogSegment, seal: integrity.Seal, truncations: int) -> bool:
        """Put the side file of a synced segment in place, unless the segment has ceased to be
        sealed or there was a truncation since ``truncations`` were counted. On any thread."""
        made = integrity.write(segment.path, seal)
        with self._lock:
            holds = truncations == self.truncations and segment in self.files.list[:-1]
            if holds and not self._is_deleted:
                os.replace(made, integrity.seal_path(segment.path))
                return True
        unlink_if_there(made)
        return False

    # Truncate

    def truncate_to(self, offset: int) -> None:
        """Drop everything at or above ``offset``, which becomes the log's end.

        A wrapper that contains ``offset`` goes as a whole, which leaves a gap. Nothing happens
        above the log's end. The caller then writes the recovery point checkpoint, or a crash
        could trust data written after the truncation. Raises OSError; on a full disk it is cut then
        as well.
        """
        logger.info("Truncating log %s to offset %d.", self.name, offset)
        if offset < 0:
            raise ValueError(f"Cannot truncate to a negative offset ({offset}).")
        if offset > self.log_end_offset:
            logger.info(
                "Truncating %s to %d has no effect as the largest offset in the log is %d.",
                *(self.name, offset, self.log_end_offset - 1),
            )
            return
        if self.log_start_offset > offset:
            self.truncate_fully_and_start_at(offset)
            return
        self.files.abandon_swap()
        with self._lock:
            self._note_truncation(offset)
            # newest first: a crash in between leaves a log that ends earlier, but has no gap
            above = self.files.list[: self.files.index_of(offset) : -1]
            self.files.drop(above, self._deletion_time())
            if above:
                sync_directory(self.directory)
            active = self.files.active
            integrity.remove(active.path)  # it takes appends again
            cuts_times = active.truncate_to(offset, self._clock.millis())
            self._sync_again(active)
            self.log_end_offset = offset
            self.recovery_point = min(offset, self.recovery_point)
            self.producers.truncate_to(offset, self.files.list, self._clock.millis())
            active.take_appends(self.config.segment_index_bytes, cuts_times=cuts_times)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the log is empty and begins at ``offset``. Raises OSError; on a full
        disk it is then empty, and begins where it did."""
        logger.debug("Truncate and start log '%s' to %d", self.name, offset)
        recovery_point = min(offset, self.recovery_point)
        self.truncate_to(self.log_start_offset)
        with self._lock:
            self._note_truncation(0)  # these facts described the old content
            if offset == self.log_start_offset:
                return
            segment = self._new_segment(offset)
            self.files.drop(self.files.list[:], self._deletion_time())
            self.files.add(segment)
            self._sync_again(segment)
            self.log_end_offset = offset
            self.recovery_point = recovery_point
            self.producers.clear()

    def _note_truncation(self, offset: int) -> None:
        self.truncations += 1
        self.deleted_until = min(offset, self.deleted_until)
        self.epochs.truncate_to(offset)
        self.tail_readers.cut_at(offset)
        if self._lowest_truncation is None or offset < self._lowest_truncation:
            self._lowest_truncation = offset

    # Delete

    def delete_records(self, until: int) -> None:
        """Hide the records below ``until``, which is at most the log's end, from consumers.
        Retention deletes the segments that hold no others."""
        self.deleted_until = max(self.deleted_until, until)

    def delete_old_segments(self) -> int:
        """Apply retention; returns the number of segments deleted.

        Files get the suffix .deleted now, and are removed after file.delete.delay.ms.
        """
        self.files.abandon_swap()
        segments, now = self.files.list, self._clock.millis()
        until, end = self.deleted_until, self.log_end_offset
        count = deletable(segments, self.config, now=now, deleted_until=until, end=end)
        if count == len(segments):
            self.roll()
        elif not count:
            return 0
        with self._lock:
            # The recovery point stays: unsynced deletions can be undone by a power cut.
            self.files.drop(segments[:count], self._deletion_time())
            self.producers.remove_below(self.log_start_offset)
        return count

    def delete_files(self, paths: Sequence[str]) -> None:
        """Let ``files.remove_due`` remove these after file.delete.delay.ms."""
        self.files.keep_until(self._deletion_time(), paths)

    def _deletion_time(self) -> int:
        return self._clock.millis() + self.config.file_delete_delay_ms

    def close(self) -> None:
        """Trim indexes and close the files; the caller has flushed. The next start does scheduled
        deletions. Raises OSError."""
        self.producers.close(self.log_end_offset)
        self.aborted.save()
        for segment in self.files.list:
            segment.close()

    def delete(self) -> None:
        """Remove the directory and its files at once. Slices in flight stay readable."""
        with self._lock:
            self.truncations += 1
            self._is_deleted = True
            self.files.forget()
        remove_directory(self.directory)


def _nothing(segment: LogSegment) -> FileSlice:
    return FileSlice(segment.file, segment.size, 0, segment.base_offset)
