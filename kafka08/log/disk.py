"""Which I/O errors mean that a data directory cannot be relied on any more.

0.8.2.2 halts on any of them (kafka.common.KafkaStorageException). Here a directory can fail
alone; ``DiskFailure`` is how the blocking code of this package tells its caller, who acts.
"""

from __future__ import annotations

import errno
import os
from typing import NamedTuple

# The process or the machine is short of something: it may be there again in a moment, and what
# was refused has left nothing behind.
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


class SyncError(OSError):
    """An fsync failed: what was written since the last one may be lost, whatever a later one
    says."""


class DiskFailure(NamedTuple):
    """A data directory (its absolute path) that failed, and how."""

    directory: str
    error: OSError


def is_shortage(error: BaseException | None) -> bool:
    """Whether what was refused may be granted in a moment."""
    return (
        isinstance(error, OSError)
        and error.errno in _SHORTAGES
        and not isinstance(error, SyncError)
    )


def is_full(error: OSError) -> bool:
    """Whether there was no room on the disk. (Room within a user's quota is not to be seen.)"""
    return error.errno == errno.ENOSPC


def has_room(directory: str, wanted: int) -> bool:
    """Whether ``wanted`` bytes and a new file fit on the disk of ``directory``. Raises OSError."""
    found = os.statvfs(directory)
    # Some file systems do not count their files.
    return found.f_bavail * found.f_frsize >= wanted and (found.f_favail > 0 or not found.f_files)


def is_failure(directory: str, error: OSError) -> bool:
    """Whether ``error``, met at a file below a data directory, is the directory's end."""
    if isinstance(error, FileNotFoundError):
        return not os.path.isdir(directory)  # else somebody removed a file by hand
    return not is_shortage(error)
