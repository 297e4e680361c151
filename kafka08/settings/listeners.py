"""The listeners of a broker: ``listeners``, ``advertised.listeners`` and the settings beside them.

Pure: reads settings, resolves no names, binds nothing. A setting that makes no sense raises
ConfigError, which names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from kafka08.common import PLAINTEXT, PROTOCOLS, Endpoint, bare
from kafka08.errors import ConfigError
from kafka08.settings.settings import Settings

_LISTENER = re.compile(
    r"([A-Za-z0-9_.-]+)://(?:\[([0-9A-Fa-f:.%]*)\]|([^\[\]/:@]*)):(-?[0-9]{1,9})"
)
_PORTS = range(65536)
# Hosts that mean every interface: other machines cannot connect to them.
EVERY_INTERFACE = ("", "0.0.0.0", "::")
OWN_PREFIX = "listener.name."
LISTENERS, ADVERTISED = "listeners", "advertised.listeners"
_MAP = "listener.security.protocol.map"
_BY_NAME, _BY_PROTOCOL = "inter.broker.listener.name", "security.inter.broker.protocol"


class Listeners(NamedTuple):
    """``bound``: where to listen; an empty host is every interface, port 0 one that the system
    chooses. ``advertised``: the endpoints for others: an empty host is the machine's
    name, port 0 the bound port. ``inter_broker``: the listener of connections between
    brokers."""

    bound: tuple[Endpoint, ...]
    advertised: tuple[Endpoint, ...]
    inter_broker: Endpoint

    @property
    def is_plain(self) -> bool:
        """Whether there is only the one listener of 0.8.2.2."""
        return [(each.listener, each.protocol) for each in self.bound] == [(PLAINTEXT, PLAINTEXT)]

    def named(self, host_name: Callable[[], str]) -> Listeners:
        """With the machine's name, where it is needed, in place of the empty host."""
        if all(each.host for each in self.advertised):
            return self
        name = host_name()
        told = tuple(each._replace(host=each.host or name) for each in self.advertised)
        return self._replace(advertised=told)

    def announced(self, ports: Iterable[int]) -> tuple[Endpoint, ...]:
        """The endpoints for others: ``advertised`` with the bound ``ports``, which are in the order
        of ``bound``."""
        names = [each.listener for each in self.bound]
        port_of = dict(zip(names, ports, strict=True))
        return tuple(
            each._replace(port=each.port or port_of[each.listener]) for each in self.advertised
        )


class ListenerSettings(Settings):
    """The settings that are read here, which BrokerConfig declares."""

    listeners: str | None
    advertised_listeners: str | None
    listener_security_protocol_map: str | None
    inter_broker_listener_name: str | None
    security_inter_broker_protocol: str | None
    host_name: str | None
    port: int
    advertised_host_name: str | None
    advertised_port: int

    def resolved_listeners(self) -> Listeners:
        """The listeners as the settings have them together. Raises ConfigError."""
        protocols = {name: name for name in PROTOCOLS}
        if self.listener_security_protocol_map is not None:
            protocols = parse_protocols(self.listener_security_protocol_map)
        bound = _bound(self, protocols)
        told = _advertised(self, protocols, bound)
        for each in told:
            if each.listener not in {one.listener for one in bound}:
                raise ConfigError(f"{ADVERTISED} has {each}, and {LISTENERS} has no such listener.")
        return Listeners(bound, told, _inter_broker(self, told))


