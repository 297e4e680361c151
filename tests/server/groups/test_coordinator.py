"""The group protocol: joins, syncs, heartbeats, timers, static members, limits."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kafka08.server.groups.coordinator import MemberId
from kafka08.server.groups.group import JoinAnswer
from tests.server.groups.support import (
    DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Desk,
    answer_of,
    strategies,
)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def error(reply: Any) -> int:
    code: int = answer_of(reply).error
    return code


# Joining


def test_the_first_to_join_leads_and_alone_sees_the_members(desk: Desk) -> None:
    first, second = desk.join(), desk.join()
    assert first.answer is None and desk.state() == "PreparingRebalance"
    desk.wait(2 * DELAY_MS)
    assert desk.state() == "CompletingRebalance"
    lead, follow = answer_of(first), answer_of(second)
    assert lead == JoinAnswer(
        0, "c-1", 1, "range", "c-1", (("c-1", None, b"m"), ("c-2", None, b"m"))
    )
    assert follow == JoinAnswer(0, "c-2", 1, "range", "c-1", ())


def test_the_leaders_assignment_is_stored_before_anybody_gets_it(desk: Desk) -> None:
    first, second = desk.join(), desk.join()
    desk.wait(2 * DELAY_MS)
    lead, follow = answer_of(first), answer_of(second)
    waits = desk.sync(follow)
    leads = desk.sync(lead, {"c-1": b"A", "c-2": b"B", "stranger": b"C"})
    assert waits.answer is None and leads.answer is None
    assert [m.assignment for m in desk.storing[0].record.members] == [b"A", b"B"]
    desk.store()
    assert desk.state() == "Stable"
    assert (answer_of(leads), answer_of(waits)) == ((0, b"A"), (0, b"B"))
    assert answer_of(desk.sync(follow)) == (0, b"B")
    assert desk.heartbeat(lead) == 0


def test_an_assignment_that_cannot_be_stored_is_an_error_and_a_rebalance(desk: Desk) -> None:
    reply = desk.join()
    desk.wait(DELAY_MS)
    sync = desk.sync(answer_of(reply))
    desk.store(16)
    assert error(sync) == 16 and desk.state() == "PreparingRebalance"


def test_what_is_stored_too_late_changes_nothing(desk: Desk) -> None:
    reply = desk.join()
    desk.wait(DELAY_MS)
    sync = desk.sync(answer_of(reply), {"c-1": b"A"})
    newcomer = desk.join()
    assert error(sync) == 27 and desk.state() == "PreparingRebalance"
    desk.store()
    assert desk.state() == "PreparingRebalance" and newcomer.answer is None


def test_an_empty_group_waits_for_more_members_but_not_for_ever(desk: Desk) -> None:
    replies = [desk.join(rebalance_ms=5000)]
    desk.wait(DELAY_MS - 1)
    replies.append(desk.join(rebalance_ms=5000))
    desk.wait(1)
    assert replies[0].answer is None  # a newcomer: another delay, of what is left of 5 s
    replies.append(desk.join(rebalance_ms=5000))
    desk.wait(2000)
    assert [answer_of(reply).generation for reply in replies] == [1, 1, 1]


def test_members_that_start_together_are_in_one_generation_without_a_delay() -> None:
    desk = Desk(group_initial_rebalance_delay_ms=0)
    replies = [desk.join()]
    desk.wait(49)
    replies.append(desk.join())
    assert replies[0].answer is None
    desk.wait(51)
    assert [answer_of(reply).generation for reply in replies] == [1, 1]


def test_everybody_rejoins_when_somebody_joins(desk: Desk) -> None:
    (lead,) = desk.stable()
    newcomer = desk.join()
    assert desk.heartbeat(lead) == 27 and newcomer.answer is None
    again = desk.join(lead.member_id)
    assert answer_of(again).generation == answer_of(newcomer).generation == 2
    assert answer_of(again).leader == lead.member_id


def test_who_does_not_rejoin_in_time_is_removed(desk: Desk) -> None:
    lead, other = desk.stable(2, session_ms=100_000)
    newcomer = desk.join()
    desk.wait(REBALANCE_MS - 1)
    assert newcomer.answer is None
    desk.wait(1)
    answer = answer_of(newcomer)
    assert [m.member_id for m in answer.members] == [answer.member_id] == [answer.leader]
    assert desk.heartbeat(lead) == desk.heartbeat(other) == 25


@pytest.mark.scenario("modern-36")
def test_a_leader_that_never_syncs_loses_its_place(desk: Desk) -> None:
    first, second = desk.join(session_ms=100_000), desk.join(session_ms=100_000)
    desk.wait(2 * DELAY_MS)
    sync = desk.sync(answer_of(second))
    desk.wait(REBALANCE_MS)
    assert error(sync) == 27 and desk.state() == "PreparingRebalance"
    assert desk.heartbeat(answer_of(first)) == 25
    again = desk.join(answer_of(second).member_id)
    assert answer_of(again).leader == answer_of(second).member_id


@pytest.mark.parametrize("state", ["CompletingRebalance", "Stable"])
def test_a_repeated_join_gets_the_same_answer(desk: Desk, state: str) -> None:
    first, second = desk.join(), desk.join()
    desk.wait(2 * DELAY_MS)
    lead, follow = answer_of(first), answer_of(second)
    if state == "Stable":
        desk.sync(lead)
        desk.store()
    assert answer_of(desk.join(follow.member_id)) == follow
    assert desk.state() == state
    changed = desk.join(follow.member_id, known=strategies("range", metadata=b"other"))
    assert changed.answer is None and desk.state() == "PreparingRebalance"


@pytest.mark.scenario("modern-34")
def test_the_leader_of_a_stable_group_asks_for_a_rebalance_by_joining(desk: Desk) -> None:
    lead, follow = desk.stable(2)
    again = desk.join(lead.member_id)
    assert again.answer is None and desk.heartbeat(follow) == 27
    desk.join(follow.member_id)
    assert answer_of(again).generation == 2


def test_a_second_join_replaces_the_parked_one(desk: Desk) -> None:
    (lead,) = desk.stable()
    desk.join()
    first = desk.join(lead.member_id)  # completes the rebalance
    assert answer_of(first).generation == 2
    desk.join()
    parked = desk.join("c-2")
    newer = desk.join("c-2")
    assert error(parked) == 27 and newer.answer is None


def test_the_strategy_that_all_know_and_most_prefer(desk: Desk) -> None:
    replies = [
        desk.join(known=strategies("new", "a", "b")),
        desk.join(known=strategies("b", "a")),
        desk.join(known=strategies("a", "b")),
    ]
    desk.wait(3 * DELAY_MS)
    assert answer_of(replies[0]).protocol == "a"


def test_strategies_and_kinds_that_do_not_fit(desk: Desk) -> None:
    desk.join(known=strategies("a", "b"))
    desk.join(known=strategies("b", "c"))
    assert error(desk.join(known=strategies("a", "c"))) == 23
    assert error(desk.join(known=())) == 23
    assert error(desk.join(kind="connect", known=strategies("b"))) == 23
    assert error(desk.join(group="new", kind="")) == 23
    assert error(desk.join(group="new", known=())) == 23
    assert list(desk.coordinator.groups) == ["g"]


def test_requests_that_name_no_member(desk: Desk) -> None:
    assert error(desk.join("who")) == 25
    assert error(desk.join(group="")) == 24
    assert error(desk.join(session_ms=5999)) == error(desk.join(session_ms=1_800_001)) == 26
    assert desk.coordinator.groups == {} and desk.leave("who") == [25]
    (lead,) = desk.stable()
    stranger = lead._replace(member_id="who")
    assert error(desk.join("who")) == error(desk.sync(stranger)) == desk.heartbeat(stranger) == 25
    assert error(desk.sync(lead, generation=5)) == 22
    assert desk.heartbeat(lead._replace(generation=0)) == 22
    assert error(desk.sync(lead, group="other")) == 25
    assert desk.leave("who") == [25]


@pytest.mark.scenario("modern-35")
def test_a_member_that_needs_an_id_gets_one_first(desk: Desk) -> None:
    asked = answer_of(desk.join(requires_id=True))
    assert asked == JoinAnswer(79, "c-1")
    reply = desk.join(asked.member_id, requires_id=True)
    desk.wait(DELAY_MS)
    assert answer_of(reply).member_id == "c-1"


def test_a_rebalance_waits_for_those_with_a_new_id_for_a_session(desk: Desk) -> None:
    (lead,) = desk.stable()
    promised = answer_of(desk.join(requires_id=True))
    again = desk.join(lead.member_id)
    assert again.answer is None
    desk.wait(SESSION_MS)
    assert answer_of(again).generation == 2
    assert error(desk.join(promised.member_id)) == 25


@pytest.mark.scenario("modern-35")
def test_ids_that_are_not_used_leave_no_group(desk: Desk) -> None:
    desk.join(requires_id=True)
    desk.wait(SESSION_MS)
    assert desk.coordinator.groups == {} and len(desk.coordinator.timers) == 0


# Sessions, commits, leaving


@pytest.mark.scenario("modern-31")
def test_a_silent_member_is_removed(desk: Desk) -> None:
    lead, other = desk.stable(2)
    desk.wait(SESSION_MS - 1)
    assert desk.heartbeat(lead) == 0
    desk.wait(1)
    assert desk.heartbeat(lead) == 27 and desk.heartbeat(other) == 25
    desk.wait(SESSION_MS)
    assert desk.state() == "Empty"
    ((partition, record),) = desk.coordinator.take_unsaved().values()
    assert (partition, record and record.members, record and record.generation) == (7, [], 2)


@pytest.mark.parametrize("act", ["heartbeat", "commit", "sync", "join"])
def test_any_sign_of_life_counts(desk: Desk, act: str) -> None:
    _, member = desk.stable(2)
    desk.wait(SESSION_MS - 1)
    if act == "heartbeat":
        desk.heartbeat(member)
    elif act == "commit":
        desk.coordinator.check_commit("g", member.generation, MemberId(member.member_id))
    elif act == "sync":
        desk.sync(member)
    else:
        desk.join(member.member_id)
    desk.wait(SESSION_MS - 1)
    assert desk.heartbeat(member) != 25


def test_parked_members_do_not_time_out(desk: Desk) -> None:
    (lead,) = desk.stable(session_ms=59_000)
    newcomer = desk.join()
    desk.wait(58_000)
    assert desk.heartbeat(lead) == 27
    desk.wait(1000)
    desk.join(lead.member_id)
    assert error(newcomer) == 0


@pytest.mark.scenario("modern-39")
def test_a_commit_needs_a_member_if_there_is_one(desk: Desk) -> None:
    def commit(generation: int = -1, member_id: str = "", group: str = "g") -> int:
        return desk.coordinator.check_commit(group, generation, MemberId(member_id))

    assert commit() == 0 and commit(1, "c-1") == 22
    reply = desk.join()
    assert commit() == 25
    desk.wait(DELAY_MS)
    lead = answer_of(reply)
    assert commit(1, lead.member_id) == 27  # completing
    desk.sync(lead)
    desk.store()
    assert commit(1, lead.member_id) == 0 and commit(0, lead.member_id) == 22
    assert commit(1, "who") == commit(-1) == 25
    desk.join()
    assert commit(1, lead.member_id) == 0  # preparing
    desk.leave(lead.member_id, "c-2")
    assert desk.state() == "Empty" and commit() == 0 and commit(2, "c-1") == 25


def test_a_commit_that_names_neither_generation_nor_member_is_of_none(desk: Desk) -> None:
    """Clients that leave both fields unset send 0 and an empty name; generations begin with 1."""

    def commit(generation: int, member_id: str = "", instance: str | None = None) -> int:
        return desk.coordinator.check_commit("g", generation, MemberId(member_id, instance))

    assert commit(0) == commit(-1) == 0
    assert commit(0, "c-1") == commit(1) == commit(0, "", "i") == 22
    (lead,) = desk.stable()
    assert commit(0) == commit(-1) == 25  # it has members
    desk.leave(lead.member_id)
    assert desk.state() == "Empty" and commit(0) == commit(-1) == 0
    assert commit(0, "c-1") == commit(1) == 25


@pytest.mark.scenario("modern-32")
def test_a_group_is_empty_once_all_have_left(desk: Desk) -> None:
    lead, other = desk.stable(2)
    assert desk.leave(lead.member_id, other.member_id, other.member_id) == [0, 0, 25]
    assert desk.state() == "Empty" and len(desk.coordinator.timers) == 0
    promised = answer_of(desk.join(requires_id=True))
    assert desk.leave(promised.member_id) == [0]
    assert desk.state() == "Empty"


def test_a_member_leaves_with_its_requests_answered(desk: Desk) -> None:
    first, second = desk.join(), desk.join()
    assert desk.leave("c-1") == [0] and error(first) == 25
    desk.wait(2 * DELAY_MS)
    desk.join("c-2")
    sync = desk.sync(answer_of(second))
    assert desk.leave("c-2") == [0] and error(sync) == 25
    assert desk.state() == "Empty"


# Static members


@pytest.mark.scenario("modern-33")
def test_a_static_member_comes_back_without_a_rebalance(desk: Desk) -> None:
    first, second = desk.join(instance="i1"), desk.join(instance="i2")
    desk.wait(2 * DELAY_MS)
    lead, other = answer_of(first), answer_of(second)
    assert (lead.member_id, other.member_id) == ("i1-1", "i2-2")
    desk.sync(lead, {"i1-1": b"A", "i2-2": b"B"}, instance="i1")
    desk.store()
    reply = desk.join(instance="i1")
    assert reply.answer is None  # until the new id is stored
    assert [m.member_id for m in desk.storing[0].record.members] == ["i1-3", "i2-2"]
    desk.store()
    back = answer_of(reply)
    assert back == JoinAnswer(0, "i1-3", 1, "range", "i1-1", ())
    assert desk.state() == "Stable"
    assert answer_of(desk.sync(back, instance="i1")) == (0, b"A")
    assert desk.heartbeat(lead, instance="i1") == 82
    assert desk.heartbeat(lead) == 25
    assert error(desk.join("i1-1", instance="i1")) == 82
    assert error(desk.sync(lead, instance="i1")) == 82
    assert error(desk.join("i2-2", instance="i9")) == 25
    assert desk.heartbeat(other, instance="i2") == 0


def test_a_static_member_with_other_metadata_causes_a_rebalance(desk: Desk) -> None:
    desk.stable(instance="i1")
    reply = desk.join(instance="i1", known=strategies("range", metadata=b"other"))
    assert not desk.storing and answer_of(reply).generation == 2


def subscription(*topics: str, owned: bytes = b"") -> bytes:
    """Version 2 of a consumer's metadata: topics, user data, owned partitions and generation."""
    names = b"".join(struct.pack(f">h{len(each)}s", len(each), each.encode()) for each in topics)
    return struct.pack(">hi", 2, len(topics)) + names + struct.pack(">i", -1) + owned


