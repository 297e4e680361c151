"""The classic group protocol: who is in a group, its generations, and when its members time out.

Mirrors kafka.coordinator.group.GroupCoordinator of later releases. Pure state without I/O: a
request that has to wait leaves its ``Reply`` with its member, and whatever ends the wait sends the
answer. A record that must be stored before an answer is returned as a ``Storing``; the caller
stores it and calls ``stored``. Records that can be stored later are taken with ``take_unsaved``.
Nothing here may switch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from uuid import uuid4

from kafka08.errors import (
    NO_ERROR,
    ConsumerCoordinatorNotAvailableError,
    LaterCode,
    MessageSizeTooLargeError,
    NotCoordinatorForConsumerError,
)
from kafka08.groups.records import GroupRecord
from kafka08.runtime import Clock
from kafka08.server.groups import states
from kafka08.server.groups.group import (
    Group,
    JoinAnswer,
    JoinRequest,
    Member,
    Reply,
    SyncAnswer,
    restored,
)
from kafka08.server.groups.memory import MEMBER_BYTES, GroupMemory, Sizes
from kafka08.server.groups.states import COMPLETING, DEAD, EMPTY, PREPARING, STABLE
from kafka08.server.groups.subscriptions import same_subscription
from kafka08.server.groups.timers import Timers
from kafka08.settings.broker import BrokerConfig

_NOT_AVAILABLE = ConsumerCoordinatorNotAvailableError.code
_MOVED = NotCoordinatorForConsumerError.code
# An empty group waits so long for more members, also if the setting says 0. Those that start at the
# same time are in one rebalance then; one that came a moment later would wait for the first one's
# next heartbeat, 3 s. A coordinator on the JVM is slow enough to have them together without this.
_LEAST_DELAY_MS = 50
# Ids that no member has joined with yet take this much memory; then the oldest are forgotten.
_PROMISED_BYTES = 32 << 20


class MemberId(NamedTuple):
    """The names by which a member identifies itself in requests after its join."""

    member_id: str
    instance_id: str | None = None


class Storing(NamedTuple):
    """A record to be stored before its group goes on: with the leader's assignments, or with the
    new id of a static member that came back. The latter has the member's join in ``reply``, and
    in ``leader`` the leader's id before."""

    group: Group
    generation: int
    record: GroupRecord
    assignments: Mapping[str, bytes]
    reply: Reply[JoinAnswer] | None = None
    leader: str | None = None


class TimerKey(NamedTuple):
    """The session of a member, or, without ``member_id``, the end of a rebalance."""

    group: str
    member_id: str | None = None


