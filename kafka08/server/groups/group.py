"""A coordinated group and its members: plain data, and the rules that need no more than it.

Mirrors kafka.coordinator.group.GroupMetadata and MemberMetadata of later releases. Member metadata
and assignments are bytes that are not interpreted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from kafka08.groups.records import GroupRecord, MemberRecord
from kafka08.runtime import Event
from kafka08.server.groups.states import (
    COMPLETING,
    EMPTY,
    PREDECESSORS,
    STABLE,
    GroupState,
)

Answer = TypeVar("Answer")


class Reply(Generic[Answer]):
    """The answer to one request, which is given exactly once, at once or later."""

    __slots__ = ("answer", "event")

    def __init__(self, event: Event) -> None:
        self.answer: Answer | None = None
        self.event = event

    def send(self, answer: Answer) -> None:
        if self.answer is not None:
            raise RuntimeError(f"answered twice: {self.answer}, then {answer}")
        self.answer = answer
        self.event.set()


class Strategy(NamedTuple):
    """A way to assign partitions that a member knows, with its metadata for it."""

    name: str
    metadata: bytes


class JoinRequest(NamedTuple):
    """``requires_id``: a member without an id is given one first, and joins with it (version 4+
    of the request)."""

    group: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    strategies: tuple[Strategy, ...]
    requires_id: bool = False


class MemberMetadata(NamedTuple):
    """A member as its leader sees it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinAnswer(NamedTuple):
    error: int
    member_id: str = ""
    generation: int = -1
    protocol: str = ""
    leader: str = ""
    members: tuple[MemberMetadata, ...] = ()


class SyncAnswer(NamedTuple):
    error: int
    assignment: bytes = b""


class Member:
    """``join`` and ``sync`` are the member's parked requests."""

    def __init__(self, member_id: str, request: JoinRequest, assignment: bytes = b"") -> None:
        self.id = member_id
        self.instance_id = request.instance_id
        # False until an answer has told the member its id: it cannot come back before.
        self.knows_id = member_id == request.member_id
        self.assignment = assignment
        self.join: Reply[JoinAnswer] | None = None
        self.sync: Reply[SyncAnswer] | None = None
        self.joins_again(request)

    def joins_again(self, request: JoinRequest) -> None:
        """Take over what each join may change."""
        self.client_id = request.client_id
        self.client_host = request.client_host
        self.session_timeout_ms = request.session_timeout_ms
        self.rebalance_timeout_ms = request.rebalance_timeout_ms
        self.strategies = request.strategies

    @property
    def names(self) -> set[str]:
        """Of the strategies."""
        return {each.name for each in self.strategies}

    def metadata_for(self, protocol: str | None) -> bytes:
        return next((each.metadata for each in self.strategies if each.name == protocol), b"")

    def answer_join(self, answer: JoinAnswer) -> None:
        """Answer the parked join, if there is one."""
        reply, self.join = self.join, None
        if reply is not None:
            reply.send(answer)

    def answer_sync(self, answer: SyncAnswer) -> None:
        """Answer the parked sync, if there is one."""
        reply, self.sync = self.sync, None
        if reply is not None:
            reply.send(answer)

    @property
    def is_parked(self) -> bool:
        return self.join is not None or self.sync is not None


