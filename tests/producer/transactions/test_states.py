"""The states of a transactional producer, and what errors lead to."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kafka08.errors import InvalidProducerEpochError, InvalidTxnStateError, KafkaError
from kafka08.producer import errors as e
from kafka08.producer.transactions.states import (
    ABORTABLE_ERROR,
    ABORTING,
    COMMITTING,
    FATAL_ERROR,
    IN_TRANSACTION,
    INITIALIZING,
    PREDECESSORS,
    READY,
    UNINITIALIZED,
    ProducerState,
    after_answer,
    after_record,
)


def test_the_way_through_a_transaction() -> None:
    ways = [
        [UNINITIALIZED, INITIALIZING, READY, IN_TRANSACTION, COMMITTING, READY],
        [READY, IN_TRANSACTION, ABORTING, READY],
        [IN_TRANSACTION, ABORTABLE_ERROR, ABORTING, READY],
        [COMMITTING, ABORTABLE_ERROR],
    ]
    for way in ways:
        for one, next_ in pairwise(way):
            assert one in PREDECESSORS[next_]


def test_what_is_never_done() -> None:
    assert COMMITTING not in PREDECESSORS[ABORTING]  # it may be committed already
    assert ABORTABLE_ERROR not in PREDECESSORS[COMMITTING]
    assert ABORTABLE_ERROR not in PREDECESSORS[READY]
    for state, before in PREDECESSORS.items():
        assert state is FATAL_ERROR or FATAL_ERROR not in before
    assert set(PREDECESSORS) == set(ProducerState)


@pytest.mark.parametrize(
    ("error", "record", "answer"),
    [
        (e.ProducerFencedError(), FATAL_ERROR, FATAL_ERROR),
        (e.TransactionalIdAuthorizationError(), FATAL_ERROR, FATAL_ERROR),
        (e.ClusterAuthorizationError(), FATAL_ERROR, FATAL_ERROR),
        (InvalidProducerEpochError(), ABORTABLE_ERROR, FATAL_ERROR),
        (InvalidTxnStateError(), ABORTABLE_ERROR, FATAL_ERROR),
        (e.TopicAuthorizationError(), ABORTABLE_ERROR, ABORTABLE_ERROR),
        (e.RecordTooLargeError(), ABORTABLE_ERROR, FATAL_ERROR),
        (e.DeliveryTimeoutError(), ABORTABLE_ERROR, FATAL_ERROR),
        (e.IllegalGenerationError(), ABORTABLE_ERROR, ABORTABLE_ERROR),
        (e.InvalidProducerIdMappingError(), ABORTABLE_ERROR, ABORTABLE_ERROR),
    ],
)
def test_errors(error: KafkaError, record: ProducerState, answer: ProducerState) -> None:
    assert after_record(error) is record
    assert after_answer(error) is answer