class GroupCoordinator:
    """The groups that this broker coordinates."""

    def __init__(
        self, config: BrokerConfig, clock: Clock, new_id: Callable[[], object] = uuid4
    ) -> None:
        self.groups: dict[str, Group] = {}
        self.timers: Timers[TimerKey] = Timers()
        self._config = config
        self._clock = clock
        self._new_id = new_id
        self._unsaved: dict[str, tuple[int, GroupRecord | None]] = {}
        self._promises: Sizes[TimerKey] = Sizes()
        self.memory = GroupMemory(config.group_members_max_bytes)

    # Joining

    def join(
        self, request: JoinRequest, partition: int, reply: Reply[JoinAnswer]
    ) -> Storing | None:
        """Answer ``reply`` now or when the group's next generation begins."""
        code = self._check_join(request)
        group = self.groups.get(request.group)
        if not code and group is None:
            if request.member_id:
                code = LaterCode.UNKNOWN_MEMBER_ID
            else:
                group = Group(request.group, partition, self._clock.millis())
                self.groups[group.id] = group
        if not code and group is not None:
            code = self._check_join_to(group, request)
        if code or group is None:
            reply.send(JoinAnswer(code, request.member_id))
            self._forget_unused(group)
            return None
        storing = None
        if request.member_id in group.promised:
            self._add(group, request, request.member_id, reply)
        elif request.member_id:
            self._rejoin(group, group.members[request.member_id], request, reply)
        elif request.instance_id in group.static:
            storing = self._come_back(group, request, reply)
        else:
            self._join_new(group, request, reply)
        self._complete_if_all_joined(group)
        return storing

    def _check_join(self, request: JoinRequest) -> int:
        config = self._config
        low, high = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
        if not request.group:
            return LaterCode.INVALID_GROUP_ID
        if not low <= request.session_timeout_ms <= high:
            return LaterCode.INVALID_SESSION_TIMEOUT
        size = sum(len(each.metadata) + len(each.name) for each in request.strategies)
        if size > config.group_member_metadata_max_bytes:
            return MessageSizeTooLargeError.code
        return NO_ERROR

    def _check_join_to(self, group: Group, request: JoinRequest) -> int:
        named = MemberId(request.member_id, request.instance_id)
        if request.member_id and request.member_id not in group.promised:
            code = self._check_member(group, named)
            if code:
                return code
        elif request.instance_id not in group.static and self._is_full(group, request):
            if request.member_id:
                self._break_promise(group, request.member_id)
            return LaterCode.GROUP_MAX_SIZE_REACHED
        if not group.supports(request.protocol_type, request.strategies):
            return LaterCode.INCONSISTENT_GROUP_PROTOCOL
        known = request.member_id or group.static.get(request.instance_id or "", "")
        if not self.memory.has_room_to_join(group, known, request):
            return _NOT_AVAILABLE
        return NO_ERROR

    def _is_full(self, group: Group, request: JoinRequest) -> bool:
        others = len(group.promised) + len(group.members) - (request.member_id in group.promised)
        return others >= self._config.group_max_size

    @staticmethod
    def _check_member(group: Group, named: MemberId) -> int:
        """Whether this is a member, and the one that has its instance id."""
        if named.instance_id is not None:
            known = group.static.get(named.instance_id)
            if known is None:
                return LaterCode.UNKNOWN_MEMBER_ID
            return NO_ERROR if known == named.member_id else LaterCode.FENCED_INSTANCE_ID
        return NO_ERROR if named.member_id in group.members else LaterCode.UNKNOWN_MEMBER_ID

    def _join_new(self, group: Group, request: JoinRequest, reply: Reply[JoinAnswer]) -> None:
        if request.instance_id is None and request.requires_id:
            member_id = f"{request.client_id}-{self._new_id()}"
            self._promise(group, member_id, request.session_timeout_ms)
            reply.send(JoinAnswer(LaterCode.MEMBER_ID_REQUIRED, member_id))
            return
        prefix = request.client_id if request.instance_id is None else request.instance_id
        self._add(group, request, f"{prefix}-{self._new_id()}", reply)

    def _promise(self, group: Group, member_id: str, session_timeout_ms: int) -> None:
        group.promised.add(member_id)
        self._set_timer(group, member_id, session_timeout_ms)
        key = TimerKey(group.id, member_id)
        self._promises.put(key, MEMBER_BYTES + len(group.id) + len(member_id))
        while self._promises.total > _PROMISED_BYTES and self._promises.oldest != key:
            oldest = self._promises.oldest
            self._break_promise(self.groups[oldest.group], oldest.member_id or "")

    def _add(
        self, group: Group, request: JoinRequest, member_id: str, reply: Reply[JoinAnswer]
    ) -> None:
        member = Member(member_id, request)
        group.add(member, request.protocol_type)
        self._promises.drop(TimerKey(group.id, member_id))
        self.memory.weigh(group, [member])
        group.has_newcomer = True
        self._park_join(group, member, reply)
        self._prepare_rebalance(group)

    def _rejoin(
        self, group: Group, member: Member, request: JoinRequest, reply: Reply[JoinAnswer]
    ) -> None:
        unchanged = member.strategies == request.strategies
        waits = group.state is STABLE and member.id == group.leader
        if group.state in (COMPLETING, STABLE) and unchanged and not waits:
            reply.send(group.join_answer(member))
            self._reset_session(group, member)
            return
        self._update(group, member, request)
        self._park_join(group, member, reply)
        self._prepare_rebalance(group)

    def _update(self, group: Group, member: Member, request: JoinRequest) -> None:
        group.update(member, request)
        self.memory.weigh(group, [member])

    def _come_back(
        self, group: Group, request: JoinRequest, reply: Reply[JoinAnswer]
    ) -> Storing | None:
        """A static member has restarted: it takes the place of its former self."""
        member = group.members[group.static[request.instance_id or ""]]
        member.answer_join(JoinAnswer(LaterCode.FENCED_INSTANCE_ID, member.id))
        member.answer_sync(SyncAnswer(LaterCode.FENCED_INSTANCE_ID))
        self.timers.cancel(TimerKey(group.id, member.id))
        leader, before = group.leader, member.metadata_for(group.protocol)
        self.memory.forget_member(group, member.id)
        group.rename(member, f"{member.instance_id}-{self._new_id()}")
        self._update(group, member, request)
        member.knows_id = False
        # Until the new id is stored the member counts as one that has joined.
        self._park_join(group, member, reply)
        unchanged = same_subscription(before, member.metadata_for(group.protocol))
        if group.state is STABLE and unchanged and group.select_protocol() == group.protocol:
            return Storing(group, group.generation, group.record(), {}, reply, leader)
        self._prepare_rebalance(group)
        return None

    def _park_join(self, group: Group, member: Member, reply: Reply[JoinAnswer]) -> None:
        # A member has one request at a time. An older one waits on a connection it has given up.
        member.answer_join(JoinAnswer(LaterCode.REBALANCE_IN_PROGRESS, member.id))
        member.join = reply
        self.timers.cancel(TimerKey(group.id, member.id))

    def abandon_join(self, group_id: str, reply: Reply[JoinAnswer]) -> None:
        """The sender of a parked join has disconnected. A member that does not know its id yet is
        removed."""
        group = self.groups.get(group_id)
        members = group.members.values() if group is not None else ()
        member = next((each for each in members if each.join is reply), None)
        if group is None or member is None:
            return
        member.answer_join(JoinAnswer(LaterCode.REBALANCE_IN_PROGRESS, member.id))
        if member.knows_id or member.instance_id is not None:
            self._reset_session(group, member)
        else:
            self._remove(group, member)

    # Rebalancing

    def _prepare_rebalance(self, group: Group) -> None:
        """Begin a rebalance, unless one is waiting for members already."""
        if group.state is PREPARING:
            return
        for member in group.members.values():
            if member.sync is not None:
                member.answer_sync(SyncAnswer(LaterCode.REBALANCE_IN_PROGRESS))
                self._reset_session(group, member)
        group.not_synced.clear()
        group.is_storing = False
        timeout_ms = group.rebalance_timeout_ms
        if group.state is EMPTY:
            delay_ms = self._initial_delay_ms
            group.delay_left_ms = max(timeout_ms - delay_ms, 0)
            group.has_newcomer = False
            timeout_ms = delay_ms
        group.transition(PREPARING, self._clock.millis())
        self._set_timer(group, None, timeout_ms)
        self._complete_if_all_joined(group)

    @property
    def _initial_delay_ms(self) -> int:
        return max(self._config.group_initial_rebalance_delay_ms, _LEAST_DELAY_MS)

    def _complete_if_all_joined(self, group: Group) -> None:
        if group.state is PREPARING and group.delay_left_ms is None and group.all_joined:
            self._complete_join(group)

    def _initial_delay_over(self, group: Group, left_ms: int) -> None:
        """More members may be about to join a group that was empty."""
        if group.has_newcomer and left_ms > 0:
            delay_ms = min(self._initial_delay_ms, left_ms)
            group.has_newcomer = False
            group.delay_left_ms = left_ms - delay_ms
            self._set_timer(group, None, delay_ms)
        else:
            self._complete_join(group)

    def _complete_join(self, group: Group) -> None:
        """All have joined, or the time is over: the next generation begins."""
        for member in list(group.members.values()):
            if member.join is None and member.instance_id is None:
                self._drop(group, member)
        group.delay_left_ms = None
        if group.members and not group.elect_joined_leader():
            self._set_timer(group, None, group.rebalance_timeout_ms)
            return
        self.timers.cancel(TimerKey(group.id))
        group.next_generation(self._clock.millis())
        if group.state is EMPTY:
            self._unsaved[group.id] = group.partition, group.record()
            return
        self._set_timer(group, None, group.rebalance_timeout_ms)
        for member in group.members.values():
            member.knows_id = member.knows_id or member.join is not None
            member.answer_join(group.join_answer(member))
            self._reset_session(group, member)

    def _sync_late(self, group: Group) -> None:
        """Members that have joined and then not synced in time are removed."""
        for member_id in list(group.not_synced):
            self._drop(group, group.members[member_id])
        self._prepare_rebalance(group)

    # Syncing

    def sync(
        self,
        group_id: str,
        generation: int,
        named: MemberId,
        assignments: Mapping[str, bytes],
        reply: Reply[SyncAnswer],
    ) -> Storing | None:
        """Answer ``reply`` now or once the leader's assignments are stored."""
        found = self._member(group_id, generation, named)
        code = found if isinstance(found, int) else states.SYNC[found[0].state]
        if isinstance(found, int) or code:
            reply.send(SyncAnswer(code or NO_ERROR))
            return None
        group, member = found
        group.not_synced.discard(member.id)
        if not group.not_synced:
            self.timers.cancel(TimerKey(group.id))
        if group.state is STABLE:
            self._reset_session(group, member)
            reply.send(SyncAnswer(NO_ERROR, member.assignment))
            return None
        if not self.memory.has_room_to_assign(group, assignments):
            reply.send(SyncAnswer(_NOT_AVAILABLE))
            return None
        member.answer_sync(SyncAnswer(LaterCode.REBALANCE_IN_PROGRESS))
        member.sync = reply
        self.timers.cancel(TimerKey(group.id, member.id))
        if member.id != group.leader or group.is_storing:
            return None
        group.is_storing = True
        given = {each: assignments.get(each, b"") for each in group.members}
        return Storing(group, group.generation, group.record(given), given)

    def abandon_sync(self, group_id: str, reply: Reply[SyncAnswer]) -> None:
        """The sender of a parked sync has disconnected."""
        group = self.groups.get(group_id)
        if group is None:
            return
        for member in group.members.values():
            if member.sync is reply:
                member.answer_sync(SyncAnswer(LaterCode.REBALANCE_IN_PROGRESS))
                self._reset_session(group, member)

    def stored(self, storing: Storing, code: int) -> None:
        """Continue after a record has been stored, or could not be stored."""
        group = storing.group
        is_current = group.generation == storing.generation
        if storing.reply is not None:
            if group.state is STABLE and is_current:
                self._settle_come_back(group, storing.reply, storing.leader, code)
        elif group.state is COMPLETING and is_current and group.is_storing:
            group.is_storing = False
            if code:
                self._answer_syncs(group, code)
                self._prepare_rebalance(group)
                return
            for member in group.members.values():
                member.assignment = storing.assignments.get(member.id, b"")
            self.memory.weigh(group, group.members.values())
            group.transition(STABLE, self._clock.millis())
            self._answer_syncs(group, NO_ERROR)

    def _answer_syncs(self, group: Group, code: int) -> None:
        for member in group.members.values():
            if member.sync is not None:
                member.answer_sync(SyncAnswer(code, b"" if code else member.assignment))
                self._reset_session(group, member)

    def _settle_come_back(
        self, group: Group, reply: Reply[JoinAnswer], leader: str | None, code: int
    ) -> None:
        member = next((each for each in group.members.values() if each.join is reply), None)
        if member is None:
            return
        if code:
            member.answer_join(JoinAnswer(code))
        else:
            # A leader that is answered with its former id does not assign again.
            member.answer_join(group.join_answer(member, leader))
            member.knows_id = True
        self._reset_session(group, member)

    # Staying and leaving

    def heartbeat(self, group_id: str, generation: int, named: MemberId) -> int:
        """The wire code."""
        found = self._member(group_id, generation, named)
        if isinstance(found, int):
            return found
        self._reset_session(*found)
        return states.HEARTBEAT[found[0].state]

    def check_commit(self, group_id: str, generation: int, named: MemberId) -> int:
        """Whether offsets may be committed: by a member, or by anybody while there is none."""
        group = self.groups.get(group_id)
        # Generations begin with 1: 0 and no name come from clients that leave both fields unset.
        is_outside = generation < 0 or (not generation and named == MemberId(""))
        if group is None or (group.state is EMPTY and is_outside):
            return NO_ERROR if is_outside else LaterCode.ILLEGAL_GENERATION
        found = self._member(group_id, generation, named)
        if isinstance(found, int):
            return found
        self._reset_session(*found)
        return states.COMMIT[group.state]

    def check_commit_in_transaction(self, group_id: str, generation: int, named: MemberId) -> int:
        """The same of offsets in a transaction, which an id guards: a sender that names no member
        may always commit."""
        if generation < 0 and named == MemberId(""):
            return NO_ERROR
        return self.check_commit(group_id, generation, named)

    def leave(self, group_id: str, leaving: Iterable[MemberId]) -> list[int]:
        """The wire code of each. A static member may be named by its instance id alone."""
        return [self._leave(group_id, named) for named in leaving]

    def _leave(self, group_id: str, named: MemberId) -> int:
        group = self.groups.get(group_id)
        if group is None:
            return LaterCode.UNKNOWN_MEMBER_ID
        if named.member_id in group.promised:
            self._break_promise(group, named.member_id)
            return NO_ERROR
        if not named.member_id and named.instance_id is not None:
            named = MemberId(group.static.get(named.instance_id, ""), named.instance_id)
        code = self._check_member(group, named)
        if not code:
            self._remove(group, group.members[named.member_id])
        return code

    def _member(
        self, group_id: str, generation: int, named: MemberId
    ) -> tuple[Group, Member] | int:
        """The group and the member that a request names, or what is wrong with it."""
        group = self.groups.get(group_id)
        if group is None:
            return LaterCode.UNKNOWN_MEMBER_ID
        code = self._check_member(group, named)
        if not code and generation != group.generation:
            code = LaterCode.ILLEGAL_GENERATION
        return code or (group, group.members[named.member_id])

    def _remove(self, group: Group, member: Member) -> None:
        """Remove a member that has left or timed out: the others rebalance."""
        self._drop(group, member)
        if group.state in (COMPLETING, STABLE):
            self._prepare_rebalance(group)
        self._complete_if_all_joined(group)

    def _drop(self, group: Group, member: Member) -> None:
        member.answer_join(JoinAnswer(LaterCode.UNKNOWN_MEMBER_ID, member.id))
        member.answer_sync(SyncAnswer(LaterCode.UNKNOWN_MEMBER_ID))
        self.timers.cancel(TimerKey(group.id, member.id))
        self.memory.forget_member(group, member.id)
        group.remove(member)

    def _break_promise(self, group: Group, member_id: str) -> None:
        group.promised.discard(member_id)
        self._promises.drop(TimerKey(group.id, member_id))
        self.timers.cancel(TimerKey(group.id, member_id))
        self._complete_if_all_joined(group)
        self._forget_unused(group)

    def _forget_unused(self, group: Group | None) -> None:
        """Remove a group that has never had a member: there is nothing to store or delete."""
        if group is None or group.generation or group.promised or group.state is not EMPTY:
            return
        self.groups.pop(group.id, None)

    # Time

    def _set_timer(self, group: Group, member_id: str | None, timeout_ms: int) -> None:
        deadline = self._clock.monotonic() + max(timeout_ms, 0) / 1000
        self.timers.set(TimerKey(group.id, member_id), deadline)

    def _reset_session(self, group: Group, member: Member) -> None:
        if not member.is_parked:
            self._set_timer(group, member.id, member.session_timeout_ms)

    def run_timers(self) -> None:
        """Act on every deadline that has passed."""
        now = self._clock.monotonic()
        while (key := self.timers.take_due(now)) is not None:
            group = self.groups.get(key.group)
            if group is None:
                continue
            if key.member_id is None:
                self._rebalance_timed_out(group)
            elif key.member_id in group.promised:
                self._break_promise(group, key.member_id)
            elif key.member_id in group.members:
                self._remove(group, group.members[key.member_id])

    def _rebalance_timed_out(self, group: Group) -> None:
        if group.state is PREPARING:
            if group.delay_left_ms is None:
                self._complete_join(group)
            else:
                self._initial_delay_over(group, group.delay_left_ms)
        elif group.state in (COMPLETING, STABLE):
            self._sync_late(group)

    # Storage

    def take_unsaved(self) -> dict[str, tuple[int, GroupRecord | None]]:
        """Groups whose record is to be written, by id: number of the offsets partition, record;
        None instead of a record deletes it."""
        unsaved, self._unsaved = self._unsaved, {}
        return unsaved

    def load(self, partition: int, records: Mapping[str, GroupRecord]) -> None:
        """Take over the groups of a partition of the offsets topic."""
        for group_id, record in records.items():
            group = restored(group_id, partition, record)
            if group.since_ms < 0:
                group.since_ms = self._clock.millis()
            self.groups[group_id] = group
            self.memory.weigh(group, group.members.values())
            for member in group.members.values():
                self._reset_session(group, member)

    def unload(self, partition: int) -> None:
        """Drop the groups of a partition whose leadership moves to another broker."""
        for group in [each for each in self.groups.values() if each.partition == partition]:
            self._unsaved.pop(group.id, None)
            self._end(group, _MOVED)

    def close(self) -> None:
        """Let every waiting request answer."""
        for group in list(self.groups.values()):
            self._end(group, _MOVED)
        self._unsaved.clear()

    def _end(self, group: Group, code: int) -> None:
        group.transition(DEAD, self._clock.millis())
        del self.groups[group.id]
        for key in [TimerKey(group.id, each) for each in (*group.promised, *group.members, None)]:
            self.timers.cancel(key)
            self._promises.drop(key)
        self.memory.forget(group)
        for member in group.members.values():
            member.answer_join(JoinAnswer(code, member.id))
            member.answer_sync(SyncAnswer(code))

    def delete(self, group_id: str) -> int | None:
        """Delete a group without members: the wire code, None if there is no such group."""
        group = self.groups.get(group_id)
        if group is None:
            return None
        if group.state is not EMPTY or group.promised:
            return LaterCode.NON_EMPTY_GROUP
        if group.generation:
            self._unsaved[group.id] = group.partition, None
        self._end(group, _NOT_AVAILABLE)
        return NO_ERROR
