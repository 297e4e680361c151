"""Connections whose handshake or login is not over: how long, and how many from one address."""

from __future__ import annotations

import time

from kafka08.network.connection import Connection

# A handshake and a login together may take this long.
SECONDS = 10
# Over this number from one address the oldest makes room.
MOST_PER_HOST = 200


class HalfOpen:
    """Connections leave when their peer is admitted or they end."""

    def __init__(self, seconds: float = SECONDS, most_per_host: int = MOST_PER_HOST) -> None:
        self._seconds = seconds
        self._most = most_per_host
        self._by_host: dict[str, dict[Connection, float]] = {}  # until when, the oldest first

    def __len__(self) -> int:
        return sum(map(len, self._by_host.values()))

    def add(self, connection: Connection) -> None:
        """A new connection. May shut the oldest one of its address down."""
        host = connection.peer.host
        known = self._by_host.setdefault(host, {})
        known[connection] = time.monotonic() + self._seconds
        if len(known) > self._most:
            self._forget_admitted(host)
        if len(known) > self._most:
            oldest = next(iter(known))
            del known[oldest]
            oldest.shutdown()

    def discard(self, connection: Connection) -> None:
        """The connection has ended."""
        known = self._by_host.get(connection.peer.host)
        if known is not None and known.pop(connection, None) is not None and not known:
            del self._by_host[connection.peer.host]

    def check(self) -> list[Connection]:
        """Shut those down that take too long; called every second. Returns them."""
        now = time.monotonic()
        late = []
        for host in list(self._by_host):
            self._forget_admitted(host)
            for connection, until in list(self._by_host.get(host, {}).items()):
                if until > now:
                    break
                late.append(connection)
                self.discard(connection)
                connection.shutdown()
        return late

    def _forget_admitted(self, host: str) -> None:
        for connection in list(self._by_host[host]):
            if connection.peer.is_admitted:
                self.discard(connection)
