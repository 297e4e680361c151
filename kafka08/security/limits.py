"""The rates that are set for users and clients, and the one that holds for a sender: their names,
their values, and the entities that have them below /config."""

from __future__ import annotations

import enum
import re
from typing import NamedTuple

from zk import entities

PRODUCER_RATE, CONSUMER_RATE = "producer_byte_rate", "consumer_byte_rate"
PERCENTAGE, MUTATION_RATE = "request_percentage", "controller_mutation_rate"
CREATION_RATE = "connection_creation_rate"
RATES = (PRODUCER_RATE, CONSUMER_RATE, MUTATION_RATE, PERCENTAGE)
"""Of users and clients. Addresses have CREATION_RATE alone."""
_WHOLE = re.compile(r"[0-9]{1,18}(\.0*)?")
_SHARE = re.compile(r"[0-9]{1,9}(\.[0-9]+)?")


class _Default(enum.Enum):
    """Stands for all names that have no rate of their own."""

    DEFAULT = "<default>"


DEFAULT = _Default.DEFAULT
Name = str | _Default | None


class Entity(NamedTuple):
    """Users, clients, or the clients of users. None: any."""

    user: Name = None
    client: Name = None


def entity_of(path: str) -> Entity | None:
    """Of ``users/U``, ``users/U/clients/C`` or ``clients/C``; None for other paths."""
    parts = path.split("/")
    kinds, names = parts[0::2], [name_of(part) for part in parts[1::2]]
    if kinds == [entities.USERS, entities.CLIENTS] and len(names) == 2:
        return Entity(*names)
    if kinds == [entities.USERS] and names:
        return Entity(user=names[0])
    if kinds == [entities.CLIENTS] and names:
        return Entity(client=names[0])
    return None


def path_of(entity: Entity) -> str:
    """The path that ``entity_of`` takes."""
    kinds = zip((entities.USERS, entities.CLIENTS), entity, strict=True)
    return "/".join(f"{kind}/{_part(name)}" for kind, name in kinds if name is not None)


def name_of(part: str) -> Name:
    """The name that a part of a path stands for."""
    return DEFAULT if part == entities.DEFAULT else entities.desanitize(part)


def _part(name: str | _Default) -> str:
    return entities.DEFAULT if isinstance(name, _Default) else entities.sanitize(name)


def unfit(rate: str, text: str) -> str:
    """The kind of text that a rate needs, if this is not one; otherwise ""."""
    is_share = rate == PERCENTAGE
    if (_SHARE if is_share else _WHOLE).fullmatch(text) and float(text) > 0:
        return ""
    return "a number above 0" if is_share else "a whole number of at least 1"


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
