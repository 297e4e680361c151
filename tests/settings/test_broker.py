from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kafka08.errors import ConfigError
from kafka08.settings.broker import BROKER_KEYS, BrokerConfig, LogConfig, log_overrides
from kafka08.settings.settings import (
    LONG_MAX,
    NumberFormatError,
    UnknownConfigError,
    docs,
    parse_list,
    parse_map,
)

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


def test_topic_config_follows_the_broker() -> None:
    config = LogConfig.from_broker(
        broker(
            log_roll_hours="1",
            log_cleanup_policy="COMPACT ",
            min_insync_replicas="2",
            message_max_bytes="1000",
            log_segment_delete_delay_ms=str(LONG_MAX),
            log_compressed_sets="normalised",
        )
    )
    assert config.segment_ms == 3600000
    assert config.compact
    assert config.min_insync_replicas == 2
    assert config.max_message_bytes == 1000
    assert config.file_delete_delay_ms == LONG_MAX
    assert config.compressed_sets == "normalised"
    assert LogConfig.from_broker(broker()) == LogConfig()


def test_every_topic_setting_follows_its_broker_setting() -> None:
    of_topics_alone = {f"{side}.replication.throttled.replicas" for side in ("leader", "follower")}
    assert set(BROKER_KEYS) == LogConfig.keys() - of_topics_alone
    assert set(BROKER_KEYS.values()) <= BrokerConfig.keys()


def test_an_unknown_cleanup_policy_deletes_on_a_broker_and_compacts_in_a_topic() -> None:
    assert not LogConfig.from_broker(broker(log_cleanup_policy="dedupe")).compact
    assert LogConfig().override({"cleanup.policy": "dedupe"}).compact
    assert not LogConfig(cleanup_policy="compact").override({"cleanup.policy": " Delete"}).compact


@pytest.mark.parametrize(
    ("text", "in_topic", "on_broker"),
    [
        ("delete", "delete", "delete"),
        ("compact", "compact", "compact"),
        ("compact,delete", "compact,delete", "compact,delete"),
        (" Delete , COMPACT ", "compact,delete", "compact,delete"),
        ("delete,compact,delete", "compact,delete", "compact,delete"),
        ("delete,delete", "delete", "delete"),
        ("compact,compact", "compact", "compact"),
        # as 0.8.2.2 takes all that is not the one word it looks for
        ("", "compact", "delete"),
        (",", "compact", "delete"),
        ("compact,", "compact", "delete"),
        ("delete,other", "compact", "delete"),
        ("compact,delete,other", "compact", "delete"),
        ("compact delete", "compact", "delete"),
    ],
)
def test_cleanup_policies(text: str, in_topic: str, on_broker: str) -> None:
    topic = LogConfig().override({"cleanup.policy": text})
    assert topic.cleanup_policy == in_topic
    assert (topic.compact, topic.deletes) == ("compact" in in_topic, "delete" in in_topic)
    assert LogConfig.from_broker(broker(log_cleanup_policy=text)).cleanup_policy == on_broker


@pytest.mark.parametrize("text", ["delete,other", "compact,", ",", "compact,delete,dedupe"])
def test_a_list_of_policies_with_another_word_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"cleanup\.policy"):
        LogConfig.validate({"cleanup.policy": text})


@pytest.mark.parametrize("text", ["", "dedupe", "delete , Compact", "compact", "delete,delete"])
def test_policies_that_a_tool_may_write(text: str) -> None:
    LogConfig.validate({"cleanup.policy": text})


@pytest.mark.parametrize(
    ("least", "most", "why"),
    [
        ("-1", None, "min.compaction.lag.ms has value -1"),
        (None, "0", "max.compaction.lag.ms has value 0"),
        ("6", "5", r"min.compaction.lag.ms \(6\) > max.compaction.lag.ms \(5\)"),
        ("x", None, "x"),
    ],
)
def test_lags_of_compaction_that_are_refused(least: str | None, most: str | None, why: str) -> None:
    given = {"min.compaction.lag.ms": least, "max.compaction.lag.ms": most}
    with pytest.raises(ConfigError, match=why):
        LogConfig.validate({key: value for key, value in given.items() if value is not None})


