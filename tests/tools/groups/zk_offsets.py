"""Shared by the tests of the tools for offsets in ZooKeeper: an export."""

from __future__ import annotations

from pathlib import Path

from tools.groups import export_zk_offsets


def export(tmp_path: Path, *words: str) -> list[str]:
    path = tmp_path / "offsets"
    assert export_zk_offsets.main(["--zkconnect", "z:1", "--output-file", str(path), *words]) == 0
    return path.read_text().splitlines()
