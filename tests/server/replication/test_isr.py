"""The task that owns isr changes: conditional writes, what it adopts, what it gives up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka08.cluster.partition import Partition
from kafka08.common import TopicPartition
from kafka08.server.replication.isr import IsrMaintenance
from tests.server.support import ME, PEER, THIRD, Rig
from zk import znodes
from zk.errors import ZkClosedError, ZkConnectionError
from zk.znodes import PartitionStateNode

PATH = znodes.partition_state_path("t", 0)
ALL = [ME, PEER, THIRD]


class Maintained:
    """A partition led by broker 1 whose state node is in ZooKeeper."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.task = IsrMaintenance(
            rig.config,
            rig.runtime,
            rig.zk,  # type: ignore[arg-type]
            rig.replicas,
            rig.effects,
        )

    def lead(self, isr: list[int], *, epoch: int = 0) -> Partition:
        self.partition = self.rig.lead(replicas=ALL, isr=isr, leader_epoch=epoch)
        self.rig.zk.create_or_set(PATH, node(isr, epoch=epoch))
        self.partition.zk_version = self.rig.zk.get(PATH)[1].version
        return self.partition

    def fetched(self, broker_id: int, offset: int) -> None:
        self.rig.fetch(("t", 0, offset, 0), replica_id=broker_id)

    def stored(self) -> tuple[int, ...]:
        return znodes.decode_partition_state(PATH, self.rig.zookeeper.nodes[PATH].data).isr

    def lag(self) -> None:
        """PEER follows, THIRD has been silent for too long."""
        self.rig.append("a", "b")
        self.rig.clock.now += 11
        self.fetched(PEER, 2)


def node(isr: list[int], *, leader: int = ME, epoch: int = 0) -> bytes:
    return znodes.encode_partition_state(PartitionStateNode(leader, epoch, 1, tuple(isr)))


@pytest.fixture
def kept(rig: Rig) -> Maintained:
    return Maintained(rig)


def test_a_silent_follower_leaves(kept: Maintained) -> None:
    partition = kept.lead(ALL)
    kept.lag()
    assert partition.high_watermark == 0
    kept.task.maybe_shrink_isr()
    with kept.rig.replicas.produce_purgatory.watch([partition.topic_partition], 0) as watch:
        kept.task.step()
        assert watch.wait() == {partition.topic_partition}
    assert kept.stored() == partition.isr == (ME, PEER)
    assert partition.zk_version == 1
    assert partition.high_watermark == 2


def test_a_follower_too_far_behind_leaves(make_rig: Callable[..., Rig]) -> None:
    kept = Maintained(make_rig(replica_lag_max_messages=2))
    partition = kept.lead([ME, PEER])
    kept.fetched(PEER, 0)
    kept.rig.append("a", "b")
    kept.task.maybe_shrink_isr()
    kept.task.step()
    assert partition.isr == (ME, PEER)
    kept.rig.append("c")
    kept.task.maybe_shrink_isr()
    kept.task.step()
    assert kept.stored() == partition.isr == (ME,)


def test_a_follower_that_caught_up_joins(kept: Maintained) -> None:
    partition = kept.lead([ME])
    kept.rig.append("a")
    kept.fetched(PEER, 1)
    assert kept.rig.effects.isr_changes == [partition]
    kept.rig.effects.isr_may_change(partition)
    kept.task.step()
    assert kept.stored() == partition.isr == (ME, PEER)


def test_who_is_behind_again_by_then_does_not_join(kept: Maintained) -> None:
    partition = kept.lead([ME])
    kept.fetched(PEER, 0)
    kept.rig.effects.isr_may_change(partition)
    kept.rig.append("a")
    kept.task.step()
    assert kept.stored() == partition.isr == (ME,)


