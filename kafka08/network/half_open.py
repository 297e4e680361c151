"""Connections whose handshake or login is not over: how long, and how many, from one address and
from all."""

from __future__ import annotations

import time

from kafka08.network.connection import Connection

# A handshake and a login together may take this long.
SECONDS = 10
# Over this number from one address the oldest makes room.
MOST_PER_HOST = 200
# Over this number from all addresses the oldest of the address with the most makes room.
MOST = 2000


class HalfOpen:
    """Connections leave when their peer is admitted or they end."""

    def __init__(
        self,
        seconds: float = SECONDS,
        most_per_host: int = MOST_PER_HOST,
        most: int = MOST,
    ) -> None:
        self._seconds = seconds
        self._most_per_host = most_per_host
        self._most = most
        self._by_host: dict[str, dict[Connection, float]] = {}  # until when, the oldest first
        self._count = 0
        # The addresses by their numbers of connections, of which ``_largest`` may be too high.
        self._hosts: dict[int, dict[str, None]] = {}
        self._largest = 0

    def __len__(self) -> int:
        return self._count

    def add(self, connection: Connection) -> None:
        """A new connection. May shut the oldest one of its or another address down."""
        host = connection.peer.host
        known = self._by_host.setdefault(host, {})
        known[connection] = time.monotonic() + self._seconds
        self._count += 1
        self._rank(host, len(known) - 1, len(known))
        if len(known) > self._most_per_host:
            self._make_room(host)
        if self._count > self._most:
            self._make_room(self._with_the_most())

    def _rank(self, host: str, before: int, now: int) -> None:
        """The number of connections of an address has changed."""
        if before:
            self._hosts[before].pop(host)
            if not self._hosts[before]:
                del self._hosts[before]
        if now:
            self._hosts.setdefault(now, {})[host] = None
            self._largest = max(self._largest, now)

    def _with_the_most(self) -> str:
        while self._largest not in self._hosts:
            self._largest -= 1
        return next(iter(self._hosts[self._largest]))

    def _make_room(self, host: str) -> None:
        if not self._forget_admitted(host):
            oldest = next(iter(self._by_host[host]))
            self.discard(oldest)
            oldest.shutdown()

    def discard(self, connection: Connection) -> None:
        """The connection has ended."""
        host = connection.peer.host
        known = self._by_host.get(host)
        if known is not None and known.pop(connection, None) is not None:
            self._count -= 1
            self._rank(host, len(known) + 1, len(known))
            if not known:
                del self._by_host[host]

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

    def _forget_admitted(self, host: str) -> bool:
        """Whether there was one."""
        admitted = [each for each in self._by_host[host] if each.peer.is_admitted]
        for connection in admitted:
            self.discard(connection)
        return bool(admitted)
