"""Every rule of leader selection, by the table of the original."""

from __future__ import annotations

import itertools

import pytest

from kafka08.controller import elections
from kafka08.controller.context import LeaderAndIsr
from kafka08.controller.elections import (
    Election,
    LeaderElectionNotNeededError,
    NoReplicaOnlineError,
    Vote,
)
from kafka08.controller.states import StateChangeFailedError

EPOCH = 7


def state(leader: int, *isr: int, leader_epoch: int = 3, zk_version: int = 5) -> LeaderAndIsr:
    return LeaderAndIsr(leader, leader_epoch, isr, 2, zk_version)


def after(leader: int, *isr: int) -> LeaderAndIsr:
    return LeaderAndIsr(leader, 4, isr, EPOCH, 6)


def test_first_leader_is_the_first_live_replica_and_the_isr_all_live_ones() -> None:
    assert elections.first_leader([3, 1, 2], {1, 2, 3}, EPOCH) == (3, 0, (3, 1, 2), EPOCH, 0)
    assert elections.first_leader([3, 1, 2], {2, 1}, EPOCH) == (1, 0, (1, 2), EPOCH, 0)
    with pytest.raises(NoReplicaOnlineError):
        elections.first_leader([3, 1, 2], {4}, EPOCH)


def test_offline_takes_the_first_in_assignment_order_of_the_live_isr() -> None:
    outcome = elections.offline(Vote(state(1, 3, 2, 1), [1, 2, 3], {2, 3}, EPOCH), None)
    # The isr keeps its own order.
    assert outcome == Election(after(2, 3, 2), (2, 3))


def test_offline_prefers_a_clean_leader_even_where_unclean_is_allowed() -> None:
    outcome = elections.offline(
        Vote(state(1, 1, 3), [1, 2, 3], {2, 3}, EPOCH), lambda alive: alive[0]
    )
    assert outcome == Election(after(3, 3), (2, 3), unclean=False)


def test_offline_without_live_isr() -> None:
    current = state(1, 1)
    with pytest.raises(NoReplicaOnlineError):
        elections.offline(Vote(current, [1, 2, 3], {2, 3}, EPOCH), None)
    outcome = elections.offline(Vote(current, [1, 2, 3], {2, 3}, EPOCH), lambda alive: alive[0])
    assert outcome == Election(after(2, 2), (2, 3), unclean=True)
    longest = elections.offline(Vote(current, [1, 2, 3], {2, 3}, EPOCH), lambda alive: alive[-1])
    assert longest.state == after(3, 3)


def test_offline_with_nobody_alive_fails_even_where_unclean_is_allowed() -> None:
    with pytest.raises(NoReplicaOnlineError):
        elections.offline(Vote(state(1, 1), [1, 2], {3}, EPOCH), lambda alive: alive[0])


def test_offline_takes_up_an_empty_isr_that_another_controller_left() -> None:
    with pytest.raises(NoReplicaOnlineError):
        elections.offline(Vote(state(-1), [1, 2], {1, 2}, EPOCH), None)
    outcome = elections.offline(Vote(state(-1), [1, 2], {1, 2}, EPOCH), lambda alive: alive[0])
    assert outcome.state == after(1, 1)


@pytest.mark.parametrize(
    ("text", "default", "allowed"),
    [
        ("true", False, True),
        (" False ", True, False),
        ("TRUE", False, True),
        ("yes", True, True),
        ("yes", False, False),
    ],
)
def test_an_own_setting_allows_unclean_leaders(text: str, default: bool, allowed: bool) -> None:
    assert elections.unclean_allowed({elections.UNCLEAN_KEY: text}, default) is allowed
    assert elections.unclean_allowed({}, default) is default


def test_bounced_are_those_who_registered_after_the_state_was_written() -> None:
    incarnations = {1: 10, 2: 31, 3: 30, 9: 99}
    assert elections.bounced((1, 2, 3, 4), incarnations, 30) == {2}
    assert elections.bounced((4,), incarnations, 0) == set()


def test_bounced_members_leave_the_isr_and_another_one_leads() -> None:
    def without(current: LeaderAndIsr, live: set[int], *gone: int) -> LeaderAndIsr | None:
        return elections.without_bounced(Vote(current, [1, 2, 3], live, EPOCH), gone)

    assert without(state(1, 3, 2, 1), {1, 2, 3}, 1) == after(2, 3, 2)
    assert without(state(3, 3, 2, 1), {1, 2, 3}, 2) == after(3, 3, 1)
    # A dead leader is left to the next election.
    assert without(state(1, 1, 2, 3), {2, 3}, 2) == after(1, 1, 3)
    assert without(state(1, 1, 2), {1, 2, 3}, 1, 2) is None
    assert without(state(1, 1, 2), {1, 3}, 1) is None
    assert without(state(1, 1, 2), {1, 2, 3}, 3) is None


