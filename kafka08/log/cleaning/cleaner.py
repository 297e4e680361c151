"""Chooses the compacted log to clean next, and cleans it step by step (kafka.log.LogCleaner).

A child process (``compaction``) works on the files, at most one per cleaner thread and only while
there is a log to clean. This module starts and watches it, and kills it if its log is truncated,
deleted or no longer compacted. Each finished group of segments is swapped into the Log at once.
Each data directory records how far its logs are clean in cleaner-offset-checkpoint, in the
original's format.

A log is cleaned up to a segment base that is on disk and not above its ``Reach``. The caller sets
that bound to committed offsets, so that a truncation cannot remove a message that has superseded
another. The caller also says whether all replicas have those messages. While one is away, the
tombstones and the markers of transactions stay, however old they are: a replica that returns has
what they delete or end, and must still meet them (ADR 65).

Like Log, this belongs to one thread and never switches greenlets; ``clean`` yields the waits and
blocking calls. Only ``truncated`` may be called on any thread. Does not know tasks or replicas.
"""

from __future__ import annotations

import logging
import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from enum import Enum
from functools import partial
from itertools import takewhile
from typing import NamedTuple, Protocol, TypeAlias

from kafka08.common import TopicPartition, WallClock
from kafka08.errors import KafkaError
from kafka08.log.checkpoint import OffsetCheckpoint
from kafka08.log.cleaning import cleanings
from kafka08.log.cleaning.cleaner_job import (
    CleanedGroup,
    CleanerProcess,
    CleanerStats,
    CompactionEvent,
    Job,
    SealedSegment,
    remove_cleaned,
)
from kafka08.log.cleaning.key_map import max_entries
from kafka08.log.cleaning.reach import Reach
from kafka08.log.cleaning.throttler import SharedTime
from kafka08.log.directory import CLEANER_CHECKPOINT_FILE, sync_directory
from kafka08.log.disk import DiskFailure, tried
from kafka08.log.log import Log
from kafka08.log.segments.segment import LogSegment
from kafka08.metrics.meters import Meter
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.topic import LogConfig

POLL_SECONDS = 0.05
# A log whose cleaning failed is skipped for a minute, then for twice as long, and so on.
FIRST_RETRY_MS = 60_000
LAST_RETRY_MS = 3_600_000

logger = logging.getLogger("kafka.log.LogCleaner")

# ``clean`` yields seconds to wait, or a call that may block.
Wish: TypeAlias = "float | Callable[[], object]"


class State(Enum):
    """The cleaning state of a partition (kafka.log.LogCleaningState)."""

    IDLE = "idle"
    IN_PROGRESS = "in progress"
    ABORTED = "aborted"


# While it is aborted its process may not have ended yet.
LEGAL_NEXT = {
    State.IDLE: {State.IN_PROGRESS},
    State.IN_PROGRESS: {State.IDLE, State.ABORTED},
    State.ABORTED: {State.IDLE},
}


class Compaction(Protocol):
    """A running compaction."""

    def poll(self) -> list[CompactionEvent]:
        """The events since the last call (``compaction.events``), without waiting."""

    @property
    def exit_status(self) -> int | None:
        """The exit status; None while it runs."""

    def kill(self) -> None:
        """End it: it does not write after this returns. Harmless if it has ended."""


Start = Callable[[Job], Compaction]
ReachOf = Callable[[TopicPartition], Reach]


class LogToClean(NamedTuple):
    """A log that may be cleaned from ``first_dirty_offset`` to ``end_offset`` (segment bases).

    ``is_overdue``: messages may wait for longer than max.compaction.lag.ms. ``keeps_tombstones``:
    all of them, as a replica may not have them.
    """

    topic_partition: TopicPartition
    log: Log
    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool
    keeps_tombstones: bool

    @property
    def cleanable_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


