"""The controller's view: brokers, replicas and states, and what a removed topic leaves."""

from __future__ import annotations

import pytest

from kafka08.common import Broker, TopicPartition
from kafka08.controller.context import (
    ControllerContext,
    ControllerStats,
    LeaderAndIsr,
    LiveBroker,
    PartitionAndReplica,
)
from kafka08.controller.states import PartitionState, ReplicaState

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


@pytest.fixture
def context() -> ControllerContext:
    context = ControllerContext()
    for number in (3, 1, 2):
        context.brokers[number] = LiveBroker(Broker(number, f"h{number}", 9092), 70 + number)
    context.topics = {"t", "u"}
    context.assign(T1, [2, 3])
    context.assign(T0, [1, 2])
    context.assign(U0, (3,))
    return context


def test_who_may_lead(context: ControllerContext) -> None:
    context.shutting_down.add(1)
    assert context.live == {2, 3}
    assert context.live_or_shutting_down == [1, 2, 3]
    assert [broker.id for broker in context.broker_list()] == [1, 2, 3]
    context.offline.add(PartitionAndReplica("t", 1, 2))
    assert context.live_for(T1) == {3}
    assert context.live_for(T0) == {2, 3}


def test_replicas_by_topic_and_by_broker(context: ControllerContext) -> None:
    assert context.partitions_of("t") == [T0, T1]
    assert context.partitions_of("gone") == []
    assert context.replicas_of(TopicPartition("t", 9)) == ()
    assert context.replicas_of_topic("t") == [
        PartitionAndReplica("t", 0, 1),
        PartitionAndReplica("t", 0, 2),
        PartitionAndReplica("t", 1, 2),
        PartitionAndReplica("t", 1, 3),
    ]
    assert sorted(context.partitions_on(2)) == [T0, T1]
    assert sorted(context.replicas_on({1, 3})) == [
        PartitionAndReplica("t", 0, 1),
        PartitionAndReplica("t", 1, 3),
        PartitionAndReplica("u", 0, 3),
    ]
    context.assign(T0, [3])
    assert context.partitions_of("t") == [T0, T1]
    assert context.partitions_on(1) == []


def test_what_was_never_set_does_not_exist(context: ControllerContext) -> None:
    replica = PartitionAndReplica("t", 0, 1)
    assert context.partition_state(T0) is PartitionState.NON_EXISTENT
    assert context.replica_state(replica) is ReplicaState.NON_EXISTENT
    context.set_partition_state(T0, PartitionState.ONLINE)
    context.set_replica_state(replica, ReplicaState.ONLINE)
    assert context.replicas_in_state("t", ReplicaState.ONLINE) == [replica]
    context.set_partition_state(T0, PartitionState.NON_EXISTENT)
    context.set_replica_state(replica, ReplicaState.NON_EXISTENT)
    assert context.partition_states == {}
    assert context.replicas_in_state("t", ReplicaState.ONLINE) == []


def test_a_removed_topic_leaves_nothing(context: ControllerContext) -> None:
    for partition in (T0, U0):
        context.leadership[partition] = LeaderAndIsr(1, 0, (1,), 1, 0)
        context.set_partition_state(partition, PartitionState.ONLINE)
        context.reassigned[partition] = (2,)
        context.electing_preferred.add(partition)
    context.set_replica_state(PartitionAndReplica("t", 0, 1), ReplicaState.ONLINE)
    context.topics_to_delete |= {"t", "u"}
    context.topics_ineligible_for_deletion |= {"t", "u"}
    assert context.is_being_deleted(T0)
    assert context.partitions_being_deleted() == [T0, T1, U0]
    context.remove_topic("t")
    context.remove_topic("never there")
    assert context.topics == context.topics_to_delete == {"u"}
    assert context.topics_ineligible_for_deletion == {"u"}
    for found in (
        context.assignment,
        context.leadership,
        context.partition_states,
        context.reassigned,
        context.electing_preferred,
    ):
        assert set(found) == {U0}
    context.assign(T0, [1])
    assert context.replicas_in_state("t", ReplicaState.ONLINE) == []


def test_texts_of_the_log_lines() -> None:
    state = LeaderAndIsr(1, 4, (1, 2), 7, 3)
    assert str(state) == "(Leader:1,ISR:1,2,LeaderEpoch:4,ControllerEpoch:7)"
    assert str(PartitionAndReplica("t", 0, 1)) == "[Topic=t,Partition=0,Replica=1]"


@pytest.mark.scenario("ops-8")
def test_terms_share_the_counts() -> None:
    stats = ControllerStats()
    first, second = ControllerContext(stats), ControllerContext(stats)
    first.stats.unclean.mark()
    second.stats.elections.record(0.1)
    assert (stats.unclean.count, stats.elections.meter.count) == (1, 1)
