"""The transitions of groups, as the documentation draws them, and what each state answers."""

from __future__ import annotations

import pytest

from kafka08.errors import LaterCode
from kafka08.server.groups.states import (
    COMMIT,
    COMPLETING,
    DEAD,
    HEARTBEAT,
    PREDECESSORS,
    PREPARING,
    STABLE,
    SYNC,
    GroupState,
)
from tests.diagrams import drawn


def test_the_states_of_groups() -> None:
    legal = {(start.value, end.value) for end, starts in PREDECESSORS.items() for start in starts}
    assert drawn("groups.md") == [legal]


@pytest.mark.parametrize("table", [PREDECESSORS, HEARTBEAT, COMMIT, SYNC])
def test_every_state_is_in_every_table(table) -> None:
    assert set(table) == set(GroupState)


def test_nothing_leaves_dead() -> None:
    assert all(DEAD not in before for before in PREDECESSORS.values())
    assert set(PREDECESSORS[DEAD]) == set(GroupState) - {DEAD}


def test_a_group_that_is_gone_sends_its_members_to_another_coordinator() -> None:
    assert HEARTBEAT[DEAD] == COMMIT[DEAD] == SYNC[DEAD] == 15


def test_when_members_hear_of_a_rebalance() -> None:
    """By heartbeats and syncs before it, by commits while its result is awaited."""
    rebalance = LaterCode.REBALANCE_IN_PROGRESS
    assert [state for state in GroupState if HEARTBEAT[state] == rebalance] == [PREPARING]
    assert [state for state in GroupState if SYNC[state] == rebalance] == [PREPARING]
    assert [state for state in GroupState if COMMIT[state] == rebalance] == [COMPLETING]
    assert [state for state in GroupState if SYNC[state] is None] == [COMPLETING, STABLE]
