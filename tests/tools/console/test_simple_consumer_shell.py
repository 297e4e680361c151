from __future__ import annotations

from typing import Any

import pytest

from kafka08.protocol import schemas
from tests.fakes.cluster import FakeCluster, connect
from tools import brokers
from tools.console import simple_consumer_shell
from tools.console.simple_consumer_shell import main
from tools.options import UsageError


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    cluster = FakeCluster()
    cluster.create("t", 1)
    cluster.append("t", 0, b"a", b"b", b"c", codec=1)
    cluster.append("t", 0, b"d")
    for module in (brokers, simple_consumer_shell):
        connect(monkeypatch, module, cluster)
    return cluster


def run(*options: str) -> int:
    return main(["--broker-list", "b0:9090", "--topic", "t", "--partition", "0", *options])


END = b"Terminating. Reached the end of partition (t, 0) at offset 4\n"


def test_to_the_end_of_the_log(cluster: FakeCluster, capfdbinary: Any) -> None:
    assert run("--no-wait-at-logend") == 0
    assert capfdbinary.readouterr().out == b"a\nb\nc\nd\n" + END
    assert {request.replica_id for request in cluster.sent(schemas.FetchRequest)} == {-2}


def test_start_inside_a_compressed_set_with_offsets(cluster: FakeCluster, capfdbinary: Any) -> None:
    assert run("--offset", "2", "--print-offsets", "--max-messages", "2") == 0
    assert capfdbinary.readouterr().out == b"next offset = 3\nc\nnext offset = 4\nd\n"


def test_a_message_that_does_not_fit_is_fetched_with_more(
    cluster: FakeCluster, capfdbinary: Any
) -> None:
    assert run("--fetchsize", "20", "--no-wait-at-logend") == 0
    assert capfdbinary.readouterr().out == b"a\nb\nc\nd\n" + END


def test_latest(cluster: FakeCluster, capfdbinary: Any) -> None:
    assert run("--offset", "-1", "--no-wait-at-logend") == 0
    assert capfdbinary.readouterr().out == END


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--partition=9"], "Error: partition 9 does not exist for topic t\n"),
        (
            ["--partition=0", "--replica", "9"],
            "Error: replica 9 does not exist for partition (t, 0)\n",
        ),
        (["--partition=0", "--offset", "-3"], "Invalid starting offset: -3\n"),
    ],
)
def test_refusals(cluster: FakeCluster, capsys: Any, options: list[str], text: str) -> None:
    assert main(["--broker-list", "b0:9090", "--topic", "t", *options]) == 1
    assert capsys.readouterr().err == text


def test_error_is_logged_and_exits_0(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    assert run("--offset", "77") == 0
    assert "Error consuming topic, partition, replica (t, 0, -1)" in caplog.text


def test_usage() -> None:
    with pytest.raises(UsageError, match="A low-level tool for fetching data"):
        main([])
    with pytest.raises(UsageError, match=r'Missing required argument "\[partition\]"'):
        main(["--broker-list", "b:1", "--topic", "t"])