def test_reassigned_takes_the_first_new_replica_live_and_in_sync() -> None:
    current = state(1, 1, 2, 5, 6)
    outcome = elections.reassigned(Vote(current, [4, 5, 6], {4, 5, 6}, EPOCH))
    assert outcome == Election(after(5, 1, 2, 5, 6), (4, 5, 6))
    with pytest.raises(NoReplicaOnlineError):
        elections.reassigned(Vote(current, [4, 5], {4, 6}, EPOCH))


def test_preferred() -> None:
    current = state(2, 2, 1)
    outcome = elections.preferred(Vote(current, [1, 2, 3], {1, 2}, EPOCH))
    # Recipients are all assigned replicas, dead ones too.
    assert outcome == Election(after(1, 2, 1), (1, 2, 3))
    with pytest.raises(LeaderElectionNotNeededError):
        elections.preferred(Vote(state(1, 1, 2), [1, 2, 3], {1, 2}, EPOCH))
    with pytest.raises(StateChangeFailedError, match="not alive or not in the isr"):
        elections.preferred(Vote(current, [1, 2, 3], {2, 3}, EPOCH))
    with pytest.raises(StateChangeFailedError, match="not alive or not in the isr"):
        elections.preferred(Vote(state(2, 2), [1, 2, 3], {1, 2, 3}, EPOCH))


def test_controlled_shutdown_takes_the_first_of_the_isr_that_stays() -> None:
    current = state(1, 1, 3, 2)
    outcome = elections.controlled_shutdown(Vote(current, [1, 2, 3, 4], {1, 2, 3}, EPOCH), {1})
    # Recipients include brokers shutting down, not dead ones.
    assert outcome == Election(after(3, 3, 2), (1, 2, 3))
    both = elections.controlled_shutdown(Vote(current, [1, 2, 3], {1, 2, 3}, EPOCH), {1, 3})
    assert both.state == after(2, 2)
    with pytest.raises(NoReplicaOnlineError):
        elections.controlled_shutdown(Vote(state(1, 1), [1, 2], {1, 2}, EPOCH), {1})


def test_controlled_shutdown_never_elects_a_dead_isr_member() -> None:
    outcome = elections.controlled_shutdown(Vote(state(1, 1, 3, 2), [1, 2, 3], {1, 2}, EPOCH), {1})
    assert outcome.state == after(2, 3, 2)
    with pytest.raises(NoReplicaOnlineError):
        elections.controlled_shutdown(Vote(state(1, 1, 3), [1, 2, 3], {1, 2}, EPOCH), {1})


def test_leaving_the_isr() -> None:
    assert elections.without_replicas(state(1, 1, 2, 3), {2}, EPOCH) == after(1, 1, 3)
    assert elections.without_replicas(state(1, 1, 2, 3), {1}, EPOCH) == after(-1, 2, 3)
    assert elections.without_replicas(state(1, 1, 2), {3}, EPOCH) is None


def test_the_last_of_the_isr_stays_without_leading() -> None:
    assert elections.without_replicas(state(1, 1), {1}, EPOCH) == after(-1, 1)
    assert elections.without_replicas(state(-1, 1), {1}, EPOCH) is None
    # Two at once: either may have everything.
    assert elections.without_replicas(state(1, 1, 2), {1, 2}, EPOCH) == after(-1, 1, 2)


def test_same_leader_under_a_new_epoch() -> None:
    assert elections.same_leader(state(1, 1, 2), EPOCH) == after(1, 1, 2)


def test_no_rule_yields_an_empty_isr_or_a_dead_leader_or_skips_an_epoch() -> None:
    brokers = (1, 2, 3)
    subsets = [subset for size in range(4) for subset in itertools.combinations(brokers, size)]
    for isr, live, leader in itertools.product(subsets, subsets, (-1, *brokers)):
        current = state(leader, *isr)
        vote = Vote(current, brokers, set(live), EPOCH)
        outcomes = []
        for elect, arguments in (
            (elections.offline, (vote, None)),
            (elections.offline, (vote, lambda choice: choice[0])),
            (elections.reassigned, (vote,)),
            (elections.preferred, (vote,)),
            (elections.controlled_shutdown, (vote, {1})),
        ):
            try:
                outcomes.append(elect(*arguments))
            except StateChangeFailedError:
                continue
        for outcome in outcomes:
            assert outcome.state.isr
            assert outcome.state.leader in outcome.state.isr
            assert outcome.state.leader in live
            assert outcome.state[1::2] == (4, EPOCH)
        shrunk = elections.without_replicas(current, {1}, EPOCH)
        assert shrunk is None or bool(shrunk.isr) == bool(isr)


@pytest.mark.parametrize(
    ("ends", "leader"),
    [({1: 5, 2: 9, 3: 9}, 2), ({1: -1, 2: -1, 3: 0}, 3), ({1: -1, 2: -1, 3: -1}, 1)],
)
def test_the_longest_log(ends: dict[int, int], leader: int) -> None:
    assert elections.longest(ends, (1, 2, 3)) == leader


def test_the_longest_log_of_one_replica_need_not_be_known() -> None:
    assert elections.longest({}, (3,)) == 3
    with pytest.raises(elections.LogEndsUnknownError):
        elections.longest({1: 5}, (1, 3))
