"""The settings of the brokers of a unit: the processes of one server.properties.

With ``broker.processes=N`` the brokers are numbered from 0 to N - 1. Number i has the settings of
the file, and of these it derives:

- ``broker.id``: plus i.
- ``port``, ``advertised.port``, and each port of ``listeners`` and ``advertised.listeners``: plus i
  times the stride. The stride is the span of the ports of ``listeners``, highest - lowest + 1;
  without ``listeners`` it is 1. Port 0 stays.
- ``log.dirs``, ``log.dir`` and ``kafka.csv.metrics.dir``: number 0 keeps them, so that a broker
  that ran alone becomes the first of a unit with its data. Number i has ``DIRECTORY-i`` for each.
- ``http.port``: plus 1 plus i; the port of the file is the supervisor's.
- ``broker.unit``: where the file does not have it, the name of the machine, a colon and the broker
  id of number 0. ``broker.rack``: where the file does not have it, ``broker.unit``.
- ``process.i.KEY=VALUE`` comes last: KEY is VALUE for number i. No broker gets these keys
  themselves.

Pure: resolves no names, binds nothing, creates nothing.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NamedTuple, TypeVar

from kafka08.errors import ConfigError
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.listeners import ADVERTISED, EVERY_INTERFACE, LISTENERS
from kafka08.settings.settings import INT, parse_list

OWN_KEY = re.compile(r"process\.([^.]*)\.(.+)", re.DOTALL)
PROCESSES = "broker.processes"
_PORT = re.compile(r":([0-9]+)(?=\s*(?:,|$))")
_DATA_DIRECTORIES = ("log.dirs", "log.dir")
_CSV_DIRECTORY = "kafka.csv.metrics.dir"
_HTTP = "http.port"
_UNIT, _RACK = "broker.unit", "broker.rack"
# A unit is one thing to fail, which is in one place.
_OF_ALL = (PROCESSES, _UNIT, _RACK)
K = TypeVar("K")


class UnitMember(NamedTuple):
    """A broker of a unit: its own properties, and what they say."""

    properties: dict[str, str]
    config: BrokerConfig


class UnitSettings(NamedTuple):
    """``base``: what the file says; ``members``: the brokers that it runs, one or more."""

    base: BrokerConfig
    members: list[UnitMember]


def unit_of(properties: Mapping[str, str], host: str) -> UnitSettings:
    """The brokers of a server.properties, on the machine of the name ``host``. Raises
    ConfigError."""
    found = {key: value for key, value in properties.items() if OWN_KEY.fullmatch(key) is None}
    base = BrokerConfig.from_properties(found)
    count = base.broker_processes
    own = _own(properties, count)
    if count > 1 and base.http_port == 0:
        raise ConfigError(
            f"{_HTTP} has value 0, and {PROCESSES} has value {count}; the pages of a unit need a "
            "port that is known."
        )
    made = []
    for number in range(count):
        derived = found if count == 1 else _derived(found, base, number, host)
        made.append(_member(number, {**derived, **own.get(number, {})}, has_own=number in own))
    if count > 1:
        _check_together(base, [each.config for each in made])
    return UnitSettings(base, made)


def _member(number: int, properties: dict[str, str], *, has_own: bool) -> UnitMember:
    try:
        return UnitMember(properties, BrokerConfig.from_properties(properties))
    except ConfigError as error:
        if number == 0 and not has_own:
            raise
        raise ConfigError(f"Process {number} of {PROCESSES}: {error}") from None


def _own(properties: Mapping[str, str], count: int) -> dict[int, dict[str, str]]:
    """The settings of single processes: value by key by number."""
    own: dict[int, dict[str, str]] = {}
    for key, value in properties.items():
        match = OWN_KEY.fullmatch(key)
        if match is None:
            continue
        number, of = match[1], match[2]
        if not re.fullmatch("0|[1-9][0-9]{0,9}", number) or int(number) >= count:
            raise ConfigError(
                f"{key} is a setting of process {number}, and {PROCESSES} has value {count}: its "
                f"processes have the numbers from 0 to {count - 1}."
            )
        if of in _OF_ALL or OWN_KEY.fullmatch(of):
            raise ConfigError(f"{key} cannot be a setting of one process.")
        own.setdefault(int(number), {})[of] = value
    return own


def _derived(
    found: Mapping[str, str], base: BrokerConfig, number: int, host: str
) -> dict[str, str]:
    """The properties of a process, without those that are its own."""
    derived = dict(found)
    derived.setdefault(_UNIT, f"{host}:{base.broker_id}")
    derived.setdefault(_RACK, derived[_UNIT])
    by = number * _stride(base)
    derived["broker.id"] = str(base.broker_id + number)
    if base.listeners is None or "port" in found:
        derived["port"] = _shifted(base.port, by)
    if "advertised.port" in found:
        derived["advertised.port"] = _shifted(INT.parse(found["advertised.port"]), by)
    for key in (LISTENERS, ADVERTISED):
        if key in found:
            derived[key] = _PORT.sub(lambda m: f":{_shifted(int(m[1]), by)}", found[key])
    if base.http_port > 0:
        derived[_HTTP] = str(base.http_port + 1 + number)
    if number:
        given = [key for key in _DATA_DIRECTORIES if key in found]
        for key in given or _DATA_DIRECTORIES[:1]:
            derived[key] = _beside(found.get(key, ",".join(base.log_dirs)), number)
        if _CSV_DIRECTORY in found or base.writes_csv_metrics:
            derived[_CSV_DIRECTORY] = _beside(base.kafka_csv_metrics_dir, number)
    return derived


def _stride(base: BrokerConfig) -> int:
    ports = [each.port for each in base.resolved_listeners().bound if each.port]
    return max(ports) - min(ports) + 1 if ports else 0


def _shifted(port: int, by: int) -> str:
    return str(port and port + by)


def _beside(directories: str, number: int) -> str:
    return ",".join(f"{each.rstrip('/')}-{number}" for each in parse_list(directories))


def _check_together(base: BrokerConfig, configs: list[BrokerConfig]) -> None:
    """Refuse brokers that would take something from each other, or from the supervisor."""
    takers = [("the unit's pages", base.http_host, base.http_port)] if base.http_port > 0 else []
    told: dict[tuple[str, int], int] = {}
    ids: dict[int, int] = {}
    paths: dict[str, int] = {}
    for number, config in enumerate(configs):
        if base.http_port > 0 and config.http_port <= 0:
            raise ConfigError(
                f"Process {number} of {PROCESSES} has {_HTTP}={config.http_port}, and the unit's "
                f"pages at port {base.http_port} need a port of each process."
            )
        takers += _takers(number, config)
        _claim(ids, config.broker_id, number, "have broker.id {}")
        for path in config.log_dirs:
            _claim(paths, posixpath.normpath(path), number, "have the data directory {}")
        for each in config.resolved_listeners().advertised:
            if each.port:
                _claim(told, (each.host, each.port), number, "advertise port {0[1]}")
    for (one, host, port), (other, other_host, other_port) in combinations(takers, 2):
        meet = host == other_host or {host, other_host} & set(EVERY_INTERFACE)
        if port == other_port and meet:
            raise ConfigError(
                f"With {PROCESSES}={len(configs)} {one} and {other} would both listen on port "
                f"{port}."
            )


def _takers(number: int, config: BrokerConfig) -> Iterator[tuple[str, str, int]]:
    """The listeners of a broker: a name, the host and the port, which is known."""
    for each in config.resolved_listeners().bound:
        if each.port:
            yield f"the listener {each.listener} of process {number}", each.host, each.port
    if config.http_port > 0:
        yield f"the pages of process {number}", config.http_host, config.http_port


def _claim(claimed: dict[K, int], what: K, number: int, text: str) -> None:
    first = claimed.setdefault(what, number)
    if first != number:
        raise ConfigError(
            f"Process {first} and process {number} of {PROCESSES} both {text.format(what)}."
        )
