"""The command line tools of Kafka 4 at one of our brokers, on topics and groups of 0.8 as well."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from integration import builds
from integration.harness import Broker, Tools
from integration.later import programs
from integration.later.member import Member, await_members
from integration.wire import entry

TOPICS = "org.apache.kafka.tools.TopicCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
CLUSTER = "org.apache.kafka.tools.ClusterTool"
ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONFIGS = "kafka.admin.ConfigCommand"
RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
TIMEOUT_S = 120

Tool = Callable[..., str]


@pytest.fixture(scope="module")
def tool(modern_broker: Broker) -> Tool:
    """Runs a tool; what it printed, also if it failed: several tools end with 0 all the same."""
    try:
        class_path = programs.tools_class_path()
    except builds.MissingError as error:
        pytest.skip(str(error))

    def run(name: str, *args: str) -> str:
        command = ["java", *builds.HEAP, "-cp", class_path, name, *args]
        command += ["--bootstrap-server", modern_broker.address]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        return done.stdout + done.stderr

    return run


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


@pytest.mark.scenario("modern-49")
def test_kafka_topics(tool: Tool, our_tools: Tools, modern_broker: Broker) -> None:
    topic = unique("tools")
    tool(TOPICS, "--create", "--topic", topic, "--partitions", "2", "--replication-factor", "1")
    assert topic in tool(TOPICS, "--list").splitlines()
    tool(TOPICS, "--alter", "--topic", topic, "--partitions", "3")
    assert "PartitionCount: 3" in tool(TOPICS, "--describe", "--topic", topic)
    args = ("--zookeeper", modern_broker.zookeeper, "--describe", "--topic", topic)
    assert "PartitionCount:3" in our_tools.run("kafka.admin.TopicCommand", *args).out
    tool(TOPICS, "--delete", "--topic", topic)
    assert topic not in tool(TOPICS, "--list").splitlines()


@pytest.mark.scenario("modern-49")
def test_kafka_configs(tool: Tool, modern_broker: Broker) -> None:
    topic = unique("configs")
    modern_broker.create_topic(topic)
    where = ("--entity-type", "topics", "--entity-name", topic)
    tool(CONFIGS, "--alter", *where, "--add-config", "retention.ms=123456,flush.ms=1000")
    shown = tool(CONFIGS, "--describe", *where)
    assert "retention.ms=123456" in shown and "flush.ms=1000" in shown
    tool(CONFIGS, "--alter", *where, "--delete-config", "flush.ms")
    assert "flush.ms=1000" not in tool(CONFIGS, "--describe", *where)
    broker = ("--entity-type", "brokers", "--entity-name", "0")
    assert "log.dirs" in tool(CONFIGS, "--describe", "--all", *broker)


@pytest.mark.scenario("modern-26")
def test_kafka_get_offsets(tool: Tool, modern_broker: Broker) -> None:
    """On a topic of format 0: there are no times to be found."""
    topic = unique("offsets")
    modern_broker.create_topic(topic)
    with modern_broker.wire() as wire:
        for _ in range(3):
            wire.produce(topic, 0, entry(None, b"x"))
    for time, expected in (("-1", "3"), ("-2", "0")):
        assert f"{topic}:0:{expected}" in tool(OFFSETS, "--topic", topic, "--time", time)
    assert f"{topic}:0" not in tool(OFFSETS, "--topic", topic, "--time", "1")


@pytest.mark.scenario("modern-50")
def test_kafka_delete_records(tool: Tool, modern_broker: Broker, tmp_path: Path) -> None:
    topic = unique("deleted")
    modern_broker.create_topic(topic)
    with modern_broker.wire() as wire:
        for _ in range(3):
            wire.produce(topic, 0, entry(None, b"x"))
    file = tmp_path / "offsets.json"

    def delete(offset: int) -> str:
        wanted = [{"topic": topic, "partition": 0, "offset": offset}]
        file.write_text(json.dumps({"version": 1, "partitions": wanted}))
        return tool(RECORDS, "--offset-json-file", str(file))

    assert f"partition: {topic}-0\tlow_watermark: 2" in delete(2)
    assert f"{topic}:0:2" in tool(OFFSETS, "--topic", topic, "--time", "-2")
    assert "OffsetOutOfRangeException" in delete(4)
    assert f"partition: {topic}-0\tlow_watermark: 3" in delete(-1)
    with modern_broker.wire() as wire:
        assert wire.offset(topic, 0, -2) == 3


@pytest.mark.scenario("modern-49")
def test_kafka_cluster_and_leader_election(tool: Tool, modern_broker: Broker) -> None:
    topic = unique("elected")
    modern_broker.create_topic(topic)
    assert "Cluster ID: " in tool(CLUSTER, "cluster-id")
    where = ("--topic", topic, "--partition", "0")
    assert "already" in tool(ELECTION, "--election-type", "preferred", *where)


@pytest.mark.scenario("modern-42")
def test_42_groups_are_reset_and_deleted(tool: Tool, modern_broker: Broker) -> None:
    reason = programs.missing("confluent-kafka")
    if reason:
        pytest.skip(reason)
    topic, group = unique("reset"), unique("group")
    modern_broker.create_topic(topic)
    programs.run("confluent-kafka", "write", modern_broker.address, topic, "none", 5, "false")
    member = Member("confluent-kafka", modern_broker.address, group, topic)
    try:
        await_members("messages", 60, lambda: len(member.messages) == 5, member)
        named = ("--group", group)
        assert group in tool(GROUPS, "--list").splitlines()
        row = next(line for line in described(tool, group) if topic in line)
        assert row.split()[:6] == [group, topic, "0", "5", "5", "0"]
        to_start = ("--reset-offsets", "--to-earliest", "--topic", topic, "--execute")
        assert "inactive" in tool(GROUPS, *named, *to_start)
        assert "not empty" in tool(GROUPS, *named, "--delete")
        kept = tool(GROUPS, *named, "--delete-offsets", "--topic", topic)
        assert "subscribed" in kept
        member.close()
    finally:
        member.kill()
    tool(GROUPS, *named, *to_start)
    assert next(line for line in described(tool, group) if topic in line).split()[3] == "0"
    tool(GROUPS, *named, "--delete-offsets", "--topic", topic)
    assert not [line for line in described(tool, group) if topic in line]
    tool(GROUPS, *named, "--delete")
    assert group not in tool(GROUPS, "--list").splitlines()


def described(tool: Tool, group: str) -> list[str]:
    return tool(GROUPS, "--describe", "--group", group).splitlines()


@pytest.mark.scenario("modern-39")
def test_39_offsets_of_a_consumer_of_0_8_are_shown(tool: Tool, modern_broker: Broker) -> None:
    topic, group = unique("stored"), unique("group")
    modern_broker.create_topic(topic)
    with modern_broker.wire() as wire:
        for _ in range(3):
            wire.produce(topic, 0, entry(None, b"x"))
        assert wire.commit(group, topic, 0, 2) == 0
    row = next(line for line in described(tool, group) if topic in line)
    assert row.split()[:6] == [group, topic, "0", "2", "3", "1"]
