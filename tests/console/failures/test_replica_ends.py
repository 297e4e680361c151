"""kafka08.console.failures.replica_ends."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.console.failures.replica_ends import read_ends
from kafka08.errors import KafkaError
from kafka08.protocol import schemas

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
ENDS = {1: {T0: 5, T1: 7}, 2: {T0: 6, T1: 8}, 3: {T1: 9}}
"""By broker."""


class Brokers:
    """``broken``: the error that broker 3 raises."""

    def __init__(self, broken: Exception | None = None) -> None:
        self.requests: list[tuple[int, schemas.OffsetsRequest]] = []
        self._broken = broken

    def ask(self, broker: int, request: schemas.OffsetsRequest) -> schemas.OffsetsResponse:
        self.requests.append((broker, request))
        if self._broken and broker == 3:
            raise self._broken
        found = []
        for topic in request.topics:
            for each in topic.partitions:
                end = ENDS[broker].get(TopicPartition(topic.topic, each.partition))
                entry = schemas.OffsetsPartitionResponse(
                    each.partition, 3 if end is None else 0, [] if end is None else [end]
                )
                found.append(schemas.OffsetsTopicResponse(topic.topic, [entry]))
        return schemas.OffsetsResponse(found)


def test_each_broker_is_asked_once_and_as_a_debugging_consumer() -> None:
    brokers = Brokers()
    found = read_ends({T0: (1, 2), T1: (1, 2, 3)}, brokers.ask)
    assert found == {T0: {1: 5, 2: 6}, T1: {1: 7, 2: 8, 3: 9}}
    assert [broker for broker, _ in brokers.requests] == [1, 2, 3]
    assert {request.replica_id for _, request in brokers.requests} == {-2}


def test_a_partition_that_one_replica_does_not_know_is_left_out() -> None:
    assert read_ends({T0: (1, 3), T1: (2, 3)}, Brokers().ask) == {T1: {2: 8, 3: 9}}


@pytest.mark.parametrize("error", [OSError("gone"), KafkaError("not up")])
def test_a_partition_of_a_broker_that_does_not_answer_is_left_out(error: Exception) -> None:
    assert read_ends({T0: (1, 2), T1: (1, 3)}, Brokers(error).ask) == {T0: {1: 5, 2: 6}}


def test_nothing_is_asked_for_nothing() -> None:
    brokers = Brokers()
    assert read_ends({}, brokers.ask) == {}
    assert brokers.requests == []
