"""One partition on this broker: leader or follower, isr, epochs, high watermark.

Mirrors kafka.cluster.Partition without its reach: it performs no ZooKeeper call, wakes no task
and sends nothing. Methods return what changed (the high watermark moved, an isr is proposed)
and the replica manager acts. Nothing here switches greenlets, so each method is atomic.

An isr change is in three steps, so that no ZooKeeper call happens while state is half changed:
``propose_isr`` (from here on both the old and the new members hold the high watermark back,
because either set may be what ZooKeeper has), the conditional write by the caller, then
``commit_isr`` or ``abandon_isr``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from kafka08.cluster.replica import UNKNOWN_OFFSET, RemoteReplica
from kafka08.common import TopicPartition
from kafka08.errors import (
    FencedLeaderEpochError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    ReplicaNotAvailableError,
    UnknownError,
    UnknownLeaderEpochError,
    UnknownTopicOrPartitionError,
)
from kafka08.log.log import Log
from kafka08.log.numbering import LogAppendInfo, Numbered
from kafka08.log.segments.file_slice import FileSlice
from kafka08.message.sets import Opened
from kafka08.protocol.schemas import NO_LEADER, PartitionStateInfo

NO_EPOCH = -1
# In place of an offset up to which records are to be deleted.
UP_TO_HIGH_WATERMARK = -1


class IsrChange(NamedTuple):
    """A change of isr to write to ZooKeeper, valid for one leader epoch."""

    isr: tuple[int, ...]
    zk_version: int
    leader_epoch: int
    controller_epoch: int


class FollowerProgress(NamedTuple):
    """Whether a follower's fetch moved its log end or its first offset at the leader, and the high
    watermark."""

    moved: bool
    hw_moved: bool


class Partition:
    """A partition assigned to this broker. ``log`` is its local replica."""

    def __init__(self, topic_partition: TopicPartition, broker_id: int) -> None:
        self.topic_partition = topic_partition
        self.broker_id = broker_id
        self.log: Log | None = None
        self.high_watermark = 0
        self.leader_id = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.controller_epoch = 0
        self.zk_version = 0
        self.isr: tuple[int, ...] = ()
        self.replicas: tuple[int, ...] = ()
        self.remote: dict[int, RemoteReplica] = {}
        self.pending_isr: IsrChange | None = None
        # The log end when this leadership began: a replica enters the isr only with all of it.
        self.leadership_start = 0

    @property
    def is_leader(self) -> bool:
        return self.leader_id == self.broker_id

    # Role changes

    def open_log(self, log: Log, checkpointed_hw: int) -> None:
        """Give the partition its local replica."""
        self.log = log
        self.high_watermark = max(
            min(checkpointed_hw, log.log_end_offset), min(log.log_start_offset, log.log_end_offset)
        )

    def make_leader(self, state: PartitionStateInfo, now: float) -> bool:
        """Lead from now on; the high watermark stays what this replica knew. True if it moved.

        The log ends of followers are unknown until they fetch (kafka.cluster.Partition.makeLeader).
        """
        log = self._local_log()
        self._set_leader_state(state)
        self.leadership_start = log.log_end_offset
        others = (each for each in state.replicas if each != self.broker_id)
        self.remote = {broker_id: RemoteReplica(now) for broker_id in others}
        return self.maybe_increment_leader_hw()

    def make_follower(self, state: PartitionStateInfo) -> None:
        """Follow ``state.leader``."""
        self._set_leader_state(state)
        self.isr = ()
        self.remote = {}

    def resign(self) -> None:
        """Stop leading, and do not follow until the next LeaderAndIsr.

        One that names the same leader as before starts the fetcher again.
        """
        self.leader_id = NO_LEADER

    def go_offline(self) -> None:
        """The data directory has failed: the local replica is not to be used any more."""
        self.log = None
        self.resign()

    def forget_epoch(self) -> None:
        """The known leader epoch was false: take any that the controller names."""
        self.leader_epoch = NO_EPOCH

    def _set_leader_state(self, state: PartitionStateInfo) -> None:
        self.leader_id = state.leader
        self.leader_epoch = state.leader_epoch
        self.controller_epoch = state.controller_epoch
        self.isr = tuple(state.isr)
        self.zk_version = state.zk_version
        self.replicas = tuple(state.replicas)
        self.pending_isr = None

    # Append and read

    def append_messages_to_leader(
        self,
        buffer: memoryview,
        acks: int,
        opened: Opened | None = None,
        numbered: Numbered | None = None,
    ) -> tuple[LogAppendInfo, bool]:
        """Append a producer's set, offsets assigned in ``buffer``; (what, did the hw move).
        ``opened`` and ``numbered`` are for Log.append.

        Raises NotLeaderForPartitionError, NotEnoughReplicasError (acks -1 with too small an
        isr, nothing written) and what Log.append raises.
        """
        log = self.leader_log()
        if acks == -1 and len(self.isr) < log.config.min_insync_replicas:
            raise NotEnoughReplicasError(
                f"Number of insync replicas for partition {self.topic_partition} is "
                f"[{len(self.isr)}], below required minimum [{log.config.min_insync_replicas}]"
            )
        appended = log.append(buffer, opened=opened, numbered=numbered)
        return appended, self.maybe_increment_leader_hw()

    def read(
        self,
        offset: int,
        max_bytes: int,
        replica_id: int,
        *,
        later: bool = False,
        committed: bool = False,
    ) -> FileSlice:
        """Stored bytes from ``offset``: below the hw for consumers, to the log end for followers.

        ``replica_id`` -1 is a consumer, -2 a debugger (any replica will do), else a follower.
        A consumer between hw and log end finds nothing yet (0.8.2.2 answers -1; a hw that
        falls behind after a leader change is not an error of the reader). ``later``: a consumer
        that reads later message formats, for which nothing was rebuilt on disk; ``committed``: one
        that reads below the last stable offset.
        """
        if max_bytes < 0:
            raise UnknownError(f"Invalid max size {max_bytes} for log read")
        log = self.any_log() if replica_id == -2 else self.leader_log()
        if replica_id >= 0:
            if replica_id not in self.remote:
                raise UnknownError(
                    f"Broker {replica_id} is not an assigned replica of {self.topic_partition}"
                )
            return log.read(offset, max_bytes)
        if not log.first_offset <= offset <= log.log_end_offset:
            raise OffsetOutOfRangeError(
                f"Request for offset {offset} but we only have log segments in the range "
                f"{log.first_offset} to {log.log_end_offset}."
            )
        log.tail_readers.read_at(offset, log.log_end_offset)
        end = self.last_stable_offset if committed else self.high_watermark
        until = max(end, log.log_start_offset)
        return log.read(offset, max_bytes, until, for_consumer=not later)

    def delete_records(self, offset: int) -> int:
        """As leader: delete the records below ``offset``, or UP_TO_HIGH_WATERMARK; that offset.

        Raises NotLeaderForPartitionError, PolicyViolationError (nothing is deleted from the topic),
        and OffsetOutOfRangeError above the high watermark.
        """
        log = self.leader_log()
        if not log.config.deletes:
            raise PolicyViolationError(
                f"Records of partition {self.topic_partition} can not be deleted due to the "
                "configured policy"
            )
        until = self.high_watermark if offset == UP_TO_HIGH_WATERMARK else offset
        if not 0 <= until <= self.high_watermark:
            raise OffsetOutOfRangeError(
                f"Records of partition {self.topic_partition} cannot be deleted up to {offset}: "
                f"the high watermark is {self.high_watermark}"
            )
        log.delete_records(until)
        return until

    def low_watermark(self, broker_ids: Collection[int]) -> int:
        """As leader: the lowest first offset of this replica and those on ``broker_ids``; -1 if one
        has not told. Raises NotLeaderForPartitionError."""
        others = [each.first_offset for id_, each in self.remote.items() if id_ in broker_ids]
        return min([self.leader_log().first_offset, *others])

    def follow_start(self, deleted_until: int) -> list[Log]:
        """As follower: delete what the leader has deleted, once all of it is here and committed.
        Returns the log if that is news."""
        log = self.any_log()
        if not log.deleted_until < deleted_until <= self.high_watermark:
            return []
        log.delete_records(deleted_until)
        return [log]

    def check_epoch(self, epoch: int) -> None:
        """Compare the leader epoch that a client knows; NO_EPOCH if it knows none.

        Raises FencedLeaderEpochError, UnknownLeaderEpochError.
        """
        if epoch != NO_EPOCH and epoch != self.leader_epoch:
            error = FencedLeaderEpochError if epoch < self.leader_epoch else UnknownLeaderEpochError
            raise error(f"{self.topic_partition} has leader epoch {self.leader_epoch}, not {epoch}")

    def leader_log(self) -> Log:
        """The local log, if this broker leads. Raises NotLeaderForPartitionError."""
        if self.leader_id != self.broker_id:
            raise NotLeaderForPartitionError(
                f"Leader not local for partition {self.topic_partition} on broker {self.broker_id}"
            )
        return self._local_log()

    def any_log(self) -> Log:
        """The local log in any role. Raises ReplicaNotAvailableError."""
        if self.log is None:
            raise ReplicaNotAvailableError(
                f"Replica {self.broker_id} is not available for partition {self.topic_partition}"
            )
        return self.log

    def _local_log(self) -> Log:
        if self.log is None:
            raise UnknownTopicOrPartitionError(
                f"Partition {self.topic_partition} doesn't exist on {self.broker_id}"
            )
        return self.log

    # High watermark

    @property
    def last_stable_offset(self) -> int:
        """Below it all transactions have ended; the high watermark without a log."""
        if self.log is None:
            return self.high_watermark
        return self.log.producers.stable_offset(self.high_watermark, self.log.first_offset)

    def _move_hw(self, offset: int) -> None:
        self.high_watermark = offset
        if self.log is not None:
            self.log.producers.committed(offset)

    def maybe_increment_leader_hw(self) -> bool:
        """As leader: hw := min log end over the isr, never backwards. True if it moved.

        A member that is not an assigned replica any more (a reassignment ends) cannot fetch. It may
        be elected until it has left the isr, so until then it holds the high watermark back.
        """
        if self.leader_id != self.broker_id or self.log is None:
            return False
        lowest = self.log.log_end_offset
        for broker_id in self._holding_back():
            if broker_id != self.broker_id:
                lowest = min(lowest, self._remote_leo(broker_id))
        if lowest <= self.high_watermark:
            return False
        self._move_hw(lowest)
        return True

    def _holding_back(self) -> Iterable[int]:
        """The isr, and the members that ZooKeeper may already have while a change is written."""
        if self.pending_isr is None:
            return self.isr
        return {*self.isr, *self.pending_isr.isr}

    def follow_hw(self, leader_hw: int) -> None:
        """As follower: hw := min(own log end, the leader's hw)."""
        self._move_hw(min(self.any_log().log_end_offset, leader_hw))

    def check_enough_replicas_reach_offset(self, offset: int, acks: int) -> bool:
        """Whether a produce that ends before ``offset`` has the acks it asked for.

        Raises NotLeaderForPartitionError once leadership is gone, and
        NotEnoughReplicasAfterAppendError when the hw is there but the isr has shrunk.
        """
        log = self.leader_log()
        if acks < 0:
            if self.high_watermark < offset:
                return False
            if len(self.isr) < log.config.min_insync_replicas:
                raise NotEnoughReplicasAfterAppendError()
            return True
        return (
            sum(
                broker_id == self.broker_id or self._remote_leo(broker_id) >= offset
                for broker_id in self.isr
            )
            >= acks
        )

    def is_safe_without_zookeeper(self, acks: int) -> bool:
        """Whether what is acknowledged with ``acks`` stays although another broker may have been
        elected, of which this one has not heard (docs/adr/0030).

        It does where each broker that can be elected holds the high watermark back: the isr,
        and every replica if unclean election is on. A leader that is alone in its isr is not
        enough.
        """
        if len(self.replicas) == 1:
            return True
        if acks >= 0 or self.log is None:
            return False
        holding = set(self._holding_back())
        unclean = self.log.config.unclean_leader_election_enable
        return len(holding) > 1 and (not unclean or holding.issuperset(self.replicas))

    def _remote_leo(self, broker_id: int) -> int:
        remote = self.remote.get(broker_id)
        return UNKNOWN_OFFSET if remote is None else remote.log_end_offset

    # Isr

    def record_follower_position(
        self, broker_id: int, offset: int, now: float, first_offset: int = UNKNOWN_OFFSET
    ) -> FollowerProgress:
        """A follower fetched from ``offset`` (-1: its read failed): that is its log end.
        ``first_offset`` is the first that it would serve, -1 if it is unknown."""
        remote = self.remote[broker_id]
        moved = (remote.log_end_offset, remote.first_offset) != (offset, first_offset)
        remote.log_end_offset = offset
        remote.first_offset = first_offset
        remote.fetched_at = now
        return FollowerProgress(moved, moved and self.maybe_increment_leader_hw())

    def expanded_isr(
        self, now: float, max_lag_seconds: float, max_lag_messages: int
    ) -> tuple[int, ...] | None:
        """The isr with every replica that has caught up, if that differs (maybeExpandIsr).

        Caught up means: all that is committed, and all this leader had when it began
        (a new leader may know too low a hw; see docs/architecture.md, loss window L3); no records
        that were deleted here; and nothing for which ``shrunk_isr`` would put it out again.
        """
        if not self.is_leader or self.log is None or self.pending_isr is not None:
            return None
        needed = max(self.high_watermark, self.leadership_start)
        joining = [
            broker_id
            for broker_id in self.replicas
            if broker_id not in self.isr
            and self._remote_leo(broker_id) >= needed
            and self._has_deleted(broker_id, self.log.deleted_until)
            and self._keeps_up(broker_id, now, max_lag_seconds, max_lag_messages)
        ]
        return (*self.isr, *joining) if joining else None

    def shrunk_isr(
        self, now: float, max_lag_seconds: float, max_lag_messages: int
    ) -> tuple[int, ...] | None:
        """The isr without members that are silent or too far behind, if that differs
        (maybeShrinkIsr, getOutOfSyncReplicas)."""
        if not self.is_leader or self.log is None or self.pending_isr is not None:
            return None
        kept = tuple(
            broker_id
            for broker_id in self.isr
            if self._keeps_up(broker_id, now, max_lag_seconds, max_lag_messages)
        )
        return kept if kept != self.isr and kept else None

    def _has_deleted(self, broker_id: int, until: int) -> bool:
        """Whether a follower has deleted the records below ``until``, or cannot do so."""
        first = self.remote[broker_id].first_offset
        return first == UNKNOWN_OFFSET or first >= until

    def _keeps_up(
        self, broker_id: int, now: float, max_lag_seconds: float, max_lag_messages: int
    ) -> bool:
        remote = self.remote.get(broker_id)
        if remote is None:
            return broker_id == self.broker_id
        if now - remote.fetched_at > max_lag_seconds:
            return False
        known = remote.log_end_offset
        return known == UNKNOWN_OFFSET or self.any_log().log_end_offset - known <= max_lag_messages

    def propose_isr(self, isr: tuple[int, ...]) -> IsrChange:
        """Open a change of isr; the caller writes it to ZooKeeper."""
        self.pending_isr = IsrChange(isr, self.zk_version, self.leader_epoch, self.controller_epoch)
        return self.pending_isr

    def commit_isr(self, change: IsrChange, zk_version: int) -> bool:
        """ZooKeeper has ``change``; True if the hw moved. Void after a newer LeaderAndIsr."""
        if self.pending_isr is not change:
            return False
        self.pending_isr = None
        self.isr = change.isr
        self.zk_version = zk_version
        return self.maybe_increment_leader_hw()

    def abandon_isr(
        self, change: IsrChange, isr: tuple[int, ...] | None = None, zk_version: int = -1
    ) -> bool:
        """ZooKeeper refused ``change``; adopt what it has instead when given. True: hw moved."""
        if self.pending_isr is not change:
            return False
        self.pending_isr = None
        if isr is not None:
            self.isr = isr
            self.zk_version = zk_version
        return self.maybe_increment_leader_hw()
