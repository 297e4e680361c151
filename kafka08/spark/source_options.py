"""The options of the ``kafka08`` source, read and checked: those of Spark's own Kafka source.

Raises ConfigError, which names option and value, for options that are invalid, unknown, or not
possible with 0.8.2.2's protocol. Pure.
"""

from __future__ import annotations

import difflib
import json
import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kafka08.client.cluster import Endpoint, parse_broker_list
from kafka08.client.security import PLAIN, ClientSecurity, runtime_for
from kafka08.common import EARLIEST_TIME, LATEST_TIME, OFFSETS_TOPIC, TopicPartition
from kafka08.errors import ConfigError

logger = logging.getLogger("kafka08.spark.source_options")

EARLIEST, LATEST = "earliest", "latest"


class SinceTime(NamedTuple):
    """The first message since a time (ms of the epoch): one of all partitions, or by partition.

    Where no message is that late: the end of the log if ``or_latest``, else an error.
    """

    option: str
    time: int | dict[TopicPartition, int]
    or_latest: bool


# Offsets by partition, one of the two words, or by time.
Position = str | dict[TopicPartition, int] | SinceTime

SUBSCRIBE, PATTERN, ASSIGN = "subscribe", "subscribePattern", "assign"
STARTING, ENDING = "startingOffsets", "endingOffsets"
STRATEGY = "startingOffsetsByTimestampStrategy"
# The time of all partitions, times by partition; the first that is set counts, before offsets.
_BY_TIME = {
    STARTING: ("startingTimestamp", "startingOffsetsByTimestamp"),
    ENDING: ("endingTimestamp", "endingOffsetsByTimestamp"),
}
MAX_OFFSETS, MIN_OFFSETS = "maxOffsetsPerTrigger", "minOffsetsPerTrigger"
BOOTSTRAP = "kafka.bootstrap.servers"
API_VERSIONS = "kafka.api.versions.request"
HEADERS = "includeHeaders"

_KNOWN = {
    name.lower(): name
    for name in (
        *(SUBSCRIBE, PATTERN, ASSIGN, STARTING, ENDING, MAX_OFFSETS, MIN_OFFSETS),
        *(*_BY_TIME[STARTING], *_BY_TIME[ENDING], STRATEGY),
        *("maxTriggerDelay", "minPartitions", "maxRecordsPerPartition", "failOnDataLoss"),
        *(HEADERS, "fetchOffset.numRetries", "fetchOffset.retryIntervalMs"),
        "kafkaConsumer.pollTimeoutMs",
    )
}
_NO_GROUP = (
    "a 0.8.2.2 fetch belongs to no group; to show the query's progress as a group's, add a "
    "kafka08.spark.listener.GroupOffsetsListener"
)
_REFUSED = {
    "groupidprefix": _NO_GROUP,
    "kafka.group.id": _NO_GROUP,
    "kafka.auto.offset.reset": "set startingOffsets instead",
    "kafka.enable.auto.commit": "the checkpoint keeps the offsets",
    "kafka.auto.commit.enable": "the checkpoint keeps the offsets",
    "kafka.key.deserializer": "keys are binary; cast the column",
    "kafka.value.deserializer": "values are binary; cast the column",
    "kafka.interceptor.classes": "there are no interceptors",
}
_MAX = 1 << 63


class SourceOptions(NamedTuple):
    """A query's partitions, bounds and limits. One of ``topics``, ``pattern``, ``assigned`` is set.

    0 stands for no limit in ``max_offsets``, ``min_offsets``, ``min_partitions``,
    ``max_records``. It is pickled with every task.
    """

    endpoints: tuple[Endpoint, ...]
    topics: tuple[str, ...] = ()
    pattern: str = ""
    assigned: tuple[TopicPartition, ...] = ()
    starting: Position = LATEST
    ending: Position = LATEST
    max_offsets: int = 0
    min_offsets: int = 0
    max_delay_ms: int = 15 * 60 * 1000
    min_partitions: int = 0
    max_records: int = 0
    fail_on_data_loss: bool = True
    retries: int = 30
    backoff_ms: int = 1000
    fetch_bytes: int = 1 << 20
    max_fetch_bytes: int = 100 << 20
    timeout_ms: int = 30000
    client_id: str = "kafka08-spark"
    api_versions: bool = False
    include_headers: bool = False
    security: ClientSecurity = PLAIN

    @property
    def subscription(self) -> str:
        """The option that chose the topics, for messages: name and value."""
        if self.topics:
            return f"{SUBSCRIBE} ({','.join(self.topics)})"
        if self.pattern:
            return f"{PATTERN} ({self.pattern})"
        return f"{ASSIGN} ({', '.join(str(tp) for tp in self.assigned)})"

    def matching(self, topics: Iterable[str]) -> list[str]:
        """Those that ``pattern`` matches as a whole, the offsets topic never."""
        found = re.compile(self.pattern)
        return [name for name in topics if found.fullmatch(name) and name != OFFSETS_TOPIC]


