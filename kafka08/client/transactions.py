"""Transactions over the wire, for tools: what coordinators and partitions know of them, and the end
of one that hangs.

Every function may raise what AdminClient raises, and RemoteError for what a broker refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka08.client.admin import AdminClient, check
from kafka08.common import TopicPartition
from kafka08.errors import (
    NO_ERROR,
    ConsumerCoordinatorNotAvailableError,
    LaterCode,
    NotCoordinatorForConsumerError,
    UnknownTopicOrPartitionError,
)
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.schemas import MetadataResponse

_ELSEWHERE = (ConsumerCoordinatorNotAvailableError.code, NotCoordinatorForConsumerError.code)


class Producer(NamedTuple):
    """A producer in a partition."""

    tp: TopicPartition
    state: t.ActiveProducer


def listed(admin: AdminClient) -> dict[int, list[t.ListedTransaction]]:
    """The transactional ids by their coordinator."""
    found = {}
    for broker in admin.metadata().brokers:
        answer = admin.call(t.ListTransactionsRequest([], []), str(broker.node_id))
        check(answer.error, None)
        found[broker.node_id] = answer.transactions
    return found


def described(admin: AdminClient, id_: str) -> tuple[int, t.DescribedTransaction]:
    """The coordinator of an id, and what it knows."""
    code = LaterCode.TRANSACTIONAL_ID_NOT_FOUND
    for broker in admin.metadata().brokers:
        answer = admin.call(t.DescribeTransactionsRequest([id_]), str(broker.node_id))
        (found,) = answer.transactions
        if found.error not in _ELSEWHERE:
            check(found.error, f"Transactional id {id_} was not found")
            return broker.node_id, found
        code = found.error
    check(code, f"No broker coordinates the transactional id {id_}")
    raise AssertionError(code)  # pragma: no cover


def producers(
    admin: AdminClient, tp: TopicPartition, broker_id: int | None = None
) -> list[t.ActiveProducer]:
    """Those that write to a partition, as its leader knows them, or the broker that is named."""
    broker = leader_of(admin.metadata(), tp) if broker_id is None else broker_id
    return [each.state for each in _producers(admin, broker, [tp])]


def all_producers(admin: AdminClient, leaders: Mapping[TopicPartition, int]) -> list[Producer]:
    """Those of many partitions."""
    by_broker: dict[int, list[TopicPartition]] = {}
    for tp, leader in leaders.items():
        by_broker.setdefault(leader, []).append(tp)
    return [each for broker, tps in by_broker.items() for each in _producers(admin, broker, tps)]


def _producers(admin: AdminClient, broker: int, tps: Iterable[TopicPartition]) -> list[Producer]:
    topics: dict[str, list[int]] = {}
    for topic, partition in tps:
        topics.setdefault(topic, []).append(partition)
    asked = [t.ProducersTopic(*item) for item in topics.items()]
    found = []
    for topic in admin.call(t.DescribeProducersRequest(asked), str(broker)).topics:
        for part in topic.partitions:
            check(part.error, part.message)
            tp = TopicPartition(topic.topic, part.partition)
            found += [Producer(tp, state) for state in part.producers]
    return found


def abort(
    admin: AdminClient, tp: TopicPartition, producer_id: int, epoch: int, coordinator_epoch: int
) -> None:
    """Have the leader write the marker that ends a producer's transaction there."""
    topics = [t.MarkedTopic(tp.topic, [tp.partition])]
    marker = t.TxnMarker(producer_id, epoch, False, topics, coordinator_epoch)
    leader = leader_of(admin.metadata(), tp)
    answer = admin.call(t.WriteTxnMarkersRequest([marker]), str(leader))
    check(answer.markers[0].topics[0].partitions[0].error, None)


def leader_of(metadata: MetadataResponse, tp: TopicPartition) -> int:
    """Raises UnknownTopicOrPartitionError."""
    for topic in metadata.topics:
        for part in topic.partitions:
            if (topic.topic, part.partition) == tp and part.error in (NO_ERROR, 9):
                return int(part.leader)
    raise UnknownTopicOrPartitionError(f"There is no leader of {tp}")
