"""A data directory: its lock, its clean-shutdown marker, its partitions' names.

Mirrors kafka.utils.FileLock and parts of kafka.log.LogManager. Does not know logs.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import threading
from collections.abc import Sequence

from kafka08.common import TopicPartition, validate_topic
from kafka08.errors import InvalidTopicError, KafkaError

MAX_PARTITION = (1 << 31) - 1

LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
RECOVERY_POINT_CHECKPOINT_FILE = "recovery-point-offset-checkpoint"
LOG_START_CHECKPOINT_FILE = "log-start-offset-checkpoint"
CLEANER_CHECKPOINT_FILE = "cleaner-offset-checkpoint"
LOG_DIRS_FILE = ".kafka_log_dirs"
# Of files that are not complete yet; a start removes them.
CLEANED_SUFFIX = ".cleaned"

REMOVALS = 10
"""The most tries to remove a directory whose files change meanwhile."""

logger = logging.getLogger("kafka.log.LogManager")

# A POSIX record lock does not exclude its own process, and is lost when any descriptor of the
# file is closed. So within the process ownership is by path, checked before the file is opened.
_owned: set[str] = set()
_owned_guard = threading.Lock()


def sync_directory(path: str) -> None:
    """Make the names in a directory durable: syncing a file covers only its content."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def replace_file(path: str, text: str) -> None:
    """Replace the content of a small file; it is on disk on return. Raises OSError."""
    with open(path + ".tmp", "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".tmp", path)
    sync_directory(os.path.dirname(path) or ".")


def unlink_if_there(path: str) -> bool:
    """Remove a file; whether it was there. Raises other OSErrors."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


def remove_directory(path: str) -> None:
    """Remove a directory and its files. Another thread may still make and remove some: it notices
    soon that their log is deleted. Raises OSError."""
    import shutil  # with bz2 and lzma 0.3 MB, which many brokers never need

    for left in reversed(range(REMOVALS)):
        try:
            shutil.rmtree(path)
            break
        except OSError as error:
            changed = error.errno in (errno.ENOTEMPTY, errno.ENOENT) and os.path.lexists(path)
            if not changed or not left:
                raise


def put_aside(path: str) -> None:
    """Rename a file or directory that lies where one of ours belongs, with a warning."""
    number, aside = 0, path + ".aside"
    while os.path.lexists(aside):
        number += 1
        aside = f"{path}.aside{number}"
    logger.warning("%s is not of the expected kind. It is renamed to %s.", path, aside)
    os.rename(path, aside)


def make_way(path: str) -> None:
    """Rename a directory that lies where a file of ours belongs."""
    if os.path.isdir(path):
        put_aside(path)


def read_log_dirs(path: str) -> list[str]:
    """The data directories that were in use together with ``path``; empty if not recorded."""
    try:
        with open(os.path.join(path, LOG_DIRS_FILE), encoding="utf-8") as file:
            return file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def write_log_dirs(path: str, log_dirs: Sequence[str]) -> None:
    """Record in the directory which data directories are in use. Raises OSError."""
    target = os.path.join(path, LOG_DIRS_FILE)
    for each in (target, target + ".tmp"):
        make_way(each)
    replace_file(target, "".join(f"{each}\n" for each in log_dirs))


def parse_log_name(name: str) -> TopicPartition | None:
    """The partition of a directory's name; None if it is not the name of a partition."""
    topic, _, digits = name.rpartition("-")
    if not digits.isascii() or not digits.isdigit() or str(int(digits)) != digits:
        return None
    try:
        validate_topic(topic)
    except InvalidTopicError:
        return None
    if int(digits) > MAX_PARTITION:
        return None
    return TopicPartition(topic, int(digits))


class UnusableDirectoryError(KafkaError):
    """A data directory cannot be created or read."""


class LogDirectory:
    """The data directory at ``path``: created if missing, and locked until ``unlock``.

    Raises KafkaError if it is in use, UnusableDirectoryError (both with the texts of
    kafka.log.LogManager) or OSError.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        if not os.path.exists(self.path):
            logger.info("Log directory '%s' not found, creating it.", self.path)
            try:
                os.makedirs(self.path)
            except OSError as error:
                raise UnusableDirectoryError(
                    f"Failed to create data directory {self.path}"
                ) from error
        if not os.path.isdir(self.path) or not os.access(self.path, os.R_OK):
            raise UnusableDirectoryError(f"{self.path} is not a readable log directory.")
        self._key = os.path.realpath(self.path)
        self._lock_fd = self._acquire()

    def _acquire(self) -> int:
        refused = (
            f"Failed to acquire lock on file .lock in {self.path}. A Kafka instance in another "
            "process or thread is using this directory."
        )
        with _owned_guard:
            if self._key in _owned:
                raise KafkaError(refused)
            make_way(self.file(LOCK_FILE))
            fd = os.open(self.file(LOCK_FILE), os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(fd)
                raise KafkaError(refused) from error
            _owned.add(self._key)
            return fd

    def unlock(self) -> None:
        """Release the lock; the lock file stays. Harmless if repeated."""
        with _owned_guard:
            if self._lock_fd >= 0:
                os.close(self._lock_fd)
                self._lock_fd = -1
                _owned.discard(self._key)

    def file(self, name: str) -> str:
        return os.path.join(self.path, name)

    @property
    def was_shut_down_cleanly(self) -> bool:
        return os.path.isfile(self.file(CLEAN_SHUTDOWN_FILE))

    def mark_clean(self) -> None:
        """Write the marker: every log here is flushed and closed."""
        with open(self.file(CLEAN_SHUTDOWN_FILE), "a"):
            pass

    def unmark_clean(self) -> None:
        """Remove the marker: from now on a crash needs recovery."""
        make_way(self.file(CLEAN_SHUTDOWN_FILE))
        if unlink_if_there(self.file(CLEAN_SHUTDOWN_FILE)):
            # A marker that came back after a power cut would make recovery skip logs that need it.
            sync_directory(self.path)

    def partitions(self) -> dict[TopicPartition, str]:
        """The partitions kept here, with their directories. Directories with other names are
        skipped with a warning (0.8.2.2 refuses to start). An empty directory of a partition is
        removed: a broker was killed before the first segment, which would take space. Raises
        OSError."""
        with os.scandir(self.path) as entries:
            # is_dir raises for an unreadable partition; os.path.isdir would return False
            names = sorted(entry.name for entry in entries if entry.is_dir())
        found = {}
        for name in names:
            path = self.file(name)
            topic_partition = parse_log_name(name)
            if topic_partition is None:
                logger.warning("Skipping directory %s: it is not named as a partition is.", path)
                continue
            found[topic_partition] = path
            with contextlib.suppress(OSError):  # it has files, or is a link or a mount point
                os.rmdir(path)
                del found[topic_partition]
        return found
