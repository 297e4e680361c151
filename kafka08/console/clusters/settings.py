"""Which clusters the console shows, and the settings of each.

``console.clusters=prod,test`` names several; ``cluster.prod.zookeeper.connect`` is a setting of one
of them. Without ``console.clusters`` there is one cluster, whose settings have no prefix.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kafka08.client.security import ClientSecurity
from kafka08.console.config import CLIENT_PREFIX, ConsoleConfig
from kafka08.errors import ConfigError
from kafka08.settings.properties import with_prefix
from kafka08.settings.settings import parse_list

CLUSTERS = "console.clusters"
_PREFIX = "cluster."
_CONNECT, _HISTORY = "zookeeper.connect", "console.history.path"
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_OF_PATHS = (".", "..")  # browsers take these out of a path
_LISTENER = ("http.", "ssl.", "console.users.file", CLUSTERS)
"""Beginnings of the settings of the whole console."""
_OWN = ("zookeeper.", CLIENT_PREFIX, _HISTORY, "console.broker.http")
"""Beginnings of the settings that are never those of several clusters: a login for one is not sent
to another. All other settings hold without a prefix for each cluster that has no value of its
own."""
_CLIENT_KEYS = ClientSecurity.keys()
_KEYS = ConsoleConfig.keys() | {CLIENT_PREFIX + key for key in _CLIENT_KEYS}
_OF_CLUSTERS = {key for key in _KEYS if not key.startswith(_LISTENER)}


class ClusterSettings(NamedTuple):
    """``name``: "" for the cluster of a console that has only one. Those of the listener and the
    users are the same in all ``config``. ``client``: how brokers are connected to."""

    name: str
    config: ConsoleConfig
    client: ClientSecurity


def clusters_of(properties: Mapping[str, str]) -> list[ClusterSettings]:
    """At least one. Raises ConfigError."""
    names = parse_list(properties.get(CLUSTERS, ""))
    if not names:
        return [_settings("", properties)]
    _check_names(names)
    own: dict[str, dict[str, str]] = {name: {} for name in names}
    shared = {}
    for key, value in properties.items():
        if key.startswith(_PREFIX):
            name, setting = _split(key, names)
            own[name][setting] = value
        elif value and key.startswith(_OWN):
            raise ConfigError(
                f"{key} is a setting of each cluster where {CLUSTERS} has a value: "
                f"{_PREFIX}{names[0]}.{key}."
            )
        elif not key.startswith(_OWN):
            shared[key] = value
    _check_histories(own)
    return [_named(name, {**shared, **of_cluster}) for name, of_cluster in own.items()]


def _check_names(names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if not _NAME.fullmatch(name) or name in _OF_PATHS:
            raise ConfigError(
                f"{CLUSTERS} has the name {name!r}: a name has letters, digits, '.', '_' and '-'."
            )
        if count > 1:
            raise ConfigError(f"{CLUSTERS} has the name {name} {count} times.")


def _split(key: str, names: Sequence[str]) -> tuple[str, str]:
    """Name and setting. A name may have dots, and may begin with another one."""
    rest = key.removeprefix(_PREFIX)
    found = [(name, rest.removeprefix(f"{name}.")) for name in names if rest.startswith(f"{name}.")]
    if not found:
        raise ConfigError(f"{key} is not of a cluster that {CLUSTERS} names: {', '.join(names)}.")
    known = next((each for each in found if each[1] in _OF_CLUSTERS), None)
    if known is not None:
        return known
    setting = found[0][1]
    if setting.startswith(_LISTENER):
        raise ConfigError(f"{key}: {setting} is a setting of the whole console, without a prefix.")
    raise ConfigError(f"{key}: clusters have no setting named {setting}.")


def _check_histories(own: Mapping[str, Mapping[str, str]]) -> None:
    paths: dict[str, str] = {}
    for name, values in own.items():
        key, path = f"{_PREFIX}{name}.{_HISTORY}", values.get(_HISTORY, "")
        if path and path in paths:
            raise ConfigError(f"{key} and {paths[path]} have the same value: {path}.")
        paths[path] = key


def _named(name: str, properties: Mapping[str, str]) -> ClusterSettings:
    if not properties.get(_CONNECT):
        raise ConfigError(f"Missing required property '{_PREFIX}{name}.{_CONNECT}'")
    try:
        return _settings(name, properties)
    except ConfigError as error:
        raise ConfigError(f"Cluster {name}: {error}") from None


def _settings(name: str, properties: Mapping[str, str]) -> ClusterSettings:
    return ClusterSettings(
        name,
        ConsoleConfig.from_properties(properties),
        ClientSecurity.from_properties(with_prefix(properties, CLIENT_PREFIX)),
    )
