"""The codes of produce requests that wait for acknowledgements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.common import TopicPartition
from kafka08.protocol.schemas import LeaderAndIsrRequest, StopReplicaPartition, StopReplicaRequest
from kafka08.server.replication.acks import await_acks
from tests.server.support import BROKERS, ME, PEER, THIRD, Rig, message_set, partition_state

T0 = TopicPartition("t", 0)
U0 = TopicPartition("u", 0)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path, min_insync_replicas=1)
    yield rig
    rig.close()


def lead_with_followers(rig: Rig, topic: str = "t") -> None:
    members = [ME, PEER, THIRD]
    rig.lead(topic, replicas=members, isr=members)
    rig.append("a", topic=topic)


def test_an_isr_of_one_does_not_wait(rig: Rig) -> None:
    rig.lead()
    rig.append("a")
    assert await_acks(rig.replicas, {T0: 1}, -1, 1000) == {T0: 0}
    assert rig.runtime.slept == []


def test_all_members_of_the_isr_or_so_many(rig: Rig) -> None:
    lead_with_followers(rig)
    rig.runtime.while_waiting = [lambda: rig.fetch(("t", 0, 1, 100), replica_id=PEER)]
    assert await_acks(rig.replicas, {T0: 1}, 2, 1000) == {T0: 0}
    rig.runtime.while_waiting = [lambda: rig.fetch(("t", 0, 1, 100), replica_id=THIRD)]
    assert await_acks(rig.replicas, {T0: 1}, -1, 1000) == {T0: 0}


def test_each_partition_has_its_own_code(rig: Rig) -> None:
    lead_with_followers(rig)
    rig.lead("u")
    rig.append("a", topic="u")
    rig.runtime.while_waiting = [lambda: rig.fetch(("t", 0, 1, 100), replica_id=PEER)]
    assert await_acks(rig.replicas, {T0: 1, U0: 1}, -1, 1000) == {T0: 7, U0: 0}
    assert rig.runtime.slept[-1] == pytest.approx(1.0)


def test_a_lost_leadership_ends_the_wait(rig: Rig) -> None:
    lead_with_followers(rig)
    taken = partition_state(leader=PEER, leader_epoch=9, replicas=[ME, PEER, THIRD])
    request = LeaderAndIsrRequest(9, 1, [taken], BROKERS)
    rig.runtime.while_waiting = [lambda: rig.call(request)]
    assert await_acks(rig.replicas, {T0: 1}, -1, 1000) == {T0: 6}
    assert rig.runtime.slept == []


def test_a_partition_that_has_moved_away_is_not_unknown(rig: Rig) -> None:
    """Code 3 would tell the producer that nothing is stored."""
    lead_with_followers(rig)
    stop = StopReplicaRequest(9, 1, True, [StopReplicaPartition("t", 0)])
    rig.runtime.while_waiting = [lambda: rig.call(stop)]
    assert await_acks(rig.replicas, {T0: 1}, -1, 1000) == {T0: 6}


def test_a_shrunk_isr_is_not_enough(tmp_path: Path) -> None:
    rig = Rig(tmp_path, min_insync_replicas=2)
    rig.lead(replicas=[ME, PEER], isr=[ME, PEER])
    assert rig.produce(("t", 0, message_set("a"))) == {("t", 0): (0, 0)}
    partition = rig.replicas.partition(T0)
    change = partition.propose_isr((ME,))
    partition.commit_isr(change, 1)
    assert await_acks(rig.replicas, {T0: 1}, -1, 1000) == {T0: 20}
    rig.close()
