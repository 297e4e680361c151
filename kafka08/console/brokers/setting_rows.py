"""The settings of a broker as rows of a page and as fields of a form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka08.console.topics.setting_kinds import (
    choices_of,
    default_text,
    doc_of,
    plain_of,
    taken,
    type_of,
    unit_of,
)
from kafka08.protocol import admin_schemas as a
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.dynamic import DynamicBrokerSettings
from kafka08.settings.settings import Setting, is_secret

BROKER, CLUSTER = SCOPES = ("broker", "cluster")
_SOURCES = {
    a.DYNAMIC_BROKER_CONFIG: "this broker",
    a.DYNAMIC_DEFAULT_BROKER_CONFIG: "all brokers",
    a.STATIC_BROKER_CONFIG: "server.properties",
    a.DEFAULT_CONFIG: "built-in",
}
_SCOPE_OF = {a.DYNAMIC_BROKER_CONFIG: BROKER, a.DYNAMIC_DEFAULT_BROKER_CONFIG: CLUSTER}
_SETTINGS = {
    each.key: each
    for kind in (BrokerConfig, DynamicBrokerSettings)
    for each in kind.settings().values()
}

Changes = dict[str, dict[str, str | None]]
"""By scope, this broker or the cluster: the new values by name, None for one that is removed."""


class BrokerSettingRow(NamedTuple):
    """``value``: the one that holds, None if it is hidden or there is none; ``source`` says where
    it is from. ``broker_value`` and ``cluster_value``: those that were given to this broker and to
    all while they run, which only one with ``is_dynamic`` can have. ``default``: the built-in one,
    None if it is not known or follows from other settings, which ``default_plain`` names then.
    Otherwise the ``plain`` texts are numbers in units, "" if they say no more than the number."""

    name: str
    type: str
    unit: str
    value: str | None
    plain: str
    source: str
    broker_value: str | None
    cluster_value: str | None
    default: str | None
    default_plain: str
    is_dynamic: bool
    is_hidden: bool
    choices: tuple[str, ...]
    doc: str

    def own(self, scope: str) -> str | None:
        """The value that was given in a scope."""
        return self.broker_value if scope == BROKER else self.cluster_value

    def field(self, scope: str) -> str:
        """The name of its field in the form."""
        return f"{scope}.{self.name}"

    @property
    def is_field(self) -> bool:
        """Whether the form can change it."""
        return self.is_dynamic and not self.is_hidden


def setting_rows(entries: Iterable[a.ConfigEntry]) -> list[BrokerSettingRow]:
    """By name. ``entries``: as the broker told them, with synonyms."""
    return sorted(map(_row, entries), key=lambda row: row.name)


def _row(entry: a.ConfigEntry) -> BrokerSettingRow:
    name, known = entry.name, _SETTINGS.get(entry.name)
    # A value that must not be shown is not, whatever the broker told.
    hidden = entry.is_sensitive or is_secret(name) or (known is not None and known.kind.secret)
    value = None if hidden else entry.value
    own: dict[str, str | None] = {}
    for each in entry.synonyms:
        if each.source in _SCOPE_OF and not hidden:
            own[_SCOPE_OF[each.source]] = each.value
    default = None if known is None or hidden else default_text(known)
    choices = choices_of(name, known)
    return BrokerSettingRow(
        name,
        "secret" if hidden else type_of(known, choices),
        unit_of(name, known),
        value,
        plain_of(name, known, value),
        _SOURCES.get(entry.source, "unknown"),
        own.get(BROKER),
        own.get(CLUSTER),
        default,
        plain_of(name, known, default) or (_derived(known) if default is None else ""),
        not entry.read_only,
        hidden,
        choices,
        doc_of(known) if known else "This console does not know the setting.",
    )


def _derived(known: Setting | None) -> str:
    """The settings that a default follows from, "" if it does not."""
    return (known.default_text or "").replace("`", "") if known else ""


def changes(form: Mapping[str, str], rows: Iterable[BrokerSettingRow]) -> Changes:
    """The changes that a form makes; an empty field removes a value. Raises FieldError."""
    found: Changes = {BROKER: {}, CLUSTER: {}}
    for row in rows:
        for scope in SCOPES if row.is_field else ():
            field = row.field(scope)
            before = (row.own(scope) or "").strip()
            text = form.get(field, before).strip()
            if text == before:
                continue
            value = taken(row.name, _SETTINGS.get(row.name), text, field) if text else None
            if value != row.own(scope):
                found[scope][row.name] = value
    return found
