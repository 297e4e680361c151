"""The scenarios of faults with real processes; the simulation runs the same files."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.cluster.hosts import Loopback, Namespaces
from integration.faults.run import Run, options_of
from integration.faults.scenario import Scenario, all_scenarios


@pytest.mark.parametrize("scenario", all_scenarios(), ids=lambda each: each.name)
def test_nothing_acknowledged_is_lost(scenario: Scenario, tmp_path: Path) -> None:
    missing = Namespaces.missing() if scenario.needs_cuts else ""
    if missing:
        pytest.skip(missing)
    hosts = Namespaces() if scenario.needs_cuts else Loopback()
    try:
        outcome = Run(options_of(scenario, tmp_path), hosts, print).go()
    finally:
        hosts.close()
    assert outcome.sound, outcome.report()
    assert outcome.faults == len(scenario.moments)
    assert outcome.verdict.acknowledged > 100
