from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka08 import admin
from kafka08.common import Broker
from kafka08.errors import ConfigError, UnknownTopicOrPartitionError
from kafka08.protocol import admin_schemas as a
from kafka08.protocol.schemas import MetadataRequest
from tests.server.admin_support import AdminRig
from tests.tools.command import Command
from tools import admin_command, brokers
from tools.topics import topics

FAILED = "Error while executing topic command : "
CLOSED = (
    "host1:9091, host2:9092: closed the connection over an administrative request, as Kafka "
    "0.8.2.2 does"
)
NOT_SERVED = f"{CLOSED}. Use --zookeeper instead."


class RemoteTopics(Command):
    """kafka-topics --bootstrap-server against a rig; what it printed comes back."""

    def __init__(self, rig: AdminRig, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(topics.main, "--bootstrap-server", "host1:9091,host2:9092", capsys=capsys)
        self.rig = rig
        self.stderr = ""

    def run(self, *words: str, status: int = 0) -> list[str]:
        printed = self.call(*words, status=status)
        self.stderr = printed.err
        return printed.out.splitlines()

    def fail(self, *words: str) -> str:
        [line] = self.run(*words, status=1)
        assert line.startswith(FAILED)
        return line.removeprefix(FAILED)


@pytest.fixture
def make_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., RemoteTopics]:
    def make(**settings: Any) -> RemoteTopics:
        rig = AdminRig(tmp_path, **settings)
        monkeypatch.setattr(brokers, "AdminClient", rig.client)
        monkeypatch.setattr(admin_command, "connect", None)
        return RemoteTopics(rig, capsys)

    return make


@pytest.fixture
def tool(make_tool: Callable[..., RemoteTopics]) -> RemoteTopics:
    return make_tool()


@pytest.fixture
def original(tool: RemoteTopics) -> RemoteTopics:
    """All brokers are of 0.8.2.2."""
    tool.rig.originals = {9091, 9092}
    return tool


def test_list(tool: RemoteTopics) -> None:
    assert tool.run("--list") == []
    for topic in ("u", "t", "__consumer_offsets"):
        tool.rig.create(topic, [1])
    assert tool.run("--list") == ["__consumer_offsets", "t", "u"]
    assert tool.run("--list", "--exclude-internal") == ["t", "u"]
    assert tool.run("--list", "--topic", "t,x") == ["t"]
    assert tool.run("--list", "--topic", "x") == []
    assert admin.list_topics(tool.rig.zk) == ["__consumer_offsets", "t", "u"]


def test_describe(tool: RemoteTopics) -> None:
    tool.rig.create("t", [1, 2], [2, 1], flush_ms="5", cleanup_policy="compact")
    tool.rig.create("u", [1])
    described = [
        "Topic:t\tPartitionCount:2\tReplicationFactor:2\tConfigs:cleanup.policy=compact,flush.ms=5",
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2",
        "\tTopic: t\tPartition: 1\tLeader: 2\tReplicas: 2,1\tIsr: 2,1",
    ]
    other = [
        "Topic:u\tPartitionCount:1\tReplicationFactor:1\tConfigs:",
        "\tTopic: u\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1",
    ]
    assert tool.run("--describe") == [*described, *other]
    assert tool.run("--describe", "--topic", "t") == described
    assert tool.run("--describe", "--topics-with-overrides") == described[:1]
    assert tool.run("--describe", "--topic", "no") == []


def test_describe_partitions_that_lack_something(make_tool: Callable[..., RemoteTopics]) -> None:
    tool = make_tool(min_insync_replicas=2)
    tool.rig.create("t", [1, 2], [2, 1], min_insync_replicas="1")
    tool.rig.create("u", [1, 2])
    assert tool.run("--describe", "--under-replicated-partitions") == []
    assert tool.run("--describe", "--unavailable-partitions") == []
    assert tool.run("--describe", "--under-min-isr-partitions") == []
    at_min = ["\tTopic: u\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2"]
    assert tool.run("--describe", "--at-min-isr-partitions") == at_min
    tool.rig.cache.update([], [Broker(1, "host1", 9091)])
    assert tool.run("--describe", "--under-replicated-partitions") == [
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1",
        "\tTopic: t\tPartition: 1\tLeader: none\tReplicas: 1\tIsr: ",
        "\tTopic: u\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1",
    ]
    offline = "\tTopic: t\tPartition: 1\tLeader: none\tReplicas: 1\tIsr: "
    assert tool.run("--describe", "--unavailable-partitions") == [offline]
    assert tool.run("--describe", "--under-min-isr-partitions") == [
        offline,
        "\tTopic: u\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1",
    ]


