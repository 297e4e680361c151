from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

import pytest
from setuptools import Distribution

from tools.wheel.build_py import ROOT
from tools.wheel.egg_info import EggInfo


def test_every_script_is_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    attributes = {"name": "kafka08", "version": "1", "packages": [], "script_name": "setup.py"}
    command = EggInfo(Distribution(attributes))
    command.ensure_finalized()
    command.run()
    (found,) = importlib.metadata.distributions(name="kafka08", path=[str(tmp_path)])
    commands = {point.name: point.value for point in found.entry_points}
    assert commands.pop("kafka08-home") == "kafka08.commands:print_home"
    assert commands.pop("kafka08-container") == "kafka08.container:main"
    assert commands.pop("kafka08-spark-submit") == "kafka08.spark.submit:main"
    scripts = [name for name in os.listdir(ROOT / "bin") if not name.endswith((".bash", ".py"))]
    assert commands == dict.fromkeys(scripts, "kafka08.commands:run_script")
    assert "kafka-topics.sh" in scripts
