from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kafka08.errors import ConfigError
from kafka08.settings import docs
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.settings import (
    LONG_MAX,
    log_overrides,
    parse_list,
    parse_map,
)
from kafka08.settings.topic import LogConfig

MINIMAL = {"broker.id": "0", "zookeeper.connect": "localhost:2181"}


def broker(**changes: str) -> BrokerConfig:
    properties = {key.replace("_", "."): value for key, value in changes.items()}
    return BrokerConfig.from_properties(MINIMAL | properties)


def test_the_docs_page_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "settings.md"
    assert page.read_text() == docs.render(), "run `make docs`"


def test_attributes_are_the_keys() -> None:
    for cls in (BrokerConfig, LogConfig):
        for attribute, described in cls.settings().items():
            assert attribute == described.key.replace(".", "_")
            assert described.doc.endswith(".")


def test_defaults() -> None:
    config = broker()
    assert config.broker_id == 0
    assert config.port == 9092
    assert config.advertised_port == 9092
    assert config.host_name is None
    assert config.advertised_host_name is None
    assert config.message_max_bytes == 1000012
    assert config.log_dirs == ("/tmp/kafka-logs",)
    assert config.log_roll_ms == 604800000
    assert config.log_retention_ms == 604800000
    assert config.log_roll_jitter_ms == 0
    assert config.log_flush_interval_ms == LONG_MAX
    assert config.zookeeper_connection_timeout_ms == 6000
    assert config.max_connections_per_ip_overrides == {}
    assert config.kafka_metrics_reporters == ()


def test_a_config_can_be_built_and_replaced_in_code() -> None:
    config = BrokerConfig(broker_id=3, zookeeper_connect="z:1", port=9, log_roll_hours=5000)
    assert config.advertised_port == 9
    assert config.log_roll_ms == 5000 * 3600 * 1000
    assert config.replace(num_partitions=2).log_roll_ms == config.log_roll_ms


