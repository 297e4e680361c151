"""A rolling restart stops and starts each broker once, and the others go on meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulation.world import SimulatedWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SimulatedWorld]:
    with SimulatedWorld(tmp_path, 4, count=2) as world:
        world.start()
        yield world


def ended(world: SimulatedWorld) -> list[str]:
    """The hosts that have stopped, in order."""
    lines = [line for line in world.scheduler.trace.last if line.endswith("has stopped")]
    return [line.split()[1].partition("/")[0] for line in lines]


def run(world: SimulatedWorld, count: int) -> None:
    """Until so many brokers have stopped; nothing else is kept in mind."""
    seen: list[str] = []
    for _ in range(count):
        running = [each.host for each in world.staying if each.is_running]
        assert running
        world.scheduler.run(lambda: bool(ended(world)), seconds=60)
        seen += ended(world)
        world.scheduler.trace.last.clear()
    assert seen == [f"broker{number}" for number in range(1, count + 1)]


def test_one_broker_after_the_other(world: SimulatedWorld) -> None:
    world.rolling.begin(world.staying)
    world.rolling.begin(world.staying)
    run(world, 2)
    brokers = world.staying
    world.scheduler.run(lambda: all(each.has_started for each in brokers), seconds=60)
    world.scheduler.run_for(5.0)
    assert not ended(world)


def test_no_other_broker_is_stopped_after_its_end(world: SimulatedWorld) -> None:
    world.rolling.begin(world.staying)
    run(world, 1)
    world.rolling.end()
    world.scheduler.run_for(10.0)
    assert not ended(world)
    assert world.brokers[2].has_started
