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
from functools import partial
from typing import Any, NamedTuple

from kafka08.client.cluster import Endpoint, parse_broker_list
from kafka08.client.security import ClientSecurity, runtime_for
from kafka08.common import (
    EARLIEST_TIME,
    INTERNAL_TOPICS,
    ISOLATION_LEVELS,
    LATEST_TIME,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    TopicPartition,
)
from kafka08.errors import ConfigError
from kafka08.settings.settings import (
    BOOLEAN_IN_ANY_CASE,
    DURATION,
    LONG,
    LONG_MAX,
    Settings,
    one_of,
    setting,
    value_of,
)
from kafka08.spark.params import SourceParams

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
MAX_DELAY = "maxTriggerDelay"
BOOTSTRAP = "kafka.bootstrap.servers"
API_VERSIONS = "kafka.api.versions.request"
ISOLATION = "kafka.isolation.level"
HEADERS = "includeHeaders"
TIME_OF_READING = "timeOfReading"
UNKNOWN = "unknownOptions"
_FETCH_BYTES, _NEW_FETCH_BYTES = "kafka.fetch.message.max.bytes", "kafka.max.partition.fetch.bytes"
_TIMEOUT, _NEW_TIMEOUT = "kafka.socket.timeout.ms", "kafka.request.timeout.ms"

_NO_GROUP = (
    "a 0.8.2.2 fetch belongs to no group; to show the query's progress as a group's, add a "
    "kafka08.spark.listener.GroupOffsetsListener"
)
_OFFSETS_ARE_KEPT = "the checkpoint keeps the offsets"
_NO_PLACE = "set startingOffsets instead"
# Options that jobs set and that have no effect here, with the reason.
_REFUSED = {
    "groupIdPrefix": _NO_GROUP,
    "group.id": _NO_GROUP,
    "kafka.group.id": _NO_GROUP,
    "auto.offset.reset": _NO_PLACE,
    "kafka.auto.offset.reset": _NO_PLACE,
    "enable.auto.commit": _OFFSETS_ARE_KEPT,
    "auto.commit.enable": _OFFSETS_ARE_KEPT,
    "kafka.enable.auto.commit": _OFFSETS_ARE_KEPT,
    "kafka.auto.commit.enable": _OFFSETS_ARE_KEPT,
    "kafka.key.deserializer": "keys are binary; cast the column",
    "kafka.value.deserializer": "values are binary; cast the column",
    "kafka.interceptor.classes": "there are no interceptors",
    "maxRatePerPartition": f"it is a setting of DStreams; set {MAX_OFFSETS} instead",
    "checkpointLocation": "it is an option of writeStream",
    "bootstrap.servers": f"set {BOOTSTRAP} instead",
    "metadata.broker.list": f"set {BOOTSTRAP} instead",
    "zookeeper.connect": f"brokers are asked; set {BOOTSTRAP}",
    "topic": f"set {SUBSCRIBE} instead",
    "topics": f"set {SUBSCRIBE} instead",
}


# 0, which cannot be set, stands for no limit.
_limit = partial(setting, kind=LONG, low=1, derive=lambda _: 0)
_number = partial(setting, kind=LONG, low=1)
_truth = partial(setting, kind=BOOLEAN_IN_ANY_CASE)


