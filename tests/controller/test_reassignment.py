"""Partitions move to other brokers, in several steps that survive failures."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.protocol import schemas
from tests.controller.cluster import ControllerCluster
from tests.controller.support import T0, T1, T2, node
from zk import znodes


def six() -> ControllerCluster:
    cluster = ControllerCluster()
    cluster.start(1, 2, 3, 4, 5, 6)
    cluster.create_topic("t", [1, 2, 3], [3, 1])
    cluster.forget_requests()
    return cluster


def test_reassignment() -> None:
    cluster = six()
    cluster.reassign((T0, [4, 5, 6]))
    # Phase A: both lists, new replicas follow.
    assert sorted(cluster.assignment("t")[0]) == [1, 2, 3, 4, 5, 6]
    assert cluster.assignment("t")[1] == (3, 1)
    assert cluster.state(T0) == node(1, 1, 1, 1, 2, 3)
    for broker_id in cluster.brokers:
        assert sorted(cluster.states[broker_id][T0].replicas) == [1, 2, 3, 4, 5, 6]
    cluster.write_isr(T0, 1, 2, 3, 4, 5)
    assert cluster.state(T0).leader == 1
    assert cluster.exists(znodes.REASSIGN_PARTITIONS)
    # Phase B.
    cluster.write_isr(T0, 1, 2, 3, 4, 5, 6)
    state = cluster.state(T0)
    assert (state.leader, state.isr) == (4, (4, 5, 6))
    assert cluster.assignment("t") == {0: (4, 5, 6), 1: (3, 1)}
    assert not cluster.exists(znodes.REASSIGN_PARTITIONS)
    assert cluster.leads(4) == {T0}
    for old in (1, 2, 3):
        assert T0 not in cluster.states[old]
        stops = cluster.took(old, schemas.StopReplicaRequest)
        assert [stop.delete_partitions for stop in stops] == [False, True]
    metadata = cluster.metadata[2].topic_metadata("t").partitions[0]
    assert metadata == schemas.PartitionMetadata(0, 0, 4, [4, 5, 6], [4, 5, 6])
    assert cluster.context.reassigned == {}
    # Later changes of the state concern nobody, and the leader's version is the cached one.
    assert cluster.context.leadership[T0].zk_version == cluster.version(T0)
    cluster.kill(4)
    assert cluster.state(T0).leader == 5


def test_reassignment_that_keeps_the_leader() -> None:
    cluster = six()
    cluster.reassign((T0, [2, 1, 4]))
    cluster.write_isr(T0, 1, 2, 3, 4)
    state = cluster.state(T0)
    assert (state.leader, state.isr) == (1, (1, 2, 4))
    assert cluster.assignment("t")[0] == (2, 1, 4)
    assert cluster.states[1][T0].replicas == [2, 1, 4]


@pytest.mark.parametrize(
    ("partition", "replicas"),
    [(T0, [4, 9]), (T0, [1, 2, 3]), (T0, []), (T0, [4, 4]), (TopicPartition("x", 0), [1])],
)
def test_reassignment_refused(partition: TopicPartition, replicas: list[int]) -> None:
    cluster = six()
    before = cluster.assignment("t")
    cluster.reassign((partition, replicas))
    assert not cluster.exists(znodes.REASSIGN_PARTITIONS)
    assert cluster.assignment("t") == before


def test_a_request_that_lists_nothing_does_not_block_the_next() -> None:
    cluster = six()
    cluster.reassign()
    assert not cluster.exists(znodes.REASSIGN_PARTITIONS)
    cluster.reassign(settle=False)
    cluster.admin.delete("/controller")
    cluster.settle()
    assert not cluster.exists(znodes.REASSIGN_PARTITIONS)


def test_refused_ones_leave_the_others_on_the_node() -> None:
    cluster = six()
    cluster.reassign((T1, [9, 3]), (T0, [4, 5]))
    listed = znodes.decode_reassignment("", cluster.admin.get(znodes.REASSIGN_PARTITIONS)[0])
    assert listed == {T0: (4, 5)}
    cluster.write_isr(T0, 1, 2, 3, 5, 4)
    assert not cluster.exists(znodes.REASSIGN_PARTITIONS)


def test_controller_dies_in_a_reassignment() -> None:
    cluster = six()
    cluster.reassign((T0, [4, 5]))
    cluster.kill(1)
    assert cluster.controller.epoch == 2
    assert cluster.exists(znodes.REASSIGN_PARTITIONS)
    state = cluster.state(T0)
    cluster.write_isr(T0, *state.isr, 4, 5)
    assert cluster.assignment("t")[0] == (4, 5)
    assert cluster.state(T0).leader == 4
    assert not cluster.exists(znodes.REASSIGN_PARTITIONS)


def test_caught_up_while_there_was_no_controller() -> None:
    cluster = six()
    cluster.reassign((T0, [4, 5]))
    cluster.frozen.add(1)
    cluster.write_isr(T0, 1, 2, 3, 4, 5)
    cluster.kill(1)
    assert cluster.assignment("t")[0] == (4, 5)


def test_new_replica_dies_and_returns() -> None:
    cluster = six()
    cluster.reassign((T0, [4, 5]))
    cluster.kill(5)
    cluster.write_isr(T0, 1, 2, 3, 4)
    assert cluster.exists(znodes.REASSIGN_PARTITIONS)
    # Not even a failover gives it up.
    cluster.admin.delete("/controller")
    cluster.settle()
    assert cluster.exists(znodes.REASSIGN_PARTITIONS)
    cluster.start(5)
    assert cluster.states[5][T0].leader == cluster.state(T0).leader
    cluster.write_isr(T0, *cluster.state(T0).isr, 5)
    assert cluster.assignment("t")[0] == (4, 5)
    assert cluster.state(T0).isr == (4, 5)


def test_old_replicas_stay_while_no_new_one_can_lead() -> None:
    cluster = six()
    cluster.reassign((T0, [4]))
    cluster.kill(4)
    # The leader let the dead one into the isr at the last moment.
    cluster.write_isr(T0, 1, 2, 3, 4)
    assert cluster.state(T0).leader == 1
    assert T0 in cluster.states[1]
    assert sorted(cluster.assignment("t")[0]) == [1, 2, 3, 4]
    assert sorted(cluster.context.replicas_of(T0)) == [1, 2, 3, 4]
    cluster.start(4)
    assert cluster.assignment("t")[0] == (4,)
    assert cluster.state(T0).leader == 4


def test_partitions_added_during_a_reassignment_survive_its_write() -> None:
    cluster = six()
    cluster.reassign((T0, [4, 5]))
    assigned = cluster.assignment("t")
    assigned[2] = (6, 5)
    cluster.admin.set(znodes.topic_path("t"), znodes.encode_topic(assigned))
    cluster.write_isr(T0, 1, 2, 3, 4, 5)
    assert cluster.assignment("t") == {0: (4, 5), 1: (3, 1), 2: (6, 5)}
    assert cluster.state(T2).leader == 6


def mixed(until: int | None) -> ControllerCluster:
    """Broker 4 is an original; the leader, 1, tells how much of T0 it cannot read."""
    cluster = ControllerCluster()
    cluster.originals = {4}
    cluster.start(1, 2, 3, 4)
    cluster.create_topic("t", [1, 2])
    if until is not None:
        cluster.later_formats[1, T0] = until
    return cluster


@pytest.mark.scenario("modern-54")
@pytest.mark.parametrize(
    ("until", "why"), [(7, "later formats below offset 7"), (None, "leader has not reported yet")]
)
def test_an_original_gets_no_log_that_it_cannot_read(
    until: int | None, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = mixed(until)
    cluster.reassign((T0, [4, 2]))
    assert cluster.assignment("t")[0] == (1, 2)
    assert not cluster.exists(znodes.REASSIGN_PARTITIONS)
    assert "brokers 4 of 0.8.2.2 cannot read its log" in caplog.text and why in caplog.text
    cluster.later_formats[1, T0] = 0
    cluster.reassign((T0, [4, 2]))
    assert cluster.assignment("t")[0] == (4, 2, 1), "it is asked again"


def test_an_original_gets_a_log_of_format_0() -> None:
    cluster = mixed(0)
    cluster.reassign((T0, [4, 2]))
    cluster.write_isr(T0, 1, 2, 4)
    assert cluster.assignment("t")[0] == (4, 2)


def test_an_original_that_has_a_replica_already_may_keep_it() -> None:
    cluster = mixed(7)
    cluster.create_topic("u", [4, 1])
    u0 = TopicPartition("u", 0)
    cluster.reassign((u0, [4, 2]), (T0, [3, 2]))
    assert cluster.assignment("u")[0] == (4, 2, 1)
    assert cluster.assignment("t")[0] == (3, 2, 1)


def test_a_new_controller_asks_again() -> None:
    cluster = mixed(7)
    cluster.kill(1, settle=False)
    cluster.later_formats[2, T0] = 7
    cluster.reassign((T0, [4, 2]))
    assert cluster.assignment("t")[0] == (1, 2)
    assert not cluster.exists(znodes.REASSIGN_PARTITIONS)
