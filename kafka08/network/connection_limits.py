"""How many connections there may be, and how fast new ones may come: of all, of a listener, of an
address (kafka.network.ConnectionQuotas).

Over the limits of all and of a listener the acceptor waits. Over those of an address the connection
is closed as soon as it is there. Does not know sockets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from kafka08.network.hosts import first_address
from kafka08.runtime import Clock
from kafka08.security.limits import DEFAULT, Entity
from kafka08.security.quota import SECONDS, Quota
from kafka08.security.rates import Bucket

UNLIMITED = 2**31 - 1
# How often an acceptor checks whether a connection has ended.
LOOK_SECONDS = 0.1


class Most(NamedTuple):
    """A limit of connections, and one of new connections a second."""

    connections: int = UNLIMITED
    per_second: float = UNLIMITED


NO_LIMIT = Most()


class _Arrivals:
    """The connections of all or of a listener."""

    def __init__(self, most: Most, seconds: float, now: float) -> None:
        self._most = most
        self._seconds = seconds
        self._bucket = Bucket(most.per_second, seconds, now)
        self._wait_until = now
        self.count = 0

    @property
    def is_over(self) -> bool:
        return self.count > self._most.connections

    def add(self, now: float) -> None:
        self.count += 1
        if self._most.per_second < UNLIMITED:
            owed = self._bucket.use(1, self._most.per_second, self._seconds, now)
            self._wait_until = now + owed

    def wait(self, now: float) -> float:
        """Seconds until another connection may be accepted, as far as is known."""
        if self.count >= self._most.connections:
            return LOOK_SECONDS
        return max(self._wait_until - now, 0.0)


class ConnectionLimits:
    """``of_listeners``: by name, for those that have limits of their own. ``of_addresses``: numbers
    of connections by address or host name, which is resolved here. ``exempt`` is the listener
    of brokers: it does not wait for ``of_all``.
    ``seconds``: for so long an unused rate is saved."""

    def __init__(
        self,
        clock: Clock,
        *,
        of_all: Most = NO_LIMIT,
        of_listeners: Mapping[str, Most] | None = None,
        of_address: int = UNLIMITED,
        of_addresses: Mapping[str, int] | None = None,
        exempt: str = "",
        seconds: float = SECONDS,
    ) -> None:
        self._clock = clock
        now = clock.monotonic()
        self._all = _Arrivals(of_all, seconds, now)
        self._listeners = {
            name: _Arrivals(most, seconds, now) for name, most in (of_listeners or {}).items()
        }
        self._of_address = of_address
        self._of_addresses = {
            first_address(name)[1][0]: limit for name, limit in (of_addresses or {}).items()
        }
        self.exempt = exempt
        self._rates = Quota(clock, seconds=seconds)
        self._by_address: Counter[str] = Counter()

    def set_rate(self, address: str | None, rate: float | None) -> None:
        """New connections a second of an address, or without one of each that has no rate of its
        own; None: no rate."""
        name = DEFAULT if address is None else address
        self._rates.limits.set(Entity(client=name), rate)

    def wait(self, listener: str) -> float:
        """Seconds for which the acceptor of ``listener`` has to wait, and then ask again."""
        now = self._clock.monotonic()
        own = self._listeners.get(listener)
        wait = 0.0 if own is None else own.wait(now)
        return wait if listener == self.exempt else max(wait, self._all.wait(now))

    def rejection(self, address: str) -> str:
        """The reason for which an address may have no further connection now; empty without."""
        if self._by_address[address] >= self._of_addresses.get(address, self._of_address):
            return "too many"
        if self._rates.limits:
            if self._rates.use("", address, 0):
                return "too fast"
            self._rates.use("", address, 1)
        return ""

    def add(self, address: str, listener: str) -> bool:
        """A new connection. Whether another one has to make room for it."""
        now = self._clock.monotonic()
        self._by_address[address] += 1
        self._all.add(now)
        own = self._listeners.get(listener)
        if own is not None:
            own.add(now)
        return listener == self.exempt and self._all.is_over

    def discard(self, address: str, listener: str) -> None:
        """A connection has ended."""
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
        self._all.count -= 1
        own = self._listeners.get(listener)
        if own is not None:
            own.count -= 1
