"""Where promises are tried, and what they have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pytest

from kafka08.runtime import Queue, Runtime
from zk.client import Stat, Watch, ZkClient

SECONDS = 20.0
"""The longest wait for an event."""

Told = tuple[str, str | None]


class Ground(Protocol):
    """Where promises are tried. ``runtime``: what the clients run on."""

    runtime: Runtime

    def client(self) -> ZkClient:
        """A new session."""

    def other(self) -> ZkClient:
        """A new session of another process, of which faults of the first one do not matter."""

    def expire(self, client: ZkClient) -> None:
        """End its session without its doing."""

    def break_connection(self, client: ZkClient) -> None: ...

    def lose_answer(self, client: ZkClient, call: str) -> None:
        """Have the library's next ``call`` carried out, and its answer lost."""


Promise = Callable[[Ground], None]
PROMISES: list[Promise] = []


def promise(function: Promise) -> Promise:
    PROMISES.append(function)
    return function


def teller(told: Queue[Told]) -> Watch:
    """A watch of its own; sets of watches take each one once."""
    return lambda event: told.put((event.type, event.path))


def nothing_else(client: ZkClient, told: Queue[Told]) -> None:
    """No event came before one that is caused now."""
    client.exists("/fence", teller(told))
    client.create("/fence")
    assert told.get(timeout=SECONDS) == ("CREATED", "/fence")
    client.delete("/fence")


def stat_of(client: ZkClient, path: str) -> Stat:
    found = client.exists(path)
    assert found is not None
    return found


def refused(error: type[Exception], call: Callable[[], object]) -> Any:
    with pytest.raises(error) as caught:
        call()
    return caught.value
