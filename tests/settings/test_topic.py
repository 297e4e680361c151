from __future__ import annotations

import pytest

from kafka08.errors import ConfigError
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.settings import LONG_MAX, NumberFormatError, UnknownConfigError
from kafka08.settings.topic import BROKER_KEYS, LogConfig
from tests.settings.test_broker import broker


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
        (
            {"message.downconversion.isolation.level": "dirty"},
            ConfigError,
            "message.downconversion.isolation.level has value dirty",
        ),
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
