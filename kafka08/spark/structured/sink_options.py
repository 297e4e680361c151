"""The options and columns of the ``kafka08`` sink, checked: those of Spark's own Kafka sink.

Raises ConfigError naming option or column and value. No Spark here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafka08.client.security import runtime_for
from kafka08.common import validate_topic
from kafka08.errors import ConfigError, InvalidTopicError
from kafka08.producer.kafka_config import KafkaProducerConfig

BOOTSTRAP = "kafka.bootstrap.servers"
# Nothing is lost unless asked for: every replica in sync has what a batch wrote.
DEFAULTS = {
    "acks": "all",
    "retries": "1000",
    "batch.size": str(256 << 10),
    "linger.ms": "20",
    "client.id": "kafka08-spark-sink",
}
_REFUSED = {
    "kafka.key.serializer": "keys are binary or string columns",
    "kafka.value.serializer": "values are binary or string columns",
    "kafka.transactional.id": "Spark may run a batch again after its commit, which would be "
    "another transaction; writing is at least once",
    "kafka.interceptor.classes": "there are no interceptors",
}
_TEXT, _BYTES, _NUMBER = "string", "binary", "int"
HEADERS = "headers"
_PAIRS = "array<struct<key:string,value:binary>>"
_API_VERSIONS = "api.versions.request"
_COLUMNS = {
    "key": (_TEXT, _BYTES),
    "value": (_TEXT, _BYTES),
    "topic": (_TEXT,),
    "partition": (_NUMBER,),
    HEADERS: (_PAIRS,),
}


class SinkOptions(NamedTuple):
    """``topic``: where all rows go, whatever their column says; None without the option."""

    producer: dict[str, str]
    topic: str | None


def sink_options(options: Mapping[str, str], columns: Mapping[str, str]) -> SinkOptions:
    """``columns``: name -> Spark's short type name. Raises ConfigError."""
    given = {key.lower(): str(value) for key, value in options.items()}
    for key, value in given.items():
        if key in _REFUSED and value.lower() != "false":
            raise ConfigError(f"{key} has value {value}, which is not supported: {_REFUSED[key]}")
    if not given.get(BOOTSTRAP):
        raise ConfigError(f"Option {BOOTSTRAP} must be set: host:port of brokers")
    passed = {key[6:]: value for key, value in given.items() if key.startswith("kafka.")}
    settings = {**DEFAULTS, **passed}
    if HEADERS in columns and settings.setdefault(_API_VERSIONS, "true").lower() != "true":
        raise ConfigError(f"Column {HEADERS} needs kafka.{_API_VERSIONS}")
    if "compression" in given:
        settings.setdefault("compression.type", given["compression"])
    try:
        runtime_for(KafkaProducerConfig.of(settings))
    except ConfigError as error:
        raise ConfigError(f"kafka.{error}") from None
    topic = given.get("topic")
    if topic is not None:
        try:
            validate_topic(topic)
        except InvalidTopicError as error:
            raise ConfigError(f"topic has value {topic}: {error}") from None
    _check(columns, topic)
    return SinkOptions(settings, topic)


def _check(columns: Mapping[str, str], topic: str | None) -> None:
    if "value" not in columns:
        raise ConfigError(f"Required column value is missing: there are {', '.join(columns)}")
    if topic is None and "topic" not in columns:
        raise ConfigError(
            f"Option topic must be set where there is no column topic: there are "
            f"{', '.join(columns)}"
        )
    for name, types in _COLUMNS.items():
        if name in columns and columns[name] not in types:
            raise ConfigError(
                f"Column {name} has type {columns[name]}, which is not {' or '.join(types)}"
            )
