"""Notices that this process did not run for a while, as when it was stopped or its machine slept.

The session may have ended meanwhile and others may lead what was led here, and nothing has told
this broker yet. Its memory may be old. Reads of partitions have leader epochs against
that, and writes need acks. Committed offsets have neither: a consumer that is told old ones reads
messages again, of which a transaction may have written the results (docs/adr/0066).
"""

from __future__ import annotations

from collections.abc import Callable

from kafka08.runtime import Loop, Runtime
from zk import znodes
from zk.client import ZkClient


class Pauses(Loop):
    """``is_fenced`` tells whether the end of a session is being dealt with."""

    def __init__(
        self,
        runtime: Runtime,
        zk: ZkClient,
        session_timeout_ms: int,
        is_fenced: Callable[[], bool],
    ) -> None:
        super().__init__(runtime, "pauses", self.step)
        self._zk = zk
        self._is_fenced = is_fenced
        self._clock = runtime.clock
        # A session without signs of life for two thirds of this may end: the client sends one
        # in each third.
        self._longest_s = session_timeout_ms / 2000
        self._ran: float | None = None
        self._is_in_doubt = False

    @property
    def may_be_deposed(self) -> bool:
        """Whether others may lead since such a while, of which ZooKeeper has not told yet."""
        return self._is_in_doubt or self._has_paused(self._clock.monotonic())

    def _has_paused(self, now: float) -> bool:
        return self._ran is not None and now - self._ran > self._longest_s

    def step(self) -> None:
        """Look at the time, and wait. Raises ZkError while ZooKeeper cannot say that the session
        lives."""
        now = self._clock.monotonic()
        self._is_in_doubt = self.may_be_deposed
        self._ran = now
        if self._is_in_doubt:
            self._zk.exists(znodes.BROKER_IDS)
            self._is_in_doubt = self._is_fenced()
        self.stopping.wait(self._longest_s / 4)
