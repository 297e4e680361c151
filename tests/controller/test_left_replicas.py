"""Replicas whose brokers were away when a reassignment moved their partition to others."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.protocol import schemas
from tests.controller.cluster import ControllerCluster
from zk import znodes

T0 = TopicPartition("t", 0)
NOTE = znodes.delete_replica_path(*T0, 3)


def moved_while_3_was_away(**settings: str) -> ControllerCluster:
    """T0 went from 2 and 3 to 2 and 4; broker 1 is controller."""
    cluster = ControllerCluster(**settings)
    cluster.start(1, 2, 3, 4)
    cluster.create_topic("t", [2, 3])
    cluster.kill(3)
    cluster.reassign((T0, [2, 4]))
    cluster.write_isr(T0, 2, 4)
    assert cluster.assignment("t")[0] == (2, 4)
    return cluster


def deleted_by(cluster: ControllerCluster, broker_id: int) -> list[TopicPartition]:
    return [
        TopicPartition(*partition)
        for request in cluster.took(broker_id, schemas.StopReplicaRequest)
        if request.delete_partitions
        for partition in request.partitions
    ]


def test_deleted_when_the_broker_is_back() -> None:
    cluster = moved_while_3_was_away()
    assert cluster.exists(NOTE)
    cluster.start(3)
    assert deleted_by(cluster, 3) == [T0]
    assert not cluster.exists(NOTE)
    cluster.kill(3)
    cluster.start(3)
    assert deleted_by(cluster, 3) == []


def test_a_later_controller_knows() -> None:
    cluster = moved_while_3_was_away()
    cluster.kill(1)
    cluster.start(3)
    assert deleted_by(cluster, 3) == [T0]
    assert not cluster.exists(NOTE)


def test_back_while_nobody_is_controller() -> None:
    cluster = moved_while_3_was_away()
    cluster.frozen.update((1, 2, 4))
    cluster.start(3)
    assert deleted_by(cluster, 3) == []
    cluster.frozen.clear()
    cluster.kill(1)
    assert deleted_by(cluster, 3) == [T0]
    assert not cluster.exists(NOTE)


def test_nothing_is_noted_of_what_was_deleted() -> None:
    cluster = ControllerCluster()
    cluster.start(1, 2, 3, 4)
    cluster.create_topic("t", [2, 3])
    cluster.reassign((T0, [2, 4]))
    cluster.write_isr(T0, 2, 3, 4)
    assert deleted_by(cluster, 3) == [T0]
    assert cluster.admin.children(znodes.DELETE_REPLICAS) == []


def test_a_broker_that_cannot_delete_is_asked_again() -> None:
    cluster = ControllerCluster()
    cluster.start(1, 2, 3, 4)
    cluster.create_topic("t", [2, 3])
    cluster.stop_errors[3] = -1
    cluster.reassign((T0, [2, 4]))
    cluster.write_isr(T0, 2, 3, 4)
    assert cluster.exists(NOTE)
    cluster.kill(3)
    cluster.start(3)
    assert deleted_by(cluster, 3) == [T0]
    assert not cluster.exists(NOTE)


def test_a_replica_assigned_again_stays() -> None:
    cluster = ControllerCluster()
    cluster.start(1, 2, 3, 4)
    cluster.create_topic("t", [2, 3])
    cluster.stop_errors[3] = -1
    cluster.reassign((T0, [2, 4]))
    cluster.write_isr(T0, 2, 3, 4)
    cluster.reassign((T0, [2, 3]))
    assert not cluster.exists(NOTE)
    cluster.forget_requests()
    cluster.kill(3)
    cluster.start(3)
    assert deleted_by(cluster, 3) == []


def assigned_to_3(cluster: ControllerCluster) -> None:
    """By an original controller, which knows of no notes."""
    cluster.admin.set(znodes.topic_path("t"), znodes.encode_topic({0: [2, 3]}))


def another_partition_alone(cluster: ControllerCluster) -> None:
    cluster.admin.set(znodes.topic_path("t"), znodes.encode_topic({1: [2]}))


def unreadable(cluster: ControllerCluster) -> None:
    cluster.admin.set(znodes.topic_path("t"), b"{")


@pytest.mark.parametrize(
    ("change", "noted"),
    [(assigned_to_3, False), (another_partition_alone, True), (unreadable, True)],
)
def test_what_may_be_assigned_stays(change: object, noted: bool) -> None:
    assert callable(change)
    cluster = moved_while_3_was_away()
    change(cluster)
    cluster.settle()
    cluster.start(3)
    assert deleted_by(cluster, 3) == []
    assert cluster.exists(NOTE) is noted
    # Nor does a new controller, which reads all state again.
    cluster.kill(1)
    assert deleted_by(cluster, 3) == []


def test_a_topic_deleted_meanwhile_leaves_nothing_behind() -> None:
    cluster = moved_while_3_was_away(delete_topic_enable="true")
    cluster.delete_topic("t")
    assert not cluster.exists(znodes.topic_path("t"))
    cluster.start(3)
    assert deleted_by(cluster, 3) == [T0]
    assert not cluster.exists(NOTE)


def test_rubbish_among_the_notes_is_ignored() -> None:
    cluster = moved_while_3_was_away()
    cluster.admin.create(f"{znodes.DELETE_REPLICAS}/rubbish")
    cluster.kill(1)
    cluster.start(3)
    assert deleted_by(cluster, 3) == [T0]
    assert cluster.admin.children(znodes.DELETE_REPLICAS) == ["rubbish"]
