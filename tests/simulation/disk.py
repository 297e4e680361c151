"""The disk of a simulated broker's machine, and what may be wrong with it."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka08.log.segments.names import LOG_SUFFIX
from tests.log.faulty_files import Crash, FaultyFiles, Node
from tests.simulation.moments import Moments

_HIGH_WATERMARKS = "replication-offset-checkpoint.tmp"
_TAKES_ROOM = ("create", "write")
_LONGEST_MICROS = 10_000_000


class Free(NamedTuple):
    """The part of os.statvfs_result that is used."""

    f_frsize: int
    f_bavail: int
    f_files: int
    f_favail: int


class BrokerDisk(FaultyFiles):
    """The files of one broker, in two directories.

    ``crashed`` is called when the process dies at one of its calls, ``changes`` counts these, and
    ``cuts`` those that cut the file of a segment, ``checkpoints`` those that store the high
    watermarks.
    ``is_full``: nothing takes room any more. ``broken``: the directory whose changes all fail.
    ``sync_micros``: how long each sync takes; ``read_micros``: each read, of which none is in
    memory then.
    """

    def __init__(self, root: str, clock: Callable[[], int], rng: random.Random) -> None:
        super().__init__(root, clock, rng)
        self.directories = [f"{root}/one", f"{root}/two"]
        self.crashed: Callable[[], object] | None = None
        self.changes = Moments()
        self.cuts = Moments()
        self.checkpoints = Moments()
        self.is_full = False
        self.broken: str | None = None
        self.sync_micros = self.read_micros = 0
        self._owed = 0

    def __enter__(self) -> BrokerDisk:
        super().__enter__()
        self._real["os.statvfs"] = os.statvfs
        os.statvfs = self._statvfs  # type: ignore[assignment]
        return self

    def make_directories(self) -> None:
        """They were there long before the first start."""
        for path in self.directories:
            os.mkdir(path)
        self.sync_everything()

    def repair(self) -> None:
        """Nothing is wrong with it from now on, and nothing planned."""
        self.changes.clear()
        self.cuts.clear()
        self.checkpoints.clear()
        self.crash_at = -1
        self.is_full = self.is_short = False
        self.broken = None
        self.sync_micros = self.read_micros = self._owed = 0

    def close_all(self, name: str) -> None:
        """The descriptors of files with this name, as at the end of a process."""
        nodes = [self._live.get(f"{directory}/{name}") for directory in self.directories]
        for fd in [fd for fd, node in self._open.items() if node in nodes]:
            self._close(fd)

    def waited(self) -> int:
        """The microseconds that the syncs since the last call took: those of one call, not too
        many together."""
        owed, self._owed = self._owed, 0
        return min(owed, _LONGEST_MICROS)

    def is_resident(self) -> bool:
        """Whether a read finds its bytes in memory; if not, the next call takes its time."""
        self._owed += self.read_micros
        return not self.read_micros

    def _step(self, what: str, place: str | Node) -> None:
        self.changes.happened()
        try:
            super()._step(what, place)
        except Crash:
            if self.crashed is not None:
                self.crashed()
            raise
        if what == "truncate" and self._path(place).endswith(LOG_SUFFIX):
            self.cuts.happened()
        if what == "rename" and self._path(place).endswith(_HIGH_WATERMARKS):
            self.checkpoints.happened()
        if what == "sync":
            self._owed += self.sync_micros
        if self.broken is not None and self._path(place).startswith(self.broken):
            raise OSError(errno.EIO, "Input/output error")
        if self.is_full and what in _TAKES_ROOM:
            raise OSError(errno.ENOSPC, "No space left on device")

    def _path(self, place: str | Node) -> str:
        if isinstance(place, str):
            return place
        return next((path for path, node in self._live.items() if node is place), "")

    def _statvfs(self, path: Any) -> Any:
        if not self._ours(path):
            return self._real["os.statvfs"](path)
        return Free(4096, 0 if self.is_full else 1 << 20, 1 << 20, 1 << 20)