def test_a_static_member_forgets_what_it_owned_without_a_rebalance(desk: Desk) -> None:
    """A Java client names its generation and its partitions, and knows neither after a restart."""
    owned = subscription("a", "b", owned=struct.pack(">ih1siii", 1, 1, b"a", 1, 0, 7))
    afresh = subscription("b", "a", owned=struct.pack(">ii", 0, -1))
    desk.stable(instance="i1", known=strategies("range", metadata=owned))
    desk.join(instance="i1", known=strategies("range", metadata=afresh))
    assert len(desk.storing) == 1 and desk.state() == "Stable"


@pytest.mark.parametrize("topics", [("a",), ("a", "c"), ("a", "b", "c")])
def test_a_static_member_with_other_topics_causes_a_rebalance(
    desk: Desk, topics: tuple[str, ...]
) -> None:
    before, after = subscription("a", "b"), subscription(*topics)
    desk.stable(instance="i1", known=strategies("range", metadata=before))
    reply = desk.join(instance="i1", known=strategies("range", metadata=after))
    assert not desk.storing and answer_of(reply).generation == 2


def test_a_new_id_that_cannot_be_stored_is_an_error(desk: Desk) -> None:
    desk.stable(instance="i1")
    reply = desk.join(instance="i1")
    desk.store(16)
    assert error(reply) == 16 and desk.state() == "Stable"
    reply = desk.join(instance="i1")
    desk.store()
    assert error(reply) == 0


