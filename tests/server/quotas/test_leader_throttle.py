"""Followers of throttled replicas get no more than the rate of their leader."""

from __future__ import annotations

import pytest

from tests.server.support import ME, PEER, THIRD, Rig, texts

LOTS = 1 << 20
LIST = "leader.replication.throttled.replicas"


def lead(rig: Rig, replicas: str, isr: tuple[int, ...] = (ME,)) -> None:
    """Partition t-0 with 900 bytes; a rate of 500 bytes a second that is used up twice over."""
    rig.topic_settings["t"] = {LIST: replicas}
    rig.lead(replicas=[ME, PEER, THIRD], isr=isr)
    rig.append("a" * 900)
    rig.leader_quota.set_rate(500)
    rig.leader_quota.count(1500)


def got(rig: Rig, replica_id: int = PEER, max_wait_ms: int = 0) -> int:
    """The number of messages in the answer to a fetch."""
    answer = rig.fetch(("t", 0, 0, LOTS), replica_id=replica_id, max_wait_ms=max_wait_ms)
    error, _, data = answer["t", 0]
    assert error == 0
    return len(texts(data))


@pytest.mark.parametrize("replicas", ["0:1", "*", "0:2,0:1"])
def test_a_follower_outside_the_isr_waits_for_the_rate(rig: Rig, replicas: str) -> None:
    lead(rig, replicas)
    assert got(rig) == 0
    rig.clock.advance(1.5)
    assert got(rig) == 0
    rig.clock.advance(0.5)
    assert got(rig) == 1
    assert got(rig) == 0  # what was sent counts


@pytest.mark.parametrize("replicas", ["", "0:2", "1:1"])
def test_replicas_that_are_not_named_are_not_held(rig: Rig, replicas: str) -> None:
    lead(rig, replicas)
    assert got(rig) == 1


def test_members_of_the_isr_are_not_held(rig: Rig) -> None:
    lead(rig, "*", isr=(ME, PEER))
    assert got(rig) == 1
    assert got(rig, THIRD) == 0


def test_consumers_are_not_held(rig: Rig) -> None:
    lead(rig, "*")
    assert got(rig, -1) == got(rig, -2) == 1


def test_without_a_rate_nothing_is_held(rig: Rig) -> None:
    lead(rig, "*")
    rig.leader_quota.set_rate(None)
    assert got(rig) == 1


def test_other_partitions_of_the_fetch_are_not_held(rig: Rig) -> None:
    lead(rig, "0:1")
    rig.lead(partition=1, replicas=[ME, PEER], isr=[ME])
    rig.append("b", partition=1)
    answer = rig.fetch(("t", 0, 0, LOTS), ("t", 1, 0, LOTS), replica_id=PEER)
    assert [texts(answer["t", number][2]) for number in (0, 1)] == [[], ["b"]]


def test_a_fetch_that_may_wait_waits(rig: Rig) -> None:
    """So that a follower does not ask in a tight loop."""
    lead(rig, "*")
    before = rig.clock.monotonic()
    assert got(rig, max_wait_ms=500) == 0
    assert rig.clock.monotonic() - before >= 0.5


def test_a_follower_that_is_held_keeps_its_place(rig: Rig) -> None:
    lead(rig, "*")
    assert got(rig) == 0
    assert rig.replicas.partitions["t", 0].remote[PEER].log_end_offset == 0  # type: ignore[index]
