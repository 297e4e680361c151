from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tools.wheel import manylinux

LINUX = "kafka08-0.1.0-cp311-cp311-linux_x86_64.whl"
NAMED = "kafka08-0.1.0-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"


def wheel(directory: Path, *names: str) -> Path:
    path = directory / LINUX
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return path


@pytest.fixture
def auditwheel(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """In its place: makes a wheel, or fails for one that has ``new.so``."""
    called: list[list[str]] = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        called.append(command)
        directory, path = Path(command[-2]), command[-1]
        if "new.so" in zipfile.ZipFile(path).namelist():
            return subprocess.CompletedProcess(command, 1, "", "usage\ntoo-recent symbols\n")
        (directory / NAMED).write_bytes(b"repaired")
        return subprocess.CompletedProcess(command, 0, "", "")

    stand_in: Any = run
    monkeypatch.setattr(subprocess, "run", stand_in)
    return called


def test_a_wheel_with_machine_code_gets_the_name_that_auditwheel_found(
    auditwheel: list[list[str]], tmp_path: Path
) -> None:
    wheel(tmp_path, "kafka08/_native/scan.so")
    assert manylinux.rename(tmp_path) == [f"{LINUX} is {NAMED} now"]
    assert [path.name for path in tmp_path.iterdir()] == [NAMED]
    assert (tmp_path / NAMED).read_bytes() == b"repaired"
    assert manylinux.rename(tmp_path) == []  # a second run has nothing to do


def test_a_wheel_that_auditwheel_refuses_stays_and_the_reason_is_said(
    auditwheel: list[list[str]], tmp_path: Path
) -> None:
    wheel(tmp_path, "new.so")
    [line] = manylinux.rename(tmp_path)
    assert line == f"{LINUX} keeps its name: auditwheel: too-recent symbols"
    assert [path.name for path in tmp_path.iterdir()] == [LINUX]


def test_a_wheel_without_machine_code_stays(auditwheel: list[list[str]], tmp_path: Path) -> None:
    wheel(tmp_path, "kafka08/log/log.py")
    assert manylinux.rename(tmp_path) == [f"{LINUX} has no machine code, and keeps its name"]
    assert [path.name for path in tmp_path.iterdir()] == [LINUX]
    assert auditwheel == []
