"""Reads again whenever the children of a node in ZooKeeper change, on a task of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from logging import Logger

from kafka08.runtime import Loop, Queue, Runtime
from zk.client import ZkClient
from zk.errors import ZkError
from zk.watches import WatchSet

NOTICE_EXPIRY_MS = 15 * 60 * 1000
"""A child that is a notice is kept for so long. By then every broker has seen it."""

_CHANGED, _STOP = "changed", "stop"
_RETRY_SECONDS = 1.0


class WatchedChildren(Loop):
    """``read`` gets the names of the children of ``path`` (none if there is no such node) and may
    raise ZkError; then it is called again a second later. ``warning``: what the log says then."""

    def __init__(
        self,
        runtime: Runtime,
        zk: ZkClient,
        path: str,
        task: str,
        read: Callable[[Sequence[str]], None],
        logger: Logger,
        warning: str,
    ) -> None:
        super().__init__(runtime, task, self.step)
        self._path = path
        self._take = read
        self._logger = logger
        self._warning = warning
        self._queue: Queue[object] = runtime.queue()
        self._watches = WatchSet(zk, self._queue.put)

    def start(self) -> Loop:
        """Read, and follow what comes. Raises ZkError."""
        self._read_children()
        return super().start()

    def stop(self, timeout: float | None = None) -> bool:
        self.stopping.set()
        self._queue.put(_STOP)
        return super().stop(timeout)

    def session_expired(self) -> None:
        """For a new session, which does not have the watches of the one before."""
        self._queue.put(_CHANGED)

    def step(self) -> None:
        """Wait for a change, and read then."""
        if self._queue.get() == _CHANGED:
            try:
                self._read_children()
            except ZkError as error:
                # The watch may not be armed now, so nothing else would trigger the next read.
                self._logger.warning("%s: %s", self._warning, error)
                self._queue.put(_CHANGED)
                self.stopping.wait(_RETRY_SECONDS)

    def _read_children(self) -> None:
        self._take(self._watches.children(self._path, _CHANGED) or [])
