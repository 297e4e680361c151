"""The metrics of consumers and producers for prometheus-client.

``REGISTRY.register(ClientCollector(producer, consumer))`` has an application's own registry show
them. One collector serves all clients of a process, because a family may appear only once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kafka08.metrics.exposition import family
from kafka08.metrics.registry import HISTOGRAM, TIMER, Metric, Series

if TYPE_CHECKING:
    from kafka08.metrics.exposition import Family


class Client(Protocol):
    """A client gives its series as they are now."""

    def series(self) -> Iterable[Series]: ...


@dataclass(slots=True)
class Count:
    """The value of a counter that is added up when it is read."""

    count: float


class ClientCollector:
    """A collector of prometheus-client. Clients may come and go; nothing is counted here."""

    def __init__(self, *clients: Client) -> None:
        self._clients = list(clients)

    def add(self, client: Client) -> None:
        self._clients.append(client)

    def remove(self, client: Client) -> None:
        """For a client that was closed; its series end."""
        self._clients.remove(client)

    def describe(self) -> list[Family]:
        """No names: registering must not read the clients."""
        return []

    def collect(self) -> Iterator[Family]:
        """The families of prometheus-client. Distributions without a value are left out."""
        found: dict[Metric, list[Series]] = {}
        for client in list(self._clients):
            for each in client.series():
                if _has_data(each):
                    found.setdefault(each.metric, []).append(each)
        for metric, pieces in found.items():
            yield family(metric, pieces)


def _has_data(each: Series) -> bool:
    if each.metric.kind == TIMER:
        return bool(each.value.times.count)
    return each.metric.kind != HISTOGRAM or bool(each.value.count)
