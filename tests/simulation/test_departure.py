"""A broker that never comes back: others take its replicas."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from tests.simulation import checks, plan
from tests.simulation import run as runs
from tests.simulation.departure import moves
from tests.simulation.run import SimulatedRun


def test_a_run_goes_on_without_a_broker(tmp_path: Path) -> None:
    run = SimulatedRun(tmp_path, plan.draw(1, faults=0, brokers=3))
    with mock.patch.object(runs, "_LEAVES", 1.0):
        outcome = run.run()
    assert outcome.faults == {"leave": 1}
    (gone,) = [each for each in run.world.brokers.values() if each.is_gone]
    assert not moves(run.world, gone)
    assert {len(each) for each in checks.assignments(run.world).values()} == {2}
