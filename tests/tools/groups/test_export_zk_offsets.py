"""ExportZkOffsets against a ZooKeeper in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools.groups.zk_offsets import export
from zk.errors import NoNodeError


def test_all_groups_are_exported(zk: Any, tmp_path: Path, capsys: Any) -> None:
    assert sorted(export(tmp_path)) == [
        "/consumers/g/offsets/t/0:42",
        "/consumers/g/offsets/t/1:7",
        "/consumers/h/offsets/u/0:0",
    ]
    assert capsys.readouterr() == ("", "")
    assert zk.closed


def test_named_groups_are_exported(zk: Any, tmp_path: Path) -> None:
    assert export(tmp_path, "--group", "h") == ["/consumers/h/offsets/u/0:0"]
    with pytest.raises(NoNodeError, match="/consumers/idle/offsets"):
        export(tmp_path, "--group", "h", "--group", "idle")
    assert (tmp_path / "offsets").read_text() == "/consumers/h/offsets/u/0:0\n"
