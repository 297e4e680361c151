"""Memory and CPU time of Spark's processes, by what each is for, from /proc.

A driver's Python is the root: the JVM that it starts is its child, and that JVM starts the Python
workers, the planners of streaming queries, and the executors of a local cluster.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

PROC = Path("/proc")
DRIVER, EXECUTOR = "driver JVM", "executor JVMs"
PLANNER, PYTHON = "planners", "other Python"
_BY_WORD = {
    b"SparkSubmit": DRIVER,
    b"CoarseGrainedExecutorBackend": EXECUTOR,
    b"python_streaming_source_runner": PLANNER,
}
INTERVAL_S = 0.2


class Usage(NamedTuple):
    """Bytes in ``rss`` and ``pss``, where pages that processes share count in part; CPU seconds."""

    rss: int = 0
    pss: int = 0
    cpu: float = 0.0


def usage(root: int, proc: Path = PROC) -> dict[str, Usage]:
    """Kind -> what its processes use together. CPU time includes that of ended children."""
    found: dict[str, Usage] = {}
    for directory, kind in _processes(root, proc):
        one = Usage(_rss(directory), _pss(directory), _cpu(directory))
        found[kind] = Usage(*map(sum, zip(found.get(kind, Usage()), one, strict=True)))
    return found


class Peak:
    """The most memory that the processes from ``root`` down had while it was entered, by kind.

    ``rss`` and ``pss`` are looks at different times, each when its sum was largest.
    """

    def __init__(self, root: int, proc: Path = PROC) -> None:
        self.rss: dict[str, int] = {}
        self.pss: dict[str, int] = {}
        self._root, self._proc = root, proc
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def look(self) -> None:
        now = usage(self._root, self._proc)
        rss, pss = ({kind: used[field] for kind, used in now.items()} for field in (0, 1))
        self.rss = max(self.rss, rss, key=_total)
        self.pss = max(self.pss, pss, key=_total)

    def _run(self) -> None:
        while not self._ended.wait(INTERVAL_S):
            self.look()


def _total(by_kind: dict[str, int]) -> int:
    return sum(by_kind.values())


def _processes(root: int, proc: Path) -> Iterator[tuple[Path, str]]:
    """The directory of each process from ``root`` down, and its kind."""
    parents = {}
    for directory in proc.glob("[0-9]*"):
        try:
            parents[int(directory.name)] = int(_stat(directory)[1])
        except OSError:
            continue  # it has ended
    for number in parents:
        above = number
        while above != root and above in parents:
            above = parents[above]
        if above == root:
            directory = proc / str(number)
            yield directory, _kind(directory)


def _kind(directory: Path) -> str:
    try:
        line = (directory / "cmdline").read_bytes()
    except OSError:
        return PYTHON
    return next((kind for word, kind in _BY_WORD.items() if word in line), PYTHON)


def _stat(directory: Path) -> list[str]:
    """The fields after the command's name, from the state on."""
    return (directory / "stat").read_text().rpartition(")")[2].split()


def _cpu(directory: Path) -> float:
    try:
        return sum(map(int, _stat(directory)[11:15])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


def _rss(directory: Path) -> int:
    try:
        return int((directory / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _pss(directory: Path) -> int:
    try:
        lines = (directory / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
