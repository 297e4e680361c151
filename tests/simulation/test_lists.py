"""Lists to which transactions append, under faults: nothing aborted is read, nothing committed is
lost, no transaction is there in part, and what is read and written in one is copied once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation import kinds, list_load, plan
from tests.simulation.aims import TRANSACTIONS, Aim
from tests.simulation.conditions import Conditions, aimed
from tests.simulation.list_ledger import LISTS
from tests.simulation.run import SimulatedRun

HARM = ("kill", "kill at a change", "kill all", "part", "isolate", "pause")
MINUTES = (1, pytest.param(10, marks=pytest.mark.slow))


def run(directory: Path, seed: int, minutes: int, *faults: str) -> SimulatedRun:
    """A run on three brokers with faults of these kinds for so long."""
    drawn = aimed(seed, Aim(faults, loads=TRANSACTIONS, only=True))
    planned = plan.draw(seed, faults=60 * minutes, brokers=3)
    count = sum(each.at < 60 * minutes for each in planned.faults)
    found = SimulatedRun(directory, planned.until(count), drawn=drawn)
    outcome = found.run()
    assert outcome.is_whole
    assert sum(outcome.faults.values()) >= count
    return found


def check(found: SimulatedRun, minutes: int) -> None:
    """All lists grew, all the time."""
    lists = found.clients.lists
    writers = lists.transactions.values()
    elements = [each for of_one in writers for one in of_one for each in one.elements]
    assert len({each.list for each in elements}) == LISTS
    assert lists.committed > 20 * minutes


@pytest.mark.sources  # compiled modules take other steps with a seed
@pytest.mark.scenario("transactions-53")
@pytest.mark.parametrize("minutes", MINUTES)
def test_under_kills_partitions_and_pauses(tmp_path: Path, minutes: int) -> None:
    check(run(tmp_path, 2, minutes, *HARM), minutes)


@pytest.mark.sources
@pytest.mark.scenario("transactions-54")
@pytest.mark.parametrize("minutes", MINUTES)
def test_when_clocks_jump_too(tmp_path: Path, minutes: int) -> None:
    check(run(tmp_path, 4, minutes, *HARM, "jump", "drift"), minutes)


def test_the_topic_is_compacted_if_the_run_asks_for_that() -> None:
    for seed in range(10):
        assert list_load.settings(seed, compacts=True)["cleanup.policy"] == "compact"
        assert not list_load.settings(seed, compacts=False)
    assert {bool(list_load.settings(seed)) for seed in range(10)} == {True, False}


@pytest.mark.parametrize("loads", [(), TRANSACTIONS])
def test_brokers_are_of_today_where_a_client_needs_that(
    tmp_path: Path, loads: tuple[str, ...]
) -> None:
    seed = next(each for each in range(100) if not kinds.are_of_today(kinds.draw(each, 3)))
    drawn = Conditions(loads=loads)
    with SimulatedRun(tmp_path, plan.draw(seed, brokers=3), drawn=drawn).world as world:
        assert world.is_of_today == bool(loads)