def test_being_told_twice_is_one_change(kept: Maintained) -> None:
    partition = kept.lead([ME])
    kept.fetched(PEER, 0)
    kept.rig.effects.isr_may_change(partition)
    kept.rig.effects.isr_may_change(partition)
    kept.task.step()
    before = kept.rig.clock.now
    kept.task.step()  # nothing queued: it waits
    assert kept.rig.clock.now > before
    assert kept.rig.zk.get(PATH)[1].version == 1


def test_one_step_may_shrink_and_grow(kept: Maintained) -> None:
    partition = kept.lead([ME, PEER])
    kept.rig.append("a")
    kept.rig.clock.now += 11
    kept.fetched(THIRD, 1)
    kept.task.maybe_shrink_isr()
    kept.task.step()
    assert kept.stored() == partition.isr == (ME, THIRD)
    assert partition.high_watermark == 1
    assert partition.zk_version == 2


def test_changes_are_announced_when_the_queue_is_empty(kept: Maintained) -> None:
    partition = kept.lead(ALL)
    kept.lag()
    kept.task.maybe_shrink_isr()
    kept.rig.effects.isr_may_change(Partition(TopicPartition("u", 0), ME))
    kept.task.step()
    assert kept.stored() == (ME, PEER)
    assert not kept.rig.zookeeper.children(znodes.ISR_CHANGES)
    kept.task.step()
    path = f"{znodes.isr_change_path_prefix()}0000000000"
    data = kept.rig.zk.get(path)[0]
    assert znodes.decode_partitions(path, data) == [partition.topic_partition]


def test_an_announcement_that_failed_is_made_later(kept: Maintained) -> None:
    kept.lead(ALL)
    kept.lag()
    kept.rig.zk.fails[f"{znodes.isr_change_path_prefix()}0000000000"] = ZkConnectionError()
    kept.task.maybe_shrink_isr()
    kept.task.step()
    assert kept.stored() == (ME, PEER)
    kept.task.step()  # nothing queued
    assert len(kept.rig.zookeeper.children(znodes.ISR_CHANGES)) == 1


# Another version is stored


def test_a_state_of_our_own_leadership_is_adopted(kept: Maintained) -> None:
    """Say, the controller has taken a dead broker out of the isr."""
    partition = kept.lead(ALL)
    kept.lag()
    kept.rig.zk.set(PATH, node([ME, PEER, 4]))
    kept.task.maybe_shrink_isr()
    kept.task.step()
    assert partition.isr == (ME, PEER, 4)
    assert partition.zk_version == 1
    kept.task.maybe_shrink_isr()
    kept.task.step()  # and from there the change succeeds
    assert kept.stored() == partition.isr == (ME, PEER)
    assert partition.high_watermark == 2


@pytest.mark.parametrize(("leader", "epoch"), [(PEER, 1), (ME, 1), (PEER, 0)])
def test_a_state_of_another_leadership_leaves_the_change_open(
    kept: Maintained, leader: int, epoch: int
) -> None:
    partition = kept.lead(ALL)
    kept.lag()
    kept.rig.zk.set(PATH, node([leader], leader=leader, epoch=epoch))
    kept.task.maybe_shrink_isr()
    kept.task.step()
    assert partition.isr == tuple(ALL)
    assert partition.zk_version == 0
    assert partition.pending_isr is not None
    assert partition.high_watermark == 0


def test_a_member_let_in_unnoticed_holds_back_until_the_controller_speaks(kept: Maintained) -> None:
    """The write got through, its answer did not, and the controller built on it."""
    partition = kept.lead([ME, PEER])
    kept.fetched(PEER, 0)
    kept.fetched(THIRD, 0)
    kept.rig.zk.set(PATH, node(ALL, epoch=1))
    kept.rig.effects.isr_may_change(partition)
    kept.task.step()
    kept.rig.append("a")
    kept.fetched(PEER, 1)
    assert partition.high_watermark == 0
    kept.fetched(THIRD, 1)
    assert partition.high_watermark == 1


