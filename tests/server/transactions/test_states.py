"""The states of transactional ids: numbers, names, and the diagram of the documentation."""

from __future__ import annotations

from kafka08.server.transactions.states import (
    BY_NAME,
    BY_NUMBER,
    COMPLETED,
    DEAD,
    IDLE,
    NUMBERS,
    PREDECESSORS,
    PREPARED,
    TransactionState,
)
from tests.diagrams import drawn


def test_the_diagram_shows_the_table() -> None:
    (arrows,) = drawn("transactions.md")
    assert arrows == {
        (before.value, after.value) for after, all_ in PREDECESSORS.items() for before in all_
    }


def test_the_numbers_are_those_of_kafka() -> None:
    names = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort"]
    names += ["CompleteCommit", "CompleteAbort", "Dead"]
    assert [BY_NUMBER[number].value for number in range(7)] == names
    assert set(BY_NAME) == set(names) and set(NUMBERS) == set(TransactionState)


def test_what_is_decided_only_becomes_complete() -> None:
    for state in PREPARED:
        after = [each for each, before in PREDECESSORS.items() if state in before]
        assert after == [COMPLETED[state]]


def test_only_ids_without_a_transaction_are_forgotten() -> None:
    assert PREDECESSORS[DEAD] == IDLE
