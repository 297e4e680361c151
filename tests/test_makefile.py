"""What the targets of the Makefile would install, asked with ``make -n``."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def dry_run(target: str, tmp_path: Path, **variables: str) -> str:
    """The commands for a machine on which nothing is installed yet."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    command = ["make", "-n", "-C", str(ROOT), f"VENV={tmp_path}/venv", target]
    done = subprocess.run(command, env=kept | variables, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize(
    ("target", "extras"),
    [
        ("quickstart", {"zookeeper"}),
        ("quickstart-cluster", {"zookeeper"}),
        ("test", {"zookeeper", "spark", "test"}),
        ("lint", {"zookeeper", "dev"}),
        ("types", {"zookeeper", "dev"}),
        ("setup", {"zookeeper", "compile"}),
        ("integration", {"zookeeper", "spark", "test", "compile", "integration"}),
    ],
)
def test_a_target_installs_what_it_runs(target: str, extras: set[str], tmp_path: Path) -> None:
    words = re.findall(r"-e '\.\[([a-z,]+)\]'", dry_run(target, tmp_path))
    assert {extra for word in words for extra in word.split(",")} - {"java"} == extras


def test_a_machine_without_java_gets_one(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("make", "sh", "find", "test"):
        path = subprocess.check_output(["sh", "-c", f"command -v {name}"], text=True).strip()
        if os.path.isabs(path):
            (tmp_path / "bin" / name).symlink_to(path)
    without = {"PATH": str(tmp_path / "bin"), "JAVA_HOME": ""}
    assert "[zookeeper,java]" in dry_run("quickstart", tmp_path, **without)