def test_without_a_state_node_nothing_changes(kept: Maintained) -> None:
    partition = kept.lead(ALL)
    kept.lag()
    kept.rig.zk.delete(PATH)
    kept.task.maybe_shrink_isr()
    kept.task.step()
    assert partition.isr == tuple(ALL) and partition.pending_isr is None
    assert PATH not in kept.rig.zookeeper.nodes


def test_a_node_nobody_understands_changes_nothing(kept: Maintained) -> None:
    partition = kept.lead(ALL)
    kept.lag()
    kept.rig.zk.set(PATH, b"{")
    kept.task.maybe_shrink_isr()
    kept.task.step()
    assert partition.isr == tuple(ALL) and partition.pending_isr is None


# ZooKeeper is away


def test_a_change_is_stayed_with_until_its_fate_is_known(kept: Maintained) -> None:
    partition = kept.lead(ALL)
    kept.lag()
    kept.rig.zk.fails[PATH] = ZkConnectionError()
    kept.task.maybe_shrink_isr()
    kept.task.step()
    assert kept.stored() == partition.isr == (ME, PEER)


def test_a_write_that_had_succeeded_is_recognised(kept: Maintained) -> None:
    partition = kept.lead(ALL)
    kept.lag()
    kept.rig.zk.fails[PATH] = ZkConnectionError()
    # the first try was carried out after all
    kept.rig.runtime.while_waiting = [lambda: kept.rig.zk.set(PATH, node([ME, PEER]))]
    kept.task.maybe_shrink_isr()
    kept.task.step()
    assert partition.isr == (ME, PEER)
    assert partition.zk_version == 1


def test_meanwhile_both_sets_hold_the_high_watermark_back(kept: Maintained) -> None:
    partition = kept.lead([ME])
    kept.rig.append("a")
    kept.fetched(PEER, 1)
    kept.rig.zk.fails[PATH] = ZkConnectionError()
    seen = []

    def produce() -> None:
        kept.rig.append("b")
        seen.append(partition.high_watermark)

    kept.rig.runtime.while_waiting = [produce]
    kept.rig.effects.isr_may_change(partition)
    kept.task.step()
    assert seen == [1]
    assert partition.isr == (ME, PEER) and partition.high_watermark == 1


def test_a_new_role_ends_the_change(kept: Maintained) -> None:
    partition = kept.lead(ALL)
    kept.lag()
    kept.rig.zk.fails[PATH] = ZkConnectionError()

    def elected_again() -> None:
        kept.rig.lead(replicas=ALL, isr=ALL, zk_version=5)

    kept.rig.runtime.while_waiting = [elected_again]
    kept.task.maybe_shrink_isr()
    kept.task.step()
    assert kept.stored() == tuple(ALL)
    assert (partition.isr, partition.zk_version) == (tuple(ALL), 5)


def test_a_closed_client_ends_the_change(kept: Maintained) -> None:
    kept.lead(ALL)
    kept.lag()
    kept.rig.zk.fails[PATH] = ZkClosedError()
    kept.task.maybe_shrink_isr()
    kept.task.step()
    assert kept.stored() == tuple(ALL)


def test_stopping_ends_the_wait(kept: Maintained) -> None:
    partition = kept.lead(ALL)
    kept.lag()
    kept.rig.zk.down = True
    kept.rig.runtime.while_waiting = [kept.task.stop]
    kept.task.maybe_shrink_isr()
    kept.task.step()
    assert partition.pending_isr is not None  # both sets go on holding the high watermark back
    kept.task.step()  # the stop woke it, not a partition


@pytest.mark.scenario("ops-7")
def test_changes_are_counted(kept: Maintained) -> None:
    kept.lead(ALL)
    kept.lag()
    kept.task.maybe_shrink_isr()
    kept.task.step()
    assert (kept.task.shrinks.count, kept.task.expands.count) == (1, 0)
    kept.fetched(THIRD, 2)
    kept.task.step()
    assert (kept.task.shrinks.count, kept.task.expands.count) == (1, 1)
