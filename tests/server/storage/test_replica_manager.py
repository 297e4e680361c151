"""The lookup of partitions by the replica manager."""

from __future__ import annotations

from tests.server.support import ME, PEER, Rig


def test_partitions_whose_isr_may_change(rig: Rig) -> None:
    replicated = rig.lead(replicas=[ME, PEER])
    rig.lead(partition=1)
    rig.follow(partition=2)
    assert rig.replicas.led_with_followers() == [replicated]
