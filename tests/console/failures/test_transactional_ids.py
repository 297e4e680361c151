"""kafka08.console.failures.transactional_ids."""

from __future__ import annotations

import pytest

from kafka08.common import TRANSACTIONS_TOPIC, offsets_partition_for
from kafka08.console.cluster_state import BrokerView, ClusterState, PartitionView, TopicView
from kafka08.console.failures.transactional_ids import read_ids
from kafka08.errors import KafkaError
from kafka08.protocol import transaction_schemas as t

IDS = {1: ["a", "b", "c"], 2: ["d"]}
PLACES = {id_: offsets_partition_for(id_, 3) for id_ in "abcd"}


def state(*leaders: int, ours: tuple[int, ...] = (1, 2)) -> ClusterState:
    """The partitions of the topic have these leaders."""
    brokers = {id_: BrokerView(id_, True, is_ours=id_ in ours) for id_ in (1, 2)}
    views = {number: PartitionView((1, 2), leader, ()) for number, leader in enumerate(leaders)}
    topics = {TRANSACTIONS_TOPIC: TopicView(views)} if leaders else {}
    return ClusterState(0, brokers, 1, 1, topics, {}, 0, True)


def listing(broker: int, request: t.ListTransactionsRequest) -> t.ListTransactionsResponse:
    assert request == t.ListTransactionsRequest([], [])
    found = [t.ListedTransaction(id_, 1, "Empty") for id_ in IDS[broker]]
    return t.ListTransactionsResponse(0, 0, [], found)


def test_leaders_say_the_ids_of_their_partitions() -> None:
    found = read_ids(state(1, 1, 1), listing)
    counts = [PLACES[id_] for id_ in "abc"]
    assert found == {number: counts.count(number) for number in range(3)}
    assert sum(found.values()) == 3


def test_partitions_without_a_leader_that_can_say_it_are_left_out() -> None:
    assert read_ids(state(2, -1, 9), listing).keys() == {0}
    assert read_ids(state(1, 2, 2, ours=(1,)), listing).keys() == {0}
    assert read_ids(state(), listing) == {}


@pytest.mark.parametrize("error", [OSError("gone"), KafkaError("refused"), None])
def test_one_leader_that_does_not_answer(error: Exception | None) -> None:
    """None: it refuses, as it loads its partitions."""

    def ask(broker: int, request: t.ListTransactionsRequest) -> t.ListTransactionsResponse:
        if broker == 1:
            if error:
                raise error
            return t.ListTransactionsResponse(0, 14, [], [])
        return listing(broker, request)

    assert read_ids(state(1, 2, 1), ask).keys() == {1}
