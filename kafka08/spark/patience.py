"""How long a job waits for brokers that do not answer, and what it logs meanwhile. Pure.

A partition has no leader from the death of a broker until its session at ZooKeeper has expired (6 s
by default) and the controller has elected another one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafka08.client.retry import Retry, always
from kafka08.runtime import Clock, Runtime

PATIENCE_S = 30.0
LOGGED_EVERY_S = 5.0


def patient(
    runtime: Runtime,
    backoff: float,
    retries: int | None,
    passes: Callable[[Exception], bool] = always,
) -> Retry:
    """``retries`` tries after the first, ``backoff`` seconds apart; None: for PATIENCE_S."""
    if retries is None:
        return Retry(runtime, backoff, patience=PATIENCE_S, passes=passes)
    return Retry(runtime, backoff, attempts=retries + 1, passes=passes)


def retries_within(retries: int | None, backoff: float) -> int:
    """``retries``, or the number of those that take PATIENCE_S."""
    return max(int(PATIENCE_S / backoff), 1) if retries is None else retries


class WaitLog:
    """Logs the first failure that is waited for, and then one every LOGGED_EVERY_S."""

    def __init__(self, logger: logging.Logger, clock: Clock) -> None:
        self._logger = logger
        self._clock = clock
        self._next = float("-inf")

    def waiting(self, text: str, error: Exception) -> None:
        """``text`` says what is tried again."""
        now = self._clock.monotonic()
        if now >= self._next:
            self._next = now + LOGGED_EVERY_S
            self._logger.warning("%s: trying again after: %s", text, error)
