"""Brokers that end and come back while there is no controller that could see it."""

from __future__ import annotations

from kafka08.protocol import schemas
from tests.controller.cluster import ControllerCluster
from tests.controller.support import T0, T1, T2, node
from zk import znodes


def four() -> ControllerCluster:
    """Broker 1 is the controller, and replica of nothing."""
    cluster = ControllerCluster(delete_topic_enable="true")
    cluster.start(1, 2, 3, 4)
    return cluster


def bounce(cluster: ControllerCluster, *broker_ids: int) -> None:
    for broker_id in broker_ids:
        cluster.sessions[broker_id].delete(znodes.broker_path(broker_id))
        cluster.states.pop(broker_id, None)
        cluster.controller_epochs.pop(broker_id, None)
        cluster.register(broker_id)


def fail_over(cluster: ControllerCluster, *bounced: int) -> None:
    """The controller dies, and before the next one begins some brokers bounce."""
    cluster.kill(cluster.controller.broker.id, settle=False)
    cluster.forget_requests()
    bounce(cluster, *bounced)
    cluster.settle()


def test_a_leader_that_bounced_unseen_hands_over() -> None:
    cluster = four()
    cluster.create_topic("t", [2, 3, 4], [3, 2])
    fail_over(cluster, 2)
    assert cluster.state(T0) == node(3, 1, 2, 3, 4)
    assert cluster.state(T1) == node(3, 1, 2, 3)
    # It was not told to lead as before, and its first LeaderAndIsr carries all it hosts.
    first = cluster.took(2, schemas.LeaderAndIsrRequest)[0]
    assert {state.partition: state.leader for state in first.partitions} == {0: 3, 1: 3}
    assert cluster.leads(3) == {T0, T1}
    assert cluster.states[4][T0].leader_epoch == 1


def test_a_follower_that_bounced_unseen_leaves_the_isr() -> None:
    cluster = four()
    cluster.create_topic("t", [2, 3, 4])
    fail_over(cluster, 3)
    assert cluster.state(T0) == node(2, 1, 2, 2, 4)
    assert cluster.states[3][T0].isr == [2, 4]


def test_a_bounced_follower_is_not_elected() -> None:
    cluster = four()
    cluster.create_topic("t", [2, 3, 4])
    cluster.kill(2, settle=False)
    fail_over(cluster, 3)
    assert cluster.state(T0) == node(4, 2, 2, 4)


def test_a_bounced_follower_leads_if_no_other_member_can() -> None:
    cluster = four()
    cluster.create_topic("t", [2, 3])
    cluster.kill(2, settle=False)
    fail_over(cluster, 3)
    assert cluster.state(T0) == node(3, 1, 2, 3)


def test_a_cluster_of_which_all_bounced_writes_nothing() -> None:
    cluster = four()
    cluster.create_topic("t", [2, 3, 4], [3], [2, 3])
    cluster.write_isr(T2, 2)
    before = [cluster.version(each) for each in (T0, T1, T2)]
    fail_over(cluster, 2, 3, 4)
    assert [cluster.version(each) for each in (T0, T1, T2)] == before
    assert cluster.leads(2) == {T0, T2}
    assert cluster.leads(3) == {T1}


def test_a_bounce_that_was_seen_changes_nothing_more() -> None:
    cluster = four()
    cluster.create_topic("t", [2, 3, 4])
    bounce(cluster, 2)
    cluster.settle()
    cluster.write_isr(T0, 3, 4, 2)
    before = cluster.state(T0)
    fail_over(cluster)
    assert cluster.state(T0) == before == node(3, 1, 1, 3, 4, 2)


def test_the_next_controllers_change_nothing() -> None:
    cluster = four()
    cluster.create_topic("t", [2, 3, 4])
    fail_over(cluster, 2)
    cluster.admin.delete(znodes.CONTROLLER)
    cluster.settle()
    assert cluster.state(T0) == node(3, 1, 2, 3, 4)


def test_a_controller_that_bounced_itself() -> None:
    cluster = four()
    cluster.create_topic("t", [2, 3, 4])
    cluster.frozen = {3, 4}
    fail_over(cluster, 2)
    assert cluster.controller.broker.id == 2
    assert cluster.state(T0) == node(3, 1, 2, 3, 4)
    assert cluster.leads(3) == {T0}


def test_an_isr_that_changes_meanwhile() -> None:
    cluster = four()
    cluster.create_topic("t", [2, 3, 4])
    cluster.kill(1, settle=False)
    bounce(cluster, 2)
    session = cluster.sessions[2]  # of the next controller
    session.before_multi = lambda: cluster.write_isr(T0, 2, 4, settle=False)
    cluster.settle()
    assert cluster.controller.broker.id == 2
    assert cluster.state(T0) == node(4, 1, 2, 4)


def test_a_topic_that_is_being_deleted() -> None:
    cluster = four()
    cluster.create_topic("t", [2, 3])
    cluster.kill(1, settle=False)
    cluster.delete_topic("t", settle=False)
    bounce(cluster, 2)
    cluster.settle()
    assert not cluster.exists(znodes.topic_path("t"))
