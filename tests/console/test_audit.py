"""kafka08.console.audit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka08.console.audit import Audit
from kafka08.errors import ConfigError
from tests.fakes.runtime import FakeClock


@pytest.mark.scenario("ops-59")
def test_a_change_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit = Audit(str(path), FakeClock())
    audit.record("ann", "10.0.0.1", "delete topic", "t\nx", {"partitions": 2}, None)
    audit.record("ann", "10.0.0.1", "delete topic", "u", None, None)
    lines = path.read_text().splitlines()
    assert len(lines) == 2
    assert json.loads(lines[0]) == {
        "time": "2014-05-13 16:53:20 UTC",
        "user": "ann",
        "from": "10.0.0.1",
        "action": "delete topic",
        "target": "t\nx",
        "before": {"partitions": 2},
        "after": None,
    }


def test_a_file_that_cannot_be_written_ends_the_start() -> None:
    with pytest.raises(ConfigError, match=r"console\.audit\.file"):
        Audit("/none/audit.log", FakeClock())


def test_where_there_are_several_clusters_a_line_names_its_own(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    for name in ("prod", "test"):
        audit = Audit(str(path), FakeClock(), name)
        audit.record("ann", "10.0.0.1", "delete topic", "t", None, None)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["cluster"] for line in lines] == ["prod", "test"]