def test_a_rebalance_overtakes_the_store_of_a_new_id(desk: Desk) -> None:
    desk.stable(instance="i1")
    reply, newcomer = desk.join(instance="i1"), desk.join()
    assert answer_of(reply).generation == answer_of(newcomer).generation == 2
    desk.store()
    assert desk.state() == "CompletingRebalance"


@pytest.mark.scenario("modern-33")
def test_two_processes_of_one_instance(desk: Desk) -> None:
    first = desk.join(instance="i1")
    second = desk.join(instance="i1")
    assert error(first) == 82
    desk.wait(2 * DELAY_MS)
    sync = desk.sync(answer_of(second), instance="i1")
    third = desk.join(instance="i1")
    assert error(sync) == 82
    assert error(third) == 0


def test_late_static_members_stay_but_do_not_lead(desk: Desk) -> None:
    lead, _ = desk.stable(1, instance="i1", session_ms=200_000), None
    newcomer = desk.join()
    desk.wait(REBALANCE_MS)
    answer = answer_of(newcomer)
    assert answer.leader == answer.member_id
    assert [m.instance_id for m in answer.members] == ["i1", None]
    assert desk.heartbeat(lead[0], instance="i1") == 22


def test_a_rebalance_without_anybody_waits_on(desk: Desk) -> None:
    lead, other = desk.stable(1, instance="i1", session_ms=200_000), desk.join()
    desk.leave(answer_or_id(desk, other))
    desk.wait(REBALANCE_MS)
    assert desk.state() == "PreparingRebalance"
    assert answer_of(desk.join(lead[0].member_id, instance="i1")).generation == 2


