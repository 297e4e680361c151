"""I/O errors below data directories: failed directories go out of use, shortages are remembered.

0.8.2.2 halts the whole broker (KafkaStorageException). Here the other directories stay in use,
and ``log_dirs`` reports it to the cluster. The broker halts when no directory is left. A failed
directory comes back with a restart only, a full one as soon as it has room.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable

from kafka08.common import TopicPartition
from kafka08.log.disk import DiskFailure, has_room, is_failure, is_full
from kafka08.log.manager import LogManager
from kafka08.runtime import Runtime

logger = logging.getLogger("kafka.log.LogManager")

# A disk that was full counts as such until it has this much room.
ROOM_BYTES = 16 << 20
# A disk counts as full for at least this long. Other shortages are over after this long without a
# new one.
QUIET_SECONDS = 10.0


class _Shortage:
    """A shortage in one directory, from its first error until it is over."""

    def __init__(self, error: OSError, now: float) -> None:
        self.error = error
        self.since = self.last = now
        self.count = 0


class LogDirFailures:
    """The directories that have failed or are full. ``changed`` is set when this changes.

    ``lost_leaderships`` are the partitions that were led here, until another broker leads them.
    """

    def __init__(
        self, runtime: Runtime, log_manager: LogManager, halt: Callable[[str], None] | None = None
    ) -> None:
        self._runtime = runtime
        self._clock = runtime.clock
        self._log_manager = log_manager
        self.halt = halt or _halt
        self.changed = runtime.event()
        self.lost_leaderships: set[TopicPartition] = set()
        self._shortages: dict[tuple[str, int | None], _Shortage] = {}

    def report(self, failures: Iterable[DiskFailure]) -> list[TopicPartition]:
        """Take I/O errors into account; the partitions whose logs are not to be used any more.

        Of a shortage the first error is logged, and its end.
        """
        offline = []
        for directory, error in failures:
            if directory not in self._log_manager.log_dirs:
                continue
            if is_failure(directory, error):
                offline += self._take_offline(directory, error)
            else:
                self._short(directory, error)
        return offline

    def _short(self, directory: str, error: OSError) -> None:
        now = self._clock.monotonic()
        key = (directory, error.errno)
        shortage = self._shortages.get(key)
        if shortage is None:
            logger.error("I/O error in %s (more of the kind are counted): %s", directory, error)
            shortage = self._shortages[key] = _Shortage(error, now)
            if is_full(error):
                self._log_manager.full_dirs.add(directory)
            self.changed.set()
        shortage.count += 1
        shortage.last = now

    def _take_offline(self, directory: str, error: OSError) -> list[TopicPartition]:
        partitions = self._log_manager.take_offline(directory)
        logger.critical(
            "The data directory %s has failed, and with it %d partitions: %s",
            *(directory, len(partitions), error),
        )
        if not self._log_manager.log_dirs:
            self.halt("No data directory is left")
        self.changed.set()
        return partitions

    @property
    def has_shortages(self) -> bool:
        return bool(self._shortages)

    def end_shortages(self) -> None:
        """Forget shortages that are over; may wait for a disk to report its free space."""
        for key, shortage in list(self._shortages.items()):
            if self._is_over(key[0], shortage):
                del self._shortages[key]
                if is_full(shortage.error):
                    self._log_manager.full_dirs.discard(key[0])
                logger.info(
                    "No more of this in %s since %d s; %d times in %d s: %s",
                    *(key[0], self._clock.monotonic() - shortage.last, shortage.count),
                    *(shortage.last - shortage.since, shortage.error),
                )

    def _is_over(self, directory: str, shortage: _Shortage) -> bool:
        if directory not in self._log_manager.log_dirs:
            return True
        now = self._clock.monotonic()
        if not is_full(shortage.error):
            return now >= shortage.last + QUIET_SECONDS
        try:
            return now >= shortage.since + QUIET_SECONDS and self._runtime.blocking(
                has_room, directory, ROOM_BYTES
            )
        except OSError:
            return False  # the next use of the directory reports the error


def _halt(reason: str) -> None:
    """As Runtime.halt: no clean-up could be relied on."""
    logger.critical("Halting: %s", reason)
    for handler in logging.getLogger().handlers:
        handler.flush()
    sys.stdout.flush()
    os._exit(1)
