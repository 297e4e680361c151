"""The build that imports use; a program that asks for it loads little."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08 import builds


@pytest.fixture(autouse=True)
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A tree of sources with one module."""
    (tmp_path / "one.py").write_text("x = 1\n")
    monkeypatch.setattr(builds, "_HERE", str(tmp_path))
    monkeypatch.delenv(builds.SWITCH, raising=False)
    finders = sys.meta_path[:]
    yield tmp_path
    sys.meta_path[:] = finders


def made() -> Path:
    build = Path(builds.directory())
    build.mkdir(parents=True)
    (build / f"kafka08.one{builds.SUFFIX}").touch()
    return build


def test_imports_use_a_build_of_the_present_sources() -> None:
    assert not builds.activate()
    build = made()
    assert builds.is_ready()
    assert builds.activate()
    find = sys.meta_path[0].find_spec
    spec = find("kafka08.one", None)
    assert spec is not None
    assert spec.origin == str(build / f"kafka08.one{builds.SUFFIX}")
    assert find("kafka08.two", None) is None


def test_a_build_of_other_sources_is_not_used(sources: Path) -> None:
    made()
    (sources / "one.py").write_text("x = 2\n")
    assert not builds.activate()


def test_a_program_that_the_build_has_no_part_in_does_not_count(sources: Path) -> None:
    made()
    (sources / "rest").mkdir()
    (sources / "rest" / "two.py").write_text("x = 2\n")
    assert builds.activate()


def test_a_variable_turns_the_build_off(monkeypatch: pytest.MonkeyPatch) -> None:
    made()
    monkeypatch.setenv(builds.SWITCH, "1")
    assert not builds.is_ready()
    assert not builds.activate()


def test_what_makes_builds_is_not_loaded() -> None:
    command = [sys.executable, "-S", "-c", "import sys, kafka08.builds; print(*sys.modules)"]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert {"shutil", "subprocess", "sysconfig", "tempfile"} & set(done.stdout.split()) == set()
