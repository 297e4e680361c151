"""The data directories of a broker, as health and metrics show them."""

from __future__ import annotations

import os
from collections import Counter
from typing import Final, NamedTuple

from kafka08.log.manager import LogManager

GOOD: Final = "good"
FULL: Final = "full"
FAILED: Final = "failed"


class Directory(NamedTuple):
    """``size``: bytes of the logs in it. ``total`` and ``free``: bytes of its disk, and of those
    the ones that a broker may still use; None if the disk does not say."""

    path: str
    state: str
    size: int
    total: int | None
    free: int | None


def directories(manager: LogManager) -> list[Directory]:
    """All that the broker was started with, those that have failed last."""
    sizes: Counter[str] = Counter()
    for log in list(manager.logs.values()):
        sizes[log.data_dir] += log.size
    found = []
    for path in manager.log_dirs:
        state = FULL if path in manager.full_dirs else GOOD
        found.append(Directory(path, state, sizes[path], *_disk(path)))
    failed = [Directory(path, FAILED, 0, None, None) for path in manager.failed_dirs]
    return [*found, *failed]


def _disk(path: str) -> tuple[int | None, int | None]:
    try:
        found = os.statvfs(path)
    except OSError:
        return None, None  # the next use of the directory reports the error
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
