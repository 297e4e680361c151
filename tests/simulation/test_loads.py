"""All clients at once."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from tests.simulation import loads, plan
from tests.simulation.loads import LOADS
from tests.simulation.run import RunOutcome, SimulatedRun


def run(directory: Path, seed: int, faults: int, *names: str) -> RunOutcome:
    directory.mkdir()
    with mock.patch.object(loads, "drawn", lambda world: list(names or LOADS)):
        return SimulatedRun(directory, plan.draw(seed, faults=faults, brokers=2)).run()


def test_all_clients(tmp_path: Path) -> None:
    outcome = run(tmp_path / "disks", 1, 3)
    assert outcome.acknowledged > 10
