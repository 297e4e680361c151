"""The memory of groups: how it is counted and given back, and when more is refused."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.groups.records import GroupRecord, MemberRecord
from kafka08.server.groups.coordinator import MemberId
from kafka08.server.groups.group import Group, JoinRequest, Member, Strategy
from kafka08.server.groups.memory import GROUP_BYTES, MEMBER_BYTES, GroupMemory, Sizes
from tests.server.groups.support import (
    DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Desk,
    answer_of,
    strategies,
)

SMALL = GROUP_BYTES + MEMBER_BYTES + 1000  # a group with one member that has little metadata


def member(name: str = "m", *known: Strategy, client: str = "c", host: str = "/h") -> Member:
    known = known or strategies("range")
    return Member(name, JoinRequest("g", name, None, client, host, 1, 1, "consumer", known))


def group(name: str = "g", *members: Member) -> Group:
    found = Group(name, 0, 0)
    for each in members:
        found.add(each, "consumer")
    return found


def weight(found: Group) -> int:
    memory = GroupMemory(1)
    memory.weigh(found, found.members.values())
    return memory.total


LARGE = "\N{GRINNING FACE}" + "x" * 9_999  # four bytes for each of its characters
SIZES = {
    "group's name": lambda: group(LARGE, member()),
    "client's id": lambda: group("g", member(client=LARGE)),
    "host": lambda: group("g", member(host=LARGE)),
    "strategy's name": lambda: group("g", member("m", Strategy(LARGE, b""))),
    "metadata": lambda: group("g", member("m", Strategy("range", bytes(40_000)))),
    "number of strategies": lambda: group(
        "g", member("m", *strategies(*[""] * 1_000, metadata=b""))
    ),
}


@pytest.mark.parametrize("what", SIZES)
def test_what_a_request_brings_counts(what: str) -> None:
    assert weight(SIZES[what]()) - weight(group("g", member())) > 39_900


def test_the_shares_of_objects_are_about_right() -> None:
    tracemalloc.start()
    groups = [group(f"g{n}") for n in range(1_000)]
    empty, _ = tracemalloc.get_traced_memory()
    full = [group(f"g{n}", member(f"m{n}")) for n in range(1_000)]
    both, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert empty < 2 * sum(map(weight, groups))
    assert both - empty < 2 * sum(map(weight, full))


def test_all_is_given_back() -> None:
    memory = GroupMemory(1)
    first, second = group("a", member("1"), member("2")), group("b", member("1"))
    memory.weigh(first, first.members.values())
    before = memory.total
    memory.weigh(first, first.members.values())
    assert memory.total == before
    memory.weigh(second, second.members.values())
    memory.forget(second)
    assert memory.total == before
    memory.forget_member(first, "1")
    assert memory.total == weight(group("a", member("2")))
    memory.forget(first)
    assert memory.total == 0


def fill(desk: Desk, prefix: str, size: int = 0) -> list[str]:
    """Groups with a member each, made until there is no more room."""
    made: list[str] = []
    known = strategies("range", metadata=bytes(size))
    while (reply := desk.join(group=f"{prefix}{len(made)}", known=known)).answer is None:
        made.append(f"{prefix}{len(made)}")
        assert len(made) < 1_000
    assert answer_of(reply).error == 15 and f"{prefix}{len(made)}" not in desk.coordinator.groups
    return made


def test_groups_without_members_count_until_they_are_deleted() -> None:
    desk = Desk(group_members_max_bytes=50 * SMALL)
    made = fill(desk, "x" * 1_000)
    desk.wait(DELAY_MS)
    desk.wait(SESSION_MS + REBALANCE_MS)
    assert {desk.state(each) for each in made} == {"Empty"}
    fill(desk, "y" * 1_000)
    for each in list(desk.coordinator.groups):
        if desk.state(each) == "Empty":
            assert desk.coordinator.delete(each) == 0
    assert len(fill(desk, "z" * 1_000)) > 0


def test_many_strategies_without_metadata_are_refused() -> None:
    desk = Desk(group_members_max_bytes=1_000_000)
    known = strategies(*(str(n) for n in range(10_000)), metadata=b"")
    assert answer_of(desk.join(known=known)).error == 15


def test_a_refused_member_of_a_group_gets_in_when_another_leaves() -> None:
    desk = Desk(group_members_max_bytes=2 * SMALL + 60_000)
    large = strategies("range", metadata=bytes(30_000))
    members = [desk.join(known=large) for _ in range(2)]
    assert answer_of(desk.join(known=large)).error == 15
    desk.wait(2 * DELAY_MS)
    desk.coordinator.leave("g", [MemberId(answer_of(members[1]).member_id)])
    assert desk.join(known=large).answer is None


def test_loaded_groups_may_be_above_the_bound_and_their_members_come_again() -> None:
    desk = Desk(group_members_max_bytes=10_000)
    large = bytes(50_000)
    stored = MemberRecord("m", "c", "/h", SESSION_MS, large, large, rebalance_timeout_ms=1)
    record = GroupRecord("consumer", 3, "range", "m", [stored], 0)
    desk.coordinator.load(7, {"g": record})
    assert answer_of(desk.join(group="other")).error == 15
    again = desk.join("m", known=strategies("range", metadata=large))
    desk.wait(0)
    lead = answer_of(again)
    assert (lead.error, lead.generation) == (0, 4)
    synced = desk.sync(lead, {"m": large})
    desk.store()
    assert answer_of(synced).error == 0
    more = desk.join("m", known=strategies("range", metadata=bytes(50_001)))
    assert answer_of(more).error == 15
    desk.coordinator.unload(7)
    assert desk.join(group="other").answer is None


def test_assignments_replace_those_before_and_strangers_get_none() -> None:
    desk = Desk(group_members_max_bytes=SMALL + 50_000)
    first = desk.join()
    desk.wait(DELAY_MS)
    lead = answer_of(first)
    for _ in range(2):
        synced = desk.sync(lead, {lead.member_id: bytes(40_000), "stranger": bytes(90_000)})
        desk.store()
        assert answer_of(synced).error == 0
        again = desk.join(lead.member_id)
        desk.wait(0)
        lead = answer_of(again)
    assert answer_of(desk.sync(lead, {lead.member_id: bytes(60_000)})).error == 15


def test_a_static_member_comes_back_to_a_full_coordinator() -> None:
    desk = Desk(group_members_max_bytes=SMALL + 30_000)
    large = strategies("range", metadata=bytes(30_000))
    first = desk.join(instance="i", known=large)
    desk.wait(DELAY_MS)
    assert answer_of(first).error == 0
    assert answer_of(desk.join(known=large)).error == 15
    second = desk.join(instance="i", known=large)
    desk.wait(DELAY_MS)
    assert answer_of(second).error == 0


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4), st.integers(0, 20))))
def test_sizes_are_those_of_a_dict(steps: list[tuple[bool, int, int]]) -> None:
    sizes: Sizes[int] = Sizes()
    table: dict[int, int] = {}
    for puts, key, size in steps:
        if puts:
            sizes.put(key, size)
            table[key] = size
        else:
            sizes.drop(key)
            table.pop(key, None)
        assert sizes.total == sum(table.values())
        assert [sizes[key] for key in range(5)] == [table.get(key, 0) for key in range(5)]
        if table:
            assert sizes.oldest == next(iter(table))
        else:
            with pytest.raises(KeyError):
                assert sizes.oldest
