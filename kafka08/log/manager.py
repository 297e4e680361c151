"""All logs of a broker, in one or more data directories (kafka.log.LogManager).

Blocking code without tasks or timers: the server decides when ``cleanup``, ``flush_dirty``,
``checkpoint_recovery_points`` and ``delete_due_files`` run. As with a Log, all methods belong to
one thread, except ``flush_dirty``, ``checkpoint_recovery_points``, ``store_deletions``,
``sync_deletions`` and ``delete_due_files``, which may run on any. If a directory fails, these jobs
continue with the others and report it to the caller, which decides on ``take_offline``. Does not
know replicas or ZooKeeper.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kafka08.common import TopicPartition, WallClock
from kafka08.errors import ConfigError, KafkaError
from kafka08.log.checkpoint import OffsetCheckpoint
from kafka08.log.directory import (
    LOG_START_CHECKPOINT_FILE,
    RECOVERY_POINT_CHECKPOINT_FILE,
    LogDirectory,
    UnusableDirectoryError,
    read_log_dirs,
    remove_directory,
    sync_directory,
    write_log_dirs,
)
from kafka08.log.disk import DiskFailure, is_failure, is_shortage, tried
from kafka08.log.log import Log
from kafka08.log.recovery.loading import Loading, Work
from kafka08.log.recovery.recovery import bytes_to_recover
from kafka08.metrics.meters import Timer
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.topic import LogConfig

if TYPE_CHECKING:
    from kafka08.log.cleaning.cleaner import LogCleaner

T = TypeVar("T")

_CLEANER = "kafka08.log.cleaning.cleaner"  # loaded only where log.cleaner.enable is true (ADR 54)

logger = logging.getLogger("kafka.log.LogManager")


class LogManager:
    """The logs under ``broker_config.log_dirs``, by partition in ``logs`` once loaded.

    ``topic_configs``: the overriding properties by topic. ``log_dirs`` lists the data directories
    in use (absolute paths). ``offline``: partitions whose directory has failed; if a directory was
    ``lost_at_start``, its partitions are not known. ``full_dirs``: those of ``log_dirs`` that are
    full; the server sets it.
    """

    def __init__(
        self,
        broker_config: BrokerConfig,
        *,
        clock: WallClock,
        topic_configs: Mapping[str, Mapping[str, str]],
    ) -> None:
        self.logs: dict[TopicPartition, Log] = {}
        self.log_dirs = [os.path.abspath(path) for path in broker_config.log_dirs]
        self.offline: set[TopicPartition] = set()
        self.full_dirs: set[str] = set()
        self.lost_at_start = False
        self.is_recovering = False  # some directory was not closed by the last broker
        self.flush_times = Timer()
        self.default_config = LogConfig.from_broker(broker_config)
        self._topic_configs = topic_configs
        self._clock = clock
        self.cleaner: LogCleaner | None = None  # set after loading, if logs are to be cleaned
        self._broker_config = broker_config
        self._threads = broker_config.num_recovery_threads_per_data_dir
        self._directories: list[LogDirectory] = []
        self._failed: list[LogDirectory] = []
        self._recovery_points: dict[str, OffsetCheckpoint] = {}
        self._starts: dict[str, OffsetCheckpoint] = {}  # up to where records were deleted
        self._checkpointing = threading.Lock()
        # Since the last checkpoint; while a directory is lost, since the start: not in that one.
        self._deleted: set[TopicPartition] = set()
        self._has_stale = False  # some checkpoint has entries of logs that are not there

    # Start and stop

    def load(self) -> None:
        """Create and lock the data directories, open and recover every partition in them.

        The clean-shutdown markers are removed on return. A directory that fails is not used, as
        long as another is left. Raises KafkaError (a directory is in use, or a partition is in
        two directories) and OSError; the locks are released then.
        """
        logger.info("Loading logs.")
        if len({os.path.realpath(path) for path in self.log_dirs}) < len(self.log_dirs):
            raise KafkaError(f"Duplicate log directory found: {', '.join(self.log_dirs)}")
        with ExitStack() as undo:
            undo.callback(self._unlock)
            configured = list(self.log_dirs)
            known = {used for path in configured for used in read_log_dirs(path)}
            for path in configured:
                with self._sparing(path):
                    self._open(path, was_used=path in known)
            self._load_all()
            if self._broker_config.log_cleaner_enable:
                self._load_cleaner()
            for directory in list(self._directories):
                with self._sparing(directory.path):
                    self._correct_checkpoints(directory.path)
                    directory.unmark_clean()
                    self._remember(
                        directory.path,
                        [path for path in configured if path in known or path in self.log_dirs],
                    )
            undo.pop_all()
        logger.info("Logs loading complete.")

    @contextmanager
    def _sparing(self, path: str) -> Iterator[None]:
        """Continue without the directory if the body fails and another directory is left."""
        try:
            yield
        except (UnusableDirectoryError, OSError) as error:
            failed = not isinstance(error, OSError) or is_failure(path, error)
            if not failed or len(self.log_dirs) == 1:
                raise
            logger.critical("Continuing without the data directory %s: %s", path, error)
            self.lost_at_start = True
            self.take_offline(path)

    def _open(self, path: str, *, was_used: bool) -> None:
        """Raises UnusableDirectoryError if a disk is not mounted: its partitions must not be
        created again, empty, and perhaps be led."""
        points = os.path.join(path, RECOVERY_POINT_CHECKPOINT_FILE)
        if was_used and not os.path.lexists(points):
            raise UnusableDirectoryError(
                f"{path} was in use and is empty now. Is its disk mounted? If it has been "
                f"replaced, put an empty file {RECOVERY_POINT_CHECKPOINT_FILE} there."
            )
        directory = LogDirectory(path)
        self._directories.append(directory)
        self._recovery_points[path] = OffsetCheckpoint(points)
        self._starts[path] = OffsetCheckpoint(directory.file(LOG_START_CHECKPOINT_FILE))
        if not os.path.exists(points):
            # On disk before the other directories tell that this one is in use.
            self._recovery_points[path].write({})

    def _remember(self, path: str, used: list[str]) -> None:
        said = read_log_dirs(path)
        if said == used or (not said and len(used) == 1):
            return
        try:
            write_log_dirs(path, used)
        except OSError as error:
            if is_failure(path, error):
                raise
            logger.warning("The list of data directories in %s is not up to date: %s", path, error)

    def _load_all(self) -> None:
        jobs = {}
        for directory in list(self._directories):
            with self._sparing(directory.path):
                jobs[directory.path] = self._load_jobs(directory)
        todo = {
            path: Work(len(found), sum(job.to_recover for job in found))
            for path, found in jobs.items()
        }
        loading = Loading(todo, self._clock)
        told = [[partial(_load, job, loading, path) for job in jobs[path]] for path in jobs]
        for path, loaded in zip(jobs, _run(self._threads, told), strict=True):
            with self._sparing(path):
                for future in loaded:
                    self._add(future.result())

    def _load_jobs(self, directory: LogDirectory) -> list[_LoadJob]:
        clean = directory.was_shut_down_cleanly
        if clean:
            logger.debug(
                "Found clean shutdown file. Skipping recovery for all logs in data directory: %s",
                directory.path,
            )
        found = directory.partitions()
        self.is_recovering |= bool(found) and not clean
        points = self._recovery_points[directory.path].read()
        starts = self._starts[directory.path].read()
        return [
            _LoadJob(
                partial(
                    Log,
                    path,
                    self.config_for(topic_partition.topic),
                    recovery_point=points.get(topic_partition, 0),
                    clean_shutdown=clean,
                    deleted_until=starts.get(topic_partition, 0),
                    clock=self._clock,
                ),
                0 if clean else bytes_to_recover(path, points.get(topic_partition, 0)),
            )
            for topic_partition, path in found.items()
        ]

    def _load_cleaner(self) -> None:
        self.cleaner = cleaner = import_module(_CLEANER).LogCleaner(
            self._broker_config, [], self.logs, clock=self._clock
        )
        for path in list(self.log_dirs):
            with self._sparing(path):
                self._has_stale |= bool(cleaner.add_directory(path))

    def _correct_checkpoints(self, path: str) -> None:
        """Lower points above a log's end, and remove the entries of deleted logs. Otherwise
        messages that are appended below them later would count as flushed, or deleted.

        On a full disk the points are removed, which takes no space, and the rest waits for the next
        checkpoint: until then no log is created.
        """
        logs, points = self._logs_in(path), self._recovery_points[path]
        actual = {log.topic_partition: log.recovery_point for log in logs}
        recorded, starts = points.read(), self._starts[path].read()
        try:
            if any(point > actual.get(key, 0) for key, point in recorded.items()):
                self._checkpoint(path)
            self._checkpoint_starts(path)
        except OSError as error:
            unused = any(starts.get(log.topic_partition, 0) > log.deleted_until for log in logs)
            if unused or not is_shortage(error):
                raise
            logger.warning("The checkpoints in %s are not up to date: %s", path, error)
            points.clear()
            self._has_stale = True

    def _add(self, log: Log) -> None:
        other = self.logs.setdefault(log.topic_partition, log)
        if other is not log:
            raise KafkaError(
                f"Duplicate log directories found: {other.directory}, {log.directory}!"
            )

    def close(self) -> None:
        """Flush and close every log, write the checkpoints and the clean-shutdown markers.

        Raises the error of a directory that failed; that one does not get a marker. All locks
        are released.
        """
        logger.info("Shutting down.")
        failure: Exception | None = None
        try:
            jobs = [
                [partial(_flush_and_close, log) for log in self._logs_in(directory.path)]
                for directory in self._directories
            ]
            for directory, closed in zip(self._directories, _run(self._threads, jobs), strict=True):
                try:
                    for future in closed:
                        future.result()
                    self._checkpoint(directory.path)
                    directory.mark_clean()
                except Exception as error:
                    logger.exception("The logs in %s were not shut down cleanly", directory.path)
                    failure = failure or error
        finally:
            self._unlock()
        self.logs.clear()
        if failure is not None:
            raise failure
        logger.info("Shutdown complete.")

    def _unlock(self) -> None:
        for directory in (*self._directories, *self._failed):
            directory.unlock()
        self._directories, self._failed = [], []

    def take_offline(self, path: str) -> list[TopicPartition]:
        """Stop using a data directory; returns the partitions in it. It stays locked."""
        gone = [log.topic_partition for log in self._logs_in(path)]
        for topic_partition in gone:
            del self.logs[topic_partition]
        self.offline.update(gone)
        self.log_dirs.remove(path)
        self.full_dirs.discard(path)
        if self.cleaner is not None:
            self.cleaner.remove_directory(path)
        self._failed += [each for each in self._directories if each.path == path]
        self._directories = [each for each in self._directories if each.path != path]
        return gone

    # Partitions

    def config_for(self, topic: str) -> LogConfig:
        """The settings of a topic's logs; the defaults if its own values cannot be parsed."""
        try:
            return self.default_config.override(self._topic_configs.get(topic, {}))
        except ConfigError as error:
            logger.error("Ignoring the configuration of topic %s: %s", topic, error)
            return self.default_config

    @property
    def failed_dirs(self) -> list[str]:
        """The data directories that are not in use any more."""
        return [directory.path for directory in self._failed]

    def may_be_lost(self, topic_partition: TopicPartition) -> bool:
        """Whether a partition without a log may have one in a data directory that has failed."""
        not_there = topic_partition in self._deleted
        return topic_partition in self.offline or (self.lost_at_start and not not_there)

    def get_log(self, topic_partition: TopicPartition) -> Log | None:
        return self.logs.get(topic_partition)

    def create_log(self, topic_partition: TopicPartition, log_config: LogConfig) -> Log:
        """The partition's log. A missing one is created in the directory with the fewest
        partitions, or in the next one if that disk is full.

        Raises OSError, and KafkaError if the partition has a log in a directory that failed.
        """
        log = self.logs.get(topic_partition)
        if log is not None:
            return log
        if topic_partition in self.offline:
            raise KafkaError(f"The data directory of {topic_partition} has failed")
        if self._has_stale or topic_partition in self._deleted:
            # The recovery point of the old log must not count for the new one.
            for _, error in self.checkpoint_recovery_points():
                raise error
        first, *others = sorted(self.log_dirs, key=lambda path: len(self._logs_in(path)))
        log = self._new_log(first, others, topic_partition, log_config)
        self.logs[topic_partition] = log
        logger.info("Created log for partition %s in %s.", topic_partition, log.data_dir)
        return log

    def _new_log(
        self, parent: str, others: list[str], topic_partition: TopicPartition, config: LogConfig
    ) -> Log:
        path = os.path.join(parent, "{}-{}".format(*topic_partition))
        was_there = os.path.lexists(path)
        try:
            return Log(path, config, clock=self._clock)
        except OSError as error:
            if is_failure(parent, error):
                # The next job will detect the failure of the directory.
                self.offline.add(topic_partition)
                raise
            if not was_there and os.path.lexists(path):
                # an incomplete log here must not remain beside one elsewhere
                remove_directory(path)
            if not others:
                raise
            logger.warning("Cannot create a log for %s in %s: %s", topic_partition, parent, error)
        return self._new_log(others[0], others[1:], topic_partition, config)

    def delete_log(self, topic_partition: TopicPartition) -> None:
        """Remove a partition's files at once; does nothing without a log. Raises OSError."""
        log = self.logs.pop(topic_partition, None)
        if log is not None:
            self._deleted.add(topic_partition)
            if self.cleaner is not None:
                self.cleaner.deleted(log)
            try:
                log.delete()
            except OSError as error:
                if is_failure(log.data_dir, error):
                    # Remaining files may be loaded again after a restart.
                    self.offline.add(topic_partition)
                raise
            logger.info("Deleted log for partition %s in %s.", topic_partition, log.directory)

    def sync_deletions(self, partitions: Collection[TopicPartition]) -> list[DiskFailure]:
        """Make it durable that these were deleted: after a power cut another topic of that name
        could begin with their messages."""
        if self._deleted.isdisjoint(partitions):
            return []
        return self._in_each_directory(sync_directory)

    # Periodic jobs

    def checkpoint_recovery_points(self) -> list[DiskFailure]:
        """Write every log's recovery point, so that a restart need not check the whole log.

        Logs that were truncated are also dirty for the cleaner from that offset on.
        """
        deleted = set(self._deleted)
        failures = self._in_each_directory(self._checkpoint)
        if self.cleaner is not None:
            failures += self.cleaner.truncated()
        if not failures:
            self._has_stale = False
            if not self.lost_at_start:
                self._deleted -= deleted
        return failures

    def _checkpoint(self, path: str) -> None:
        # Points read before a truncation must not be written after those read after it.
        with self._checkpointing:
            self._recovery_points[path].write(
                {log.topic_partition: log.recovery_point for log in self._logs_in(path)}
            )
        self._checkpoint_starts(path)

    def store_deletions(self, logs: Collection[Log]) -> list[DiskFailure]:
        """Make it durable up to where records of these logs were deleted.

        The records go to disk first: a start beyond the end of its log would not be used.
        """
        failures = _each(logs, _flush_deleted)
        return failures + self._in_each_directory(self._checkpoint_starts)

    def _checkpoint_starts(self, path: str) -> None:
        # Entries of logs that are gone must go too: another log of that name would begin there.
        with self._checkpointing:
            logs = self._logs_in(path)
            self._starts[path].update(
                {log.topic_partition: log.deleted_until for log in logs if log.deleted_until}
            )

    def _in_each_directory(self, act: Callable[[str], None]) -> list[DiskFailure]:
        return tried((each.path, partial(act, each.path)) for each in self._directories)

    def _logs_in(self, path: str) -> list[Log]:
        return [log for log in list(self.logs.values()) if log.data_dir == path]

    def flush_dirty(self) -> list[DiskFailure]:
        """Flush the logs whose last flush was flush.ms ago."""
        now = self._clock.millis()
        logs = list(self.logs.values())
        due = [log for log in logs if now - log.last_flush_ms >= log.config.flush_ms]
        return self.flush_all(due)

    def flush_all(self, logs: Collection[Log]) -> list[DiskFailure]:
        return _each(logs, self.flush)

    def flush(self, log: Log, up_to: int | None = None) -> None:
        """Log.flush, timed."""
        began = time.monotonic()
        log.flush(up_to)
        self.flush_times.record(time.monotonic() - began)

    def cleanup(self) -> list[DiskFailure]:
        """Apply retention to all logs but those that are being cleaned, whose turn comes at the end
        of the cleaning."""
        cleaner = self.cleaner
        subject = [
            log
            for key, log in list(self.logs.items())
            if cleaner is None or not cleaner.is_cleaning(key)
        ]
        return _each(subject, lambda log: log.delete_old_segments())

    def expire_producers(self) -> None:
        """Forget idempotent producers that were not heard of for producer.id.expiration.ms."""
        before = self._clock.millis() - self._broker_config.producer_id_expiration_ms
        for log in self.logs.values():
            log.producers.expire(before)

    def delete_due_files(self) -> list[DiskFailure]:
        """Remove the files of segments deleted file.delete.delay.ms ago."""
        now = self._clock.millis()
        return _each(list(self.logs.values()), lambda log: log.files.remove_due(now))


