"""Classifies I/O errors: which ones mean that a data directory has failed.

0.8.2.2 halts on any of them (kafka.common.KafkaStorageException). Here a single directory can
fail. The blocking code of this package reports it as ``DiskFailure``, and its caller acts on it.
Also has the calls that Python's ``os`` lacks.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

# The process or the machine lacks a resource. It may be available again soon, and the failed
# call has had no effect.
_SHORTAGES = frozenset(
    (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.EAGAIN,
        errno.EINTR,
    )
)

UNKNOWN: Final = -1


class SyncError(OSError):
    """An fsync failed: data written since the last one may be lost, even if a later fsync
    succeeds."""


class DiskFailure(NamedTuple):
    """A data directory (its absolute path) that failed, and its error."""

    directory: str
    error: OSError


def open_unnamed(label: str) -> int:
    """The descriptor of an empty file without a name, which goes with its last descriptor: in
    memory where the system has such files. ``label`` is shown among the files of the process.
    Raises OSError."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(label)
    from tempfile import TemporaryFile  # 0.5 MB with all that it loads

    with TemporaryFile() as file:
        return os.dup(file.fileno())


def tried(work: Iterable[tuple[str, Callable[[], object]]]) -> list[DiskFailure]:
    """Make all these calls, each with its data directory; returns the failures."""
    failures = []
    for directory, act in work:
        try:
            act()
        except OSError as error:
            failures.append(DiskFailure(directory, error))
    return failures


def write_all(fd: int, data: bytes | bytearray | memoryview, position: int) -> None:
    """Write all of ``data`` at ``position`` of a file. Raises OSError."""
    left = memoryview(data)
    while left:
        written = os.pwrite(fd, left, position)
        left = left[written:]
        position += written


def is_shortage(error: BaseException | None) -> bool:
    """Whether the refused call may succeed soon."""
    return (
        isinstance(error, OSError)
        and error.errno in _SHORTAGES
        and not isinstance(error, SyncError)
    )


def is_full(error: OSError) -> bool:
    """Whether the disk was full. (A user's quota cannot be seen.)"""
    return error.errno == errno.ENOSPC


def has_room(directory: str, wanted: int) -> bool:
    """Whether ``wanted`` bytes and a new file fit on the disk of ``directory``. Raises OSError."""
    found = os.statvfs(directory)
    # Some file systems do not count their files.
    return found.f_bavail * found.f_frsize >= wanted and (found.f_favail > 0 or not found.f_files)


def space(directory: str) -> tuple[int, int]:
    """The bytes of the disk of ``directory``, and of those the free ones that this process may use;
    UNKNOWN if it does not say."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return UNKNOWN, UNKNOWN  # the next use of the directory reports the error
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize


def is_failure(directory: str, error: OSError) -> bool:
    """Whether ``error``, raised for a file below a data directory, means the directory failed."""
    if isinstance(error, FileNotFoundError):
        return not os.path.isdir(directory)  # otherwise a file was removed by hand
    return not is_shortage(error)
