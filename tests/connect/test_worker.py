"""A worker refuses bad settings before it starts a task, and runs tasks of all connectors."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.connect.interface import JobConnector, JobTask
from kafka08.connect.worker import Worker
from kafka08.errors import ConfigError

FILE = {"name": "a", "connector.class": "FileStreamSource", "file": "f", "topic": "t"}


class CountingTask(JobTask):
    runs = 0

    def run(self) -> None:
        CountingTask.runs += 1
        if CountingTask.runs == 3:
            raise ValueError("enough")


class CountingJob(JobConnector):
    task_class = CountingTask


def worker(tmp_path: Path, **more: str) -> Worker:
    named = {key.replace("__", "."): value for key, value in more.items()}
    offsets = {"offset.storage.file.filename": str(tmp_path / "offsets")}
    return Worker({"bootstrap.servers": "127.0.0.1:1", **offsets, **named})


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("bootstrap__servers", "h", "bootstrap.servers has value h"),
        ("offset__flush__interval__ms", "0", "offset.flush.interval.ms has value 0"),
        ("producer__acks", "some", "acks has value some"),
        ("producer__compression__type", "zip", "compression.type has value zip"),
    ],
)
def test_bad_settings_of_the_worker(tmp_path: Path, option: str, value: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        worker(tmp_path, **{option: value})


def test_bad_settings_of_consumers(tmp_path: Path) -> None:
    made = worker(tmp_path, consumer__fetch__wait__max__ms="x")
    with pytest.raises(ConfigError, match=r"fetch\.wait\.max\.ms has value x"):
        made.add({"name": "k", "connector.class": "FileStreamSink", "topics": "t"})


def test_all_connections_are_secured_in_one_way(tmp_path: Path) -> None:
    path = str(tmp_path / "o")
    given = {"bootstrap.servers": "h:1", "offset.storage.file.filename": path}
    for prefix in ("producer.", "consumer."):
        with pytest.raises(ConfigError, match=f"{prefix}security.protocol has another value than"):
            Worker({**given, f"{prefix}security.protocol": "SSL"})
        Worker({**given, f"{prefix}security.protocol": "SSL", "security.protocol": "SSL"})
    with pytest.raises(ConfigError, match=r"sasl.jaas.config has no value"):
        Worker({**given, "security.protocol": "SASL_SSL"})


def test_names_are_unique(tmp_path: Path) -> None:
    made = worker(tmp_path)
    made.add(FILE)
    with pytest.raises(ConfigError, match="name has value a which another connector has"):
        made.add(FILE)


def test_a_converter_of_ones_own_forgets_the_settings_of_the_workers(tmp_path: Path) -> None:
    made = worker(tmp_path, value__converter="json", value__converter__schemas__enable="maybe")
    with pytest.raises(ConfigError, match="maybe"):
        made.add(FILE)
    made.add({**FILE, "value.converter": "json"})


def test_misspelt_options_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        worker(tmp_path).add({**FILE, "bach.size": "5", "value.converter.x": "y"})
    assert [record.getMessage() for record in caplog.records] == [
        "Property bach.size of a is not valid"
    ]


def test_no_broker_is_an_error_that_names_the_option(tmp_path: Path) -> None:
    made = worker(tmp_path)
    made.add(FILE)
    with pytest.raises(ConfigError, match=r"bootstrap\.servers has value 127\.0\.0\.1:1"):
        made.start()
    made.stop()


def test_jobs_run_until_they_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ClusterClient, "fetch_metadata", lambda self, topics: None)
    made = worker(tmp_path)
    made.add({"name": "j", "connector.class": f"{__name__}.CountingJob"})
    made.start()
    assert made.wait(timeout=10)
    made.stop()
    assert {name: str(error) for name, error in made.errors().items()} == {"j-0": "enough"}
    assert CountingTask.runs == 3
