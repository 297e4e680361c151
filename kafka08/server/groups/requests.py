"""Requests of group members: they wait for their answers here, and what they change is stored.

One task runs the timers of all groups. A request that waits ends early if its sender closes the
connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from kafka08.errors import (
    NO_ERROR,
    ConsumerCoordinatorNotAvailableError,
    LaterCode,
    NotCoordinatorForConsumerError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    OffsetsLoadInProgressError,
    RequestTimedOutError,
    UnknownError,
    UnknownTopicOrPartitionError,
)
from kafka08.groups.records import GroupPartition
from kafka08.network.peer import current_peer
from kafka08.runtime import Loop, Runtime
from kafka08.server.cluster_view.originals import Originals
from kafka08.server.groups.coordinator import (
    GroupCoordinator,
    MemberId,
    Storing,
)
from kafka08.server.groups.group import JoinAnswer, JoinRequest, Reply, SyncAnswer
from kafka08.server.groups.offset_manager import OffsetManager

Answer = TypeVar("Answer")

_NOT_AVAILABLE = ConsumerCoordinatorNotAvailableError.code
_LOADING = OffsetsLoadInProgressError.code
# The wire codes for a member whose group's record could not be appended; all others become -1.
_STORE_ERRORS = {
    NO_ERROR: NO_ERROR,
    UnknownTopicOrPartitionError.code: _NOT_AVAILABLE,
    NotEnoughReplicasError.code: _NOT_AVAILABLE,
    NotEnoughReplicasAfterAppendError.code: _NOT_AVAILABLE,
    NotLeaderForPartitionError.code: NotCoordinatorForConsumerError.code,
    RequestTimedOutError.code: LaterCode.REBALANCE_IN_PROGRESS,
}
# A waiting request checks again after this time at the latest.
_LONGEST_WAIT = 60.0


class GroupRequests:
    """Serves the members of the groups in ``coordinator``."""

    def __init__(
        self,
        runtime: Runtime,
        coordinator: GroupCoordinator,
        offsets: OffsetManager,
        originals: Originals,
    ) -> None:
        self._originals = originals
        self.coordinator = coordinator
        self.offsets = offsets
        self._runtime = runtime
        self._wake = runtime.event()
        self._sleeps_until = 0.0
        self._loop = Loop(runtime, "group-timers", self.run_timers)

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        """End the timers and let every waiting request answer."""
        self._loop.stopping.set()
        self._wake.set()
        self._loop.stop()
        self.coordinator.close()

    # Requests

    def check_group(self, group: str) -> int:
        """0 if this broker can answer for a group of members, else 24, 16 or 14."""
        return self.offsets.check_coordinator(group) if group else LaterCode.INVALID_GROUP_ID

    def join(self, request: JoinRequest) -> JoinAnswer:
        """Wait until the next generation begins."""
        code = self.check_group(request.group)
        if code:
            return JoinAnswer(code, request.member_id)
        reply: Reply[JoinAnswer] = Reply(self._runtime.event())
        partition = self.offsets.partition_for(request.group).partition
        self._store(self.coordinator.join(request, partition, reply))
        return self._await(reply, request.group, self.coordinator.abandon_join)

    def sync(
        self, group: str, generation: int, member: MemberId, assignments: Mapping[str, bytes]
    ) -> SyncAnswer:
        """Wait until the leader has assigned."""
        code = self.check_group(group)
        if code:
            return SyncAnswer(LaterCode.REBALANCE_IN_PROGRESS if code == _LOADING else code)
        reply: Reply[SyncAnswer] = Reply(self._runtime.event())
        self._store(self.coordinator.sync(group, generation, member, assignments, reply))
        return self._await(reply, group, self.coordinator.abandon_sync)

    def heartbeat(self, group: str, generation: int, member: MemberId) -> int:
        code = self.check_group(group)
        if code:
            return NO_ERROR if code == _LOADING else code
        code = self.coordinator.heartbeat(group, generation, member)
        self._settle()
        return code

    def leave(self, group: str, members: Iterable[MemberId]) -> list[int] | int:
        """The wire code of each member, or of the whole request."""
        code = self.check_group(group)
        if code:
            return code
        codes = self.coordinator.leave(group, members)
        self._settle()
        return codes

    def delete(self, group: str) -> int:
        """Delete a group without members, and its offsets; the wire code."""
        code = self.offsets.check_coordinator(group)
        if code:
            return code
        keys = self.offsets.offsets_of(group)
        deleted = self.coordinator.delete(group)
        if deleted is None and not keys:
            return LaterCode.GROUP_ID_NOT_FOUND
        self._settle()
        return deleted or self.forget(group, keys)

    def forget(self, group: str, keys: Iterable[GroupPartition]) -> int:
        """Delete offsets of a group; the wire code."""
        return _STORE_ERRORS.get(self.offsets.forget(group, keys), UnknownError.code)

    def check_loaded(self) -> int:
        """14 while this broker does not know all its groups yet."""
        return _LOADING if self.offsets.is_loading else NO_ERROR

    # Waiting

    def _store(self, storing: Storing | None) -> None:
        if storing is not None:
            self._look_for_originals()
            code = self.offsets.store_group(storing.group.id, storing.record)
            self.coordinator.stored(storing, _STORE_ERRORS.get(code, UnknownError.code))
        self._settle()

    def _look_for_originals(self) -> None:
        """Store groups only without brokers of 0.8.2.2, which cannot read them."""
        self.offsets.store_groups_if(not self._originals.are_registered())

    def _settle(self) -> None:
        """After a change: store the rest, and have the timers look at earlier deadlines."""
        self._look_for_originals()
        self.offsets.save_groups()
        at = self.coordinator.timers.next
        if at is not None and at < self._sleeps_until:
            self._wake.set()

    def _await(
        self,
        reply: Reply[Answer],
        group: str,
        abandon: Callable[[str, Reply[Answer]], None],
    ) -> Answer:
        peer = current_peer.get()
        if peer is not None:
            peer.wake = reply.event.set
        try:
            while reply.answer is None:
                if peer is not None and peer.has_ended:
                    abandon(group, reply)
                    self._settle()
                else:
                    reply.event.clear()
                    reply.event.wait(_LONGEST_WAIT)
        finally:
            if peer is not None:
                peer.wake = None
        return reply.answer

    # Timers

    def run_timers(self) -> None:
        """Sleep until the next deadline and act on it."""
        now = self._runtime.clock.monotonic()
        at = self.coordinator.timers.next
        self._sleeps_until = now + _LONGEST_WAIT if at is None else min(at, now + _LONGEST_WAIT)
        if self._sleeps_until > now:
            self._wake.wait(self._sleeps_until - now)
        self._wake.clear()
        self._look_for_originals()
        self.coordinator.run_timers()
        self.offsets.save_groups()
