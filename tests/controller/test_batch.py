"""How what is to be told becomes requests."""

from __future__ import annotations

import pytest

from kafka08.common import Broker, TopicPartition
from kafka08.controller.batch import ControllerBrokerRequestBatch, Outgoing
from kafka08.controller.context import (
    ControllerContext,
    LeaderAndIsr,
    LiveBroker,
    PartitionAndReplica,
)
from kafka08.protocol import schemas

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
CLIENT = "id_9-host_null-port_9092"


@pytest.fixture
def context() -> ControllerContext:
    context = ControllerContext()
    context.epoch = 4
    for broker_id in (3, 1, 2):
        broker = Broker(broker_id, f"h{broker_id}", 9000 + broker_id)
        context.brokers[broker_id] = LiveBroker(broker, broker_id)
    for partition, replicas, leader in ((T0, (1, 2), 1), (T1, (2, 3), 2), (U0, (3, 1), 3)):
        context.assign(partition, replicas)
        context.leadership[partition] = LeaderAndIsr(leader, 5, replicas, 3, 8)
    return context


@pytest.fixture
def batch(context: ControllerContext) -> ControllerBrokerRequestBatch:
    return ControllerBrokerRequestBatch(context, 9, CLIENT)


def wire(partition: TopicPartition, leader: int, replicas: list[int]) -> schemas.PartitionStateInfo:
    return schemas.PartitionStateInfo(*partition, 3, leader, 5, replicas, 8, replicas)


def sent(requests: list[Outgoing], kind: type) -> dict[int, list[object]]:
    found: dict[int, list[object]] = {}
    for outgoing in requests:
        if isinstance(outgoing.request, kind):
            found.setdefault(outgoing.broker_id, []).append(outgoing.request)
    return found


def test_leader_and_isr_is_one_request_per_broker_and_metadata_for_all(
    context: ControllerContext, batch: ControllerBrokerRequestBatch
) -> None:
    for partition in (T0, T1):
        replicas = context.replicas_of(partition)
        batch.add_leader_and_isr(replicas, partition, context.leadership[partition], replicas)
    requests = batch.drain()
    first, second = wire(T0, 1, [1, 2]), wire(T1, 2, [2, 3])
    one, two = schemas.BrokerEndpoint(1, "h1", 9001), schemas.BrokerEndpoint(2, "h2", 9002)
    assert sent(requests, schemas.LeaderAndIsrRequest) == {
        1: [schemas.LeaderAndIsrRequest(9, 4, [first], [one])],
        2: [schemas.LeaderAndIsrRequest(9, 4, [first, second], [one, two])],
        3: [schemas.LeaderAndIsrRequest(9, 4, [second], [two])],
    }
    brokers = [one, two, schemas.BrokerEndpoint(3, "h3", 9003)]
    metadata = schemas.UpdateMetadataRequest(9, 4, [first, second], brokers)
    assert sent(requests, schemas.UpdateMetadataRequest) == {i: [metadata] for i in (1, 2, 3)}
    kinds = [type(outgoing.request) for outgoing in requests]
    assert kinds == [schemas.LeaderAndIsrRequest] * 3 + [schemas.UpdateMetadataRequest] * 3
    assert {outgoing.client_id for outgoing in requests} == {CLIENT}


def test_brokers_shutting_down_are_told_too(
    context: ControllerContext, batch: ControllerBrokerRequestBatch
) -> None:
    context.shutting_down.add(1)
    batch.add_leader_and_isr([2], T0, context.leadership[T0], (1, 2))
    requests = batch.drain()
    leaders = sent(requests, schemas.LeaderAndIsrRequest)[2][0].leaders  # type: ignore[attr-defined]
    assert [leader.node_id for leader in leaders] == [1]
    assert set(sent(requests, schemas.UpdateMetadataRequest)) == {1, 2, 3}


def test_the_list_of_brokers_goes_out_without_any_partition(
    batch: ControllerBrokerRequestBatch,
) -> None:
    batch.add_update_metadata([1], ())
    (outgoing,) = batch.drain()
    assert isinstance(outgoing.request, schemas.UpdateMetadataRequest)
    assert outgoing.request.partitions == []
    assert [broker.node_id for broker in outgoing.request.live_brokers] == [1, 2, 3]


def test_none_means_every_partition_with_a_leader(
    context: ControllerContext, batch: ControllerBrokerRequestBatch
) -> None:
    context.assign(TopicPartition("never", 0), (1,))
    batch.add_update_metadata([1, 2], ())
    batch.add_update_metadata([1], None)
    batch.add_update_metadata([1], [T0])
    counts = {o.broker_id: len(o.request.partitions) for o in batch.drain()}
    assert counts == {1: 3, 2: 0}


def test_every_round_names_the_partitions_being_deleted(
    context: ControllerContext, batch: ControllerBrokerRequestBatch
) -> None:
    context.topics_to_delete.add("u")
    gone = schemas.PartitionStateInfo("u", 0, 3, -2, 0, [3, 1], 0, [3, 1])
    for partitions in ((), None, [T0, U0]):
        batch.add_update_metadata([2], partitions)
        (outgoing,) = batch.drain()
        states = outgoing.request.partitions
        assert states[-1] == gone
        assert [s.leader for s in states if s.topic == "u"] == [-2]
    assert len(states) == 2


def test_stop_replica_is_one_request_per_replica_to_delete_without_client_id(
    batch: ControllerBrokerRequestBatch,
) -> None:
    batch.add_stop_replica(PartitionAndReplica("t", 0, 2), delete=False)
    batch.add_stop_replica(PartitionAndReplica("t", 1, 2), delete=True)
    batch.add_stop_replica(PartitionAndReplica("t", 2, 2), delete=True)
    batch.add_stop_replica(PartitionAndReplica("t", 0, 2), delete=False)
    batch.add_stop_replica(PartitionAndReplica("t", 3, 2), delete=False)
    assert batch.drain() == [
        Outgoing(2, schemas.StopReplicaRequest(9, 4, False, [("t", 0), ("t", 3)]), ""),  # type: ignore[list-item]
        Outgoing(2, schemas.StopReplicaRequest(9, 4, True, [("t", 1)]), ""),  # type: ignore[list-item]
        Outgoing(2, schemas.StopReplicaRequest(9, 4, True, [("t", 2)]), ""),  # type: ignore[list-item]
    ]


def test_negative_brokers_get_nothing(
    context: ControllerContext, batch: ControllerBrokerRequestBatch
) -> None:
    batch.add_leader_and_isr([-1], T0, context.leadership[T0], (1, 2))
    batch.add_stop_replica(PartitionAndReplica("t", 0, -1), delete=False)
    assert {type(outgoing.request) for outgoing in batch.drain()} == {schemas.UpdateMetadataRequest}


def test_a_batch_is_empty_after_it_was_drained_and_after_a_failure(
    context: ControllerContext, batch: ControllerBrokerRequestBatch
) -> None:
    batch.add_update_metadata([1], None)
    assert batch.drain()
    assert batch.drain() == []
    batch.add_update_metadata([1], None)
    brokers, context.brokers = context.brokers, None  # type: ignore[assignment]
    with pytest.raises(TypeError):
        batch.drain()
    context.brokers = brokers
    assert batch.drain() == []
