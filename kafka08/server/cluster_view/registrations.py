"""The registrations of the live brokers, read whenever one comes or goes.

Clients get the endpoints of the listener that they came in on: UpdateMetadata has only one
host and port for each broker, so the endpoints are taken from here. Brokers connect to each other
on the listener that they use among themselves (``connectors``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import PLAINTEXT, Broker, Endpoint
from kafka08.network.channel import Connectors
from kafka08.network.peer import current_peer
from kafka08.runtime import Runtime, Socket, SocketConnector
from kafka08.server.cluster_view.watched_children import WatchedChildren
from kafka08.settings.listeners import Listeners
from zk import znodes
from zk.client import ZkClient
from zk.endpoints import NO_PORT
from zk.errors import ZkError
from zk.registry import read_registration, registrations
from zk.znodes import BrokerRegistration, MalformedNodeError

logger = logging.getLogger("kafka.server.KafkaServer")

Registered = Mapping[int, "BrokerRegistration | None"]


class Registrations(WatchedChildren):
    """Follows /brokers/ids. ``tell`` gets the registrations after each reading (None for malformed
    ones), and may raise ZkError."""

    def __init__(
        self, runtime: Runtime, zk: ZkClient, tell: Callable[[Registered], None] | None = None
    ) -> None:
        super().__init__(
            runtime,
            zk,
            znodes.BROKER_IDS,
            "original-brokers",
            self._read,
            logger,
            "Cannot read the registrations of brokers",
        )
        self._zk = zk
        self._tell = tell
        self._live: Registered = {}

    def endpoint(self, broker_id: int, listener: str, protocol: str) -> Endpoint | None:
        """Where brokers connect to a listener of a broker; reads the node of one that is new.

        A broker of 0.8.2.2 has one listener, which serves where the protocol is its own.
        """
        found = self._live.get(broker_id)
        if found is None:
            try:
                found = read_registration(self._zk, broker_id)
            except (ZkError, MalformedNodeError) as error:
                logger.warning("Cannot read the registration of broker %d: %s", broker_id, error)
        if found is None:
            return None
        if protocol == PLAINTEXT and found.endpoint(listener) is None:
            listed = [each.listener for each in found.all_endpoints]
            listener = PLAINTEXT if listed == [PLAINTEXT] else listener
        endpoint = found.endpoint(listener)
        return endpoint if endpoint is not None and endpoint.protocol == protocol else None

    def brokers(self, live: Mapping[int, Broker], listener: str) -> dict[int, Broker]:
        """The ``live`` brokers with the addresses of a listener; without those that do not have
        it."""
        found = {}
        for broker in live.values():
            registration = self._live.get(broker.id)
            if registration is None:
                # Not read yet. The controller sends the host and port of a plain listener.
                if listener == PLAINTEXT and broker.port != NO_PORT:
                    found[broker.id] = broker
            elif (endpoint := registration.endpoint(listener)) is not None:
                found[broker.id] = Broker(broker.id, endpoint.host, endpoint.port)
        return found

    def rack_of(self, broker_id: int) -> str | None:
        """As it was when a broker last came or went."""
        registration = self._live.get(broker_id)
        return None if registration is None else registration.location.rack

    def _read(self, _: Sequence[str]) -> None:
        self._live = registrations(self._zk)
        if self._tell is not None:
            self._tell(self._live)


class Reachable:
    """The live brokers with their addresses for the sender of the current request: by
    ``registrations``, or, where all listeners are those of 0.8, as the controller sent them."""

    def __init__(self, cache: MetadataCache, registrations: Registrations | None = None) -> None:
        self._cache = cache
        self._registrations = registrations

    def brokers(self) -> Mapping[int, Broker]:
        if self._registrations is None:
            return self._cache.plain_brokers
        peer = current_peer.get()
        listener = PLAINTEXT if peer is None else peer.listener
        return self._registrations.brokers(self._cache.brokers, listener)


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
