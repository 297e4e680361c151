"""Quotas: whom they hold, and their rates, as people read and write them. Pure."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping
from typing import NamedTuple

from kafka08.console.forms import FieldError
from kafka08.console.shown import number
from kafka08.console.topics import units
from kafka08.security.limits import (
    CONSUMER_RATE,
    CREATION_RATE,
    DEFAULT,
    MUTATION_RATE,
    PERCENTAGE,
    PRODUCER_RATE,
    RATES,
    Entity,
    Name,
    entity_of,
    name_of,
    path_of,
    unfit,
)
from zk import entities

ALL_RATES = (*RATES, CREATION_RATE)
TITLES = {
    PRODUCER_RATE: "Produce",
    CONSUMER_RATE: "Consume",
    MUTATION_RATE: "Partitions made or deleted",
    PERCENTAGE: "Time of a broker",
    CREATION_RATE: "New connections",
}
_UNITS = {
    PRODUCER_RATE: "/s",
    CONSUMER_RATE: "/s",
    MUTATION_RATE: " partitions/s",
    PERCENTAGE: " %",
    CREATION_RATE: " connections/s",
}
HINTS = {
    PRODUCER_RATE: "bytes a second: 512 KB/s, 10 MiB/s, or a number",
    CONSUMER_RATE: "bytes a second: 512 KB/s, 10 MiB/s, or a number",
    MUTATION_RATE: "partitions a second that topics are made, grown or deleted with",
    PERCENTAGE: "per cent of the time in which a broker handles requests: 100 is all of it",
    CREATION_RATE: "new connections a second",
}
_BYTES = (PRODUCER_RATE, CONSUMER_RATE)
_LONGEST = 255
NOBODY, EACH, NAMED = "", "default", "named"
"""The choices of a form: not a part of whom the quotas hold, all without their own, or one."""


class QuotaHolder(NamedTuple):
    """Whom quotas hold: a user, a client id, a client id of a user, or an address. Each may be the
    default: all that have none of their own."""

    entity: Entity
    address: Name = None

    @property
    def path(self) -> str:
        """Below /config."""
        if self.address is None:
            return path_of(self.entity)
        name = entities.DEFAULT if self.address is DEFAULT else self.address
        return f"{entities.IPS}/{name}"

    @property
    def rates(self) -> tuple[str, ...]:
        """The names of those that it can have."""
        return RATES if self.address is None else (CREATION_RATE,)

    @property
    def text(self) -> str:
        parts = (("user", self.entity.user), ("client id", self.entity.client))
        named = (*parts, ("address", self.address))
        return ", ".join(_part(kind, name) for kind, name in named if name is not None)

    @property
    def fields(self) -> dict[str, str]:
        """Of the form, or of a link to it."""
        found = {}
        for field, name in zip(FIELDS, (*self.entity, self.address), strict=True):
            if name is not None:
                found[f"{field}_is"] = EACH if name is DEFAULT else NAMED
                found |= {field: name} if isinstance(name, str) else {}
        return found


FIELDS = ("user", "client_id", "ip")


def is_name(text: str) -> bool:
    """Whether it can be that of a user or client id, and people can read it."""
    return text.isprintable() and text not in ("", ".", "..") and len(text) <= _LONGEST


def _part(kind: str, name: Name) -> str:
    return f"every other {kind}" if name is DEFAULT else f"{kind} {name}"


def holder_of(path: str) -> QuotaHolder | None:
    """Of an entity below /config; None for one that has no quotas."""
    kind, _, name = path.partition("/")
    if kind == entities.IPS:
        return QuotaHolder(Entity(), name_of(name))
    entity = entity_of(path)
    return None if entity is None else QuotaHolder(entity)


def entered_holder(fields: Mapping[str, str]) -> QuotaHolder:
    """Whom a form is about. Raises FieldError."""
    user, client, address = (_entered_name(fields, field) for field in FIELDS)
    if address is not None and (user is not None or client is not None):
        raise FieldError("ip", "an address has quotas of its own, not those of a user or client")
    if user is client is address is None:
        raise FieldError("user", "choose whom the quotas hold: a user, a client id or an address")
    if isinstance(address, str):
        try:
            address = str(ipaddress.ip_address(address))
        except ValueError:
            raise FieldError("ip", f"{address!r} is not an address like 10.0.0.1") from None
    return QuotaHolder(Entity(user, client), address)


def _entered_name(fields: Mapping[str, str], field: str) -> Name:
    choice, name = fields.get(f"{field}_is", NOBODY), fields.get(field, "").strip()
    if choice not in (NOBODY, EACH, NAMED):
        raise FieldError(field, f"{choice!r} is not one of {EACH}, {NAMED}")
    if choice == NAMED and not name:
        raise FieldError(field, "the name is missing")
    if choice != NAMED and name:
        raise FieldError(field, "choose the one of this name, or leave the name empty")
    if name and not is_name(name):
        raise FieldError(field, "no node can have this name, or nobody could read it")
    return DEFAULT if choice == EACH else name or None


def rate_text(rate: str, text: str) -> str:
    """A stored rate in plain words."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        return f"{text!r}, which brokers ignore"
    if rate in _BYTES and value.is_integer():
        return f"{units.in_units(units.SIZE, int(value))}{_UNITS[rate]}"
    shown = number(int(value)) if value.is_integer() else f"{value:g}"
    return f"{shown}{' bytes' if rate in _BYTES else ''}{_UNITS[rate]}"


def entered_rate(rate: str, text: str) -> str:
    """A rate as it is stored; "" for none. Raises FieldError."""
    words = text.strip().removesuffix(_UNITS[rate].strip()).strip()
    if rate in _BYTES and words:
        try:
            words = str(units.counted(units.SIZE, words))
        except ValueError as error:
            raise FieldError(rate, str(error)) from None
    if words and (expected := unfit(rate, words)):
        raise FieldError(rate, f"{text.strip()!r} is not {expected}")
    return words
