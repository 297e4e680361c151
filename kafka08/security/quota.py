"""Rates that are set for users, clients or addresses, and what is used of them."""

from __future__ import annotations

from kafka08.runtime import Clock
from kafka08.security.limits import QuotaLimits
from kafka08.security.sensors import Sensors

SECONDS = 10.0
"""For so long an unused rate is saved, unless a setting says otherwise."""


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
