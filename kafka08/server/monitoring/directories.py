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
    known = sizes(manager)
    return [
        Directory(path, state, known[path], *(() if state == FAILED else space(path)))
        for path, state in states(manager).items()
    ]


def states(manager: LogManager) -> dict[str, str]:
    """By path, in the same order."""
    used = {path: FULL if path in manager.full_dirs else GOOD for path in manager.log_dirs}
    return used | dict.fromkeys(manager.failed_dirs, FAILED)


def sizes(manager: LogManager) -> Counter[str]:
    """Bytes of logs by path."""
    found: Counter[str] = Counter()
    for log in list(manager.logs.values()):
        found[log.data_dir] += log.size
    return found