def answer_or_id(desk: Desk, reply: Any) -> str:
    group = desk.coordinator.groups["g"]
    return next(member.id for member in group.members.values() if member.join is reply)


def test_a_static_member_is_removed_by_its_instance_id(desk: Desk) -> None:
    (lead,) = desk.stable(instance="i1")
    assert desk.leave(MemberId("", "i9"), MemberId("other", "i1")) == [25, 82]
    assert desk.leave(MemberId("", "i1")) == [0] and desk.state() == "Empty"
    assert desk.heartbeat(lead, instance="i1") == 25


# Connections that die, coordinators that move


def test_a_member_without_an_id_leaves_with_its_connection(desk: Desk) -> None:
    (lead,) = desk.stable()
    newcomer = desk.join()
    desk.coordinator.abandon_join("g", newcomer)
    assert newcomer.answer is not None
    assert answer_of(desk.join(lead.member_id)).members == ((lead.member_id, None, b"m"),)


def test_a_member_with_an_id_may_come_back(desk: Desk) -> None:
    lead, other = desk.stable(2)
    desk.join()
    parked = desk.join(other.member_id)
    desk.coordinator.abandon_join("g", parked)
    desk.join(lead.member_id)
    assert desk.state() == "PreparingRebalance"
    desk.wait(SESSION_MS)  # it does not
    assert desk.state() == "CompletingRebalance"
    assert desk.heartbeat(other) == 25