class _LoadJob(NamedTuple):
    """Opens a log, and recovers this many bytes of it."""

    open: Callable[..., Log]
    to_recover: int


def _load(job: _LoadJob, loading: Loading, path: str) -> Log:
    try:
        log = job.open(tell=partial(loading.recovered, path))
        log.maybe_flush()  # its end is about to count as stored, as after an append
        return log
    finally:
        loading.loaded(path)


def _flush_deleted(log: Log) -> None:
    if log.recovery_point < log.deleted_until:
        log.flush()


def _each(logs: Collection[Log], act: Callable[[Log], object]) -> list[DiskFailure]:
    """Call a function with each log; returns the disk failures."""
    return tried((log.data_dir, partial(act, log)) for log in logs)


def _flush_and_close(log: Log) -> None:
    log.settle()
    log.flush()
    if not log.epochs.write(log.log_start_offset):
        raise OSError(errno.ENOSPC, f"No room for the leader epochs of {log.name}")
    log.close()


def _run(threads: int, jobs: Sequence[Sequence[Callable[[], T]]]) -> list[list[Future[T]]]:
    """Run each data directory's jobs in ``threads`` threads of its own. All have ended on return,
    with or without an error."""
    pools = [ThreadPoolExecutor(threads) for _ in jobs]
    try:
        return [
            [pool.submit(job) for job in of_directory]
            for pool, of_directory in zip(pools, jobs, strict=True)
        ]
    finally:
        for pool in pools:
            pool.shutdown()