@pytest.mark.parametrize(
    ("changes", "attribute", "expected"),
    [
        ({"log_dir": "/a, /b"}, "log_dirs", ("/a", "/b")),
        ({"log_dir": "/a", "log_dirs": "/c ,/d,"}, "log_dirs", ("/c", "/d")),
        ({"log_roll_hours": "1"}, "log_roll_ms", 3600000),
        ({"log_roll_hours": "1", "log_roll_ms": "7"}, "log_roll_ms", 7),
        ({"log_roll_jitter_hours": "2"}, "log_roll_jitter_ms", 7200000),
        ({"log_retention_hours": "2"}, "log_retention_ms", 7200000),
        ({"log_retention_hours": "2", "log_retention_minutes": "5"}, "log_retention_ms", 300000),
        ({"log_retention_minutes": "5", "log_retention_ms": "9"}, "log_retention_ms", 9),
        ({"log_flush_scheduler_interval_ms": "5"}, "log_flush_interval_ms", 5),
        ({"host_name": "h"}, "advertised_host_name", "h"),
        ({"host_name": "h", "advertised_host_name": "i"}, "advertised_host_name", "i"),
        ({"port": "1", "advertised_port": "2"}, "advertised_port", 2),
        ({"zookeeper_session_timeout_ms": "5"}, "zookeeper_connection_timeout_ms", 5),
        ({"log_cleaner_enable": "true"}, "log_cleaner_enable", True),
        ({"offsets_topic_compression_codec": "GZIP"}, "offsets_topic_compression_codec", 1),
        ({"offsets_topic_compression_codec": "3"}, "offsets_topic_compression_codec", 3),
        ({"log_cleaner_min_cleanable_ratio": ".75d"}, "log_cleaner_min_cleanable_ratio", 0.75),
        ({"broker_id": "+7"}, "broker_id", 7),
        ({"message_max_bytes": "10"}, "message_max_bytes", 10),
        ({"log_compressed_sets": "normalised"}, "log_compressed_sets", "normalised"),
        ({"log_message_format_version": "0.8.2"}, "log_message_format_version", "0.8.2"),
    ],
)
def test_values(changes: dict[str, str], attribute: str, expected: object) -> None:
    assert getattr(broker(**changes), attribute) == expected


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"broker_id": "-1"}, r"broker.id has value -1 which is not in the range (0,2147483647)."),
        (
            {"port": "x"},
            "port has value x which is not an integer in the range (-2147483648,2147483647).",
        ),
        (
            {"num_io_threads": "1_0"},
            "num.io.threads has value 1_0 which is not an integer in the range (1,2147483647).",
        ),
        (
            {"log_message_format_version": "0.7"},
            "log.message.format.version has value 0.7 which is not a release from 0.8.0 to 3.9.",
        ),
        (
            {"log_retention_ms": "-1"},
            "log.retention.ms has value -1 which is not in the range (1,2147483647).",
        ),
        (
            {"log_retention_ms": "9999999999"},
            "log.retention.ms has value 9999999999 which is not an integer "
            "in the range (1,2147483647).",
        ),
        (
            {"log_cleaner_enable": "yes"},
            "log.cleaner.enable has value yes which is not true or false.",
        ),
        (
            {"offsets_topic_compression_codec": "zip"},
            "offsets.topic.compression.codec has value zip which is not "
            "none, gzip, snappy, lz4 or a number from 0 to 3.",
        ),
        (
            {"log_cleaner_min_cleanable_ratio": "half"},
            "log.cleaner.min.cleanable.ratio has value half which is not a number.",
        ),
        (
            {"max_connections_per_ip_overrides": "host"},
            "max.connections.per.ip.overrides has value host which is not a list of host:int.",
        ),
        (
            {"log_compressed_sets": "odd"},
            "log.compressed.sets has value odd which is not one of verbatim, normalised.",
        ),
        ({"log_dirs": " , "}, "log.dirs has no value; at least one directory is needed."),
        (
            {"replica_fetch_max_bytes": "5"},
            "replica.fetch.max.bytes has value 5 which is not in the range (1000012,2147483647); "
            "the low end is message.max.bytes.",
        ),
        (
            {"replica_fetch_wait_max_ms": "10001"},
            "replica.fetch.wait.max.ms has value 10001 which is not in the range "
            "(-2147483648,10000); the high end is replica.lag.time.max.ms: "
            "followers would leave the isr while waiting.",
        ),
        (
            {"offsets_commit_required_acks": "4"},
            "offsets.commit.required.acks has value 4 which is not in the range (-1,3); "
            "the high end is offsets.topic.replication.factor.",
        ),
        (
            {"log_cleaner_threads": "1000"},
            "log.cleaner.dedupe.buffer.size has value 524288000 "
            "which must be at least 1MB per cleaner thread.",
        ),
    ],
)
def test_bad_values(changes: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        broker(**changes)
    assert str(caught.value) == text


@pytest.mark.parametrize("missing", ["broker.id", "zookeeper.connect"])
def test_required(missing: str) -> None:
    properties = {key: value for key, value in MINIMAL.items() if key != missing}
    with pytest.raises(ConfigError, match=f"Missing required property '{missing}'"):
        BrokerConfig.from_properties(properties)


def test_lists_and_maps() -> None:
    assert parse_list("") == ()
    assert parse_list(" a , b,,c ") == ("a", "b", "c")
    assert parse_map("::1:5, h:6") == {"::1": 5, "h": 6}


def test_log_overrides(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        log_overrides(
            {"port": "1", "broker.id": "0", "external.x": "2", "zz": "3"}, BrokerConfig.keys()
        )
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "Verifying properties"),
        ("INFO", "Property broker.id is overridden to 0"),
        ("INFO", "Property external.x is overridden to 2"),
        ("INFO", "Property port is overridden to 1"),
        ("WARNING", "Property zz is not valid"),
    ]
    assert {record.name for record in caplog.records} == {"kafka.utils.VerifiableProperties"}
