"""Leader, follower, isr, high watermark: the rules of kafka.cluster.Partition, made safer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.cluster.partition import Partition
from kafka08.common import TopicPartition
from kafka08.errors import (
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    ReplicaNotAvailableError,
    UnknownError,
)
from kafka08.message.sets import encode_set, iter_messages
from kafka08.protocol.schemas import PartitionStateInfo
from tests.log.support import open_log

NOW = 1000.0


def state(
    leader: int = 1,
    epoch: int = 0,
    *,
    isr: tuple[int, ...] = (1, 2, 3),
    replicas: tuple[int, ...] = (1, 2, 3),
    zk_version: int = 0,
) -> PartitionStateInfo:
    return PartitionStateInfo("t", 0, 1, leader, epoch, list(isr), zk_version, list(replicas))


def message_set(*values: str) -> memoryview:
    return memoryview(bytearray(encode_set([(None, value.encode()) for value in values])))


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    partition = Partition(TopicPartition("t", 0), 1)
    log = open_log(tmp_path, min_insync_replicas=2)
    partition.open_log(log, 0)
    yield partition
    log.close()


def values_of(partition: Partition, offset: int, replica_id: int) -> list[bytes | None]:
    data = partition.read(offset, 1 << 20, replica_id).read()
    return [message.value for message in iter_messages(data)]


def test_a_follower_refuses_writes_and_consumers(partition: Partition) -> None:
    partition.make_follower(state(leader=2))
    assert partition.leader_id == 2
    with pytest.raises(NotLeaderForPartitionError):
        partition.append_messages_to_leader(message_set("a"), 1)
    with pytest.raises(NotLeaderForPartitionError):
        partition.read(0, 100, -1)
    assert len(partition.read(0, 100, -2)) == 0


def test_the_high_watermark_is_what_the_whole_isr_has(partition: Partition) -> None:
    partition.make_leader(state(), NOW)
    _, moved = partition.append_messages_to_leader(message_set("a", "b", "c"), 1)
    assert not moved
    assert not partition.record_follower_position(2, 3, NOW).hw_moved
    assert partition.record_follower_position(3, 2, NOW).hw_moved
    assert partition.high_watermark == 2
    assert values_of(partition, 0, -1) == [b"a", b"b"]
    assert values_of(partition, 0, 2) == [b"a", b"b", b"c"]


def test_alone_all_is_committed_at_once(partition: Partition) -> None:
    partition.make_leader(state(isr=(1,), replicas=(1,)), NOW)
    appended, moved = partition.append_messages_to_leader(message_set("a"), 1)
    assert moved and appended.first_offset == 0
    assert partition.high_watermark == 1


def test_between_hw_and_log_end_a_consumer_finds_nothing_yet(partition: Partition) -> None:
    partition.make_leader(state(), NOW)
    partition.append_messages_to_leader(message_set("a", "b", "c"), 1)
    assert len(partition.read(2, 100, -1)) == 0
    assert len(partition.read(3, 100, -1)) == 0
    with pytest.raises(OffsetOutOfRangeError):
        partition.read(4, 100, -1)
    with pytest.raises(OffsetOutOfRangeError):
        partition.read(-1, 100, -1)


def test_bad_reads(partition: Partition) -> None:
    partition.make_leader(state(), NOW)
    with pytest.raises(UnknownError):
        partition.read(0, -1, -1)
    with pytest.raises(UnknownError, match="not an assigned replica"):
        partition.read(0, 100, 7)
    with pytest.raises(ReplicaNotAvailableError):
        Partition(TopicPartition("u", 0), 1).read(0, 100, -2)


def test_min_insync_replicas_before_and_after_the_append(partition: Partition) -> None:
    partition.make_leader(state(isr=(1,)), NOW)
    with pytest.raises(NotEnoughReplicasError):
        partition.append_messages_to_leader(message_set("a"), -1)
    assert partition.any_log().log_end_offset == 0
    partition.append_messages_to_leader(message_set("a"), 1)
    # below -1: no check before the append
    partition.append_messages_to_leader(message_set("b"), -2)
    with pytest.raises(NotEnoughReplicasAfterAppendError):
        partition.check_enough_replicas_reach_offset(2, -2)


def test_acks_by_count_need_that_many_isr_members(partition: Partition) -> None:
    partition.make_leader(state(), NOW)
    partition.append_messages_to_leader(message_set("a"), 2)
    assert not partition.check_enough_replicas_reach_offset(1, 2)
    partition.record_follower_position(3, 1, NOW)
    assert partition.check_enough_replicas_reach_offset(1, 2)
    assert not partition.check_enough_replicas_reach_offset(1, 3)


def test_lost_leadership_ends_the_wait_for_acks(partition: Partition) -> None:
    partition.make_leader(state(), NOW)
    partition.append_messages_to_leader(message_set("a"), -1)
    partition.make_follower(state(leader=2, epoch=1))
    with pytest.raises(NotLeaderForPartitionError):
        partition.check_enough_replicas_reach_offset(1, -1)


def test_silent_and_lagging_followers_leave_the_isr(partition: Partition) -> None:
    partition.make_leader(state(), NOW)
    partition.append_messages_to_leader(message_set(*"abcdef"), 1)
    partition.record_follower_position(2, 6, NOW + 5)
    partition.record_follower_position(3, 1, NOW + 5)
    assert partition.shrunk_isr(NOW + 5, 10, 4000) is None
    assert partition.shrunk_isr(NOW + 5, 10, 4) == (1, 2)
    assert partition.shrunk_isr(NOW + 16, 10, 4000) == (1,)


def test_who_is_put_out_for_silence_or_lag_is_not_let_in_again_at_once(
    partition: Partition,
) -> None:
    partition.make_leader(state(isr=(1, 2)), NOW)
    partition.append_messages_to_leader(message_set(*"abcdef"), 1)
    partition.record_follower_position(2, 6, NOW)
    partition.record_follower_position(3, 6, NOW + 11)
    silent = partition.propose_isr((1,))
    partition.commit_isr(silent, 1)
    assert partition.expanded_isr(NOW + 11, 10, 4000) == (1, 3)
    assert partition.expanded_isr(NOW + 9, 10, 4000) == (1, 2, 3)
    partition.append_messages_to_leader(message_set(*"ghij"), 1)
    partition.high_watermark = 6
    assert partition.expanded_isr(NOW + 9, 10, 3) is None


def test_a_change_under_way_holds_the_high_watermark_for_both_sets(partition: Partition) -> None:
    partition.make_leader(state(), NOW)
    partition.append_messages_to_leader(message_set("a", "b"), 1)
    partition.record_follower_position(2, 2, NOW)
    change = partition.propose_isr((1, 2))
    assert partition.high_watermark == 0
    assert partition.commit_isr(change, 1)
    assert (partition.high_watermark, partition.isr, partition.zk_version) == (2, (1, 2), 1)


def test_a_joining_follower_counts_before_zookeeper_has_answered(partition: Partition) -> None:
    partition.make_leader(state(isr=(1,)), NOW)
    partition.append_messages_to_leader(message_set("a"), 1)
    partition.record_follower_position(2, 1, NOW)
    assert partition.expanded_isr(NOW, 10, 4000) == (1, 2)
    change = partition.propose_isr((1, 2))
    _, moved = partition.append_messages_to_leader(message_set("b"), 1)
    assert not moved and partition.high_watermark == 1
    assert partition.expanded_isr(NOW, 10, 4000) is None  # one change at a time
    assert partition.abandon_isr(change)
    assert partition.high_watermark == 2


def test_an_isr_member_reassigned_away_holds_back_until_it_has_left(partition: Partition) -> None:
    partition.make_leader(state(isr=(1, 2, 4), replicas=(1, 2)), NOW)
    partition.append_messages_to_leader(message_set("a"), -1)
    assert not partition.record_follower_position(2, 1, NOW).hw_moved
    assert not partition.check_enough_replicas_reach_offset(1, -1)
    assert partition.shrunk_isr(NOW, 10, 4000) == (1, 2)
    partition.commit_isr(partition.propose_isr((1, 2)), 1)
    assert partition.check_enough_replicas_reach_offset(1, -1)


def test_a_newer_role_voids_a_change_under_way(partition: Partition) -> None:
    partition.make_leader(state(), NOW)
    change = partition.propose_isr((1, 2))
    partition.make_leader(state(epoch=1, isr=(1, 3), zk_version=5), NOW)
    assert not partition.commit_isr(change, 1)
    assert (partition.isr, partition.zk_version) == ((1, 3), 5)


def test_entering_the_isr_needs_all_the_leader_began_with(partition: Partition) -> None:
    partition.make_leader(state(isr=(1,), replicas=(1,)), NOW)
    partition.append_messages_to_leader(message_set(*"abcd"), 1)
    partition.make_follower(state(leader=2, epoch=1))
    partition.follow_hw(1)
    partition.make_leader(state(epoch=2, isr=(1, 3)), NOW)
    assert partition.high_watermark == 1
    # as far as the hw, behind what may be acknowledged
    partition.record_follower_position(2, 1, NOW)
    assert partition.expanded_isr(NOW, 10, 4000) is None
    partition.record_follower_position(2, 4, NOW)
    assert partition.expanded_isr(NOW, 10, 4000) == (1, 3, 2)


def test_the_high_watermark_never_goes_back_for_a_leader(partition: Partition) -> None:
    partition.make_leader(state(), NOW)
    partition.append_messages_to_leader(message_set("a"), 1)
    for follower in (2, 3):
        partition.record_follower_position(follower, 1, NOW)
    assert partition.high_watermark == 1
    partition.record_follower_position(2, 0, NOW)
    partition.record_follower_position(3, -1, NOW)
    assert not partition.maybe_increment_leader_hw()
    assert partition.high_watermark == 1


def test_a_checkpointed_high_watermark_is_bounded_by_the_log(tmp_path: Path) -> None:
    partition = Partition(TopicPartition("t", 0), 1)
    log = open_log(tmp_path)
    partition.open_log(log, 99)
    assert partition.high_watermark == 0
    log.close()


# Deleted records


def test_records_are_deleted_up_to_the_high_watermark(partition: Partition) -> None:
    partition.make_leader(state(isr=(1, 2)), NOW)
    partition.append_messages_to_leader(message_set(*"abcd"), 1)
    partition.record_follower_position(2, 3, NOW)
    assert partition.delete_records(2) == 2
    for offset in (4, -2):
        with pytest.raises(OffsetOutOfRangeError, match="high watermark is 3"):
            partition.delete_records(offset)
    for replica_id in (-1, -2):
        with pytest.raises(OffsetOutOfRangeError, match="range 2 to 4"):
            partition.read(1, 100, replica_id)
    assert values_of(partition, 2, -1) == [b"c"]
    assert values_of(partition, 0, 2) == [b"a", b"b", b"c", b"d"]
    assert partition.delete_records(1) == 1  # nothing more goes
    assert partition.delete_records(-1) == 3
    assert values_of(partition, 3, -1) == []


def test_who_may_not_delete_records(partition: Partition) -> None:
    partition.make_follower(state(leader=2))
    with pytest.raises(NotLeaderForPartitionError):
        partition.delete_records(0)
    with pytest.raises(NotLeaderForPartitionError):
        partition.low_watermark([2])
    partition.make_leader(state(epoch=1), NOW)
    log = partition.any_log()
    log.config = log.config.override({"cleanup.policy": "compact"})
    with pytest.raises(PolicyViolationError):
        partition.delete_records(0)
    log.config = log.config.override({"cleanup.policy": "compact,delete"})
    assert partition.delete_records(0) == 0


def test_the_low_watermark_is_the_lowest_start(partition: Partition) -> None:
    partition.make_leader(state(isr=(1,)), NOW)
    partition.append_messages_to_leader(message_set(*"abcd"), 1)
    partition.delete_records(3)
    assert partition.low_watermark([1, 2, 3]) == -1  # they have not told yet
    assert partition.low_watermark([1, 7]) == 3
    assert partition.record_follower_position(2, 4, NOW, 0).moved
    assert partition.low_watermark([2]) == 0
    assert partition.record_follower_position(2, 4, NOW, 5).moved
    assert not partition.record_follower_position(2, 4, NOW, 5).moved
    assert partition.low_watermark([2]) == 3


def test_a_follower_deletes_once_it_has_everything(partition: Partition) -> None:
    partition.any_log().append(message_set(*"abcd"))
    partition.make_follower(state(leader=2))
    partition.follow_hw(2)
    assert not partition.follow_start(3)
    assert not partition.follow_start(0)
    partition.follow_hw(3)
    assert partition.follow_start(3)
    assert not partition.follow_start(3)
    assert partition.any_log().first_offset == 3


def test_entering_the_isr_needs_the_deletions_too(partition: Partition) -> None:
    """Otherwise this replica could lead, and deleted records would be there again."""
    partition.make_leader(state(isr=(1,)), NOW)
    partition.append_messages_to_leader(message_set(*"abcd"), 1)
    partition.delete_records(3)
    partition.record_follower_position(2, 4, NOW, 2)
    assert partition.expanded_isr(NOW, 10, 4000) is None
    partition.record_follower_position(3, 4, NOW)  # it never tells
    assert partition.expanded_isr(NOW, 10, 4000) == (1, 3)
    partition.record_follower_position(2, 4, NOW, 3)
    assert partition.expanded_isr(NOW, 10, 4000) == (1, 2, 3)
