"""Lists to which transactions append, under faults: nothing aborted is read, nothing committed is
lost, no transaction is there in part, and what is read and written in one is copied once."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from tests.simulation import kinds, list_load, plan
from tests.simulation.aims import TRANSACTIONS, Aim
from tests.simulation.conditions import aimed
from tests.simulation.run import SimulatedRun

HARM = ("kill", "kill at a change", "kill all", "part", "isolate", "pause")
MINUTES = (1, pytest.param(10, marks=pytest.mark.slow))


def run(directory: Path, seed: int, minutes: int, *faults: str) -> SimulatedRun:
    """A run on three brokers with faults of these kinds for so long."""
    drawn = aimed(seed, Aim(faults, loads=TRANSACTIONS, only=True))
    planned = plan.draw(seed, faults=60 * minutes, brokers=3)
    count = sum(each.at < 60 * minutes for each in planned.faults)
    run = SimulatedRun(directory, planned.until(count), drawn=drawn)
    outcome = run.run()
    assert outcome.is_whole
    assert sum(outcome.faults.values()) >= count
    return run


def check(found: SimulatedRun, minutes: int) -> None:
    lists = found.clients.lists
    assert {each.list for of_one in lists.transactions.values() for t in of_one for each in t.elements} == set(range(5))
    assert lists.committed > 100 * minutes
    assert len(lists.seen) > 300 * minutes


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
