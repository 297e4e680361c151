from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.protocol import schemas
from kafka08.protocol.negotiation import NoApiVersionsError
from kafka08.settings.settings import NumberFormatError
from tests.fakes.cluster import FakeCluster, connect
from tools import brokers
from tools.options import UsageError, run_main
from tools.topics import get_offset_shell
from tools.topics.get_offset_shell import main


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    cluster = FakeCluster()
    cluster.create("t", 3)
    cluster.append("t", 0, b"a", b"b")
    for module in (brokers, get_offset_shell):
        connect(monkeypatch, module, cluster)
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


def test_a_partition_that_is_no_number() -> None:
    with pytest.raises(NumberFormatError, match='For input string: "x"'):
        run("--partitions", "0,x")


def test_unknown_topic_prints_nothing(cluster: FakeCluster, capsys: Any) -> None:
    assert main(["--broker-list", "b0:9090", "--topic", "x", "--time", "-2"]) == 0
    assert capsys.readouterr() == ("", "")


def by_message(*options: str) -> int:
    return main(["--bootstrap-server", "b0:9090", "--topic", "t", *options])


def test_times_of_messages(cluster: FakeCluster, capsys: Any) -> None:
    """Partition 1 has no message that is late enough."""

    def script(port: int, request: Any) -> Any:
        if isinstance(request, schemas.ListOffsetsRequest):
            [(_, [asked])] = request.topics
            offset = -1 if asked.partition == 1 else asked.time
            entry = schemas.OffsetsPartitionResponse(asked.partition, 0, offset=offset)
            return schemas.OffsetsResponse([schemas.OffsetsTopicResponse("t", [entry])])
        return None

    cluster.script = script
    assert by_message("--time", "7") == 0
    assert capsys.readouterr() == ("t:0:7\nt:2:7\n", "")
    for options in ([], ["--time", "-1"]):
        assert by_message(*options) == 0
        assert capsys.readouterr() == ("t:0:2\nt:1:0\nt:2:0\n", "")
    assert run("--partitions", "0") == 0
    assert main(["--broker-list", "b0:9090", "--topic", "t", "--time", "7"]) == 0
    assert len(cluster.sent(schemas.ListOffsetsRequest)) == 3, "--broker-list means segments"


def test_a_broker_that_knows_no_times(cluster: FakeCluster, capsys: Any) -> None:
    def script(port: int, request: Any) -> Any:
        if isinstance(request, schemas.ListOffsetsRequest):
            raise NoApiVersionsError("b0:9090 closed the connection")

    cluster.script = script
    assert run_main(lambda argv: by_message("--time", "7"), []) == 1
    out, err = capsys.readouterr()
    assert not out
    assert "b0:9090 closed the connection" in err


def test_usage() -> None:
    with pytest.raises(UsageError, match="An interactive shell for getting consumer offsets"):
        main([])
    with pytest.raises(UsageError, match=r'Missing required argument "\[time\]"'):
        main(["--broker-list", "b:1", "--topic", "t"])
    with pytest.raises(UsageError, match=r'Missing required argument "\[broker-list\]"'):
        main(["--topic", "t"])
    for option in ("--broker-list", "--offsets"):
        with pytest.raises(UsageError, match=r"can\'t be used with"):
            by_message(option, "1")


def test_a_topic_that_may_not_be_described(cluster: FakeCluster, capsys: Any) -> None:
    """0.8.2.2 has no such error, and its tool would print nothing."""

    def script(port: int, request: Any) -> Any:
        if isinstance(request, schemas.MetadataRequest):
            return schemas.MetadataResponse([], [schemas.TopicMetadata(29, "t", [])])
        return None

    cluster.script = script
    assert run() == 1
    assert capsys.readouterr() == ("", "Error: topic t: TopicAuthorizationFailed\n")
