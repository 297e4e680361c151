"""All clients at once."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

from tests.simulation import loads, plan
from tests.simulation.loads import ALWAYS, LOADS
from tests.simulation.run import RunOutcome, SimulatedRun
from tests.simulation.world import SimulatedWorld


def run(directory: Path, seed: int, faults: int, *names: str) -> RunOutcome:
    directory.mkdir()
    with mock.patch.object(loads, "drawn", lambda *_, **__: list(names or LOADS)):
        return SimulatedRun(directory, plan.draw(seed, faults=faults, brokers=2)).run()


def test_wanted_clients_are_drawn_in_any_case(tmp_path: Path) -> None:
    for seed in range(10):
        path = tmp_path / str(seed)
        path.mkdir()
        without, wanted = SimulatedWorld(path, seed, count=1), ("admin", "leader-acks")
        chosen = loads.drawn(SimulatedWorld(path, seed, count=1), wanted)
        assert set(chosen) == {*loads.drawn(without), *wanted}
        alone = loads.drawn(SimulatedWorld(path, seed, count=1), wanted, only=True)
        assert set(alone) == {*ALWAYS, *wanted}


def test_all_clients(tmp_path: Path) -> None:
    outcome = run(tmp_path / "disks", 1, 3)
    assert outcome.acknowledged > 10