def test_an_abandoned_sync_starts_the_session_again(desk: Desk) -> None:
    first, second = desk.join(), desk.join()
    desk.wait(2 * DELAY_MS)
    sync = desk.sync(answer_of(second))
    desk.coordinator.abandon_sync("g", sync)
    assert sync.answer is not None
    desk.wait(SESSION_MS)
    assert desk.heartbeat(answer_of(first)) == 25
    desk.coordinator.abandon_sync("none", sync)
    desk.coordinator.abandon_join("none", first)
    desk.coordinator.abandon_join("g", first)


@pytest.mark.parametrize("end", ["unload", "close"])
def test_who_waits_is_told_when_the_coordinator_moves(desk: Desk, end: str) -> None:
    first, second = desk.join(), desk.join()
    desk.wait(2 * DELAY_MS)
    sync = desk.sync(answer_of(second))
    parked = desk.join(group="h")
    promised = desk.join(group="i", requires_id=True)
    if end == "unload":
        desk.coordinator.unload(8)
        assert sync.answer is None
        desk.coordinator.unload(7)
    else:
        desk.coordinator.close()
    assert error(sync) == error(parked) == 16 and error(promised) == 79 and error(first) == 0
    assert desk.coordinator.groups == {} and len(desk.coordinator.timers) == 0
    desk.store()


