"""kafka08.client.log_dirs."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.client.log_dirs import DiskUse, TopicSize, disk_use, sizes
from kafka08.common import Broker, TopicPartition
from kafka08.protocol.admin_schemas import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    LogDir,
    LogDirPartition,
    LogDirTopic,
)
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime

BROKERS = (Broker(1, "b1", 9091), Broker(2, "b2", 9092))
T, U = TopicPartition("t", 0), TopicPartition("u", 3)


def directory(**topics: tuple[int, int]) -> LogDir:
    """Of each topic a partition with its size."""
    return LogDir(
        0,
        "/data",
        [
            LogDirTopic(topic, [LogDirPartition(number, size, 0, False)])
            for topic, (number, size) in topics.items()
        ],
    )


ANSWERS = {
    9091: DescribeLogDirsResponse(0, [directory(t=(0, 100)), directory(u=(3, 7))]),
    9092: DescribeLogDirsResponse(0, [directory(t=(0, 90))]),
}


def asked(answers: dict[int, Any], *down: int) -> tuple[FakeCluster, DiskUse]:
    cluster = FakeCluster(BROKERS)
    cluster.script = lambda port, request: (
        answers[port] if isinstance(request, DescribeLogDirsRequest) else None
    )
    cluster.down = set(down)
    client = ClusterClient([("b1", 9091)], runtime=FakeRuntime(), channel=cluster.channel)
    return cluster, disk_use(client, BROKERS)


def test_sizes_of_brokers_topics_and_replicas() -> None:
    cluster, found = asked(ANSWERS)
    assert found.brokers == {1: 107, 2: 90}
    assert found.topics == {"t": TopicSize(190, 100, 2), "u": TopicSize(7, 7, 1)}
    assert found.replicas == {T: {1: 100, 2: 90}, U: {1: 7}}
    assert [len(each) for each in found.directories.values()] == [2, 1]
    assert len(cluster.sent(DescribeLogDirsRequest)) == 2  # one to each broker


def test_a_replica_that_moves_between_directories_has_both() -> None:
    assert sizes([directory(t=(0, 5)), directory(t=(0, 3))]) == {T: 8}


@pytest.mark.parametrize("refusal", [None, DescribeLogDirsResponse(0, [], 31)])
def test_a_broker_that_does_not_answer_is_left_out(
    refusal: DescribeLogDirsResponse | None, caplog: pytest.LogCaptureFixture
) -> None:
    _, found = asked(ANSWERS | {9092: refusal}, *([] if refusal else [9092]))
    assert found.brokers == {1: 107}
    assert found.topics["t"] == TopicSize(100, 100, 1)
    assert "Broker 2 did not return its data directories" in caplog.text
