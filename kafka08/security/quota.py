"""Rates that are set for users, clients or addresses, and what is used of them, in bounded memory.

Clients choose their ids, and may take a new one for each request. An entity that has a rate by name
always has a sensor. Others share one once there are many.
"""

from __future__ import annotations

from kafka08.runtime import Clock
from kafka08.security.limits import DEFAULT, Entity, Limit, QuotaLimits
from kafka08.security.rates import Bucket

SECONDS = 10.0
"""For so long an unused rate is saved, unless a setting says otherwise."""

# Sensors of users, of clients, and of clients of users: this many of each.
MOST = 10_000
_SWEEP_SECONDS = 60.0


class Quota:
    """``default_rate`` (units a second) holds for each client for which no other rate does."""

    def __init__(
        self, clock: Clock, default_rate: float | None = None, seconds: float = SECONDS
    ) -> None:
        self.limits = QuotaLimits(default_rate)
        self.sensors = Sensors(clock, seconds)

    def use(self, user: str, client: str, amount: float) -> float:
        """Count units of a sender; the seconds until it owes nothing."""
        limit = self.limits.find(user, client)
        return 0.0 if limit is None else self.sensors.use(limit, amount)


class Sensors:
    """``seconds``: the time for which an unused rate is saved."""

    def __init__(self, clock: Clock, seconds: float, most: int = MOST) -> None:
        self._clock = clock
        self._seconds = seconds
        self._most = most
        # By whether the owner has a user, and a client.
        self._kinds: dict[tuple[bool, bool], dict[Entity, Bucket]] = {}
        self._sweep_at = 0.0

    def __len__(self) -> int:
        return sum(map(len, self._kinds.values()))

    def use(self, limit: Limit, amount: float) -> float:
        """Count ``amount`` units; the seconds until the owner owes nothing."""
        now = self._clock.monotonic()
        if now >= self._sweep_at:
            self._sweep(now)
        owner, rate, is_own = limit
        kind = self._kinds.setdefault((owner.user is None, owner.client is None), {})
        bucket = kind.get(owner)
        if bucket is None:
            if len(kind) >= self._most and not is_own:
                owner = _shared(owner)
                bucket = kind.get(owner)
            if bucket is None:
                bucket = kind[owner] = Bucket(rate, self._seconds, now)
        return bucket.use(amount, rate, self._seconds, now)

    def _sweep(self, now: float) -> None:
        """Drop the sensors that have not been used for long."""
        self._sweep_at = now + _SWEEP_SECONDS
        for kind in self._kinds.values():
            for owner in [owner for owner, bucket in kind.items() if bucket.is_as_new(now)]:
                del kind[owner]


def _shared(owner: Entity) -> Entity:
    """The owner of the sensor that is shared. Clients of one user do not take from another's."""
    if owner.user is None or owner.client is None:
        return Entity(*(None if name is None else DEFAULT for name in owner))
    return Entity(owner.user, DEFAULT)