def own_settings(properties: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The settings of single listeners, ``listener.name.NAME.KEY``: value by key by name."""
    own: dict[str, dict[str, str]] = {}
    for key, value in properties.items():
        name, dot, rest = key.removeprefix(OWN_PREFIX).partition(".")
        if key.startswith(OWN_PREFIX) and dot:
            own.setdefault(name.lower(), {})[rest] = value
    return own


def parse_listeners(key: str, text: str, protocols: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """The endpoints of ``NAME://host:port,...``. Raises ConfigError, which names ``key``."""
    found = []
    for word in filter(None, map(str.strip, text.split(","))):
        match = _LISTENER.fullmatch(word)
        if match is None or int(match[4]) not in _PORTS:
            raise ConfigError(f"{key} has {word}, which is not NAME://host:port.")
        name = match[1].upper()
        if name not in protocols:
            raise ConfigError(
                f"{key} has the listener {name}, for which {_MAP} names no security protocol."
            )
        found.append(Endpoint(name, protocols[name], match[2] or match[3] or "", int(match[4])))
    if not found:
        raise ConfigError(f"{key} has no listener.")
    _check_distinct(key, [each.listener for each in found], "name")
    return tuple(found)


def parse_protocols(text: str) -> dict[str, str]:
    """Security protocol by listener, from ``NAME:PROTOCOL,...``. Raises ConfigError."""
    protocols: dict[str, str] = {}
    for word in filter(None, map(str.strip, text.split(","))):
        name, _, protocol = (each.strip().upper() for each in word.partition(":"))
        if not name or protocol not in PROTOCOLS:
            raise ConfigError(
                f"{_MAP} has {word}, which is not NAME:PROTOCOL with one of {', '.join(PROTOCOLS)}."
            )
        if name in protocols:
            raise ConfigError(f"{_MAP} has {name} twice.")
        protocols[name] = protocol
    return protocols


def _bound(settings: ListenerSettings, protocols: Mapping[str, str]) -> tuple[Endpoint, ...]:
    if settings.listeners is None:
        return (Endpoint(PLAINTEXT, PLAINTEXT, settings.host_name or "", settings.port),)
    bound = parse_listeners(LISTENERS, settings.listeners, protocols)
    _check_distinct(LISTENERS, [str(each.port) for each in bound if each.port], "port")
    return tuple(each._replace(host="") if each.host in EVERY_INTERFACE else each for each in bound)


def _advertised(
    settings: ListenerSettings, protocols: Mapping[str, str], bound: tuple[Endpoint, ...]
) -> tuple[Endpoint, ...]:
    if settings.advertised_listeners is not None:
        told = parse_listeners(ADVERTISED, settings.advertised_listeners, protocols)
        for each in told:
            if each.host in EVERY_INTERFACE[1:]:
                raise ConfigError(f"{ADVERTISED} has {each}, to which no client can connect.")
        return told
    host, port = settings.advertised_host_name, settings.advertised_port
    changes: dict[str, Any] = {}
    # Beside ``listeners`` the two count only if they are set.
    if host is not None and (settings.listeners is None or host != settings.host_name):
        changes["host"] = bare(host)
    if settings.listeners is None or port != settings.port:
        changes["port"] = port
    return tuple(each._replace(**changes) if each.listener == PLAINTEXT else each for each in bound)


def _inter_broker(settings: ListenerSettings, told: tuple[Endpoint, ...]) -> Endpoint:
    name, protocol = settings.inter_broker_listener_name, settings.security_inter_broker_protocol
    if name is not None and protocol is not None:
        raise ConfigError(f"Only one of {_BY_NAME} and {_BY_PROTOCOL} may be set.")
    if protocol is not None and protocol not in PROTOCOLS:
        raise ConfigError(
            f"{_BY_PROTOCOL} has value {protocol} which is not one of {', '.join(PROTOCOLS)}."
        )
    wanted = (name or protocol or PLAINTEXT).upper()
    for each in told:
        if each.listener == wanted:
            return each
    names = ", ".join(each.listener for each in told)
    key = _BY_NAME if name is not None else _BY_PROTOCOL
    raise ConfigError(f"{key} is {wanted}, and the advertised listeners are {names}.")


def _check_distinct(key: str, words: list[str], what: str) -> None:
    for word in words:
        if words.count(word) > 1:
            raise ConfigError(f"{key} has two listeners with the {what} {word}.")
