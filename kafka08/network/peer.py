"""The sender of requests: who it is, and what became of its requests."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, NamedTuple

from kafka08.common import ANONYMOUS, PLAINTEXT
from kafka08.metrics.requests import RequestMeter

_SHOWN: Final = 100  # characters of what a peer says of itself

# A request whose answer is still to be sent: who counts it; seconds before, in and of waiting while
# it was handled; when that was over.
Unsent = tuple[RequestMeter, float, float, float, float]


class Session(NamedTuple):
    """The login of a peer."""

    mechanism: str
    user: str


class Peer:
    """The sender of the current request, at ``address`` (host:port). ``has_ended`` is set when it
    has closed its connection, or its half of it. Code that waits on its behalf sets ``wake``,
    which is called then.

    ``listener`` is the name of the listener that it came in on. ``principal`` is who it is: a TLS
    handshake or a login sets it. ``session`` is its login, if it has logged in. ``software`` is the
    name and version of its program, None until it asks for API versions. ``is_admitted`` is false
    until handshake and login are over; ``admitted`` is called then. Code that serves a request sets
    ``mute_seconds`` to have no further request read for so long. ``read_at``: when the request
    arrived; ``begun_at``: when the work on it began; ``waited``: the seconds it has waited for
    others since then; ``unsent`` is for those that the dispatcher has answered.
    """

    __slots__ = (
        "address", "admitted", "begun_at", "has_ended", "is_admitted", "listener", "mute_seconds",
        "principal", "read_at", "session", "software", "unsent", "waited", "wake",
    )  # fmt: skip

    def __init__(
        self, address: str = "", principal: str = ANONYMOUS, listener: str = PLAINTEXT
    ) -> None:
        self.address = address
        self.principal = principal
        self.listener = listener
        self.session: Session | None = None
        self.software: tuple[str, str] | None = None
        self.is_admitted = True
        self.admitted: Callable[[], object] | None = None
        self.has_ended = False
        self.mute_seconds = 0.0
        self.wake: Callable[[], object] | None = None
        self.read_at = 0.0
        self.begun_at = 0.0
        self.waited = 0.0
        self.unsent: list[Unsent] = []

    @property
    def host(self) -> str:
        """The address without the port; an IPv4 address also if the socket is one for both
        families."""
        return self.address.rpartition(":")[0]

    def admit(self, principal: str) -> None:
        """Let it send requests from now on, as ``principal``."""
        self.principal = principal
        self.is_admitted = True
        if self.admitted is not None:
            self.admitted()

    def introduce(self, name: str, version: str) -> None:
        """It has asked for API versions. Both texts are empty in requests that do not have them."""
        self.software = name[:_SHOWN], version[:_SHOWN]

    def end(self) -> None:
        self.has_ended = True
        if self.wake is not None:
            self.wake()


# The peer of the greenlet's connection; unset in other greenlets.
current_peer: ContextVar[Peer | None] = ContextVar("current_peer", default=None)


def record_sent(unsent: list[Unsent], began: float) -> None:
    """The answers were sent, from ``began`` until now; clears the list."""
    sending = time.monotonic() - began
    for meter, queued, local, remote, over in unsent:
        meter.record(queued, local, remote, began - over, sending)
    unsent.clear()
