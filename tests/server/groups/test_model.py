"""Random joins, syncs, leaves, ends of connections and time: what holds after every step."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafka08.server.groups.coordinator import MemberId, TimerKey
from kafka08.server.groups.group import JoinAnswer, Member, Reply, SyncAnswer
from kafka08.server.groups.memory import GroupMemory
from tests.server.groups.support import Desk, strategies

CLIENTS = st.integers(0, 4)
INSTANCES = {3: "i3", 4: "i4"}  # the other clients are dynamic


class Groups(RuleBasedStateMachine):
    """Five clients of one group; what each remembers is its last successful join."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk(group_max_size=4)
        self.joined: dict[int, JoinAnswer] = {}
        self.asked: list[tuple[int, Reply[JoinAnswer]]] = []
        self.synced: list[Reply[SyncAnswer]] = []
        self.strategies: dict[int, str] = {}
        self.leaders: dict[int, str] = {}

    @rule(
        client=CLIENTS,
        fresh=st.booleans(),
        requires_id=st.booleans(),
        metadata=st.sampled_from([b"a", b"b"]),
        names=st.sampled_from([("x",), ("x", "y"), ("y", "x")]),
    )
    def join(
        self, client: int, fresh: bool, requires_id: bool, metadata: bytes, names: Any
    ) -> None:
        known = self.joined.get(client)
        reply = self.desk.join(
            known.member_id if known is not None and not fresh else "",
            instance=INSTANCES.get(client),
            known=strategies(*names, metadata=metadata),
            requires_id=requires_id,
        )
        self.asked.append((client, reply))
        self._collect()

    @rule(client=CLIENTS, old=st.booleans())
    def sync(self, client: int, old: bool) -> None:
        known = self.joined.get(client)
        if known is not None:
            shares = {each.member_id: each.member_id.encode() for each in known.members}
            generation = known.generation - old
            self.synced.append(
                self.desk.sync(known, shares, instance=INSTANCES.get(client), generation=generation)
            )

    @rule(client=CLIENTS)
    def heartbeat(self, client: int) -> None:
        known = self.joined.get(client)
        if known is not None:
            assert self.desk.heartbeat(known, instance=INSTANCES.get(client)) in (0, 22, 25, 27, 82)

    @rule(client=CLIENTS)
    def leave(self, client: int) -> None:
        known = self.joined.pop(client, None)
        if known is not None:
            self.desk.leave(MemberId(known.member_id, INSTANCES.get(client)))
        self._collect()

    @rule(code=st.sampled_from([0, 0, 0, 16, 27]))
    def store(self, code: int) -> None:
        self.desk.store(code)
        self._collect()

    @rule(number=st.integers(0, 3))
    def a_connection_dies(self, number: int) -> None:
        parked = [reply for _, reply in self.asked if reply.answer is None]
        if number < len(parked):
            self.desk.coordinator.abandon_join("g", parked[number])
        waiting = [reply for reply in self.synced if reply.answer is None]
        if number < len(waiting):
            self.desk.coordinator.abandon_sync("g", waiting[number])
        self._collect()

    @rule(ms=st.sampled_from([1, 2999, 3000, 9999, 10_000, 60_000]))
    def time_passes(self, ms: int) -> None:
        self.desk.wait(ms)
        self._collect()

    @rule()
    def the_coordinator_moves(self) -> None:
        group = self.desk.coordinator.groups.get("g")
        record = None if group is None or not group.generation else group.record()
        self.desk.coordinator.unload(7)
        self._collect()
        if record is not None:
            self.desk.coordinator.load(7, {"g": record})

    def _collect(self) -> None:
        for client, reply in self.asked:
            answer = reply.answer
            if answer is None:
                continue
            if answer.error in (0, 79):
                assert answer.member_id
                self.joined[client] = answer
            elif answer.error in (25, 82):
                self.joined.pop(client, None)
            if answer.error == 0:
                self._check_generation(answer)
        self.asked = [(client, reply) for client, reply in self.asked if reply.answer is None]
        self.synced = [reply for reply in self.synced if reply.answer is None]

    def _check_generation(self, answer: JoinAnswer) -> None:
        """One strategy and one leader, who alone gets the members."""
        assert answer.generation > 0 and answer.protocol
        assert answer.protocol == self.strategies.setdefault(answer.generation, answer.protocol)
        assert bool(answer.members) == (answer.leader == answer.member_id)
        if answer.members:
            leader = self.leaders.setdefault(answer.generation, answer.member_id)
            assert leader == answer.member_id
            assert answer.member_id in {each.member_id for each in answer.members}

    @invariant()
    def the_memory_is_that_of_the_groups(self) -> None:
        memory = GroupMemory(1)
        for group in self.desk.coordinator.groups.values():
            if group.generation or group.state.value != "Empty":
                memory.weigh(group, group.members.values())
        assert self.desk.coordinator.memory.total == memory.total

    @invariant()
    def every_group_is_whole(self) -> None:
        timers = self.desk.coordinator.timers
        for group in self.desk.coordinator.groups.values():
            members = group.members
            assert (group.state.value == "Empty") == (not members) or group.state.value in (
                "PreparingRebalance",
            )
            assert members or group.leader is None or group.state.value == "PreparingRebalance"
            assert not members or group.leader in members
            assert group.not_synced <= set(members)
            assert set(group.static.values()) <= set(members)
            assert group.static.keys() == {
                each.instance_id for each in members.values() if each.instance_id is not None
            }
            if group.state.value == "PreparingRebalance" or group.not_synced:
                assert TimerKey("g") in timers
            assert all(TimerKey("g", each) in timers for each in group.promised)
            assert all(self._is_watched(member) for member in members.values())
            assert len(members) + len(group.promised) <= 4

    def _is_watched(self, member: Member) -> bool:
        """Parked or with a session: every member can time out."""
        return member.is_parked or TimerKey("g", member.id) in self.desk.coordinator.timers

    @invariant()
    def no_reply_is_lost(self) -> None:
        """Whatever is unanswered is parked with exactly one member."""
        group = self.desk.coordinator.groups.get("g")
        members = [] if group is None else list(group.members.values())
        for _, join in self.asked:
            assert join.answer is not None or sum(each.join is join for each in members) == 1
        for sync in self.synced:
            assert sync.answer is not None or sum(each.sync is sync for each in members) == 1

    def teardown(self) -> None:
        """Left alone, the group answers everybody and ends empty."""
        self.desk.store()
        for _ in range(4):
            self.desk.wait(3_600_000)
            self.desk.store()
        assert all(reply.answer is not None for _, reply in self.asked)
        assert all(reply.answer is not None for reply in self.synced)
        assert self.desk.state() in ("", "Empty")
        assert len(self.desk.coordinator.timers) == 0


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
