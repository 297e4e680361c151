"""Brokers that live while some of their disks do not: who leads, who is in the isr, and after
what the replicas count again."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from tests.controller.cluster import ControllerCluster
from zk import znodes

T0, T1, T2 = (TopicPartition("t", partition) for partition in range(3))


def three(**settings: str) -> ControllerCluster:
    cluster = ControllerCluster(**settings)
    cluster.start(1, 2, 3)
    return cluster


def fail_disk(cluster: ControllerCluster, broker_id: int, *partitions: TopicPartition) -> None:
    """Write the node that a broker with a failed disk writes."""
    path = znodes.offline_replicas_path(broker_id)
    session = cluster.sessions[broker_id]
    session.delete_if_exists(path)
    data = znodes.encode_offline_replicas(partitions)
    session.create(path, data, ephemeral=True, makepath=True)
    cluster.settle()


def leader_and_isr(
    cluster: ControllerCluster, partition: TopicPartition
) -> tuple[int, tuple[int, ...]]:
    state = cluster.state(partition)
    return state.leader, tuple(state.isr)


def test_what_they_led_and_followed() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3], [3, 2], [2, 1])
    cluster.forget_requests()
    fail_disk(cluster, 2, T0, T1)
    assert leader_and_isr(cluster, T0) == (3, (3,))
    assert leader_and_isr(cluster, T1) == (3, (3,))
    assert leader_and_isr(cluster, T2) == (2, (2, 1))
    assert cluster.leads(3) == {T0, T1}
    known = [cluster.metadata[broker_id].leader_of(T0) for broker_id in cluster.brokers]
    assert [leader.id for leader in known if leader] == [3, 3, 3]
    # one more
    fail_disk(cluster, 2, T0, T1, T2)
    assert leader_and_isr(cluster, T2) == (1, (1,))


def test_the_last_of_an_isr_stays_in_it_without_a_leader() -> None:
    cluster = three(unclean_leader_election_enable="false")
    cluster.create_topic("t", [2, 3], [2])
    cluster.write_isr(T0, 2)
    fail_disk(cluster, 2, T0, T1)
    assert leader_and_isr(cluster, T0) == (-1, (2,))
    assert leader_and_isr(cluster, T1) == (-1, (2,))


def test_an_unclean_election_where_it_is_allowed() -> None:
    cluster = three(unclean_leader_election_enable="true")
    cluster.create_topic("t", [2, 3])
    cluster.write_isr(T0, 2)
    fail_disk(cluster, 2, T0)
    assert leader_and_isr(cluster, T0) == (3, (3,))


def test_the_controllers_own_disk() -> None:
    cluster = three()
    cluster.create_topic("t", [1, 2])
    fail_disk(cluster, 1, T0)
    assert cluster.controller.broker.id == 1
    assert leader_and_isr(cluster, T0) == (2, (2,))


def test_another_controller_knows_as_well() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3], [3, 2])
    fail_disk(cluster, 2, T0, T1)
    cluster.kill(1)
    assert leader_and_isr(cluster, T0) == (3, (3,))
    assert cluster.context.offline == {(*T0, 2), (*T1, 2)}
    cluster.kill(3)
    assert leader_and_isr(cluster, T0) == (-1, (3,))


def test_told_while_nobody_is_controller() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    for broker_id in (2, 3):
        cluster.frozen.add(broker_id)
    cluster.kill(1)
    fail_disk(cluster, 2, T0)
    cluster.frozen.clear()
    cluster.settle()
    assert leader_and_isr(cluster, T0) == (3, (3,))


def test_no_election_of_any_kind_takes_them() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3], [1, 2])
    fail_disk(cluster, 2, T0, T1)
    cluster.elect_preferred(T0)
    assert leader_and_isr(cluster, T0) == (3, (3,))
    cluster.write_isr(T0, 3, 2)  # a leader that lets it in all the same
    cluster.elect_preferred(T0)
    assert cluster.state(T0).leader == 3
    cluster.reassign((T1, [2, 3]))
    assert cluster.state(T1).leader == 1


def test_new_topics_count_them_out() -> None:
    cluster = three()
    fail_disk(cluster, 2, T0)  # a broker that may not begin with nothing
    cluster.create_topic("t", [2, 3])
    assert leader_and_isr(cluster, T0) == (3, (3,))


def test_back_after_a_restart_of_the_broker() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    fail_disk(cluster, 2, T0)
    cluster.kill(2)
    cluster.start(2)
    assert cluster.context.offline == set()
    assert cluster.states[2][T0].leader == 3
    cluster.write_isr(T0, 3, 2)
    cluster.elect_preferred(T0)
    assert cluster.state(T0).leader == 2


def test_a_session_that_ends_and_begins_anew_keeps_them_out() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3], [2])
    fail_disk(cluster, 2, T0)
    session = cluster.sessions[2]
    cluster.frozen.add(2)
    session.lose_session()
    cluster.settle()
    assert leader_and_isr(cluster, T1) == (-1, (2,))
    session.renew_session()
    path = znodes.offline_replicas_path(2)
    session.create(path, znodes.encode_offline_replicas([T0]), ephemeral=True, makepath=True)
    cluster.register(2)
    cluster.settle()
    assert leader_and_isr(cluster, T0) == (3, (3,))
    assert leader_and_isr(cluster, T1) == (2, (2,))
    assert cluster.context.offline == {(*T0, 2)}


def test_a_topic_with_one_of_them_waits_for_its_deletion() -> None:
    cluster = three(delete_topic_enable="true")
    cluster.create_topic("t", [2, 3])
    fail_disk(cluster, 2, T0)
    cluster.delete_topic("t")
    assert cluster.exists(znodes.topic_path("t"))
    cluster.kill(2)
    cluster.start(2)
    assert not cluster.exists(znodes.topic_path("t"))


@pytest.mark.parametrize("data", [b"", b"[]", b'{"partitions":{"t":"x"}}', b'{"partitions":3}'])
def test_garbage_is_nothing(data: bytes) -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    cluster.admin.create(znodes.offline_replicas_path(2), data, makepath=True)
    cluster.admin.create(f"{znodes.OFFLINE_REPLICAS}/rubbish", b"x")
    cluster.settle()
    assert leader_and_isr(cluster, T0) == (2, (2, 3))
    fail_disk(cluster, 3, T0)
    assert leader_and_isr(cluster, T0) == (2, (2,))


# Full disks


def fill_disk(cluster: ControllerCluster, broker_id: int, *partitions: TopicPartition) -> None:
    """Write the node that a broker with a full disk writes."""
    path = znodes.offline_replicas_path(broker_id)
    session = cluster.sessions[broker_id]
    session.delete_if_exists(path)
    if partitions:
        data = znodes.encode_offline_replicas((), partitions)
        session.create(path, data, ephemeral=True, makepath=True)
    cluster.settle()


def test_a_leader_with_a_full_disk_becomes_a_follower() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3, 1], [3, 2])
    fill_disk(cluster, 2, T0, T1)
    assert leader_and_isr(cluster, T0) == (3, (3, 1))
    assert leader_and_isr(cluster, T1) == (3, (3,))  # nobody waits for it
    assert T0 not in cluster.leads(2)
    assert cluster.context.offline == set()
    cluster.write_isr(T0, 3, 1, 2)
    fill_disk(cluster, 2)  # room
    cluster.elect_preferred(T0)
    assert leader_and_isr(cluster, T0) == (2, (3, 1, 2))


@pytest.mark.parametrize("unclean", ["true", "false"])
def test_what_nobody_else_of_the_isr_can_lead_stays(unclean: str) -> None:
    """Never an unclean election: the broker lives and has everything."""
    cluster = three(unclean_leader_election_enable=unclean)
    cluster.create_topic("t", [2, 3], [2, 3])
    cluster.write_isr(T0, 2)
    cluster.kill(3)
    cluster.write_isr(T1, 2, 3)  # not out of the isr yet
    fill_disk(cluster, 2, T0, T1)
    assert leader_and_isr(cluster, T0) == (2, (2,))
    assert leader_and_isr(cluster, T1) == (2, (2, 3))
    cluster.start(3)
    fill_disk(cluster, 2, T0, T1)  # it asks again
    assert leader_and_isr(cluster, T0) == (2, (2,))
    assert leader_and_isr(cluster, T1) == (3, (3,))


def test_a_full_disk_is_not_given_leaderships() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    fill_disk(cluster, 3, T0)
    assert leader_and_isr(cluster, T0) == (2, (2,))
    cluster.write_isr(T0, 2, 3)  # it had nothing to write, and caught up
    fill_disk(cluster, 2, T0)
    assert leader_and_isr(cluster, T0) == (2, (2, 3))


def test_a_new_controller_moves_them_too() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    for broker_id in (2, 3):
        cluster.frozen.add(broker_id)
    cluster.kill(1)
    fill_disk(cluster, 2, T0)
    cluster.frozen.clear()
    cluster.settle()
    assert leader_and_isr(cluster, T0) == (3, (3,))
