"""Whole clusters on simulated time: nothing acknowledged is lost, and a seed gives the same run."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from kafka08.cluster.partition import Partition
from tests.simulation import checks, faults, loads, plan, producers
from tests.simulation import run as runs
from tests.simulation.conditions import Conditions
from tests.simulation.run import RunOutcome, SimulatedRun
from tests.simulation.world import SimulatedWorld


def run(
    directory: Path, seed: int, count: int, *, faults: int, drawn: Conditions | None = None
) -> RunOutcome:
    directory.mkdir()
    return SimulatedRun(directory, plan.draw(seed, faults=faults, brokers=count), drawn=drawn).run()


@pytest.mark.parametrize("count", [1, 3])
def test_a_cluster_without_faults(tmp_path: Path, count: int) -> None:
    with mock.patch.object(runs, "_LEAVES", 0.0):
        outcome = run(tmp_path / "disks", 1, count, faults=0)
    # While the topic is new, what a producer no longer waits for may be written all the same.
    assert 10 < outcome.acknowledged + outcome.hoped <= outcome.seen
    assert not outcome.dashed


def test_a_seed_gives_the_same_run_twice(tmp_path: Path) -> None:
    first = run(tmp_path / "first", 5, 2, faults=10)
    assert first == run(tmp_path / "second", 5, 2, faults=10)
    assert first.hash != run(tmp_path / "third", 6, 2, faults=10).hash


@pytest.mark.sources  # compiled modules take other steps with a seed
@pytest.mark.parametrize("seed", [1, 3])
def test_nothing_acknowledged_is_lost(tmp_path: Path, seed: int) -> None:
    outcome = run(tmp_path / "disks", seed, 3, faults=25)
    assert outcome.is_whole
    assert outcome.acknowledged <= outcome.seen
    assert sum(outcome.faults.values()) - outcome.faults.get("leave", 0) == 25


def test_a_run_ends_when_power_cuts_leave_no_promise(tmp_path: Path) -> None:
    with mock.patch.object(faults, "_AT_A_MOMENT", 0.0):
        blackout = Conditions(("blackout",))
        outcome = run(tmp_path / "disks", 2, 3, faults=1, drawn=blackout)
    assert not outcome.is_whole
    assert outcome.faults == {"blackout": 1}


@pytest.mark.parametrize(("name", "is_left"), [("own/disk1/x", True), ("other/disk1/x", False)])
def test_a_deleted_file_that_is_open_is_left_in_the_run_that_opened_it(
    tmp_path: Path, name: str, is_left: bool
) -> None:
    for each in ("own", "other/disk1"):
        (tmp_path / each).mkdir(parents=True)
    with SimulatedWorld(tmp_path / "own", 3, count=1) as world:
        world.start()
        with (tmp_path / name).open("w"):
            (tmp_path / name).unlink()
            assert any("descriptor" in each for each in checks.leftovers(world)) == is_left


@pytest.mark.parametrize("changes", [1, 5, 12])
def test_a_broker_may_die_while_it_starts(tmp_path: Path, changes: int) -> None:
    with SimulatedWorld(tmp_path, 3, count=1) as world:
        broker = world.brokers[1]
        broker.kill_at(changes)
        broker.start()
        world.scheduler.run(lambda: not broker.is_running, seconds=30)
        world.start()
        task = broker.stop()
        world.scheduler.run(lambda: task.has_ended, seconds=60)
        assert not broker.runtime.process.tasks


@pytest.mark.sources
def test_an_acknowledgement_before_the_isr_has_it_is_found(tmp_path: Path) -> None:
    early = mock.patch.object(
        Partition, "check_enough_replicas_reach_offset", lambda self, offset, acks: True
    )
    busy = mock.patch.object(producers, "_PAUSES", (0.0,))
    names = ["producer", "producer2", "consumer"]
    few = mock.patch.object(loads, "drawn", lambda *_, **__: names)
    kills = Conditions(("kill", "start"))
    found = pytest.raises(AssertionError, match=r"acknowledged|not done after|error 45")
    with early, busy, few, found:
        for seed in range(10):
            run(tmp_path / str(seed), seed, 2, faults=25, drawn=kills)
