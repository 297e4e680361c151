"""Connections to other brokers, on the listener that brokers use among themselves."""

from __future__ import annotations

from typing import NamedTuple

from kafka08.common import Endpoint
from kafka08.network.channel import Connectors
from kafka08.runtime import Socket, SocketConnector
from kafka08.server.cluster_view.registrations import Registrations
from kafka08.settings.listeners import Listeners


def connectors(
    connector: SocketConnector, registrations: Registrations, listeners: Listeners
) -> Connectors:
    """How to connect to other brokers: to the addresses that the controller names, or to those of
    the listener between brokers."""
    if listeners.is_plain:
        return lambda broker_id: connector
    listener = listeners.inter_broker
    return lambda broker_id: InterBroker(connector, registrations, listener, broker_id)


class InterBroker(NamedTuple):
    """Connects to one broker, whatever address it is given. ``listener``: the listener between
    brokers, of which name and protocol count."""

    connector: SocketConnector
    registrations: Registrations
    listener: Endpoint
    broker_id: int

    def connect(self, host: str, port: int, timeout: float) -> Socket:
        """A connected socket. Raises OSError."""
        name, protocol = self.listener.listener, self.listener.protocol
        found = self.registrations.endpoint(self.broker_id, name, protocol)
        if found is None:
            raise ConnectionRefusedError(
                f"broker {self.broker_id} has registered no listener {name} with {protocol}"
            )
        return self.connector.connect(found.host, found.port, timeout)