class SourceSettings(Settings):
    """The options that are a number, a truth or a text each."""

    max_offsets: int = _limit(MAX_OFFSETS, doc="messages of a batch at most")
    min_offsets: int = _limit(MIN_OFFSETS, doc="messages that a batch waits for")
    max_delay_ms: int = setting(MAX_DELAY, 15 * 60 * 1000, DURATION, doc="but not longer")
    min_partitions: int = _limit("minPartitions", doc="tasks of a batch at least")
    max_records: int = _limit("maxRecordsPerPartition", doc="messages of a task at most")
    fail_on_data_loss: bool = _truth(
        "failOnDataLoss", True, doc="whether lost messages are an error"
    )
    retries: int = _number("fetchOffset.numRetries", 30, doc="of requests for offsets", low=0)
    backoff_ms: int = _number("fetchOffset.retryIntervalMs", 1000, doc="the pause before a retry")
    kafka_max_partition_fetch_bytes: int = _number(_NEW_FETCH_BYTES, 1 << 20, doc="its newer name")
    fetch_bytes: int = _number(
        _FETCH_BYTES, derive=value_of(_NEW_FETCH_BYTES), doc="bytes of a fetch from a partition"
    )
    kafka_request_timeout_ms: int = _number(_NEW_TIMEOUT, 30000, doc="its newer name")
    timeout_ms: int = _number(
        _TIMEOUT, derive=value_of(_NEW_TIMEOUT), doc="how long a broker may take to answer"
    )
    client_id: str = setting("kafka.client.id", "kafka08-spark", doc="sent to brokers")
    starting_time: int | None = _number(
        _BY_TIME[STARTING][0], None, doc="of the first message", low=0
    )
    ending_time: int | None = _number(_BY_TIME[ENDING][0], None, doc="of the last message", low=0)
    time_of_reading: bool = _truth(
        TIME_OF_READING, True, doc="whether messages without a timestamp have that of their batch"
    )
    unknown_options: str = setting(
        UNKNOWN, "error", one_of("error", "warn"), doc="what becomes of a query with such options"
    )
    include_headers: bool = _truth(HEADERS, False, doc="whether there is a column of headers")
    isolation_level: str = setting(
        ISOLATION,
        READ_UNCOMMITTED,
        one_of(*ISOLATION_LEVELS),
        doc="whether messages of committed transactions alone are read",
    )
    api_versions: bool = setting(
        API_VERSIONS,
        kind=BOOLEAN_IN_ANY_CASE,
        derive=lambda settings: bool(settings.needing_versions),
        doc="whether brokers are asked for requests of later releases",
    )

    @property
    def needing_versions(self) -> str:
        """The option that needs requests of later releases, with its value; empty if none does."""
        if self.include_headers:
            return f"{HEADERS} has value true"
        committed = self.isolation_level == READ_COMMITTED
        return f"{ISOLATION} has value {READ_COMMITTED}" if committed else ""

    def check(self) -> None:
        if self.needing_versions and not self.api_versions:
            raise ConfigError(f"{self.needing_versions}, which needs {API_VERSIONS}")
        if self.max_offsets and self.min_offsets > self.max_offsets:
            raise ConfigError(
                f"{MIN_OFFSETS} has value {self.min_offsets} which is above {MAX_OFFSETS} "
                f"({self.max_offsets})"
            )


_OTHERS = [SUBSCRIBE, PATTERN, ASSIGN, STARTING, ENDING, STRATEGY, "kafkaConsumer.pollTimeoutMs"]
_OTHERS += [_BY_TIME[STARTING][1], _BY_TIME[ENDING][1]]
_KNOWN = {name.lower(): name for name in (*_OTHERS, *sorted(SourceSettings.keys()))}
_NAMES = {**{name.lower(): name for name in _REFUSED}, **_KNOWN}


class SourceOptions(NamedTuple):
    """A query's partitions, bounds and limits. One of ``topics``, ``pattern``, ``assigned`` is set.

    It is pickled with every task.
    """

    params: SourceParams
    settings: SourceSettings
    topics: tuple[str, ...] = ()
    pattern: str = ""
    assigned: tuple[TopicPartition, ...] = ()
    starting: Position = LATEST
    ending: Position = LATEST

    @property
    def subscription(self) -> str:
        """The option that chose the topics, for messages: name and value."""
        if self.topics:
            return f"{SUBSCRIBE} ({','.join(self.topics)})"
        if self.pattern:
            return f"{PATTERN} ({self.pattern})"
        return f"{ASSIGN} ({', '.join(str(tp) for tp in self.assigned)})"

    def matching(self, topics: Iterable[str]) -> list[str]:
        """Those that ``pattern`` matches as a whole, internal ones never."""
        pattern = re.compile(self.pattern)
        return [name for name in topics if pattern.fullmatch(name) and name not in INTERNAL_TOPICS]