@pytest.mark.scenario("modern-37")
def test_a_group_goes_on_where_it_was_stored(desk: Desk) -> None:
    first, second = desk.join(instance="i1"), desk.join(known=strategies("range", "x"))
    desk.wait(2 * DELAY_MS)
    lead, other = answer_of(first), answer_of(second)
    desk.sync(lead, {lead.member_id: b"A", other.member_id: b"B"}, instance="i1")
    record = desk.storing[0].record
    new = Desk()
    new.coordinator.load(7, {"g": record, "empty": record._replace(members=[])})
    assert (new.state(), new.state("empty")) == ("Stable", "Empty")
    assert new.heartbeat(lead, instance="i1") == 0
    assert answer_of(new.sync(other)) == (0, b"B")
    new.wait(SESSION_MS)
    assert new.state() == "Empty"


# Limits, deletion


def test_a_group_has_only_so_many_members() -> None:
    desk = Desk(group_max_size=2)
    lead, _ = desk.stable(2)
    assert error(desk.join()) == error(desk.join(requires_id=True)) == 81
    assert desk.join(lead.member_id).answer is None
    desk.wait(SESSION_MS)  # a refused join does not stop the rebalance
    assert desk.state() == "CompletingRebalance"
    promised = answer_of(desk.join(requires_id=True))
    assert promised.error == 79 and error(desk.join()) == 81
    assert desk.join(promised.member_id).answer is None


def test_metadata_has_a_limit() -> None:
    desk = Desk(group_member_metadata_max_bytes=9)
    assert error(desk.join(known=strategies("range", metadata=b"xxxxx"))) == 10
    assert desk.join(known=strategies("range", metadata=b"xxxx")).answer is None


@pytest.mark.scenario("modern-42")
def test_only_empty_groups_are_deleted(desk: Desk) -> None:
    assert desk.coordinator.delete("g") is None
    (lead,) = desk.stable()
    assert desk.coordinator.delete("g") == 68
    desk.leave(lead.member_id)
    desk.coordinator.take_unsaved()
    assert desk.coordinator.delete("g") == 0
    assert desk.coordinator.take_unsaved() == {"g": (7, None)}
    assert desk.coordinator.delete("g") is None


def test_members_take_only_so_much_memory() -> None:
    desk = Desk(group_members_max_bytes=80_000)
    large = strategies("range", metadata=bytes(30_000))
    first, second = (desk.join(group=f"g{n}", known=large) for n in range(2))
    desk.wait(DELAY_MS)
    assert error(desk.join(group="g2", known=large)) == 15
    assert "g2" not in desk.coordinator.groups
    lead = answer_of(first)
    desk.sync(lead, {lead.member_id: bytes(10_000)}, group="g0")
    desk.store()
    refused = desk.sync(answer_of(second), {"c-2": bytes(30_000)}, group="g1")
    assert error(refused) == 15
    # members that are known may come again, also with less
    again = desk.join(answer_of(second).member_id, "g1", known=strategies("range"))
    desk.wait(0)
    assert error(again) == 0
    desk.coordinator.leave("g0", [MemberId(lead.member_id)])
    assert desk.join(group="g2", known=large).answer is None


def test_ids_that_nobody_uses_take_only_so_much_memory(desk: Desk) -> None:
    replies = [desk.join(group=f"g{n}", requires_id=True) for n in range(20_000)]
    assert {error(reply) for reply in replies} == {79}
    groups = desk.coordinator.groups
    assert 15_000 < len(groups) < 17_000 and "g0" not in groups and "g19999" in groups
    assert error(desk.join(answer_of(replies[0]).member_id, "g0")) == 25
    assert desk.join(answer_of(replies[-1]).member_id, "g19999").answer is None
