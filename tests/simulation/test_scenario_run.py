"""The scenarios of faults in the simulation; real processes run the same files."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.faults.scenario import Scenario, all_scenarios
from tests.simulation.scenario_run import ScenarioRun


@pytest.mark.parametrize("scenario", all_scenarios(), ids=lambda each: each.name)
def test_nothing_acknowledged_is_lost(scenario: Scenario, tmp_path: Path) -> None:
    outcome = ScenarioRun(tmp_path, scenario, 1).run()
    assert outcome.is_whole
    assert sum(outcome.faults.values()) == len(scenario.moments)
    assert outcome.acknowledged > 100
