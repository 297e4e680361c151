"""Transactions over the wire, for tools and the console: what coordinators and partitions know of
them, and the end of one that hangs.

``call`` asks one broker. The functions with an AdminClient ask the brokers that know. Every
function may raise what these raise, and RemoteError for what a broker refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from kafka08.client.admin import AdminClient, check
from kafka08.client.requests import Call, flatten, nested
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


def coordinated(call: Call, states: Sequence[str] = ()) -> list[t.ListedTransaction]:
    """The transactional ids that a broker coordinates, in any of the states or in these."""
    answer: t.ListTransactionsResponse = call(t.ListTransactionsRequest(list(states), []))
    check(answer.error, None)
    return answer.transactions


def listed(admin: AdminClient) -> dict[int, list[t.ListedTransaction]]:
    """The transactional ids by their coordinator."""
    return {
        broker.node_id: coordinated(_asked(admin, broker.node_id))
        for broker in admin.metadata().brokers
    }


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
    return [each.state for each in _producers(_asked(admin, broker), [tp])]


def all_producers(admin: AdminClient, leaders: Mapping[TopicPartition, int]) -> list[Producer]:
    """Those of many partitions."""
    by_broker: dict[int, list[TopicPartition]] = {}
    for tp, leader in leaders.items():
        by_broker.setdefault(leader, []).append(tp)
    return [
        each for broker, tps in by_broker.items() for each in _producers(_asked(admin, broker), tps)
    ]


def _producers(call: Call, tps: Iterable[TopicPartition]) -> list[Producer]:
    found = []
    for tp, part in known_producers(call, tps).items():
        check(part.error, part.message)
        found += [Producer(tp, state) for state in part.producers]
    return found


def known_producers(
    call: Call, tps: Iterable[TopicPartition]
) -> dict[TopicPartition, t.ProducersPartition]:
    """The answer of a broker about each of the partitions, which may be an error."""
    asked = dict.fromkeys(tps)
    topics = nested(asked, t.ProducersTopic, lambda number, _: number)
    return flatten(call(t.DescribeProducersRequest(topics)).topics)


def abort(
    admin: AdminClient, tp: TopicPartition, producer_id: int, epoch: int, coordinator_epoch: int
) -> None:
    """Have the leader write the marker that ends a producer's transaction there."""
    leader = _asked(admin, leader_of(admin.metadata(), tp))
    abort_at(leader, tp, producer_id, epoch, coordinator_epoch)


def abort_at(
    call: Call, tp: TopicPartition, producer_id: int, epoch: int, coordinator_epoch: int
) -> None:
    """The same of a leader that is known."""
    topics = [t.MarkedTopic(tp.topic, [tp.partition])]
    marker = t.TxnMarker(producer_id, epoch, False, topics, coordinator_epoch)
    answer = call(t.WriteTxnMarkersRequest([marker]))
    check(answer.markers[0].topics[0].partitions[0].error, None)


def _asked(admin: AdminClient, broker: int) -> Call:
    return partial(admin.call, broker_id=str(broker))


def leader_of(metadata: MetadataResponse, tp: TopicPartition) -> int:
    """Raises UnknownTopicOrPartitionError."""
    for topic in metadata.topics:
        for part in topic.partitions:
            if (topic.topic, part.partition) == tp and part.error in (NO_ERROR, 9):
                return int(part.leader)
    raise UnknownTopicOrPartitionError(f"There is no leader of {tp}")