class LogCleaner:
    """Cleans the logs of the live mapping ``logs``.

    ``start`` starts a compaction, by default in a process of its own.
    """

    def __init__(
        self,
        config: BrokerConfig,
        log_dirs: list[str],
        logs: Mapping[TopicPartition, Log],
        *,
        clock: WallClock,
        start: Start = CleanerProcess,
    ) -> None:
        self._config = config
        self._logs = logs
        self._clock = clock
        self._throttle = SharedTime()
        self._start = start
        self.last_passes: dict[int, CleanerStats] = {}  # by thread
        self.max_dirty_ratio = 0.0  # of the last choice
        self.throttled = Meter()  # bytes read and written
        self._states: dict[TopicPartition, State] = {}
        self._processes: dict[TopicPartition, Compaction] = {}
        self._set_aside: dict[TopicPartition, tuple[int, int]] = {}  # (until, for how long), ms
        self._lock = threading.Lock()
        self._checkpoints: dict[str, OffsetCheckpoint] = {}
        self._cleaned: dict[str, dict[TopicPartition, int]] = {}
        self._unwritten: set[str] = set()  # directories whose checkpoint file is out of date
        for path in log_dirs:
            self.add_directory(path)

    # How far logs are clean

    def add_directory(self, path: str) -> list[DiskFailure]:
        """Read the checkpoint of a data directory whose logs are loaded. Raises OSError.

        Entries of deleted logs are dropped, as they would apply to new logs of the same name; they
        are still in the file if that fails.
        """
        file = OffsetCheckpoint(os.path.join(path, CLEANER_CHECKPOINT_FILE))
        recorded = file.read()
        here = {key: log for key, log in list(self._logs.items()) if log.data_dir == path}
        self._checkpoints[path] = file
        self._cleaned[path] = {key: recorded[key] for key in recorded if key in here}
        if self._cleaned[path] != recorded:
            logger.info("Dropping the cleaner checkpoints of logs that are not in %s", path)
            self._unwritten.add(path)
        for log in here.values():
            self._check_against(log)
        return self._write_changes()

    def remove_directory(self, path: str) -> None:
        """A data directory has failed: stop using its checkpoint."""
        with self._lock:
            self._checkpoints.pop(path, None)
            self._unwritten.discard(path)

    def _check_against(self, log: Log) -> None:
        """Reset a checkpoint above the log's end: a crash has cut the log since."""
        cleaned = self.checkpoint(log)
        if cleaned is not None and cleaned > log.log_end_offset:
            logger.warning(
                "Resetting the cleaner checkpoint of %s from %d to the log's start: it ends at %d",
                log.name, cleaned, log.log_end_offset,
            )  # fmt: skip
            self._note(log, log.log_start_offset)

    def checkpoint(self, log: Log) -> int | None:
        """The checkpoint of a log; None if it has never been cleaned."""
        return self._cleaned.get(log.data_dir, {}).get(log.topic_partition)

    def _record(self, log: Log, offset: int | None) -> None:
        """Write a log's checkpoint; None removes it. Raises OSError."""
        self._note(log, offset)
        self._write(log.data_dir)

    def _note(self, log: Log, offset: int | None) -> None:
        path = log.data_dir
        with self._lock:
            known = self._cleaned[path]
            known.pop(log.topic_partition, None)
            if offset is not None:
                known[log.topic_partition] = offset
            self._unwritten.add(path)

    def _write(self, path: str) -> None:
        with self._lock:
            file = self._checkpoints.get(path)
            if file is not None:
                known = self._cleaned[path]
                file.write({key: known[key] for key in known if key in self._logs})
            self._unwritten.discard(path)

    def _write_changes(self) -> list[DiskFailure]:
        return tried((path, partial(self._write, path)) for path in sorted(self._unwritten))

    def truncated(self) -> list[DiskFailure]:
        """Lower the checkpoints of logs that were truncated below them, and retry failed writes.
        Must be called after each truncation: messages appended then are dirty. Safe on any
        thread."""
        for log in list(self._logs.values()):
            lowest = log.take_lowest_truncation()
            cleaned = self.checkpoint(log)
            if lowest is not None and cleaned is not None and lowest < cleaned:
                # remove it for a log that was emptied: a power cut can bring its old content back
                self._note(log, lowest if lowest >= log.log_start_offset else None)
        return self._write_changes()

    def deleted(self, log: Log) -> None:
        """Remove a log's state. Must be called while its directory still exists."""
        self.abort(log.topic_partition)
        self._set_aside.pop(log.topic_partition, None)
        if self.checkpoint(log) is not None:
            try:
                self._record(log, None)
            except OSError as error:  # it is written again before a log of this name is created
                logger.warning("The checkpoint of %s could not be removed yet: %s", log.name, error)

    # States

    def state(self, key: TopicPartition) -> State:
        return self._states.get(key, State.IDLE)

    def is_cleaning(self, key: TopicPartition) -> bool:
        """Whether segments of a partition are being cleaned, and must not be deleted."""
        return key in self._states

    def _enter(self, key: TopicPartition, state: State) -> None:
        now = self.state(key)
        if state not in LEGAL_NEXT[now]:
            raise KafkaError(
                f"Compaction for partition {key} cannot become {state.value}: it is {now.value}."
            )
        if state is State.IDLE:
            del self._states[key]
        else:
            self._states[key] = state

    def abort(self, key: TopicPartition) -> None:
        """End the cleaning of a partition, if any. Its process has ended on return."""
        if self.state(key) is State.IN_PROGRESS:
            self._enter(key, State.ABORTED)
            process = self._processes.get(key)
            if process is not None:
                process.kill()
            logger.info("The cleaning for partition %s is aborted", key)

    # Selection

    def grab_filthiest_log(self, reach_of: ReachOf) -> LogToClean | None:
        """The log to clean next, marked as in progress; None if no log is dirty enough."""
        now = self._clock.millis()
        cleanable = [
            self.to_clean(log, reach_of(key))
            for key, log in list(self._logs.items())
            if log.config.compact
            and self.state(key) is State.IDLE
            and self._set_aside.get(key, (0, 0))[0] <= now
        ]
        self.max_dirty_ratio = max([found.cleanable_ratio for found in cleanable], default=0.0)
        cleanable = [
            found
            for found in cleanable
            if found.is_overdue
            or found.cleanable_ratio > found.log.config.min_cleanable_dirty_ratio
        ]
        if not cleanable:
            return None
        filthiest = max(cleanable, key=lambda found: (found.is_overdue, found.cleanable_ratio))
        self._enter(filthiest.topic_partition, State.IN_PROGRESS)
        return filthiest

    def to_clean(self, log: Log, reach: Reach) -> LogToClean:
        key = log.topic_partition
        segments = log.segments
        bases = [segment.base_offset for segment in segments]
        first = self._first_dirty(log, bases)
        # A segment may be cleaned if all of it, up to the next one's base, is below the bound.
        known = bisect_right(bases, min(reach.until, log.log_end_offset)) - 1
        dirty = [s for s in segments[: max(known, 0)] if s.base_offset >= first]
        try:
            dirty, is_overdue = _by_age(dirty, log.config, self._clock.millis())
        except OSError as error:  # retention, which reads the same times, reports the disk
            logger.warning("The age of segments of %s could not be read: %s", log.name, error)
            dirty, is_overdue = [], False
        end = bases[bisect_right(bases, dirty[-1].base_offset)] if dirty else first
        clean = sum([s.size for s in segments if s.base_offset < first])
        size = sum([s.size for s in dirty])
        return LogToClean(key, log, first, end, clean, size, is_overdue, not reach.is_everywhere)

    def _first_dirty(self, log: Log, bases: list[int]) -> int:
        """The checkpoint, if it is valid for the log, moved down to a segment base."""
        cleaned = self.checkpoint(log)
        if cleaned is None or not bases[0] <= cleaned <= log.log_end_offset:
            return bases[0]
        return bases[bisect_right(bases, cleaned) - 1]

    # Cleaning

    def clean(
        self, found: LogToClean, thread: int = 0
    ) -> Generator[Wish, None, DiskFailure | None]:
        """Clean a grabbed log. Yields seconds to wait and calls that block; throw their exceptions
        into the iterator. Closing the iterator ends the cleaning. At its end the partition is idle
        again in any case. Returns the I/O error that ended it, if any."""
        key, log = found.topic_partition, found.log
        truncations = log.truncations
        is_valid = partial(self._is_valid, found, truncations)
        try:
            yield partial(log.flush, found.end_offset)
            retention_ms, began = log.config.delete_retention_ms, self._clock.millis()
            known = cleanings.read(log.directory, self.checkpoint(log), began)
            below = cleanings.tombstones_below(known, retention_ms, began)
            if found.keeps_tombstones:
                below = 0
            first = found.first_dirty_offset
            while is_valid() and first < found.end_offset:
                first = yield from self._pass(found, first, below, thread, is_valid)
            if is_valid():
                ended = cleanings.Cleaning(self._clock.millis(), first)
                times = cleanings.with_one_more(known, ended, retention_ms)
                # before the checkpoint: without it they count for nothing
                yield partial(cleanings.write, log.directory, times)
            if is_valid():
                self._record(log, first)  # at once: no truncation may come in between
                self._set_aside.pop(key, None)
                log.delete_old_segments()  # it was left out while its segments were in use
        except (KafkaError, OSError) as error:
            if is_valid():
                self._failed(key, error)
                if isinstance(error, OSError):
                    return DiskFailure(log.data_dir, error)
        finally:
            self._enter(key, State.IDLE)
        return None

    def _is_valid(self, found: LogToClean, truncations: int) -> bool:
        """Whether the log is unchanged since its cleaning began."""
        return (
            self._states.get(found.topic_partition) is State.IN_PROGRESS
            and self._logs.get(found.topic_partition) is found.log
            and found.log.truncations == truncations
            and found.log.config.compact
        )

    def _failed(self, key: TopicPartition, error: Exception) -> None:
        pause = min(self._set_aside.get(key, (0, FIRST_RETRY_MS // 2))[1] * 2, LAST_RETRY_MS)
        self._set_aside[key] = (self._clock.millis() + pause, pause)
        logger.error(
            "Cleaning of %s failed, the next try is in %d s: %s", key, pause // 1000, error
        )

    def _pass(
        self,
        found: LogToClean,
        first: int,
        below: int,
        thread: int,
        is_valid: Callable[[], bool],
    ) -> Generator[Wish, None, int]:
        """Build one map and copy the segments once, without the tombstones below ``below``;
        returns the first offset not cleaned.

        Raises KafkaError if the process fails, and OSError.
        """
        key, log = found.topic_partition, found.log
        job = self._job(found, first, below)
        try:
            process = self._start(job)
        except OSError as error:  # not an error of the log's disk
            raise KafkaError(f"The cleaner process did not start: {error}") from error
        self._processes[key] = process
        try:
            while is_valid():
                ended = process.exit_status is not None
                for event in process.poll():
                    if "say" in event:
                        logger.info("Cleaner %d: %s", thread, event["say"])
                    elif "group" in event:
                        yield from self._swap(log, event["group"], thread, is_valid)
                    elif "errno" in event:
                        raise OSError(event["errno"], event["error"])
                    elif "error" in event:
                        raise KafkaError(event["error"])
                    else:
                        stats, end = event["stats"], event["end"]
                        self.last_passes[thread] = stats
                        self.throttled.mark(stats.bytes_read + stats.bytes_written)
                        _record_stats(thread, log.name, first, end, stats)
                        return end
                    if not is_valid():
                        break
                if ended:
                    raise KafkaError(f"The cleaner process ended with {process.exit_status}")
                yield POLL_SECONDS
            return first
        finally:
            del self._processes[key]
            process.kill()
            for source in job.sources:  # the process may have left files behind
                remove_cleaned(job.directory, source.base_offset)

    def _job(self, found: LogToClean, first: int, below: int) -> Job:
        log, config = found.log, self._config
        threads = config.log_cleaner_threads
        segments = [s for s in log.segments if s.base_offset < found.end_offset]
        nexts = [s.base_offset for s in segments[1:]] + [found.end_offset]
        return Job(
            directory=log.directory,
            sources=list(map(_source, segments, nexts)),
            first_dirty_offset=first,
            tombstones_below=below,
            max_entries=max_entries(
                config.log_cleaner_dedupe_buffer_size // threads,
                config.log_cleaner_io_buffer_load_factor,
            ),
            io_buffer_bytes=config.log_cleaner_io_buffer_size // threads // 2,
            segment_bytes=log.config.segment_bytes,
            segment_index_bytes=log.config.segment_index_bytes,
            index_interval_bytes=log.config.index_interval_bytes,
            max_message_bytes=log.config.max_message_bytes,
            producer_ends=log.producers.states.last_offsets,
            producer_epochs=log.producers.states.epochs_alone,
            aborted=[each[:3] for each in log.aborted.between(0, found.end_offset)],
            rate=config.log_cleaner_io_max_bytes_per_second,
            throttle_fd=self._throttle.fd,
        )

    def _swap(
        self, log: Log, group: CleanedGroup, thread: int, is_valid: Callable[[], bool]
    ) -> Generator[Wish, None, None]:
        if not group.changed:
            return
        logger.info(
            "Cleaner %d: Swapping in cleaned segment %d for segment(s) %s in log %s.",
            thread, group.bases[0], ",".join(map(str, group.bases)), log.name,
        )  # fmt: skip
        log.files.prepare_swap(group.bases)
        with ExitStack() as undo:
            undo.callback(log.files.abandon_swap)
            yield partial(sync_directory, log.directory)
            if not is_valid():  # a truncation has undone the swap already
                return
            undo.pop_all()
        old = log.files.replace(self._clock.millis())
        yield partial(sync_directory, log.directory)
        log.delete_files(old)


def _by_age(dirty: list[LogSegment], config: LogConfig, now: int) -> tuple[list[LogSegment], bool]:
    """Those of the dirty segments that are old enough to be cleaned, and whether one of them must
    be cleaned now. Raises OSError."""
    least, most = config.min_compaction_lag_ms, config.max_compaction_lag_ms
    if least > 0:
        # The time of the file, not of the messages: it says how long readers had.
        dirty = list(takewhile(lambda segment: segment.last_modified_ms <= now - least, dirty))
    is_overdue = most < now and any(s.size and s.oldest_ms < now - most for s in dirty)
    return dirty, is_overdue


def _source(segment: LogSegment, following: int) -> SealedSegment:
    return SealedSegment(segment.base_offset, following, segment.size, segment.index.entries * 8)


def _record_stats(thread: int, name: str, first: int, end: int, stats: CleanerStats) -> None:
    """The log lines of LogCleaner.CleanerThread.recordStats."""

    def mb(count: float) -> float:
        return count / (1024 * 1024)

    seconds = max(stats.seconds, 0.001)
    indexing = max(stats.index_seconds, 0.001)
    cleaning = max(stats.seconds - stats.index_seconds, 0.001)
    read, written = max(stats.bytes_read, 1), stats.bytes_written
    messages = max(stats.messages_read, 1)
    logger.info(
        "\n\tLog cleaner thread %d cleaned log %s (dirty section = [%d, %d])\n"
        "\t%s MB of log processed in %s seconds (%s MB/sec).\n"
        "\tIndexed %s MB in %.1f seconds (%s Mb/sec, %.1f%% of total time)\n"
        "\tBuffer utilization: %.1f%%\n"
        "\tCleaned %s MB in %.1f seconds (%s Mb/sec, %.1f%% of total time)\n"
        "\tStart size: %s MB (%s messages)\n"
        "\tEnd size: %s MB (%s messages)\n"
        "\t%.1f%% size reduction (%.1f%% fewer messages)\n",
        thread, name, first, end,
        f"{mb(stats.bytes_read):,.1f}", f"{stats.seconds:,.1f}",
        f"{mb(stats.bytes_read) / seconds:,.1f}",
        f"{mb(stats.map_bytes_read):,.1f}", stats.index_seconds,
        f"{mb(stats.map_bytes_read) / indexing:,.1f}", 100 * stats.index_seconds / seconds,
        100 * stats.buffer_utilization,
        f"{mb(stats.bytes_read):,.1f}", stats.seconds - stats.index_seconds,
        f"{mb(stats.bytes_read) / cleaning:,.1f}", 100 * cleaning / seconds,
        f"{mb(stats.bytes_read):,.1f}", f"{stats.messages_read:,d}",
        f"{mb(written):,.1f}", f"{stats.messages_written:,d}",
        100 * (1 - written / read), 100 * (1 - stats.messages_written / messages),
    )  # fmt: skip