class Group:
    """``members`` are in the order in which they joined; ``static`` maps instance ids to member
    ids; ``promised`` holds ids that were given to members that have not joined with them yet.
    """

    def __init__(self, group_id: str, partition: int, now_ms: int) -> None:
        self.id = group_id
        self.partition = partition
        self.state = EMPTY
        self.since_ms = now_ms  # when the state began
        self.generation = 0
        self.protocol_type = ""
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}
        self.promised: set[str] = set()
        self._listed: Counter[str] = Counter()  # how many members list each strategy
        self.not_synced: set[str] = set()
        # While an empty group waits for its first members: how much longer it may wait, and
        # whether a member has joined since the wait began. None in any other rebalance.
        self.delay_left_ms: int | None = None
        self.has_newcomer = False
        self.is_storing = False  # the leader's assignment is being written

    def transition(self, state: GroupState, now_ms: int) -> None:
        if self.state not in PREDECESSORS[state]:
            raise RuntimeError(f"group {self.id} cannot go from {self.state} to {state}")
        self.state = state
        self.since_ms = now_ms

    # Members

    def add(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.id] = member
        self._listed.update(member.names)
        if member.instance_id is not None:
            self.static[member.instance_id] = member.id
        if self.leader is None:
            self.leader = member.id
        self.promised.discard(member.id)

    def remove(self, member: Member) -> None:
        del self.members[member.id]
        self._unlist(member)
        if self.static.get(member.instance_id or "") == member.id:
            del self.static[member.instance_id or ""]
        self.not_synced.discard(member.id)
        if self.leader == member.id:
            self.leader = next(iter(self.members), None)

    def update(self, member: Member, request: JoinRequest) -> None:
        self._unlist(member)
        member.joins_again(request)
        self._listed.update(member.names)

    def _unlist(self, member: Member) -> None:
        self._listed.subtract(member.names)
        for name in member.names:
            if not self._listed[name]:
                del self._listed[name]

    def rename(self, member: Member, member_id: str) -> None:
        """A static member has come back and gets a new id; it keeps its place in the order."""
        old = member.id
        self.members = {
            (member_id if each == old else each): found for each, found in self.members.items()
        }
        member.id = member_id
        if member.instance_id is not None:
            self.static[member.instance_id] = member_id
        if self.leader == old:
            self.leader = member_id
        if old in self.not_synced:
            self.not_synced.remove(old)
            self.not_synced.add(member_id)

    @property
    def all_joined(self) -> bool:
        """Whether all expected members have joined."""
        return not self.promised and all(m.join is not None for m in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Choose a leader among the members that have joined; False if there are none."""
        current = self.members.get(self.leader or "")
        if current is not None and current.join is not None:
            return True
        joined = next((m.id for m in self.members.values() if m.join is not None), None)
        if joined is not None:
            self.leader = joined
        return joined is not None

    # Strategies

    def _common(self) -> set[str]:
        """The strategies that all members list."""
        return {name for name, count in self._listed.items() if count == len(self.members)}

    def supports(self, protocol_type: str, strategies: Iterable[Strategy]) -> bool:
        """Whether a member with these strategies can be in the group."""
        names = {each.name for each in strategies}
        if not self.members:
            return bool(names) and protocol_type != ""
        return protocol_type == self.protocol_type and not names.isdisjoint(self._common())

    def select_protocol(self) -> str:
        """The strategy with the most votes; a member votes for the first that all members know."""
        common = self._common()
        votes = Counter(
            next(each.name for each in member.strategies if each.name in common)
            for member in self.members.values()
        )
        return votes.most_common(1)[0][0]

    def next_generation(self, now_ms: int) -> None:
        """Begin the next generation: the wait for members is over."""
        self.generation = self.generation % 0x7FFFFFFF + 1
        self.delay_left_ms = None
        self.is_storing = False
        self.not_synced = set(self.members)
        if self.members:
            self.protocol = self.select_protocol()
            self.transition(COMPLETING, now_ms)
        else:
            self.protocol = self.leader = None
            self.transition(EMPTY, now_ms)

    # Answers and records

    def join_answer(self, member: Member, leader: str | None = None) -> JoinAnswer:
        """``leader`` replaces the leader's name."""
        leader = leader or self.leader or ""
        members: tuple[MemberMetadata, ...] = ()
        if leader == member.id:
            members = tuple(
                MemberMetadata(each.id, each.instance_id, each.metadata_for(self.protocol))
                for each in self.members.values()
            )
        protocol = self.protocol or ""
        return JoinAnswer(0, member.id, self.generation, protocol, leader, members)

    def record(self, assignments: Mapping[str, bytes] | None = None) -> GroupRecord:
        """The record to store. ``assignments`` replaces those of the members."""
        members = [
            MemberRecord(
                each.id,
                each.client_id,
                each.client_host,
                each.session_timeout_ms,
                each.metadata_for(self.protocol),
                each.assignment if assignments is None else assignments.get(each.id, b""),
                instance_id=each.instance_id,
                rebalance_timeout_ms=each.rebalance_timeout_ms,
            )
            for each in self.members.values()
        ]
        return GroupRecord(
            self.protocol_type, self.generation, self.protocol, self.leader, members, self.since_ms
        )


def restored(group_id: str, partition: int, record: GroupRecord) -> Group:
    """The group of a stored record: Stable, or Empty without members."""
    group = Group(group_id, partition, record.since_ms)
    group.protocol_type = record.protocol_type
    group.generation = record.generation
    group.protocol = record.protocol
    for stored in record.members:
        request = JoinRequest(
            group_id,
            stored.member_id,
            stored.instance_id,
            stored.client_id,
            stored.client_host,
            stored.session_timeout_ms,
            stored.rebalance_timeout_ms,
            record.protocol_type,
            (Strategy(record.protocol or "", bytes(stored.subscription)),),
        )
        member = Member(stored.member_id, request, bytes(stored.assignment))
        group.add(member, record.protocol_type)
    if group.members:
        group.state = STABLE
        if record.leader in group.members:
            group.leader = record.leader
    return group
