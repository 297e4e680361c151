"""Logs once a minute how far data directories are loaded. Does not know how logs are loaded."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import NamedTuple

from kafka08.common import WallClock
from kafka08.progress import EveryMinute, share

logger = logging.getLogger("kafka.log.LogManager")


class Work(NamedTuple):
    """An amount of work: a number of logs, and the bytes that have to be recovered in them."""

    logs: int
    size: int


class Loading:
    """The work in each data directory, and how much of it is done. Safe on any thread."""

    def __init__(self, todo: Mapping[str, Work], clock: WallClock) -> None:
        self._todo = todo
        self._done = {path: Work(0, 0) for path in todo}
        self._minute = EveryMinute(clock.millis)
        self._lock = threading.Lock()

    def recovered(self, path: str, size: int) -> None:
        """This many more bytes of the logs in ``path`` have been checked."""
        self._add(path, Work(0, size))

    def loaded(self, path: str) -> None:
        """One more log in ``path`` is open."""
        self._add(path, Work(1, 0))

    def _add(self, path: str, more: Work) -> None:
        with self._lock:
            done = self._done[path]
            self._done[path] = Work(done.logs + more.logs, done.size + more.size)
            state = dict(self._done)
        if self._minute.is_due():
            for each, todo in self._todo.items():
                if state[each].logs < todo.logs:
                    _tell(each, state[each], todo)


def _tell(path: str, done: Work, todo: Work) -> None:
    recovered = f", {share(done.size, todo.size)} recovered" if todo.size else ""
    logger.info("Loaded %d of %d logs in %s%s", done.logs, todo.logs, path, recovered)
