"""The rates that are set for users and clients, and the one that holds for a sender."""

from __future__ import annotations

import enum
from typing import NamedTuple


class _Default(enum.Enum):
    """Stands for all names that have no rate of their own."""

    DEFAULT = "<default>"


DEFAULT = _Default.DEFAULT
Name = str | _Default | None


class Entity(NamedTuple):
    """Users, clients, or the clients of users. None: any."""

    user: Name = None
    client: Name = None


class Limit(NamedTuple):
    """``owner`` shares the rate (units a second). ``is_own``: it was set for the owner by name."""

    owner: Entity
    rate: float
    is_own: bool


class QuotaLimits:
    """``default_rate`` holds for each client id for which no other rate does."""

    def __init__(self, default_rate: float | None = None) -> None:
        self._default_rate = default_rate
        self._rates: dict[Entity, float] = {}

    def __bool__(self) -> bool:
        return bool(self._rates) or self._default_rate is not None

    def set(self, entity: Entity, rate: float | None) -> None:
        """None: the entity has no rate of its own."""
        if rate is None:
            self._rates.pop(entity, None)
        else:
            self._rates[entity] = rate

    def find(self, user: str, client: str) -> Limit | None:
        """The most specific rate, in Kafka's order."""
        for entity in (
            (user, client),
            (user, DEFAULT),
            (user, None),
            (DEFAULT, client),
            (DEFAULT, DEFAULT),
            (DEFAULT, None),
            (None, client),
            (None, DEFAULT),
        ):
            rate = self._rates.get(entity)  # type: ignore[call-overload]
            if rate is not None:
                has_user, has_client = entity[0] is not None, entity[1] is not None
                owner = Entity(user if has_user else None, client if has_client else None)
                return Limit(owner, rate, entity == owner)
        if self._default_rate is not None:
            return Limit(Entity(None, client), self._default_rate, False)
        return None
