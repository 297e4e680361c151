"""The messages about a build, on machines that can and cannot make one."""

from __future__ import annotations

import ast
import shlex
import subprocess
import sysconfig
from pathlib import Path

import pytest

from kafka08 import builds, compiled
from tests import house


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One with a compiler and Python's headers."""
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    (tmp_path / "Python.h").touch()
    monkeypatch.setenv("CC", f"{shlex.quote(str(compiler))} -O2")
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(tmp_path))
    monkeypatch.setattr(compiled, "build", lambda: tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], status: int = 1) -> str:
    assert compiled.main([]) == status
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_a_build_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert compiled.main(["--ready"]) == 0
    assert said(capsys, 0).endswith(" modules are compiled.\n")


@pytest.mark.parametrize(
    ("missing", "reason"),
    [("cc", "there is no C compiler"), ("Python.h", "there are no headers")],
)
def test_what_a_machine_lacks_is_told_in_one_line(
    missing: str, reason: str, machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (machine / missing).unlink()
    assert compiled.main(["--ready"]) == 1
    beginning = f"Nothing is compiled, the broker runs from its Python sources: {reason}"
    line = said(capsys)
    assert line.startswith(beginning)
    assert line.count("\n") == 1


def test_a_build_that_fails_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def build() -> Path:
        raise subprocess.CalledProcessError(1, ["x"], stderr="much\nno space left\n")

    monkeypatch.setattr(compiled, "build", build)
    assert said(capsys).endswith(" sources: no space left.\n")


def test_no_interpreted_class_inherits_from_a_compiled_one() -> None:
    """mypyc refuses that only when the class is used."""
    root = Path(__file__).parents[1]
    found = []
    for path in sorted((root / "kafka08").rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        tree = ast.parse(path.read_text("utf-8"))
        names = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module in compiled.MODULES
            for alias in node.names
        }
        if module not in compiled.MODULES:
            found += [
                f"{module}.{node.name}"
                for node in ast.walk(tree)
                if isinstance(node, ast.ClassDef)
                and any(isinstance(base, ast.Name) and base.id in names for base in node.bases)
            ]
    assert found == []


def test_compiled_modules_import_no_package_that_their_build_leaves_out() -> None:
    """A build's name need not change with them."""
    sources = {source.module: source for source in house.without_tests(house.read())}
    found: set[str] = set()
    left = set(compiled.MODULES)
    while left:
        found |= left
        left = {
            name for each in left for name, _ in house.imported(sources[each], sources.keys())
        } - found
    assert found & {"kafka08.message.records", "kafka08.settings.topic"}
    packages = {name.split(".")[1] for name in found if name.startswith("kafka08.")}
    assert packages & builds.APART == set()
