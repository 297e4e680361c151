"""Preferred replicas lead again, on request and by imbalance."""

from __future__ import annotations

from kafka08.common import TopicPartition
from kafka08.controller import events
from tests.controller.cluster import ControllerCluster
from tests.controller.support import T0, T1, node, three
from zk import znodes


def test_preferred_election() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3], [3, 2])
    cluster.kill(2)
    cluster.start(2)
    cluster.write_isr(T0, 3, 2)
    cluster.elect_preferred(T0, T1, TopicPartition("nowhere", 0))
    assert cluster.state(T0) == node(2, 2, 1, 3, 2)
    assert cluster.leads(2) == {T0}
    assert cluster.state(T1).leader == 3
    assert not cluster.exists(znodes.PREFERRED_REPLICA_ELECTION)
    # The watch is armed for the next.
    cluster.elect_preferred(T0)
    assert not cluster.exists(znodes.PREFERRED_REPLICA_ELECTION)


def test_preferred_election_with_a_dead_preferred_replica() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3])
    cluster.kill(2)
    before = cluster.state(T0)
    cluster.elect_preferred(T0)
    assert cluster.state(T0) == before
    assert not cluster.exists(znodes.PREFERRED_REPLICA_ELECTION)


def test_preferred_election_pending_at_failover() -> None:
    cluster = three()
    cluster.create_topic("t", [3, 2])
    cluster.kill(3)
    cluster.start(3)
    cluster.write_isr(T0, 2, 3)
    cluster.frozen.add(1)
    cluster.elect_preferred(T0)
    assert cluster.state(T0).leader == 2
    cluster.kill(1)
    assert cluster.state(T0).leader == 3
    assert not cluster.exists(znodes.PREFERRED_REPLICA_ELECTION)


def rebalance(cluster: ControllerCluster) -> None:
    cluster.put(events.RebalanceDue(1))


def test_auto_rebalance() -> None:
    cluster = three()
    cluster.create_topic("t", [2, 3], [2, 3])
    cluster.kill(2)
    cluster.start(2)
    cluster.write_isr(T0, 3, 2)
    rebalance(cluster)
    assert cluster.state(T0).leader == 2
    assert cluster.state(T1).leader == 3
    cluster.write_isr(T1, 3, 2)
    rebalance(cluster)
    assert cluster.state(T1).leader == 2


def test_auto_rebalance_only_above_the_percentage() -> None:
    cluster = three(leader_imbalance_per_broker_percentage="50")
    cluster.create_topic("t", [2, 3], [2, 3])
    cluster.kill(2)
    cluster.start(2)
    cluster.write_isr(T0, 3, 2)
    cluster.elect_preferred(T0)
    cluster.write_isr(T1, 3, 2)
    rebalance(cluster)
    assert cluster.state(T1).leader == 3


def test_auto_rebalance_can_be_off() -> None:
    cluster = three(auto_leader_rebalance_enable="false")
    assert not any("rebalance" in task.name for task in cluster.runtimes[1].tasks)