def test_create(tool: RemoteTopics) -> None:
    words = ["--partitions", "3", "--replication-factor", "2", "--config", "flush.ms=5"]
    assert tool.run("--create", "--topic", "t", *words) == ["Created topic t."]
    assert tool.rig.config("t") == {"flush.ms": "5"}
    assert [len(r) for r in (tool.rig.assignment("t") or {}).values()] == [2, 2, 2]
    by_hand = ["--create", "--topic", "h", "--replica-assignment", "1:2,2:1"]
    assert tool.run(*by_hand) == ["Created topic h."]
    assert tool.rig.assignment("h") == {0: (1, 2), 1: (2, 1)}
    assert tool.run("--create", "--topic", "d") == ["Created topic d."]
    assert len(tool.rig.assignment("d") or {}) == 2
    assert tool.fail("--create", "--topic", "d") == "Topic 'd' already exists."
    assert tool.run("--create", "--topic", "d", "--if-not-exists") == []


def test_losing_the_race_to_create(tool: RemoteTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    admin.create_topic_with_assignment(tool.rig.zk, "t", {0: [1]})
    assert tool.fail("--create", "--topic", "t") == "Topic 't' already exists."
    assert tool.run("--create", "--topic", "t", "--if-not-exists") == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--partitions", "0"], "number of partitions must be larger than 0"),
        (["--replication-factor", "-1"], "replication factor must be larger than 0"),
        (
            ["--replication-factor", "40000"],
            "The replication factor's maximum value must be smaller or equal to 32767",
        ),
        (
            ["--replication-factor", "3"],
            "replication factor: 3 larger than available brokers: 2",
        ),
        (["--config", "x=1"], 'requirement failed: Unknown configuration "x".'),
        (
            ["--replica-assignment", "1:1"],
            "Partition replica lists may not contain duplicate entries: 1",
        ),
    ],
)
def test_create_refused(tool: RemoteTopics, words: list[str], message: str) -> None:
    assert tool.fail("--create", "--topic", "t", *words) == message
    assert admin.list_topics(tool.rig.zk) == []


def test_alter(tool: RemoteTopics, caplog: pytest.LogCaptureFixture) -> None:
    tool.rig.create("t", [1], flush_ms="5")
    words = ["--config", "retention.ms=7", "--delete-config", "flush.ms"]
    assert tool.run("--alter", "--topic", "t", *words) == ["Updated config for topic t."]
    assert tool.rig.config("t") == {"retention.ms": "7"}
    assert tool.run("--alter", "--topic", "t", "--partitions", "2") == []
    words = ["--partitions", "3", "--replica-assignment", "1,1,2"]
    assert tool.run("--alter", "--topic", "t", *words) == []
    assert (tool.rig.assignment("t") or {})[2] == (2,)
    message = "The number of partitions for a topic can only be increased"
    assert tool.fail("--alter", "--topic", "t", "--partitions", "3") == message
    [record] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.name == "kafka.admin.TopicCommand$"
    assert record.getMessage().startswith(f"kafka.admin.AdminOperationException: {message}\n\tat ")


@pytest.mark.parametrize("words", [["--delete"], ["--alter", "--partitions", "2"]])
def test_topics_that_do_not_exist(tool: RemoteTopics, words: list[str]) -> None:
    assert tool.fail(*words, "--topic", "no") == "Topic 'no' does not exist as expected"
    assert tool.run(*words, "--topic", "no", "--if-exists") == []


