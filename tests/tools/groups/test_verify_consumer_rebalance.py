"""Whether every partition has an owner, and a member for it."""

from __future__ import annotations

import pytest

from tests.tools.groups.world import T0, T1, ClusterWithGroups


def test_verifier(world: ClusterWithGroups, caplog: pytest.LogCaptureFixture) -> None:
    good, bad = "Rebalance operation successful !\n", "Rebalance operation failed !\n"
    assert world.verify() == good
    world.member("c", T0, T1, streams=2)
    assert world.verify() == good
    world.put("/consumers/g/owners/t/1", b"g_c-2")
    assert world.verify() == bad
    assert (
        "Owner g_c-2 for partition [t,1] is not a valid member of consumer group g" in caplog.text
    )
    world.ensemble.remove("/consumers/g/owners/t/0")
    world.ensemble.remove("/consumers/g/owners/t/1")
    assert world.verify() == bad
    assert "No owner for partition [t,0]" in caplog.text
    assert "No owners for any partitions for topic t" in caplog.text
