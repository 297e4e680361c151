"""kafka-configs --bootstrap-server: settings of topics and brokers, and SCRAM credentials of users,
as brokers report them.

The quotas of users are changed in ZooKeeper alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from kafka08.admin import InvalidArgumentError
from kafka08.client import scram_users
from kafka08.client.admin import AdminClient
from kafka08.errors import ConfigError
from kafka08.protocol.admin_schemas import (
    BROKER_RESOURCE,
    DEFAULT_CONFIG,
    SOURCES,
    STATIC_BROKER_CONFIG,
    TOPIC_RESOURCE,
    ConfigEntry,
)
from kafka08.security.scram import HASHES
from tools.admin.config_values import password_of
from zk.entities import BROKERS, DEFAULT, TOPICS

KINDS = {TOPICS: TOPIC_RESOURCE, BROKERS: BROKER_RESOURCE}
_NOT_DYNAMIC = (STATIC_BROKER_CONFIG, DEFAULT_CONFIG)


def alter(
    client: AdminClient, kind: str, name: str, added: Mapping[str, str], deleted: Iterable[str]
) -> None:
    """Raises ConfigError for a setting to delete that is not set, and what AdminClient raises."""
    present = {entry.name for entry in _settings(client, kind, name) if _is_dynamic(entry)}
    missing = [key for key in deleted if key not in present]
    if missing:
        raise ConfigError(f"Invalid config(s): {','.join(missing)}")
    changes: dict[str, str | None] = {**added, **dict.fromkeys(deleted)}
    client.change_settings(KINDS[kind], _wire_name(name), changes)
    if name == DEFAULT:
        print(f"Completed updating default config for {kind} in the cluster.")
    else:
        print(f"Completed updating config for {kind[:-1]} {name}.")


def describe(client: AdminClient, kind: str, name: str | None, *, every: bool) -> None:
    """``name``: None for all entities; ``every``: also settings that have no value of their own."""
    for each in _names(client, kind) if name is None else [name]:
        if each == DEFAULT:
            print(f"Default configs for {kind} in the cluster are:")
        else:
            print(f"{'All' if every else 'Dynamic'} configs for {kind[:-1]} {each} are:")
        for entry in sorted(_settings(client, kind, each), key=lambda entry: entry.name):
            if every or _is_dynamic(entry):
                print(_line(entry))


def alter_user(
    client: AdminClient,
    user: str,
    added: Mapping[str, str],
    deleted: Iterable[str],
    ask_password: Callable[[str], str],
) -> None:
    """``ask_password``: see ``config_values``. Raises InvalidArgumentError for settings of other
    kinds, and what ``scram_users`` raises."""
    gone = list(deleted)
    others = [name for name in (*added, *gone) if name not in HASHES]
    if others:
        raise InvalidArgumentError(
            f"Only {', '.join(HASHES)} are changed by --bootstrap-server for users; "
            f"{', '.join(others)} need --zookeeper"
        )
    passwords = {
        key: scram_users.salted(key, password_of(key, value, ask_password))
        for key, value in added.items()
    }
    scram_users.alter(client.call, user, passwords, gone)
    print(f"Completed updating config for user {user}.")


def describe_users(client: AdminClient, user: str | None) -> None:
    """``user``: None for all that have credentials."""
    if user is None:
        found = scram_users.describe_all(client.call)
        known = found.known
        for name, reason in found.unreadable.items():
            print(
                f"Error retrieving SCRAM credential configs for user-principal '{name}': {reason}"
            )
    else:
        known = {user: scram_users.describe(client.call, user)}
    for name, iterations in known.items():
        listed = ", ".join(f"{key}=iterations={count}" for key, count in iterations.items())
        if listed:
            print(f"SCRAM credential configs for user-principal '{name}' are {listed}")


def _names(client: AdminClient, kind: str) -> Iterator[str]:
    found = client.metadata()
    if kind == TOPICS:
        yield from sorted(each.topic for each in found.topics)
    else:
        yield from map(str, sorted(each.node_id for each in found.brokers))
        yield DEFAULT


def _settings(client: AdminClient, kind: str, name: str) -> list[ConfigEntry]:
    return client.settings(KINDS[kind], _wire_name(name))


def _wire_name(name: str) -> str:
    return "" if name == DEFAULT else name


def _is_dynamic(entry: ConfigEntry) -> bool:
    return entry.source not in _NOT_DYNAMIC


def _line(entry: ConfigEntry) -> str:
    synonyms = ", ".join(
        f"{SOURCES.get(each.source, 'UNKNOWN')}:{each.name}={_text(each.value)}"
        for each in entry.synonyms
    )
    sensitive = str(entry.is_sensitive).lower()
    return f"  {entry.name}={_text(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _text(value: str | None) -> str:
    return "null" if value is None else value
