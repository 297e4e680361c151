"""Topics are deleted step by step, as brokers answer."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.protocol import schemas
from tests.controller.cluster import ControllerCluster
from tests.controller.support import T0, T2, node, three
from zk import znodes
from zk.client import DeleteOp, SetOp
from zk.errors import NoNodeError


def deletable(*brokers: int) -> ControllerCluster:
    cluster = ControllerCluster(delete_topic_enable="true")
    cluster.start(*(brokers or (1, 2, 3)))
    cluster.create_topic("t", [2, 3], [3, 2])
    cluster.create_topic("other", [1])
    cluster.forget_requests()
    return cluster


def gone(cluster: ControllerCluster, topic: str) -> bool:
    return not any(
        cluster.exists(path(topic))
        for path in (znodes.topic_path, znodes.topic_config_path, znodes.delete_topic_path)
    )


def test_delete_topic() -> None:
    cluster = deletable()
    cluster.delete_topic("t")
    assert gone(cluster, "t")
    assert cluster.exists(znodes.topic_path("other"))
    for broker_id in cluster.brokers:
        assert T0 not in cluster.states[broker_id]
        assert cluster.metadata[broker_id].topics() == ["other"]
    stops = cluster.took(2, schemas.StopReplicaRequest)
    assert sorted((s.delete_partitions, [p.partition for p in s.partitions]) for s in stops) == [
        (False, [0, 1]),
        (True, [0]),
        (True, [1]),
    ]
    assert set(cluster.context.assignment) == {TopicPartition("other", 0)}


def test_delete_topic_writes_the_request_last() -> None:
    cluster = deletable()
    cluster.server.writes.clear()
    cluster.delete_topic("t")
    deleted = [op.path for op in cluster.server.writes if isinstance(op, DeleteOp)]
    assert deleted[-3:] == ["/config/topics/t", "/brokers/topics/t", "/admin/delete_topics/t"]


def test_delete_topic_removes_offsets_in_zookeeper() -> None:
    cluster = deletable()
    paths = {
        (group, topic): znodes.consumer_topic_offsets_path(group, topic)
        for group in ("g1", "g2")
        for topic in ("t", "other")
    }
    cluster.admin.ensure_path(znodes.group_path("empty"))
    for path in paths.values():
        for number in (0, 1, 7):
            cluster.admin.create_or_set(f"{path}/{number}", b"500")
    cluster.server.writes.clear()
    cluster.delete_topic("t")
    assert [key for key, path in paths.items() if cluster.admin.exists(path)] == [
        ("g1", "other"),
        ("g2", "other"),
    ]
    assert cluster.admin.exists(znodes.group_path("empty"))
    deleted = [op.path for op in cluster.server.writes if isinstance(op, DeleteOp)]
    assert deleted.index(paths["g2", "t"]) < deleted.index("/brokers/topics/t")
    assert deleted[-1] == "/admin/delete_topics/t"


def test_delete_and_recreate() -> None:
    cluster = deletable()
    cluster.delete_topic("t")
    cluster.create_topic("t", [3, 1])
    assert cluster.state(T0) == node(3, 0, 1, 3, 1)
    assert cluster.leads(3) == {T0}
    cluster.delete_topic("t")
    assert gone(cluster, "t")


def test_delete_topic_with_a_dead_replica() -> None:
    cluster = deletable()
    cluster.kill(3)
    cluster.delete_topic("t")
    assert cluster.exists(znodes.delete_topic_path("t"))
    assert T0 not in cluster.states[2]
    assert cluster.metadata[1].topics() == ["other"]
    cluster.start(3)
    assert gone(cluster, "t")


def test_broker_dies_while_deleting() -> None:
    cluster = deletable()
    # Broker 3 takes no more requests, then its session ends.
    held = cluster.brokers.pop(3)
    cluster.delete_topic("t")
    assert cluster.exists(znodes.delete_topic_path("t"))
    cluster.brokers[3] = held
    cluster.kill(3)
    assert cluster.exists(znodes.delete_topic_path("t"))
    cluster.start(3)
    assert gone(cluster, "t")


def test_broker_fails_to_delete() -> None:
    cluster = deletable()
    cluster.stop_errors[3] = -1
    cluster.delete_topic("t")
    assert cluster.exists(znodes.delete_topic_path("t"))
    cluster.stop_errors[3] = 0
    # Tried again when a broker that hosts it comes, not before.
    cluster.settle()
    assert cluster.exists(znodes.delete_topic_path("t"))
    cluster.kill(3)
    cluster.start(3)
    assert gone(cluster, "t")


def test_controller_dies_while_deleting() -> None:
    cluster = deletable()
    cluster.kill(3)
    cluster.delete_topic("t")
    cluster.kill(1)
    assert cluster.controller.epoch == 2
    assert cluster.exists(znodes.delete_topic_path("t"))
    cluster.start(3)
    assert gone(cluster, "t")


def test_delete_waits_for_a_reassignment() -> None:
    cluster = deletable()
    cluster.reassign((T0, [1, 2]))
    cluster.delete_topic("t")
    assert cluster.exists(znodes.topic_path("t"))
    cluster.write_isr(T0, 2, 3, 1)
    assert gone(cluster, "t")
    assert not cluster.exists(znodes.REASSIGN_PARTITIONS)


def test_reassignment_and_growth_of_a_topic_being_deleted_are_refused() -> None:
    cluster = deletable()
    cluster.kill(3)
    cluster.delete_topic("t")
    cluster.reassign((T0, [1, 2]))
    assert not cluster.exists(znodes.REASSIGN_PARTITIONS)
    cluster.admin.set(znodes.topic_path("t"), znodes.encode_topic({0: [2, 3], 1: [3, 2], 2: [1]}))
    cluster.settle()
    assert not cluster.exists(znodes.partition_state_path(*T2))
    cluster.elect_preferred(T0)
    assert not cluster.exists(znodes.PREFERRED_REPLICA_ELECTION)
    cluster.start(3)
    assert gone(cluster, "t")


def test_delete_a_topic_that_never_had_a_leader() -> None:
    cluster = deletable()
    cluster.kill(3)
    cluster.create_topic("u", [3])
    cluster.delete_topic("u")
    assert cluster.exists(znodes.topic_path("u"))
    cluster.start(3)
    assert gone(cluster, "u")


def test_delete_unknown_topic() -> None:
    cluster = deletable()
    cluster.delete_topic("nothing")
    assert not cluster.exists(znodes.delete_topic_path("nothing"))


def test_create_and_delete_at_once() -> None:
    cluster = deletable()
    cluster.create_topic("u", [1, 2], settle=False)
    cluster.delete_topic("u", settle=False)
    cluster.inbox(1).items.reverse()
    cluster.settle()
    assert gone(cluster, "u")


def test_deletion_off() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    cluster.delete_topic("t")
    cluster.kill(1)
    cluster.kill(2)
    cluster.start(2)
    assert cluster.exists(znodes.delete_topic_path("t"))
    assert cluster.state(T0).leader == 3
    for broker_id in cluster.brokers:
        assert cluster.metadata[broker_id].topics() == ["t"]


def test_many_partitions_fail_over_in_few_transactions() -> None:
    cluster = ControllerCluster()
    cluster.start(1, 2, 3)
    cluster.create_topic("t", *([2, 3] for _ in range(250)))
    assert len(cluster.leads(2)) == 250
    transactions = []
    server = cluster.server
    apply = server.apply

    def counted(ops: Any, session: int) -> Any:
        transactions.append(len(ops))
        return apply(ops, session)

    server.apply = counted  # type: ignore[method-assign]
    cluster.kill(2)
    assert len(cluster.leads(3)) == 250
    assert len(transactions) < 10
    with pytest.raises(NoNodeError):
        cluster.state(TopicPartition("t", 250))


def test_writes_are_fenced_by_the_controller_epoch() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    # Somebody else took over without our knowing: the epoch's version moved.
    cluster.admin.set("/controller_epoch", b"9")
    writes: list[Any] = cluster.server.writes
    writes.clear()
    cluster.frozen |= {2, 3}
    cluster.kill(2, settle=False)
    cluster.controllers[1].step(cluster.inbox(1).get())
    assert not [op for op in writes if isinstance(op, SetOp) and "/state" in op.path]
    assert not cluster.controllers[1].epoch
