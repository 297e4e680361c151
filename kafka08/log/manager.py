"""All logs of a broker, in one or more data directories (kafka.log.LogManager).

Blocking code without tasks or timers of its own: the server decides when ``cleanup``,
``flush_dirty``, ``checkpoint_recovery_points`` and ``delete_due_files`` run. As with a Log, all
of it belongs to one thread except ``flush_dirty``, ``checkpoint_recovery_points`` and
``delete_due_files``, which may run on any. Knows neither replicas nor ZooKeeper.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from kafka08.common import TopicPartition
from kafka08.config import BrokerConfig, LogConfig
from kafka08.errors import ConfigError, KafkaError
from kafka08.log.checkpoint import OffsetCheckpoint
from kafka08.log.cleaner import LogCleaner
from kafka08.log.directory import RECOVERY_POINT_CHECKPOINT_FILE, LogDirectory
from kafka08.log.log import Clock, Log

T = TypeVar("T")

logger = logging.getLogger("kafka.log.LogManager")


class LogManager:
    """The logs under ``broker_config.log_dirs``, by partition in ``logs`` once loaded.

    ``topic_configs``: per topic the overriding properties. A log knows its data directory as the
    parent of ``log.directory``; ``log_dirs`` lists them all (absolute paths).
    """

    def __init__(
        self,
        broker_config: BrokerConfig,
        *,
        clock: Clock,
        topic_configs: Mapping[str, Mapping[str, str]],
    ) -> None:
        self.logs: dict[TopicPartition, Log] = {}
        self.log_dirs = [os.path.abspath(path) for path in broker_config.log_dirs]
        self.default_config = LogConfig.from_broker(broker_config)
        self._topic_configs = topic_configs
        self._clock = clock
        self.cleaner: LogCleaner | None = None  # once loaded, if there is to be one
        self._broker_config = broker_config
        self._threads = broker_config.num_recovery_threads_per_data_dir
        self._directories: list[LogDirectory] = []
        self._recovery_points: dict[str, OffsetCheckpoint] = {}
        self._checkpointing = threading.Lock()
        self._deleted: set[TopicPartition] = set()  # since the last checkpoint

    # Start and stop

    def load(self) -> None:
        """Create and lock the data directories, open and recover every partition in them.

        The clean-shutdown markers are gone when this returns. Raises KafkaError (a directory is
        in use, or a partition lies in two) and OSError; the locks are given up then.
        """
        logger.info("Loading logs.")
        try:
            self._open_directories()
            jobs = [self._load_jobs(directory) for directory in self._directories]
            for loaded in _run(self._threads, jobs):
                for future in loaded:
                    self._add(future.result())
            if self._broker_config.log_cleaner_enable:
                self.cleaner = LogCleaner(
                    self._broker_config, self.log_dirs, self.logs, clock=self._clock
                )
            for directory in self._directories:
                self._lower_recovery_points(directory.path)
                directory.unmark_clean()
        except BaseException:
            self._unlock()
            raise
        logger.info("Logs loading complete.")

    def _open_directories(self) -> None:
        if len({os.path.realpath(path) for path in self.log_dirs}) < len(self.log_dirs):
            raise KafkaError(f"Duplicate log directory found: {', '.join(self.log_dirs)}")
        for path in self.log_dirs:
            directory = LogDirectory(path)
            self._directories.append(directory)
            self._recovery_points[path] = OffsetCheckpoint(
                directory.file(RECOVERY_POINT_CHECKPOINT_FILE)
            )

    def _load_jobs(self, directory: LogDirectory) -> list[Callable[[], Log]]:
        clean = directory.was_shut_down_cleanly
        if clean:
            logger.debug(
                "Found clean shutdown file. Skipping recovery for all logs in data directory: %s",
                directory.path,
            )
        points = self._recovery_points[directory.path].read()
        return [
            partial(
                Log,
                path,
                self.config_for(topic_partition.topic),
                recovery_point=points.get(topic_partition, 0),
                clean_shutdown=clean,
                clock=self._clock,
            )
            for topic_partition, path in directory.partitions().items()
        ]

    def _lower_recovery_points(self, path: str) -> None:
        """Points on disk above a log's end, or of a log that is gone, would vouch for what is
        appended up to them."""
        actual = {log.topic_partition: log.recovery_point for log in self._logs_in(path)}
        for topic_partition, point in self._recovery_points[path].read().items():
            if point > actual.get(topic_partition, 0):
                self._checkpoint(path)
                return

    def _add(self, log: Log) -> None:
        other = self.logs.setdefault(log.topic_partition, log)
        if other is not log:
            raise KafkaError(
                f"Duplicate log directories found: {other.directory}, {log.directory}!"
            )

    def close(self) -> None:
        """Flush and close every log, write the checkpoints and the clean-shutdown markers.

        Raises what went wrong in a directory; that one gets no marker. All locks are released.
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
                    logger.exception("No clean shutdown of %s", directory.path)
                    failure = failure or error
        finally:
            self._unlock()
        self.logs.clear()
        if failure is not None:
            raise failure
        logger.info("Shutdown complete.")

    def _unlock(self) -> None:
        for directory in self._directories:
            directory.unlock()
        self._directories = []

    # Partitions

    def config_for(self, topic: str) -> LogConfig:
        """The settings of a topic's logs; the defaults if its own cannot be parsed."""
        try:
            return self.default_config.override(self._topic_configs.get(topic, {}))
        except ConfigError as error:
            logger.error("Ignoring the configuration of topic %s: %s", topic, error)
            return self.default_config

    def get_log(self, topic_partition: TopicPartition) -> Log | None:
        return self.logs.get(topic_partition)

    def create_log(self, topic_partition: TopicPartition, log_config: LogConfig) -> Log:
        """The partition's log, made in the directory with the fewest partitions if missing."""
        log = self.logs.get(topic_partition)
        if log is not None:
            return log
        if topic_partition in self._deleted:
            # the old log's recovery point must not vouch for the new one's data
            self.checkpoint_recovery_points()
        parent = min(self.log_dirs, key=lambda path: len(self._logs_in(path)))
        topic, partition = topic_partition
        log = Log(
            os.path.join(parent, f"{topic}-{partition}"),
            log_config,
            recovery_point=0,
            clean_shutdown=False,
            clock=self._clock,
        )
        self.logs[topic_partition] = log
        logger.info("Created log for partition %s in %s.", topic_partition, parent)
        return log

    def delete_log(self, topic_partition: TopicPartition) -> None:
        """Remove a partition's files, now. Nothing happens if it has none."""
        log = self.logs.pop(topic_partition, None)
        if log is not None:
            self._deleted.add(topic_partition)
            if self.cleaner is not None:
                self.cleaner.deleted(log)
            log.delete()
            logger.info("Deleted log for partition %s in %s.", topic_partition, log.directory)

    def truncate_to(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Truncate logs (those not here are passed over) and write the recovery points."""
        for topic_partition, offset in offsets.items():
            log = self.logs.get(topic_partition)
            if log is not None:
                log.truncate_to(offset)
        self.checkpoint_recovery_points()

    def truncate_fully_and_start_at(self, topic_partition: TopicPartition, offset: int) -> None:
        """Empty a log, to go on at ``offset``, and write the recovery points."""
        log = self.logs.get(topic_partition)
        if log is not None:
            log.truncate_fully_and_start_at(offset)
        self.checkpoint_recovery_points()

    # Chores

    def checkpoint_recovery_points(self) -> None:
        """Write every log's recovery point, so that a restart need not check all of it.

        Logs that were truncated are also dirty for the cleaner from there on.
        """
        deleted = set(self._deleted)
        for directory in self._directories:
            self._checkpoint(directory.path)
        self._deleted -= deleted
        if self.cleaner is not None:
            self.cleaner.truncated()

    def _checkpoint(self, path: str) -> None:
        # Points read before a truncation must not be written after those read behind it.
        with self._checkpointing:
            self._recovery_points[path].write(
                {log.topic_partition: log.recovery_point for log in self._logs_in(path)}
            )

    def _logs_in(self, path: str) -> list[Log]:
        return [log for log in list(self.logs.values()) if os.path.dirname(log.directory) == path]

    def flush_dirty(self) -> None:
        """Flush the logs whose last flush is flush.ms ago. Failures are logged."""
        now = self._clock.millis()
        for log in list(self.logs.values()):
            if now - log.last_flush_ms >= log.config.flush_ms:
                try:
                    log.flush()
                except OSError:
                    logger.exception("Error flushing topic %s", log.topic_partition.topic)

    def cleanup(self) -> int:
        """Apply retention to the logs that are not compacted; the number of segments deleted."""
        deleted = 0
        for log in list(self.logs.values()):
            if not log.config.compact:
                deleted += log.delete_old_segments()
        logger.debug("Log cleanup completed. %d segments deleted", deleted)
        return deleted

    def delete_due_files(self) -> int:
        """Remove the files of segments deleted file.delete.delay.ms ago; how many."""
        now = self._clock.millis()
        return sum([log.delete_due_files(now) for log in list(self.logs.values())])


def _flush_and_close(log: Log) -> None:
    log.flush()
    log.close()


def _run(threads: int, jobs: Sequence[Sequence[Callable[[], T]]]) -> list[list[Future[T]]]:
    """Run each data directory's jobs in ``threads`` threads of its own. All have ended, well or
    badly, when this returns."""
    pools = [ThreadPoolExecutor(threads) for _ in jobs]
    try:
        return [
            [pool.submit(job) for job in of_directory]
            for pool, of_directory in zip(pools, jobs, strict=True)
        ]
    finally:
        for pool in pools:
            pool.shutdown()
