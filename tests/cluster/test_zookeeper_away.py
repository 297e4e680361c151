"""Leaders that ZooKeeper has lost sight of: what they acknowledge is never lost (docs/adr/0030).

A model of one partition on three brokers with the real ``Partition`` and the real elections.
Messages between brokers, requests of the controller and writes to ZooKeeper happen in any order,
with any delay; brokers lose ZooKeeper and find it again. Random walks, each from its seed alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from kafka08.cluster.partition import IsrChange, Partition
from kafka08.common import TopicPartition
from kafka08.controller import elections
from kafka08.controller.context import LeaderAndIsr
from kafka08.errors import KafkaError
from kafka08.log.producers import ProducerStateManager
from kafka08.protocol.schemas import PartitionStateInfo
from tests.log.support import config

BROKERS = (1, 2, 3)
WALKS, STEPS = 1200, 150

pytestmark = pytest.mark.sources


class Records:
    """As much of a Log as a Partition needs: a list of names."""

    def __init__(self, *, unclean: bool) -> None:
        self.names: list[str] = []
        self.config = config(unclean_leader_election_enable=unclean)
        self.log_start_offset = self.deleted_until = 0
        self.producers = ProducerStateManager("")

    @property
    def log_end_offset(self) -> int:
        return len(self.names)

    def append(self, name: Any, **_: object) -> None:
        self.names.append(name)


class Fetch(NamedTuple):
    """A request on its way. ``position`` is that of the follower when it asked."""

    follower: int
    leader: int
    offset: int
    position: object


class Answer(NamedTuple):
    fetch: Fetch
    names: list[str]
    high_watermark: int


def leader_state(
    leader: int, epoch: int, isr: tuple[int, ...], zk_version: int, replicas: tuple[int, ...]
) -> PartitionStateInfo:
    return PartitionStateInfo("t", 0, 0, leader, epoch, list(isr), zk_version, list(replicas))


class Broker:
    """One replica. ``blind``: it cannot reach ZooKeeper, nor the controller it."""

    def __init__(self, number: int, *, unclean: bool) -> None:
        self.number = number
        self.records = Records(unclean=unclean)
        self.partition = Partition(TopicPartition("t", 0), number)
        self.partition.open_log(self.records, 0)  # type: ignore[arg-type]
        self.blind = False
        self.told: list[LeaderAndIsr] = []
        self.position: object = None
        self.offset = 0
        self.waiting: dict[str, int] = {}  # produced here: name to the offset after it

    def take(self, state: LeaderAndIsr) -> None:
        """A LeaderAndIsr."""
        partition = self.partition
        if state.leader_epoch <= partition.leader_epoch:
            return
        new = leader_state(state.leader, state.leader_epoch, state.isr, state.zk_version, BROKERS)
        self.position = None
        if state.leader == self.number:
            partition.make_leader(new, 0.0)
        else:
            partition.make_follower(new)
            if state.leader in BROKERS:
                self.position = object()
                self.offset = min(partition.high_watermark, len(self.records.names))

    def use(self, answer: Answer) -> None:
        """Handle an answer as ReplicaFetcher does: compare, cut, append."""
        if self.position is None or self.position is not answer.fetch.position:
            return
        if self.offset != answer.fetch.offset:
            return
        names = self.records.names
        for name in answer.names:
            if self.offset < len(names) and names[self.offset] != name:
                self._cut()
            if self.offset == len(names):
                names.append(name)
            self.offset += 1
        if not answer.names:
            self._cut()
        self.partition.follow_hw(min(answer.high_watermark, self.offset))

    def _cut(self) -> None:
        del self.records.names[self.offset :]
        self.partition.follow_hw(self.partition.high_watermark)


class LeaderAlone:
    """Everything, driven by ``random``; ``acknowledged`` maps names to their offsets."""

    def __init__(self, seed: int, *, unclean: bool, acks: int) -> None:
        self.random = random.Random(seed)
        self.unclean = unclean
        self.acks = acks
        self.brokers = {number: Broker(number, unclean=unclean) for number in BROKERS}
        self.stored = LeaderAndIsr(1, 0, BROKERS, 0, 0)  # the state node
        self.seen = self.stored  # as the controller last saw it
        self.network: list[Fetch | Answer] = []
        self.acknowledged: dict[str, int] = {}
        self.produced = 0
        self.late = 0  # acknowledged, out of sight of ZooKeeper, by a leader that was replaced
        self.missing: list[str] = []  # of these, what the new leader does not have
        self._tell(BROKERS)

    def walk(self, steps: int) -> None:
        actions: list[tuple[Callable[[], None], int]] = [
            (self.produce, 6),
            (self.fetch, 10),
            (self.deliver, 20),
            (self.acknowledge, 10),
            (self.change_isr, 3),
            (self.hear, 3),
            (self.blind, 1),
            (self.see, 1),
            (self.elect, 1),
            (self.move, 1),
        ]
        whats, weights = zip(*actions, strict=True)
        for _ in range(steps):
            self.random.choices(whats, weights)[0]()

    def some(self) -> Broker:
        return self.brokers[self.random.choice(BROKERS)]

    # Brokers among themselves

    def produce(self) -> None:
        broker = self.some()
        if not self.writable(broker):
            return
        self.produced += 1
        name = f"{self.produced}"
        try:
            broker.partition.append_messages_to_leader(name, self.acks)  # type: ignore[arg-type]
        except KafkaError:
            return
        broker.waiting[name] = broker.records.log_end_offset

    def writable(self, broker: Broker) -> bool:
        return not broker.blind or broker.partition.is_safe_without_zookeeper(self.acks)

    def acknowledge(self) -> None:
        broker = self.some()
        for name, offset in list(broker.waiting.items()):
            try:
                if not self.writable(broker):
                    del broker.waiting[name]
                elif self.acks == 1 or broker.partition.check_enough_replicas_reach_offset(
                    offset, self.acks
                ):
                    del broker.waiting[name]
                    self.acknowledged[name] = offset - 1
                    self._look_after(name, offset - 1, broker)
            except KafkaError:
                del broker.waiting[name]

    def _look_after(self, name: str, offset: int, broker: Broker) -> None:
        leader = self.brokers.get(self.stored.leader, broker)
        if broker.blind and leader is not broker:
            self.late += 1
            if leader.records.names[offset : offset + 1] != [name]:
                self.missing.append(name)

    def fetch(self) -> None:
        broker = self.some()
        if broker.position is not None and len(self.network) < 12:
            leader = broker.partition.leader_id
            self.network.append(Fetch(broker.number, leader, broker.offset, broker.position))

    def deliver(self) -> None:
        if not self.network:
            return
        found = self.network.pop(self.random.randrange(len(self.network)))
        if isinstance(found, Answer):
            self.brokers[found.fetch.follower].use(found)
            return
        leader = self.brokers[found.leader]
        partition = leader.partition
        if not partition.is_leader or found.follower not in partition.remote:
            return
        if found.offset > leader.records.log_end_offset:
            partition.record_follower_position(found.follower, -1, 0.0)
            return
        names = leader.records.names[found.offset : found.offset + 2]
        partition.record_follower_position(found.follower, found.offset, 0.0)
        self.network.append(Answer(found, names, partition.high_watermark))

    # ZooKeeper and the controller

    def change_isr(self) -> None:
        """A leader proposes, writes, hears of the fate of its write: one of these steps."""
        broker = self.some()
        partition = broker.partition
        if not partition.is_leader:
            return
        change = partition.pending_isr
        if change is None:
            grown = partition.expanded_isr(0.0, 10.0, 10**6)
            follower = self.random.choice(BROKERS)
            smaller = tuple(
                i for i in partition.isr if i in (broker.number, broker.number, follower)
            )
            partition.propose_isr(grown if grown and self.random.random() < 0.6 else smaller)
        elif not broker.blind:
            self._write(partition, change)

    def _write(self, partition: Partition, change: IsrChange) -> None:
        me, stored = partition.broker_id, self.stored
        wanted = stored._replace(isr=change.isr, zk_version=change.zk_version + 1)
        if stored.zk_version == change.zk_version:
            self.stored = stored = wanted
            if self.random.random() < 0.3:
                return  # the answer is lost, and the change stays open
        if (stored.leader, stored.leader_epoch) != (me, change.leader_epoch):
            return
        if stored.isr == change.isr:
            partition.commit_isr(change, stored.zk_version)
        else:
            partition.abandon_isr(change, stored.isr, stored.zk_version)

    def blind(self) -> None:
        self.some().blind = True

    def see(self) -> None:
        """Found again: confirm the leadership, and hear of the present state."""
        broker = self.some()
        if not broker.blind:
            return
        broker.blind = False
        partition = broker.partition
        if partition.is_leader and (self.stored.leader, self.stored.leader_epoch) != (
            broker.number,
            partition.leader_epoch,
        ):
            partition.leader_id = -1
        broker.told.append(self.stored)

    def live(self) -> list[int]:
        return [number for number, broker in self.brokers.items() if not broker.blind]

    def elect(self) -> None:
        """The controller finds the leader gone."""
        live = self.live()
        if self.stored.leader in live:
            return
        try:
            vote = elections.Vote(self.stored, BROKERS, live, 0)
            chosen = elections.offline(vote, self.random.choice if self.unclean else None)
        except elections.NoReplicaOnlineError:
            return
        self.stored = chosen.state
        self._tell(live)

    def move(self) -> None:
        """The leader lives, another member of the isr is to lead."""
        live = self.live()
        first = self.random.choice(BROKERS)
        if first in live and first in self.stored.isr and first != self.stored.leader:
            self.stored = elections.preferred(elections.Vote(self.stored, (first,), live, 0)).state
            self._tell(live)

    def _tell(self, ids: Any) -> None:
        for number in ids:
            self.brokers[number].told.append(self.stored)

    def hear(self) -> None:
        broker = self.some()
        if broker.told and not broker.blind:
            broker.take(broker.told.pop(0))

    # The end

    def lost(self) -> list[str]:
        """The acknowledged records that are not at their offsets after all faults are repaired."""
        for broker in self.brokers.values():
            broker.blind = False
        self.elect()
        leader = self.stored.leader
        if leader not in BROKERS:
            return []
        names = self.brokers[leader].records.names
        return [
            name
            for name, offset in self.acknowledged.items()
            if names[offset : offset + 1] != [name]
        ]


class Found(NamedTuple):
    late: int
    missing: list[str]
    lost: list[str]


def walks(*, unclean: bool, acks: int = -1) -> Found:
    late, missing, lost = 0, [], []
    for seed in range(WALKS):
        world = LeaderAlone(seed, unclean=unclean, acks=acks)
        world.walk(STEPS)
        late += world.late
        missing += [f"seed {seed}: {name}" for name in world.missing]
        lost += [f"seed {seed}: {name}" for name in world.lost()]
    return Found(late, missing, lost)


def test_acks_of_the_whole_isr_hold_without_unclean_election() -> None:
    found = walks(unclean=False)
    assert found.lost == found.missing == []
    assert found.late > 0  # it does happen, and does no harm


def test_acks_of_all_replicas_hold_with_unclean_election() -> None:
    """Records may be lost only in ways in which a leader that ZooKeeper sees loses them too."""
    found = walks(unclean=True)
    assert found.missing == []
    assert found.late > 0


@pytest.mark.parametrize(("acks", "unclean"), [(1, False), (2, False), (-1, True)])
def test_without_the_rule_acknowledged_records_are_lost(
    monkeypatch: pytest.MonkeyPatch, acks: int, unclean: bool
) -> None:
    monkeypatch.setattr(Partition, "is_safe_without_zookeeper", lambda self, acks: True)
    assert walks(unclean=unclean, acks=acks).missing


@pytest.mark.parametrize(
    ("isr", "replicas", "unclean", "kept"),
    [
        ((1,), (1,), True, True),
        ((1, 2, 3), (1, 2, 3), True, True),
        ((1, 2), (1, 2, 3), True, False),
        ((1, 2), (1, 2, 3), False, True),
        ((1,), (1, 2, 3), False, False),
    ],
)
def test_who_may_go_on(
    isr: tuple[int, ...], replicas: tuple[int, ...], unclean: bool, kept: bool
) -> None:
    partition = Broker(1, unclean=unclean).partition
    partition.make_leader(leader_state(1, 0, isr, 0, replicas), 0.0)
    assert partition.is_safe_without_zookeeper(-1) is kept
    assert partition.is_safe_without_zookeeper(1) is (len(replicas) == 1)


def test_a_change_of_isr_that_zookeeper_may_have_counts() -> None:
    partition = Broker(1, unclean=True).partition
    partition.make_leader(leader_state(1, 0, (1, 2, 3), 0, (1, 2, 3)), 0.0)
    change = partition.propose_isr((1,))
    assert partition.is_safe_without_zookeeper(-1)  # both hold the high watermark back
    partition.commit_isr(change, 1)
    assert not partition.is_safe_without_zookeeper(-1)
