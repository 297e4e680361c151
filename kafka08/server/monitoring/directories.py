"""The data directories of a broker, as health and metrics show them."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from kafka08.log.disk import UNKNOWN, space
from kafka08.log.manager import LogManager

GOOD: Final = "good"
FULL: Final = "full"
FAILED: Final = "failed"


class Directory(NamedTuple):
    """``size``: bytes of the logs in it. ``total`` and ``free``: as ``kafka08.log.disk.space``."""

    path: str
    state: str
    size: int
    total: int = UNKNOWN
    free: int = UNKNOWN


def directories(manager: LogManager) -> list[Directory]:
    """All that the broker was started with, those that have failed last."""
    sizes: Counter[str] = Counter()
    for log in list(manager.logs.values()):
        sizes[log.data_dir] += log.size
    found = []
    for path in manager.log_dirs:
        state = FULL if path in manager.full_dirs else GOOD
        found.append(Directory(path, state, sizes[path], *space(path)))
    failed = [Directory(path, FAILED, 0) for path in manager.failed_dirs]
    return [*found, *failed]
