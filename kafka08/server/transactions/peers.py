"""Requests from this broker to others about transactions. Connections are kept for the next one."""

from __future__ import annotations

from typing import Any

from kafka08.common import Broker
from kafka08.network.channel import BrokerConnection, Channel, Connect, Connectors

_KEPT = 4  # idle connections to a broker


class Peers:
    """``connectors``: how brokers are reached, ``channel``: what makes connections to them."""

    def __init__(
        self,
        connectors: Connectors,
        client_id: str,
        timeout_ms: int,
        channel: Connect = Channel,
    ) -> None:
        self._connectors = connectors
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._channel = channel
        self._idle: dict[Broker, list[BrokerConnection]] = {}
        self._used: set[BrokerConnection] = set()
        self._is_closed = False

    def call(self, broker: Broker, request: object, version: int) -> Any:
        """The answer of a broker. Raises OSError and ProtocolError."""
        if self._is_closed:
            raise ConnectionAbortedError("this broker is stopping")
        idle = self._idle.get(broker)
        connection = idle.pop() if idle else self._made(broker)
        self._used.add(connection)
        try:
            answer = connection.call(request, version)
        except BaseException:
            self._drop(broker)  # those that are idle have mostly ended too
            raise
        finally:
            self._used.discard(connection)
        kept = self._idle.setdefault(broker, [])
        if len(kept) < _KEPT and not self._is_closed:
            kept.append(connection)
        else:
            connection.close()
        return answer

    def _made(self, broker: Broker) -> BrokerConnection:
        return self._channel(
            broker.host,
            broker.port,
            client_id=self._client_id,
            timeout_ms=self._timeout_ms,
            runtime=self._connectors(broker.id),
        )

    def _drop(self, broker: Broker) -> None:
        for connection in self._idle.pop(broker, ()):
            connection.close()

    def close(self) -> None:
        """Requests under way fail."""
        self._is_closed = True
        for connection in self._used:
            connection.abort()
        for broker in list(self._idle):
            self._drop(broker)
