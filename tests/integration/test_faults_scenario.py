"""Scenario files: what they mean, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from integration.faults.plan import Fault
from integration.faults.scenario import Moment, all_scenarios, load

KILL = {"at": 2.0, "kind": "kill", "target": 1, "seconds": 0.5}
MOVE = {"at": 1.0, "kind": "reassign", "partition": 1, "replicas": [1, 2]}


def written(path: Path, *moments: dict[str, object]) -> Path:
    sizes = {"brokers": 3, "partitions": 2, "producers": 1, "seconds": 9.0}
    path.write_text(json.dumps({"about": "Two faults.", "moments": moments, **sizes}))
    return path


def test_a_file_is_a_scenario(tmp_path: Path) -> None:
    found = load(written(tmp_path / "two-faults.json", MOVE, KILL))
    assert found.name == "two-faults"
    assert (found.brokers, found.partitions, found.producers, found.seconds) == (3, 2, 1, 9.0)
    move, kill = found.moments
    assert move == Moment(1.0, Fault("reassign", "", 0.0, True, 0.0, 1, (1, 2)))
    assert kill == Moment(2.0, Fault("kill", "1", 0.5, True, 0.0, 0, ()))
    assert not found.needs_cuts


def test_moments_come_in_order(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"late\.json are not in order"):
        load(written(tmp_path / "late.json", KILL, MOVE))


def test_all_files_can_be_read() -> None:
    found = all_scenarios()
    assert len(found) >= 5
    assert sum(each.needs_cuts for each in found) == 1
    for each in found:
        assert each.moments[-1].at < each.seconds
