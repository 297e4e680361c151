"""Runs that found faults of the broker, which have tests of their own too, or faults of a check.

A run takes other steps when the broker or the simulation changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation import plan
from tests.simulation.run import SimulatedRun

FOUND = {
    "no leader after a read that was behind": (271130000015, None, plan.FAULTS),
    "a gap after the lost end of a segment": (271128000040, None, plan.FAULTS),
    "a compacted log that was cut too late": (271130000063, 2, 15),
    "a cut within an entry of a compacted log": (667622000004, None, plan.FAULTS),
    "a tail where the leader has cleaned": (211616000004, 5, plan.FAULTS),
    "a leader that led again with another tail": (158818000008, 3, plan.FAULTS),
    "an end that was not synced when its broker was back": (555562000004, 1, plan.FAULTS),
    "a compacted log with nothing left below a cut": (131368000083, 3, 60),
    "a closed segment of a broker that died at its disk": (411002000017, None, plan.FAULTS),
    "an aborted transaction without a marker on a replica that was away": (421001000043, 4, 14),
    "a marker in the place of messages of a compacted log": (421002000047, 4, plan.FAULTS),
    "a leader that did not know who had caught up": (26400000051, 2, 60),
}
# Of more than half a minute each on a machine of today.
LONG = {
    "no leader after a read that was behind",
    "a gap after the lost end of a segment",
    "a tail where the leader has cleaned",
    "a closed segment of a broker that died at its disk",
    "a marker in the place of messages of a compacted log",
}


@pytest.mark.sources  # compiled modules take other steps with a seed
@pytest.mark.parametrize(
    "found",
    [pytest.param(each, marks=pytest.mark.slow if each in LONG else ()) for each in FOUND],
)
def test_a_seed_that_found_a_fault_finds_none(tmp_path: Path, found: str) -> None:
    seed, brokers, faults = FOUND[found]
    outcome = SimulatedRun(tmp_path, plan.draw(seed, brokers=brokers, faults=faults)).run()
    assert outcome.acknowledged <= outcome.seen
