"""Options of the sink: what they mean, and errors that name option and value."""

from __future__ import annotations

import pytest

from kafka08.errors import ConfigError
from kafka08.producer.kafka_config import KafkaProducerConfig
from kafka08.spark.structured.sink_options import sink_options

BASE = {"kafka.bootstrap.servers": "one:9092, two:9093"}
COLUMNS = {
    "key": "binary",
    "value": "string",
    "topic": "string",
    "partition": "int",
    "other": "date",
}


def test_sink_waits_for_all_replicas_unless_told_otherwise() -> None:
    found = sink_options({**BASE, "kafka.compression.type": "gzip"}, COLUMNS)
    assert found.topic is None
    assert found.producer["acks"] == "all"
    assert found.producer["compression.type"] == "gzip"
    secured = sink_options({**BASE, "kafka.security.protocol": "SSL"}, COLUMNS)
    assert secured.producer["security.protocol"] == "SSL"
    assert sink_options({**BASE, "kafka.acks": "1"}, COLUMNS).producer["acks"] == "1"
    assert sink_options({**BASE, "topic": "x"}, {"value": "binary"}).topic == "x"


@pytest.mark.parametrize(
    ("options", "columns", "text"),
    [
        ({}, {"topic": "string"}, "Required column value is missing"),
        (
            {"kafka.security.protocol": "TLS"},
            COLUMNS,
            "kafka.security.protocol TLS is not one of PLAINTEXT",
        ),
        (
            {"kafka.security.protocol": "SASL_SSL"},
            COLUMNS,
            "kafka.sasl.jaas.config has no value",
        ),
        ({}, {"value": "binary"}, "Option topic must be set"),
        ({}, {**COLUMNS, "value": "int"}, "Column value has type int"),
        ({}, {**COLUMNS, "partition": "string"}, "Column partition has type string"),
        ({}, {**COLUMNS, "headers": "string"}, "Column headers has type string, which is not arr"),
        (
            {"kafka.api.versions.request": "false"},
            {**COLUMNS, "headers": "array<struct<key:string,value:binary>>"},
            "Column headers needs kafka.api.versions.request",
        ),
        ({"topic": "a b"}, COLUMNS, "topic has value a b"),
        ({"kafka.acks": "x"}, COLUMNS, "kafka.acks has value x"),
        ({"kafka.compression.type": "zip"}, COLUMNS, "kafka.compression.type has value zip"),
        ({"kafka.transactional.id": "x"}, COLUMNS, "kafka.transactional.id has value x.*at least"),
        (
            {"kafka.enable.idempotence": "true", "kafka.acks": "1"},
            COLUMNS,
            "kafka.acks has value 1, and enable.idempotence=true needs all",
        ),
        ({"kafka.bootstrap.servers": ""}, COLUMNS, "kafka.bootstrap.servers must be set"),
    ],
)
def test_wrong_sinks_are_named(options: dict[str, str], columns: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        sink_options({**BASE, **options}, columns)


def test_idempotence() -> None:
    options = {**BASE, "kafka.enable.idempotence": "true"}
    config = KafkaProducerConfig.of(sink_options(options, COLUMNS).producer)
    assert config.enable_idempotence
    assert config.api_versions_request
    assert config.retries == 1000


def test_a_column_of_headers_switches_later_versions_on() -> None:
    headers = {**COLUMNS, "headers": "array<struct<key:string,value:binary>>"}
    assert sink_options(BASE, headers).producer["api.versions.request"] == "true"
    assert "api.versions.request" not in sink_options(BASE, COLUMNS).producer
