"""Logs failed logins and handshakes, and rejected connections.

Each address gets a line a minute of either kind, with the number of failures.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from kafka08.runtime import Clock
from kafka08.security.repetitions import MAX_EVENTS, WINDOW_SECONDS, Repetitions, shown

logger = logging.getLogger("kafka.network.Selector")

_LOGIN = "Failed authentication with /%s (%s)%s"
_CONNECTION = "Rejected connection from %s, %s%s"


class _Failure(NamedTuple):
    text: str
    host: str


class Failures:
    """``flush`` is to be called every few seconds."""

    def __init__(self, clock: Clock) -> None:
        self._failures: Repetitions[_Failure] = Repetitions(clock, _write, _write_left_out)

    def login_failed(self, host: str, reason: str) -> None:
        """A login or a handshake of a peer; ``reason`` may have words of the peer."""
        self._failures.note(_Failure(_LOGIN, host), shown(reason))

    def rejected(self, host: str, reason: str) -> None:
        """A connection that was closed as soon as it was there."""
        self._failures.note(_Failure(_CONNECTION, host), reason)

    def flush(self) -> None:
        self._failures.flush()


def _write(failure: _Failure, reason: str, count: int) -> None:
    times = f", {count} times in {WINDOW_SECONDS:.0f} seconds" if count > 1 else ""
    logger.info(failure.text, failure.host, reason, times)


def _write_left_out(count: int) -> None:
    logger.info(
        "%d further failed logins and rejected connections of more than %d addresses in a minute",
        count,
        MAX_EVENTS,
    )