def source_options(options: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    """Names of options in any case. Raises ConfigError."""
    given = _Given(options)
    given.check_names()
    topics, pattern, assigned = _subscription(given)
    limits = {
        "max_offsets": given.number(MAX_OFFSETS, 0),
        "min_offsets": given.number(MIN_OFFSETS, 0),
        "min_partitions": given.number("minPartitions", 0),
        "max_records": given.number("maxRecordsPerPartition", 0),
        "retries": given.number("fetchOffset.numRetries", 30, low=0),
        "backoff_ms": given.number("fetchOffset.retryIntervalMs", 1000),
        "timeout_ms": given.number(
            "kafka.socket.timeout.ms", given.number("kafka.request.timeout.ms", 30000)
        ),
    }
    maximum, minimum = limits["max_offsets"], limits["min_offsets"]
    if maximum and minimum > maximum:
        raise ConfigError(
            f"{MIN_OFFSETS} has value {minimum} which is above {MAX_OFFSETS} ({maximum})"
        )
    for name in (ENDING, *_BY_TIME[ENDING]) if streaming else ():
        if given.text(name) is not None:
            raise ConfigError(f"{name} has value {given.text(name)}: a stream has no end")
    or_latest = given.word(STRATEGY, "error", LATEST) == LATEST
    fetch = given.number(
        "kafka.fetch.message.max.bytes", given.number("kafka.max.partition.fetch.bytes", 1 << 20)
    )
    return SourceOptions(
        _endpoints(given),
        topics,
        pattern,
        assigned,
        _since(given, STARTING, or_latest)
        or _position(given, STARTING, LATEST if streaming else EARLIEST, not streaming, LATEST),
        _since(given, ENDING, True) or _position(given, ENDING, LATEST, True, EARLIEST),
        max_delay_ms=given.milliseconds("maxTriggerDelay", 15 * 60 * 1000),
        fail_on_data_loss=given.boolean("failOnDataLoss", True),
        fetch_bytes=fetch,
        client_id=given.text("kafka.client.id") or "kafka08-spark",
        api_versions=given.api_versions,
        include_headers=given.boolean(HEADERS, False),
        security=given.security(),
        **limits,
    )


def wants_headers(options: Mapping[str, str]) -> bool:
    """Whether the source has a column of headers. Raises ConfigError."""
    return _Given(options).boolean(HEADERS, False)


def _endpoints(given: _Given) -> tuple[Endpoint, ...]:
    brokers = given.text(BOOTSTRAP) or given.text("kafka.metadata.broker.list")
    if not brokers:
        raise ConfigError(f"Option {BOOTSTRAP} must be set: host:port of brokers")
    try:
        return tuple(parse_broker_list(brokers))
    except ConfigError as error:
        raise ConfigError(f"{BOOTSTRAP} has value {brokers}: {error}") from None


def _subscription(given: _Given) -> tuple[tuple[str, ...], str, tuple[TopicPartition, ...]]:
    chosen = [name for name in (SUBSCRIBE, PATTERN, ASSIGN) if given.text(name) is not None]
    if len(chosen) != 1:
        found = ", ".join(chosen) or "none"
        raise ConfigError(
            f"Exactly one of {SUBSCRIBE}, {PATTERN} and {ASSIGN} must be set; set: {found}"
        )
    (name,) = chosen
    value = given.text(name) or ""
    if name == PATTERN:
        try:
            re.compile(value)
        except re.error as error:
            raise ConfigError(f"{PATTERN} has value {value!r}, no pattern: {error}") from None
        if value:
            return (), value, ()
    elif name == SUBSCRIBE:
        topics = tuple(dict.fromkeys(filter(None, (word.strip() for word in value.split(",")))))
        if topics:
            return topics, "", ()
    else:
        assigned = _assigned(value)
        if assigned:
            return (), "", assigned
    raise ConfigError(f"{name} has value {value!r}, which names no topic")


def _assigned(value: str) -> tuple[TopicPartition, ...]:
    found = _json(ASSIGN, value)
    shape = f'{ASSIGN} has value {value}, which is not like {{"topic":[0,1]}}'
    if not all(isinstance(numbers, list) for numbers in found.values()):
        raise ConfigError(shape)
    pairs = [(topic, number) for topic, numbers in found.items() for number in numbers]
    if not all(type(number) is int and number >= 0 for _, number in pairs):
        raise ConfigError(shape)
    return tuple(sorted({TopicPartition(*pair) for pair in pairs}))


def _since(given: _Given, bound: str, or_latest: bool) -> SinceTime | None:
    """None if no option of time is set for the bound."""
    name = next((name for name in _BY_TIME[bound] if given.text(name) is not None), "")
    if not name:
        return None
    value = given.text(name) or ""
    if not given.api_versions:
        raise ConfigError(
            f"{name} has value {value}, which needs {API_VERSIONS} true: brokers of 0.8.2.2 do "
            "not know the times of messages"
        )
    if name == _BY_TIME[bound][0]:
        return SinceTime(name, given.number(name, 0, low=0), or_latest)
    shape = f'{name} has value {value}, which is not like {{"topic":{{"0":1500000000000}}}}'
    return SinceTime(name, _by_partition(name, value, shape, low=0), or_latest)


def _position(given: _Given, name: str, default: str, batch: bool, wrong: str) -> Position:
    """``wrong``: the word that a batch may not use here (nor, as -1 or -2, in JSON)."""
    value = given.text(name)
    if value is None:
        return default
    word = value.strip().lower()
    if word in (EARLIEST, LATEST):
        if batch and word == wrong:
            raise ConfigError(f"{name} has value {value}, which a batch query cannot have")
        return word
    shape = f'{name} has value {value}, which is not like {{"topic":{{"0":23,"1":-2}}}}'
    found = _by_partition(name, value, shape, low=EARLIEST_TIME)
    refused = LATEST_TIME if wrong == LATEST else EARLIEST_TIME
    for (topic, partition), offset in found.items():
        if batch and offset == refused:
            raise ConfigError(
                f"{name} has value {value}: {offset} ({wrong}) for {topic}-{partition} does not "
                "work in a batch query"
            )
    return found


def _by_partition(name: str, value: str, shape: str, *, low: int) -> dict[TopicPartition, int]:
    """Numbers from ``low`` on by partition. ``shape`` is the error of anything else."""
    found: dict[TopicPartition, int] = {}
    for topic, numbers in _json(name, value).items():
        if not isinstance(numbers, dict):
            raise ConfigError(shape)
        for partition, number in numbers.items():
            if not partition.isdecimal() or type(number) is not int or not low <= number < _MAX:
                raise ConfigError(shape)
            found[TopicPartition(topic, int(partition))] = number
    return found


def _json(name: str, value: str) -> dict[str, Any]:
    try:
        found = json.loads(value)
    except ValueError as error:
        raise ConfigError(f"{name} has value {value}, which is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{name} has value {value}, which is not a JSON object")
    return found


class _Given:
    """Options by name, whatever the case of either."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = {key.lower(): str(value) for key, value in options.items()}

    def check_names(self) -> None:
        for key, value in self._options.items():
            if key in _REFUSED:
                raise ConfigError(
                    f"{key} has value {value}, which is not supported: {_REFUSED[key]}"
                )
            if key not in _KNOWN and not key.startswith("kafka."):
                close = difflib.get_close_matches(key, _KNOWN, 1)
                hint = f"; did you mean {_KNOWN[close[0]]}?" if close else ""
                raise ConfigError(f"Option {key} ({value}) is unknown{hint}")
        if self.boolean(HEADERS, False) and not self.boolean(API_VERSIONS, True):
            raise ConfigError(f"{HEADERS} has value true, which needs {API_VERSIONS}")

    @property
    def api_versions(self) -> bool:
        return self.boolean(API_VERSIONS, self.boolean(HEADERS, False))

    def security(self) -> ClientSecurity:
        """Of ``kafka.security.protocol``, ``kafka.ssl.*`` and ``kafka.sasl.*``."""
        given = {key.removeprefix("kafka."): value for key, value in self._options.items()}
        try:
            found = ClientSecurity.from_properties(given)
            runtime_for(found)
        except ConfigError as error:
            raise ConfigError(f"kafka.{error}") from None
        return found

    def text(self, name: str) -> str | None:
        return self._options.get(name.lower())

    def number(self, name: str, default: int, low: int = 1) -> int:
        value = self.text(name)
        if value is None:
            return default
        try:
            found = int(value)
        except ValueError:
            found = low - 1
        if not low <= found < _MAX:
            raise ConfigError(f"{name} has value {value}, which is not a number from {low} on")
        return found

    def boolean(self, name: str, default: bool) -> bool:
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise ConfigError(f"{name} has value {value}, which is neither true nor false")
        return value.lower() == "true"

    def word(self, name: str, default: str, *others: str) -> str:
        value = (self.text(name) or default).lower()
        if value not in (default, *others):
            words = " or ".join((default, *others))
            raise ConfigError(f"{name} has value {value}, which is not {words}")
        return value

    def milliseconds(self, name: str, default: int) -> int:
        """A number with ms, s, m, min, h or d; without a unit, ms."""
        value = self.text(name)
        if value is None:
            return default
        found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", value.lower())
        units = {"": 1, "ms": 1, "s": 1000, "m": 60000, "min": 60000, "h": 3600000, "d": 86400000}
        if not found or found[2] not in units:
            raise ConfigError(f"{name} has value {value}, which is not a duration such as 15m")
        return int(found[1]) * units[found[2]]
