from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import TopicPartition
from tests.fakes.cluster import FakeCluster, connect
from tools.options import UsageError
from tools.topics import get_offset_shell
from tools.topics.get_offset_shell import main


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    cluster = FakeCluster()
    cluster.create("t", 3)
    cluster.append("t", 0, b"a", b"b")
    connect(monkeypatch, get_offset_shell, cluster)
    return cluster


def run(*options: str) -> int:
    return main(["--broker-list", "b0:9090", "--topic", "t", "--time", "-1", *options])


def test_all_partitions(cluster: FakeCluster, capsys: Any) -> None:
    assert run() == 0
    assert capsys.readouterr() == ("t:0:2\nt:1:0\nt:2:0\n", "")


def test_chosen_and_missing_partitions(cluster: FakeCluster, capsys: Any) -> None:
    cluster.leaders[TopicPartition("t", 2)] = -1
    assert run("--partitions", "0,2,9") == 0
    out, err = capsys.readouterr()
    assert out == "t:0:2\n"
    assert err == (
        "Error: partition 2 does not have a leader. Skip getting offsets\n"
        "Error: partition 9 does not exist\n"
    )


def test_unknown_topic_prints_nothing(cluster: FakeCluster, capsys: Any) -> None:
    assert main(["--broker-list", "b0:9090", "--topic", "x", "--time", "-2"]) == 0
    assert capsys.readouterr() == ("", "")


def test_usage() -> None:
    with pytest.raises(UsageError, match="An interactive shell for getting consumer offsets"):
        main([])
    with pytest.raises(UsageError, match=r'Missing required argument "\[time\]"'):
        main(["--broker-list", "b:1", "--topic", "t"])