def test_delete(tool: RemoteTopics) -> None:
    for topic in ("a1", "a2", "b"):
        tool.rig.create(topic, [1])
    assert tool.run("--delete", "--topic", "a.") == []
    assert admin.list_topics(tool.rig.zk) == ["b"]


def test_delete_where_it_is_off(make_tool: Callable[..., RemoteTopics]) -> None:
    tool = make_tool(delete_topic_enable="false")
    tool.rig.create("t", [1])
    assert tool.fail("--delete", "--topic", "t") == (
        "Topic deletion is disabled (delete.topic.enable)"
    )


def test_a_change_that_takes_too_long(tool: RemoteTopics, tmp_path: Path) -> None:
    tool.rig.controller_works = False
    config = tmp_path / "admin.properties"
    config.write_text("request.timeout.ms=300\nclient.id=me\n")
    words = ["--create", "--topic", "t", "--command-config", str(config)]
    assert tool.fail(*words) == "The change was accepted, but is not in effect yet"
    assert sum(tool.rig.runtime.slept) == pytest.approx(0.3)


def test_security_is_not_pretended(tool: RemoteTopics, tmp_path: Path) -> None:
    config = tmp_path / "admin.properties"
    config.write_text("security.protocol=KERBEROS\n")
    with pytest.raises(ConfigError, match=r"security\.protocol KERBEROS is not one of PLAINTEXT"):
        tool.run("--list", "--command-config", str(config))


# --- brokers of 0.8.2.2


def test_an_original_describes_without_configs(original: RemoteTopics) -> None:
    original.rig.create("t", [1], flush_ms="5")
    assert original.run("--describe") == [
        "Topic:t\tPartitionCount:1\tReplicationFactor:1\tConfigs:",
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1",
    ]
    assert original.stderr == f"WARNING: configs are not shown: {NOT_SERVED}\n"
    assert original.run("--describe", "--unavailable-partitions") == []
    assert original.stderr == ""


def test_an_original_creates_with_its_defaults(original: RemoteTopics) -> None:
    assert original.run("--create", "--topic", "t") == ["Created topic t."]
    assert len(original.rig.assignment("t") or {}) == 2


def test_an_original_that_creates_nothing(make_tool: Callable[..., RemoteTopics]) -> None:
    tool = make_tool(auto_create_topics_enable="false")
    tool.rig.originals = {9091, 9092}
    assert tool.fail("--create", "--topic", "t") == UnknownTopicOrPartitionError.text


@pytest.mark.parametrize(
    "words",
    [
        ["--create", "--topic", "n", "--partitions", "1"],
        ["--create", "--topic", "n", "--config", "flush.ms=1"],
        ["--create", "--topic", "n", "--replica-assignment", "1"],
        ["--alter", "--topic", "t", "--config", "flush.ms=1"],
        ["--alter", "--topic", "t", "--partitions", "2"],
        ["--delete", "--topic", "t"],
        ["--describe", "--topics-with-overrides"],
        ["--describe", "--under-min-isr-partitions"],
    ],
)
def test_an_original_cannot(original: RemoteTopics, words: list[str]) -> None:
    original.rig.create("t", [1])
    assert original.fail(*words) == NOT_SERVED
    assert admin.list_topics(original.rig.zk) == ["t"]


def test_one_broker_of_ours_is_enough(original: RemoteTopics) -> None:
    original.rig.originals = {9091}
    assert original.run("--create", "--topic", "t", "--partitions", "1") == ["Created topic t."]
    asked = [
        (port, type(r))
        for port, r in original.rig.network.requests
        if type(r) is not MetadataRequest
    ]
    assert asked == [
        (9091, a.DescribeConfigsRequest),
        (9092, a.DescribeConfigsRequest),
        (9092, a.CreateTopicsRequest),
    ]


def test_brokers_that_are_down(original: RemoteTopics) -> None:
    original.rig.create("t", [1])
    original.rig.network.down = {9091}
    assert original.fail("--delete", "--topic", "t") == (NOT_SERVED.replace("host1:9091, ", ""))
    original.rig.network.down = {9091, 9092}
    assert original.fail("--list").startswith("fetching topic metadata for topics [] failed")
