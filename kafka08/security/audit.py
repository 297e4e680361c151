"""The audit log: refused requests, in lines whose number is bounded.

A denial is written at once. Denials of the same principal, host, operation and resource within the
following minute are counted, and written as one line. Denials that find no room in the table are
counted together. Allowed requests are written likewise, if the logger is at DEBUG. Names are a
client's own: they are escaped and cut.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from kafka08.runtime import Clock
from kafka08.security.acls import Operation, Resource

logger = logging.getLogger("kafka.authorizer.logger")

_WINDOW_SECONDS = 60.0
_MAX_ENTRIES = 1000
_MAX_NAME = 250  # characters, so that a line has less than 1 KiB


class Event(NamedTuple):
    """A decision, repetitions of which are counted. Its texts are escaped and cut."""

    is_allowed: bool
    principal: str
    host: str
    operation: Operation
    resource: str
    request: str


class _Window:
    """Counts what happens until the next line may be written (monotonic seconds)."""

    __slots__ = ("count", "until")

    def __init__(self, until: float) -> None:
        self.until = until
        self.count = 0


class AuditLog:
    """``flush`` is to be called every few seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._windows: dict[Event, _Window] = {}
        self._left_out = 0
        self.tells_allowed = logger.isEnabledFor(logging.DEBUG)

    def note(
        self,
        is_allowed: bool,
        principal: str,
        host: str,
        operation: Operation,
        resource: Resource,
        request: str,
    ) -> None:
        """A decision about a ``request`` (the name of an API)."""
        event = Event(is_allowed, shown(principal), host, operation, shown(str(resource)), request)
        now = self._clock.monotonic()
        window = self._windows.get(event)
        if window is not None:
            window.count += 1
        elif len(self._windows) < _MAX_ENTRIES:
            self._windows[event] = _Window(now + _WINDOW_SECONDS)
            _write(event, 1)
        else:
            self._left_out += 1

    def flush(self) -> None:
        """Write what was counted in windows that are over."""
        now = self._clock.monotonic()
        for event, window in list(self._windows.items()):
            if window.until > now:
                continue
            if window.count:
                self._windows[event] = _Window(now + _WINDOW_SECONDS)
                _write(event, window.count)
            else:
                del self._windows[event]
        if self._left_out:
            logger.info(
                "%d further decisions about more than %d different principals, hosts, operations "
                "and resources in a minute",
                self._left_out,
                _MAX_ENTRIES,
            )
            self._left_out = 0


def shown(name: str) -> str:
    """``name`` on one line, without control characters, cut."""
    text = name[: _MAX_NAME + 1]
    if not text.isprintable():
        text = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
    return text if len(text) <= _MAX_NAME else f"{text[:_MAX_NAME]}..."


def _write(event: Event, count: int) -> None:
    logger.log(
        logging.DEBUG if event.is_allowed else logging.INFO,
        "Principal = %s is %s Operation = %s from host = %s on resource = %s for request = %s "
        "with resourceRefCount = %d",
        event.principal,
        "Allowed" if event.is_allowed else "Denied",
        event.operation.label,
        event.host,
        event.resource,
        event.request,
        count,
    )
