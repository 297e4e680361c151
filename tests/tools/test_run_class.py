from __future__ import annotations

import gc
import signal
from pathlib import Path

import pytest

from kafka08 import log4j
from tools import run_class


@pytest.fixture(autouse=True)
def _no_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prevent the changes that run_class makes to its own process: logging, gc, signals."""
    monkeypatch.setattr(log4j, "configure", lambda *_, **__: None)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)


@pytest.mark.parametrize("class_name", run_class.MODULES)
def test_help(class_name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_class.main([class_name, "--help"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    if run_class.takes_no_options(run_class.module_of(class_name)):
        (line,) = said.out.splitlines()
        assert line.lower().startswith("usage: ")
    else:
        assert said.out.startswith("Option  ")


@pytest.mark.parametrize(
    "words",
    [
        ["kafka.tools.ConsoleConsumer", "--zookeeper", "h", "--topic", "t", "--consumer.config"],
        [
            "kafka.tools.ConsoleProducer",
            "--broker-list",
            "h:1",
            "--topic",
            "t",
            "--producer.config",
        ],
        ["kafka.admin.TopicCommand", "--bootstrap-server", "h:1", "--list", "--command-config"],
        ["kafka.admin.ConsumerGroupCommand", "--zookeeper", "h", "--list", "--command-config"],
        [
            "kafka.tools.MirrorMaker",
            "--producer.config",
            "CONFIG",
            "--whitelist",
            "t",
            "--consumer.config",
        ],
        ["org.apache.kafka.connect.cli.ConnectStandalone", "CONFIG", "CONFIG"],
        ["org.apache.zookeeper.server.quorum.QuorumPeerMain"],
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("exists", [False, True])
def test_a_configuration_that_is_no_file(
    words: list[str], exists: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is missing, or a directory: one line."""
    path = str(tmp_path) if exists else f"{tmp_path}/missing.properties"
    words = [path if word == "CONFIG" else word for word in words]
    assert run_class.main(words if words[-1] == path else [*words, path]) in (1, 2)
    (line,) = capsys.readouterr().err.splitlines()
    assert path in line
    assert ("Is a directory" if exists else "No such file or directory") in line
