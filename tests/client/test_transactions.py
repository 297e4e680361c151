"""kafka08.client.transactions: what one broker is asked. The tool's tests have the rest."""

from __future__ import annotations

from functools import partial

import pytest

from kafka08.client import transactions
from kafka08.client.admin import RemoteError
from kafka08.common import TopicPartition
from kafka08.protocol import transaction_schemas as t
from tests.fakes.cluster import FakeCluster
from tests.fakes.transactions import Begun

T, U = TopicPartition("t", 0), TopicPartition("u", 3)


def cluster() -> FakeCluster:
    found = FakeCluster()
    found.transactions.begin(Begun("a", 0, 1, 0, {T: 4}))
    found.transactions.begin(Begun("b", 0, 2, 0, {U: 5}, state="PrepareCommit"))
    return found


def test_ids_of_a_coordinator_by_state() -> None:
    call = partial(cluster().answer, 9090)
    assert [each.transactional_id for each in transactions.coordinated(call)] == ["a", "b"]
    [found] = transactions.coordinated(call, ["PrepareCommit"])
    assert found == t.ListedTransaction("b", 2, "PrepareCommit")


def test_a_coordinator_that_is_not_ready() -> None:
    with pytest.raises(RemoteError):
        transactions.coordinated(lambda _: t.ListTransactionsResponse(0, 14, [], []))


def test_the_answer_about_each_partition_may_be_an_error() -> None:
    brokers = cluster()
    brokers.transactions.errors[U] = 29
    found = transactions.known_producers(partial(brokers.answer, 9090), [T, U])
    assert [each.transaction_start for each in found[T].producers] == [4]
    assert found[U].error == 29


def test_the_marker_of_an_abort() -> None:
    brokers = cluster()
    transactions.abort_at(partial(brokers.answer, 9090), U, 2, 7, 3)
    topics = [t.MarkedTopic("u", [3])]
    assert brokers.transactions.marked == [t.TxnMarker(2, 7, False, topics, 3)]