def test_lags_of_compaction() -> None:
    LogConfig.validate({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"})
    lags = LogConfig.from_broker(
        broker(log_cleaner_min_compaction_lag_ms="3", log_cleaner_max_compaction_lag_ms="9")
    )
    assert (lags.min_compaction_lag_ms, lags.max_compaction_lag_ms) == (3, 9)
    assert lags.override({"min.compaction.lag.ms": "4"}).min_compaction_lag_ms == 4


@pytest.mark.parametrize(
    ("version", "number"),
    [
        *[(version, 0) for version in ("0.8.0", "0.8.1", "0.8.2", "0.8.2.2", "0.9.0", "0.9.0.1")],
        *[(version, 1) for version in ("0.10.0", "0.10.0-IV0", "0.10.1.1", "0.10.2-IV0")],
        *[(version, 2) for version in ("0.11.0", "0.11.0-IV2", "1.0", "1.1.1", "2.8-IV1", "3.9")],
    ],
)
def test_message_formats_are_named_by_releases(version: str, number: int) -> None:
    LogConfig.validate({"message.format.version": version})
    config = LogConfig().override({"message.format.version": version})
    assert (config.message_format, LogConfig().message_format) == (number, 2)
    assert config.message_format_version == version


@pytest.mark.parametrize("version", ["", "0", "0.7.0", "0.8", "0.10", "1", "4.0", "10.0", "2.8x"])
def test_other_releases_have_no_message_format_here(version: str) -> None:
    with pytest.raises(NumberFormatError):
        LogConfig.validate({"message.format.version": version})


def test_limits_of_timestamps() -> None:
    assert LogConfig().timestamp_limits is None
    for key, limits in (
        ("difference", (5, 5)),
        ("before", (5, LONG_MAX)),
        ("after", (LONG_MAX, 5)),
    ):
        config = LogConfig().override({f"message.timestamp.{key}.max.ms": "5"})
        assert config.timestamp_limits == limits
        assert not config.stamps
    assert LogConfig().override({"message.timestamp.type": "LogAppendTime"}).stamps


def test_override() -> None:
    config = LogConfig().override(
        {
            "segment.bytes": "5",
            "retention.ms": "-1",
            "unclean.leader.election.enable": "FALSE",
            "no.such.key": "x",
            "compressed.sets": "normalised",
        }
    )
    assert config == LogConfig(
        segment_bytes=5,
        retention_ms=-1,
        unclean_leader_election_enable=False,
        compressed_sets="normalised",
    )


@pytest.mark.parametrize(
    ("properties", "error", "text"),
    [
        ({"x": "1"}, UnknownConfigError, 'requirement failed: Unknown configuration "x".'),
        ({"segment.bytes": "x"}, NumberFormatError, 'For input string: "x"'),
        ({"segment.bytes": "4294967296"}, NumberFormatError, 'For input string: "4294967296"'),
        ({"file.delete.delay.ms": "4294967296"}, NumberFormatError, "For input"),
        ({"segment.bytes": "9" * 5000}, NumberFormatError, "For input"),
        ({"unclean.leader.election.enable": "1"}, NumberFormatError, 'For input string: "1"'),
        (
            {"min.insync.replicas": "0"},
            ConfigError,
            "Wrong value 0 of min.insync.replicas in topic configuration;  "
            "Valid values are at least 1",
        ),
        ({"compressed.sets": "x"}, ConfigError, "compressed.sets has value x"),
        ({"message.timestamp.type": "now"}, ConfigError, "message.timestamp.type has value now"),
        ({"message.timestamp.before.max.ms": "-1"}, ConfigError, "message.timestamp.before.max.ms"),
        ({"message.downconversion.enable": "no"}, NumberFormatError, 'For input string: "no"'),
    ],
)
def test_validate_refuses(properties: dict[str, str], error: type[ConfigError], text: str) -> None:
    with pytest.raises(error) as caught:
        LogConfig.validate(properties)
    assert str(caught.value).startswith(text)


def test_validate_accepts_every_topic_key() -> None:
    LogConfig.validate(
        {"retention.ms": "1", "min.insync.replicas": "2", "min.cleanable.dirty.ratio": "0.1"}
    )


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
