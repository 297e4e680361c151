from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from setuptools import Distribution

from kafka08 import builds
from tools.wheel.build_py import ROOT, BuildPy


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BuildPy:
    """Collects two packages of the checkout."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv(builds.SWITCH, "1")
    packages = ["kafka08", "kafka08.log"]
    made = BuildPy(Distribution({"packages": packages, "script_name": "setup.py"}))
    made.build_lib = str(tmp_path)
    made.ensure_finalized()
    return made


def test_modules_of_an_earlier_build_go(command: BuildPy, tmp_path: Path) -> None:
    (tmp_path / "kafka08").mkdir()
    (tmp_path / "kafka08" / "gone.py").touch()
    (tmp_path / "mine").touch()
    command.run()
    assert not (tmp_path / "kafka08" / "gone.py").exists()
    assert (tmp_path / "mine").exists()
    assert (tmp_path / "kafka08" / "log" / "log.py").exists()
    assert (tmp_path / "kafka08" / "zk" / "client.py").exists()


def test_an_editable_install_keeps_the_checkout(command: BuildPy, tmp_path: Path) -> None:
    command.editable_mode = True
    command.run()
    assert list(tmp_path.iterdir()) == []


def test_an_sdist_has_all_that_a_wheel_needs(command: BuildPy) -> None:
    files = set(command.get_source_files())
    assert {"zk/client.py", "tools/run_class.py", "tools/wheel/backend.py"} <= files
    assert {"bin/kafka-topics.sh", "bin/kafka-java.py", "config/server.properties"} <= files
    assert os.path.join("kafka08", "log", "log.py") in files
    assert [name for name in files if name.startswith(("/", "tests", "integration"))] == []


def test_machine_code_is_made_of_the_wheels_own_sources(
    command: BuildPy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[tuple[list[str], Path, str]] = []

    def run(words: list[str], *, cwd: Path, env: dict[str, str], check: bool) -> None:
        called.append((words[1:], cwd, env["MYPY_CACHE_DIR"]))

    stand_in: Any = run
    monkeypatch.setattr(subprocess, "run", stand_in)
    monkeypatch.delenv(builds.SWITCH)
    command.run()
    ((words, directory, cache),) = called
    assert words == ["-B", "-m", "kafka08.compiled"]
    assert directory == tmp_path
    assert not Path(cache).is_relative_to(tmp_path)
