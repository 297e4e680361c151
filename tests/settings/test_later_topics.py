"""Topic settings of later releases that change nothing."""

from __future__ import annotations

import pytest

from kafka08.errors import ConfigError
from kafka08.settings.later_topics import LaterTopicSettings
from kafka08.settings.topic import LogConfig


def test_they_are_not_settings_of_logs() -> None:
    assert not LaterTopicSettings.keys() & LogConfig.keys()


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("compression.type", ["producer"]),
        ("compression.gzip.level", ["-1", "1", "9"]),
        ("compression.lz4.level", ["1", "17"]),
        ("compression.zstd.level", ["-131072", "0", "22"]),
        ("preallocate", ["false", "FALSE", " false "]),
        ("remote.storage.enable", ["false"]),
        ("local.retention.ms", ["-2", "0", "9223372036854775807"]),
        ("local.retention.bytes", ["-2", "-1", "5"]),
    ],
)
def test_values_that_are_accepted(key: str, values: list[str]) -> None:
    for value in values:
        LogConfig.validate({key: value})
        assert LogConfig().override({key: value}) == LogConfig()


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        (
            "compression.type",
            "zstd",
            "compression.type has value zstd which is not one of producer. Messages are stored "
            "with the codec of their producer.",
        ),
        (
            "preallocate",
            "True",
            "preallocate has value true which is not one of false. Segments grow as messages are "
            "appended.",
        ),
        (
            "compression.gzip.level",
            "10",
            "compression.gzip.level has value 10 which is not one of -1, 1, 2, 3, 4, 5, 6, 7, 8, "
            "9.",
        ),
    ],
)
def test_others_are_refused_with_the_reason(key: str, value: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        LogConfig.validate({key: value})
    assert str(caught.value) == text


@pytest.mark.parametrize("value", ["gzip", "snappy", "nonsense"])
def test_a_value_that_another_tool_stored_does_not_cost_the_topic_its_settings(value: str) -> None:
    stored = {"compression.type": value, "preallocate": "true", "flush.ms": "5"}
    assert LogConfig().override(stored) == LogConfig(flush_ms=5)
