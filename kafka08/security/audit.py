"""The audit log: refused requests, in lines whose number is bounded (``repetitions``).

The same principal, host, operation and resource get one line a minute. Allowed requests are written
likewise, if the logger is at DEBUG.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from kafka08.runtime import Clock
from kafka08.security.acls import Operation, Resource
from kafka08.security.repetitions import MAX_EVENTS, Repetitions, shown

logger = logging.getLogger("kafka.authorizer.logger")


class AuditEvent(NamedTuple):
    """A decision, repetitions of which are counted. Its texts are escaped and cut."""

    is_allowed: bool
    principal: str
    host: str
    operation: Operation
    resource: str
    request: str


class AuditLog:
    """``flush`` is to be called every few seconds."""

    def __init__(self, clock: Clock) -> None:
        self._events: Repetitions[AuditEvent] = Repetitions(clock, _write, _write_left_out)
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
        texts = shown(principal), host, operation, shown(str(resource)), request
        self._events.note(AuditEvent(is_allowed, *texts))

    def flush(self) -> None:
        self._events.flush()


def _write(event: AuditEvent, _: str, count: int) -> None:
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


def _write_left_out(count: int) -> None:
    logger.info(
        "%d further decisions about more than %d different principals, hosts, operations "
        "and resources in a minute",
        count,
        MAX_EVENTS,
    )
