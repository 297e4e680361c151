"""The settings of workers and of all connectors."""

from __future__ import annotations

import pytest

from kafka08.connect.config import ConnectorConfig, SinkConfig, WorkerConfig
from kafka08.errors import ConfigError

WORKER = {"bootstrap.servers": "a:1,b:2", "offset.storage.file.filename": "/o"}


def test_defaults_of_a_worker() -> None:
    config = WorkerConfig.from_properties(WORKER)
    assert config.bootstrap_servers == ("a:1", "b:2")
    assert config.key_converter == config.value_converter
    assert config.key_converter == "org.apache.kafka.connect.json.JsonConverter"
    assert (config.offset_flush_interval_ms, config.offset_flush_timeout_ms) == (60000, 5000)
    assert config.plugin_path == ()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"bootstrap.servers": "a"}, "bootstrap.servers has value a: "),
        ({"offset.flush.interval.ms": "0"}, "offset.flush.interval.ms"),
        ({"task.shutdown.graceful.timeout.ms": "-1"}, "task.shutdown.graceful.timeout.ms"),
    ],
)
def test_a_worker_s_bad_values_are_named(changes: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        WorkerConfig.from_properties({**WORKER, **changes})


def test_a_connector_has_a_name() -> None:
    given = {"name": "c", "connector.class": "FileStreamSink"}
    assert ConnectorConfig.from_properties(given).tasks_max == 1
    with pytest.raises(ConfigError, match="name has value ' ' which is empty"):
        ConnectorConfig.from_properties({**given, "name": " "})
    with pytest.raises(ConfigError, match=r"tasks\.max"):
        ConnectorConfig.from_properties({**given, "tasks.max": "0"})


def test_a_sink_reads_a_list_or_a_regex() -> None:
    assert SinkConfig.from_properties({"topics": "a, b"}).topics == ("a", "b")
    assert SinkConfig.from_properties({"topics.regex": "a.*"}).topics_regex == "a.*"
    for given in ({}, {"topics": "a", "topics.regex": "b"}):
        with pytest.raises(ConfigError, match=r"one of topics and topics\.regex"):
            SinkConfig.from_properties(given)
    with pytest.raises(ConfigError, match=r"topics.regex has value \( which is not a regex"):
        SinkConfig.from_properties({"topics.regex": "("})
