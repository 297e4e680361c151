"""The directory whose emptiness gives the ticks is this user's alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka08.errors import ConfigError
from kafka08.spark.streams import tick_directory


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / f"kafka08-tick-{os.getuid()}"


def test_made_once_and_closed_to_others(path: Path) -> None:
    assert tick_directory() == tick_directory() == path
    assert path.stat().st_mode & 0o777 == 0o700


def test_open_to_others(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)
    with pytest.raises(ConfigError, match="chmod 700"):
        tick_directory()


def test_of_somebody_else(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.getuid() + 1
    path.with_name(f"kafka08-tick-{other}").mkdir(mode=0o700)
    monkeypatch.setattr("os.getuid", lambda: other)
    with pytest.raises(ConfigError, match="belongs to another user"):
        tick_directory()


def test_a_link_to_somewhere(path: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="belongs to another user"):
        tick_directory()
