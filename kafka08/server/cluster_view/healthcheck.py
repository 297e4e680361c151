"""The broker's ZooKeeper session: registration again after expiry, fencing while it is away.

Mirrors kafka.server.KafkaHealthcheck, with the controller's and the watches' part of an expiry.
Connection loss alone changes nothing at first: the session may well survive it. Once it has
lasted a whole session timeout the cluster may have given our leaderships away, so until we know
partitions take only writes that another leader would have (docs/adr/0030). After an expiry the
order is that of the original: the controller module first, then our registration, then other
watches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafka08.errors import KafkaError
from kafka08.runtime import Empty, Loop, Queue, Runtime
from zk.client import SessionState, ZkClient

logger = logging.getLogger("kafka.server.KafkaHealthcheck")

_RETRY_SECONDS = 1.0


class KafkaHealthcheck(Loop):
    """Acts on what happens to the session, one event at a time, on a task of its own.

    ``expired`` are called in order for every new session, and again until it succeeds;
    ``fence(True)`` and ``fence(False)`` bracket the time in which leadership is in doubt.
    """

    def __init__(
        self,
        runtime: Runtime,
        zk: ZkClient,
        session_timeout_ms: int,
        expired: list[Callable[[], None]],
        fence: Callable[[bool], None],
    ) -> None:
        super().__init__(runtime, "zookeeper-session", self.step)
        self._timeout = session_timeout_ms / 1000
        self._clock = runtime.clock
        self._expired = expired
        self._fence = fence
        self._queue: Queue[SessionState | None] = runtime.queue()
        self._away_since: float | None = None
        zk.on_state(self._queue.put)

    def stop(self, timeout: float | None = None) -> bool:
        self.stopping.set()
        self._queue.put(None)
        return super().stop(timeout)

    def step(self) -> None:
        """Wait for the next event, or for the time at which to fence."""
        try:
            state = self._queue.get(timeout=self._patience())
        except Empty:
            self._away_since = None
            self._fence(True)
            return
        if state is SessionState.SUSPENDED:
            self._away_since = self._clock.monotonic()
        elif state is SessionState.CONNECTED:
            self._away_since = None
            self._fence(False)
        elif state is SessionState.EXPIRED:
            self._away_since = None
            self._fence(True)
            self._renew()

    def _patience(self) -> float | None:
        if self._away_since is None:
            return None
        return max(0.0, self._away_since + self._timeout - self._clock.monotonic())

    def _renew(self) -> None:
        logger.info("re-registering broker info in ZK after session expiry")
        for act in self._expired:
            while not self.stopping.is_set():
                try:
                    act()
                    break
                except Exception as error:
                    # Any error is retried: otherwise the broker would run without being registered.
                    known = isinstance(error, KafkaError)
                    logger.warning(
                        "Renewing the session's nodes failed: %s", error, exc_info=not known
                    )
                    self.stopping.wait(_RETRY_SECONDS)
