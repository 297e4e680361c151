"""APIs 19 to 37: names and numbers from the wire that must not get far."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kafka08.errors import LaterCode
from kafka08.protocol import admin_schemas as a
from tests.server.support import ME, Rig, partition_state
from zk import znodes
from zk.errors import DataTooLargeError

ILLEGAL = ["", ".", "..", "../x", "t/partitions", "a/b", "a\0b", "x" * 256]


@pytest.fixture
def rig_with_topic(rig: Rig) -> Rig:
    rig.register(ME)
    assert create(rig, "t", 1) == {"t": 0}
    rig.zk.ensure_path(znodes.topic_partitions_path("t"))
    return rig


def create(rig: Rig, topic: str, partitions: int, replicas: int = 1) -> dict[str, int]:
    rig.know(partition_state(topic))  # or it would wait for that
    new = a.NewTopic(topic, partitions, replicas, [], [])
    answer = rig.call(a.CreateTopicsRequest([new], 0, False))
    return {topic: error for topic, error, _ in answer.topics}


def more(rig: Rig, topic: str, count: int) -> list[Any]:
    asked = a.MorePartitions(topic, count, [])
    return [error for _, error, _ in rig.call(a.CreatePartitionsRequest([asked], 0, False)).topics]


def alter(rig: Rig, name: str) -> list[Any]:
    config = [a.TopicConfigEntry("retention.ms", "5")]
    asked = a.AlteredResource(a.TOPIC_RESOURCE, name, config)
    answer = rig.call(a.AlterConfigsRequest([asked], False))
    return [each[0] for each in answer.resources]


def describe(rig: Rig, name: str) -> list[Any]:
    asked = a.DescribedResource(a.TOPIC_RESOURCE, name, [])
    return [each[0] for each in rig.call(a.DescribeConfigsRequest([asked])).resources]


@pytest.mark.parametrize("name", ILLEGAL)
def test_names_that_are_paths_to_something_else(rig_with_topic: Rig, name: str) -> None:
    rig = rig_with_topic
    before = {path: node.data for path, node in rig.zookeeper.nodes.items()}
    assert create(rig, name, 1) == {name: 17}
    assert rig.call(a.DeleteTopicsRequest([name], 0)) == ([(name, 17)],)
    assert more(rig, name, 5) == alter(rig, name) == describe(rig, name) == [17]
    assert {path: node.data for path, node in rig.zookeeper.nodes.items()} == before


@pytest.mark.parametrize("count", [50_001, 2**31 - 1])
def test_numbers_that_would_hold_the_broker_up(rig_with_topic: Rig, count: int) -> None:
    rig = rig_with_topic
    assert create(rig, "u", count) == {"u": LaterCode.INVALID_PARTITIONS}
    assert more(rig, "t", count) == [LaterCode.INVALID_PARTITIONS]


def by_hand(rig: Rig, *replicas: list[int]) -> tuple[int, str]:
    assignment = [a.ReplicaAssignment(number, each) for number, each in enumerate(replicas)]
    new = a.NewTopic("u", -1, -1, assignment, [])
    ((_, error, message),) = rig.call(a.CreateTopicsRequest([new], 0, False)).topics
    return error, message


def test_assignments_by_hand_that_would_hold_the_broker_up(rig_with_topic: Rig) -> None:
    rig = rig_with_topic
    assert by_hand(rig, *[[ME]] * 50_001)[0] == LaterCode.INVALID_PARTITIONS
    assert by_hand(rig, list(range(200_001)))[0] == LaterCode.INVALID_REPLICA_ASSIGNMENT
    asked = a.MorePartitions("t", 2, [list(range(200_001))])
    answer = rig.call(a.CreatePartitionsRequest([asked], 0, False))
    assert [error for _, error, _ in answer.topics] == [LaterCode.INVALID_REPLICA_ASSIGNMENT]
    assert znodes.topic_path("u") not in rig.zookeeper.nodes


def test_what_zookeeper_would_not_take(
    rig_with_topic: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = rig_with_topic

    def refuse(ops: Any) -> None:
        raise DataTooLargeError("too much")

    monkeypatch.setattr(rig.zk, "multi", refuse)
    assert create(rig, "u", 1) == {"u": LaterCode.INVALID_REQUEST}


def test_log_lines_and_messages_stay_short(
    rig_with_topic: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig = rig_with_topic
    caplog.set_level(logging.INFO)
    rig.know(partition_state("u"))
    assert by_hand(rig, *[[ME]] * 5_000)[0] == 0
    asked = a.MorePartitions("t", 10_001, [[ME]] * 10_000)
    rig.call(a.CreatePartitionsRequest([asked], 0, False))
    asked = a.MorePartitions("t", 10_002, [list(range(10_000))])
    ((_, _, message),) = rig.call(a.CreatePartitionsRequest([asked], 0, False)).topics
    assert len(message) == 1000
    assert max(len(record.getMessage()) for record in caplog.records) < 3000


@pytest.mark.parametrize("count", [0, -2, -(2**15)])
def test_numbers_that_are_none(rig_with_topic: Rig, count: int) -> None:
    rig = rig_with_topic
    assert create(rig, "u", count) == {"u": LaterCode.INVALID_PARTITIONS}
    assert create(rig, "u", 1, count) == {"u": LaterCode.INVALID_REPLICATION_FACTOR}
    assert more(rig, "t", count) == [LaterCode.INVALID_PARTITIONS]


def test_what_is_in_order_gets_through(rig_with_topic: Rig) -> None:
    rig = rig_with_topic
    assert rig.config.delete_topic_enable is False
    assert alter(rig, "t") == describe(rig, "t") == [0]
    assert more(rig, "t", 3) == [7]  # carried out, not yet to be seen
    assert rig.call(a.DeleteTopicsRequest(["t"], 0)) == ([("t", LaterCode.INVALID_REQUEST)],)
