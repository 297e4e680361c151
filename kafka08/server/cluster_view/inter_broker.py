"""Connections to other brokers, on the listener that brokers use among themselves."""

from __future__ import annotations

from typing import Any

from kafka08.common import Endpoint
from kafka08.network.channel import Connectors
from kafka08.runtime import SocketConnector
from kafka08.server.cluster_view.registrations import Registrations
from kafka08.settings.listeners import Listeners


def connectors(
    connector: SocketConnector, registrations: Registrations, listeners: Listeners
) -> Connectors:
    """How to connect to other brokers: to the addresses that the controller names, or to those of
    the listener between brokers."""
    if listeners.is_plain:
        return lambda broker_id: connector
    return InterBroker(connector, registrations, listeners.inter_broker).to


class InterBroker:
    """``listener``: the listener between brokers, of which name and protocol count."""

    def __init__(
        self, connector: SocketConnector, registrations: Registrations, listener: Endpoint
    ) -> None:
        self._connector = connector
        self._registrations = registrations
        self._listener = listener

    def to(self, broker_id: int) -> SocketConnector:
        """Connects to that broker, whatever address it is given."""
        return _ToBroker(self, broker_id)

    def connect(self, broker_id: int, timeout: float) -> Any:
        """A connected socket. Raises OSError."""
        listener, protocol = self._listener.listener, self._listener.protocol
        found = self._registrations.endpoint(broker_id, listener, protocol)
        if found is None:
            raise ConnectionRefusedError(
                f"broker {broker_id} has registered no listener {listener} with {protocol}"
            )
        return self._connector.connect(found.host, found.port, timeout)


class _ToBroker:
    def __init__(self, brokers: InterBroker, broker_id: int) -> None:
        self._brokers = brokers
        self._broker_id = broker_id

    def connect(self, host: str, port: int, timeout: float) -> Any:
        return self._brokers.connect(self._broker_id, timeout)