def source_options(options: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    """Names of options in any case. Raises ConfigError."""
    texts = _texts(options)
    settings = SourceSettings.from_properties(texts)
    _check_names(texts, warn=settings.unknown_options == "warn")
    topics, pattern, assigned = _subscription(texts)
    for name in (ENDING, *_BY_TIME[ENDING]) if streaming else ():
        if name in texts:
            raise ConfigError(f"{name} has value {texts[name]}: a stream has no end")
    strategy = texts.get(STRATEGY, "error")
    if strategy.lower() not in ("error", LATEST):
        raise ConfigError(f"{STRATEGY} has value {strategy}, which is not error or {LATEST}")
    or_latest = strategy.lower() == LATEST
    values = settings.values()
    params = SourceParams(
        _endpoints(texts),
        option=BOOTSTRAP,
        security=_security(texts),
        **{name: values[name] for name in values.keys() & SourceParams._fields},
    )
    return SourceOptions(
        params,
        settings,
        topics,
        pattern,
        assigned,
        _since(texts, settings, STARTING, or_latest)
        or _position(texts, STARTING, LATEST if streaming else EARLIEST, not streaming, LATEST),
        _since(texts, settings, ENDING, True) or _position(texts, ENDING, LATEST, True, EARLIEST),
    )


def wants_headers(options: Mapping[str, str]) -> bool:
    """Whether the source has a column of headers. Raises ConfigError."""
    text = _texts(options).get(HEADERS, "false")
    return bool(SourceSettings.settings()["include_headers"].parse(text))


def _texts(options: Mapping[str, str]) -> dict[str, str]:
    """The options under the names that they have here, in whatever case they are given; those with
    other names in lower case."""
    return {_NAMES.get(key.lower(), key.lower()): str(value) for key, value in options.items()}


def _check_names(texts: Mapping[str, str], *, warn: bool) -> None:
    """Options without effect are an error, or a warning."""
    for key, value in texts.items():
        if key in _REFUSED:
            text = f"{key} has value {value}, which is not supported: {_REFUSED[key]}"
        elif key.lower() not in _KNOWN and not key.startswith("kafka."):
            close = difflib.get_close_matches(key, _KNOWN, 1)
            hint = f"; did you mean {_KNOWN[close[0]]}?" if close else ""
            text = f"Option {key} ({value}) is unknown{hint}"
        else:
            continue
        if not warn:
            raise ConfigError(f"{text} (with {UNKNOWN} warn the query runs without it)")
        logger.warning("%s. It has no effect", text)


def _security(texts: Mapping[str, str]) -> ClientSecurity:
    """Of ``kafka.security.protocol``, ``kafka.ssl.*`` and ``kafka.sasl.*``."""
    try:
        security = ClientSecurity.from_properties(
            {key.removeprefix("kafka."): value for key, value in texts.items()}
        )
        runtime_for(security)
    except ConfigError as error:
        raise ConfigError(f"kafka.{error}") from None
    return security


def _endpoints(texts: Mapping[str, str]) -> tuple[Endpoint, ...]:
    brokers = texts.get(BOOTSTRAP) or texts.get("kafka.metadata.broker.list")
    if not brokers:
        raise ConfigError(f"Option {BOOTSTRAP} must be set: host:port of brokers")
    try:
        return tuple(parse_broker_list(brokers))
    except ConfigError as error:
        raise ConfigError(f"{BOOTSTRAP} has value {brokers}: {error}") from None


def _subscription(
    texts: Mapping[str, str],
) -> tuple[tuple[str, ...], str, tuple[TopicPartition, ...]]:
    chosen = [name for name in (SUBSCRIBE, PATTERN, ASSIGN) if name in texts]
    if len(chosen) != 1:
        found = ", ".join(chosen) or "none"
        raise ConfigError(
            f"Exactly one of {SUBSCRIBE}, {PATTERN} and {ASSIGN} must be set; set: {found}"
        )
    (name,) = chosen
    value = texts[name]
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


def _since(
    texts: Mapping[str, str], settings: SourceSettings, bound: str, or_latest: bool
) -> SinceTime | None:
    """None if no option of time is set for the bound."""
    name = next((name for name in _BY_TIME[bound] if name in texts), "")
    if not name:
        return None
    value = texts[name]
    if not settings.api_versions:
        raise ConfigError(
            f"{name} has value {value}, which needs {API_VERSIONS} true: brokers of 0.8.2.2 do "
            "not know the times of messages"
        )
    time = settings.starting_time if bound == STARTING else settings.ending_time
    if time is not None:
        return SinceTime(name, time, or_latest)
    shape = f'{name} has value {value}, which is not like {{"topic":{{"0":1500000000000}}}}'
    return SinceTime(name, _by_partition(name, value, shape, low=0), or_latest)


def _position(
    texts: Mapping[str, str], name: str, default: str, batch: bool, wrong: str
) -> Position:
    """``wrong``: the word that a batch may not use here (nor, as -1 or -2, in JSON)."""
    value = texts.get(name)
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
            if (
                not partition.isdecimal()
                or type(number) is not int
                or not low <= number <= LONG_MAX
            ):
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
