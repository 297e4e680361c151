"""Settings of topics and of this broker as DescribeConfigs shows them. Pure.

A value that equals the default counts as not set: the settings do not know which keys the file of
the broker had.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kafka08.protocol import admin_schemas as a
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.dynamic import DynamicBrokerSettings
from kafka08.settings.later_topics import LaterTopicSettings
from kafka08.settings.settings import Setting
from kafka08.settings.topic import BROKER_KEYS, LogConfig

# The wire numbers of the kinds of settings.
_TYPES = {"boolean": 1, "string": 2, "int": 3, "short": 4, "long": 5, "double": 6, "list": 7}
_STRING = 2


class ConfigSelection(NamedTuple):
    """The settings and fields that a request asks for; ``names`` empty or None for all settings."""

    names: list[str] | None
    synonyms: bool
    documentation: bool


def broker_entries(config: BrokerConfig, wanted: ConfigSelection) -> list[a.ConfigEntry]:
    """The settings of the broker that its file has. None can be changed while it runs."""
    found = []
    for attribute, described in BrokerConfig.settings().items():
        if not wanted.names or described.key in wanted.names:
            value = None if described.kind.secret else text(getattr(config, attribute))
            source = _source(config, attribute)
            chain = [a.ConfigSynonym(described.key, value, source)]
            found.append(_entry(described.key, described, chain, wanted, read_only=True))
    return found


def dynamic_entries(
    own: Mapping[str, str],
    common: Mapping[str, str],
    wanted: ConfigSelection,
    *,
    only_set: bool = False,
) -> list[a.ConfigEntry]:
    """The settings of a broker that can be changed while it runs: its ``own``, those that all
    brokers have in ``common``, and unless ``only_set`` the defaults of others."""
    defaults = DynamicBrokerSettings()
    found = []
    for attribute, described in DynamicBrokerSettings.settings().items():
        key = described.key
        sources = ((own, a.DYNAMIC_BROKER_CONFIG), (common, a.DYNAMIC_DEFAULT_BROKER_CONFIG))
        chain = [a.ConfigSynonym(key, of[key], source) for of, source in sources if key in of]
        if not only_set:
            value = text(getattr(defaults, attribute))
            chain.append(a.ConfigSynonym(key, value, a.DEFAULT_CONFIG))
        if chain and (not wanted.names or key in wanted.names):
            found.append(_entry(key, described, chain, wanted, read_only=False))
    return found


def topic_entries(
    config: BrokerConfig, own: Mapping[str, str], wanted: ConfigSelection
) -> list[a.ConfigEntry]:
    """The settings of a topic, which has ``own`` values for some, including unknown ones."""
    later = LaterTopicSettings.settings()
    known = [*LogConfig.settings().values(), *later.values()]
    by_key = {described.key: described for described in known}
    defaults = dict(_defaults(config))
    for each in later.values():
        value = text(each.default)
        defaults[each.key] = a.ConfigSynonym(each.key, value, a.DEFAULT_CONFIG)
    found = []
    for key in dict.fromkeys([*by_key, *own]):
        if not wanted.names or key in wanted.names:
            chain = [defaults[key]] if key in defaults else []
            if key in own:
                chain.insert(0, a.ConfigSynonym(key, own[key], a.TOPIC_CONFIG))
            found.append(_entry(key, by_key.get(key), chain, wanted, read_only=False))
    return found


def text(value: object) -> str | None:
    """A value as a file of properties has it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ",".join([f"{key}:{entry}" for key, entry in value.items()])
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _defaults(config: BrokerConfig) -> Iterator[tuple[str, a.ConfigSynonym]]:
    """The value of each key for a topic without one of its own: the broker's setting."""
    logs = LogConfig.from_broker(config)
    for attribute, described in LogConfig.settings().items():
        key = BROKER_KEYS.get(described.key)
        source = a.DEFAULT_CONFIG if key is None else _source(config, key.replace(".", "_"))
        value = text(getattr(logs, attribute))
        yield described.key, a.ConfigSynonym(key or described.key, value, source)


def _source(config: BrokerConfig, attribute: str) -> int:
    described = BrokerConfig.settings()[attribute]
    default = described.derive(config) if described.derive else described.default
    is_default = getattr(config, attribute) == default
    return a.DEFAULT_CONFIG if is_default else a.STATIC_BROKER_CONFIG


def _entry(
    key: str,
    described: Setting | None,
    chain: list[a.ConfigSynonym],
    wanted: ConfigSelection,
    *,
    read_only: bool,
) -> a.ConfigEntry:
    """``chain``: where the value comes from, the source that counts first."""
    _, value, source = chain[0]
    return a.ConfigEntry(
        key,
        value,
        read_only,
        is_default=source not in (a.TOPIC_CONFIG, a.DYNAMIC_BROKER_CONFIG),
        is_sensitive=described is not None and described.kind.secret,
        source=source,
        synonyms=chain if wanted.synonyms else [],
        config_type=_TYPES.get(described.kind.name, _STRING) if described else 0,
        documentation=described.doc if described and wanted.documentation else None,
    )
