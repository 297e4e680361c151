"""Members of a group that a broker coordinates. They commit, leave, and vanish without a word."""

from __future__ import annotations

from kafka08.errors import NO_ERROR, LaterCode
from kafka08.protocol.group_schemas import (
    GroupProtocol,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberAssignment,
    SyncGroupRequest,
)
from kafka08.protocol.schemas import (
    ConsumerMetadataRequest,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from tests.simulation.clients import Seat, WireClient
from tests.simulation.ledger import InGeneration

GROUP = "group"
_SESSION_MS = 2_000
_REBALANCE_MS = 3_000
_JOIN_VERSIONS = (0, 1, 2, 4)
_NO_COORDINATOR = (14, 15, 16)


class GroupMember(WireClient):
    """Owns the partitions that the leader of the group gives it; each generation's owners are in
    the ledger. No two members own one, and one of an earlier generation cannot commit."""

    timeout_ms = 10_000  # a join is answered when all have joined

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._version = self.rng.choice(_JOIN_VERSIONS)
        self._coordinator = ""
        self._member = ""
        self._generation = -1
        self._offset = 0

    def work(self) -> None:
        try:
            if not self._coordinator:
                self._find()
            elif self._generation < 0:
                self._join()
            else:
                self._live()
        except BaseException:
            self._coordinator = ""
            self._generation = -1
            raise

    def _find(self) -> None:
        answer = self.call(self.any_host(), ConsumerMetadataRequest(GROUP), 0)
        if answer.error != NO_ERROR:
            self.failed("no coordinator", answer.error)
            return
        self._coordinator = answer.host

    def _is_out(self, what: str, code: int) -> None:
        """An answer says that this is not a member of this generation any more."""
        self._generation = -1
        if code == LaterCode.UNKNOWN_MEMBER_ID:
            self._member = ""
        if code in _NO_COORDINATOR:
            self._coordinator = ""
        self.failed(what, code)

    # The generation

    def _join(self) -> None:
        protocols = [GroupProtocol("spread", b"")]
        request = JoinGroupRequest(
            GROUP, _SESSION_MS, self._member, "simulated", protocols, _REBALANCE_MS
        )
        answer = self.call(self._coordinator, request, self._version)
        if answer.error == LaterCode.MEMBER_ID_REQUIRED:
            self._member = answer.member_id
        elif answer.error != NO_ERROR:
            self._is_out("does not join", answer.error)
        else:
            self._member = answer.member_id
            self._sync(answer)

    def _sync(self, joined: JoinGroupResponse) -> None:
        generation = joined.generation
        request = SyncGroupRequest(GROUP, generation, self._member, self._spread(joined))
        answer = self.call(self._coordinator, request, 0)
        if answer.error != NO_ERROR:
            self._is_out("does not sync", answer.error)
            return
        owned = [int(each) for each in bytes(answer.assignment).split()]
        for partition in owned:
            self.ledger.own(InGeneration(partition, generation), self._member)
        self.ledger.newest_generation = max(self.ledger.newest_generation, generation)
        self.note(f"owns {owned} in generation {generation}")
        self._generation = generation

    def _spread(self, joined: JoinGroupResponse) -> list[MemberAssignment]:
        """The partitions of all members, if this one leads."""
        if joined.leader != joined.member_id:
            return []
        members = sorted(each.member_id for each in joined.members)
        return [
            MemberAssignment(
                member,
                b" ".join(b"%d" % p for p in sorted(self.leaders) if p % len(members) == at),
            )
            for at, member in enumerate(members)
        ]

    # Between two rebalances

    def _live(self) -> None:
        self.runtime.sleep(self.rng.random())
        what = self.rng.random()
        if what < 0.05:
            self._vanish()
        elif what < 0.08:
            self._leave()
        elif what < 0.5:
            self._commit()
        else:
            self._beat()

    def _vanish(self) -> None:
        self.note("vanishes")
        self.disconnect()
        self.runtime.sleep(self.rng.randrange(10))
        self._member, self._generation = "", -1

    def _leave(self) -> None:
        self.call(self._coordinator, LeaveGroupRequest(GROUP, self._member), 0)
        self._member, self._generation = "", -1

    def _beat(self) -> None:
        answer = self.call(self._coordinator, self._heartbeat(self._generation), 0)
        if answer.error != NO_ERROR:
            self._is_out("does not beat", answer.error)
        elif self._generation > 1:
            old = self._generation - 1
            answer = self.call(self._coordinator, self._heartbeat(old), 0)
            assert answer.error != NO_ERROR, f"generation {old} is over, and its heart beats"

    def _heartbeat(self, generation: int) -> HeartbeatRequest:
        return HeartbeatRequest(GROUP, generation, self._member)

    def _commit(self) -> None:
        self._offset += 1
        newest = self.ledger.newest_generation
        part = OffsetCommitPartition(0, self._offset, "")
        topics = [OffsetCommitTopic(self.topic, [part])]
        request = OffsetCommitRequest(GROUP, topics, self._generation, self._member)
        answer = self.call(self._coordinator, request, 2).topics[0].partitions[0]
        if answer.error != NO_ERROR:
            self._is_out("does not commit", answer.error)
            return
        assert self._generation >= newest, (
            f"{self._member} of generation {self._generation} commits in {newest}"
        )
