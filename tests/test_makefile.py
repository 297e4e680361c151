"""The packages that targets of the Makefile would install, from ``make -n``."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def dry_run(target: str, place: Path, **variables: str) -> str:
    """The commands in a checkout in which nothing is installed yet."""
    for name in ("Makefile", "setup.cfg", "pyproject.toml"):
        shutil.copy(ROOT / name, place)
    inherited = ("MAKE", "PYTHON")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(inherited)}
    command = ["make", "-n", *target.split()]
    done = subprocess.run(
        command, cwd=place, env=kept | variables, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize(
    ("target", "extras"),
    [
        ("quickstart", {"progress", "web", "zookeeper"}),
        ("quickstart-cluster", {"progress", "web", "zookeeper"}),
        ("test", {"progress", "web", "zookeeper", "spark", "test"}),
        ("simulate", {"progress", "web", "zookeeper", "spark", "test"}),
        ("lint", {"progress", "web", "zookeeper", "dev"}),
        ("types", {"progress", "web", "zookeeper", "dev"}),
        ("licences", {"progress", "web", "zookeeper", "dev"}),
        ("setup", {"progress", "web", "zookeeper", "compile"}),
        ("wheel", {"progress", "web", "zookeeper", "build"}),
        ("release", {"progress", "web", "zookeeper", "build"}),
        ("docs", {"progress", "web", "zookeeper", "docs"}),
        (
            "integration",
            {"progress", "web", "zookeeper", "spark", "test", "compile", "integration", "docs"},
        ),
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
    assert "[progress,web,zookeeper,java]" in dry_run("quickstart", tmp_path, **without)


def test_an_environment_without_pip_is_completed(tmp_path: Path) -> None:
    """Debian leaves one behind where its package python3-venv is missing."""
    assert "test -x .venv/bin/pip || python3 -m venv .venv\n" in dry_run("quickstart", tmp_path)


def test_the_callers_settings_of_python_are_hidden(tmp_path: Path) -> None:
    """They may be meant for another Python, which the caller uses."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    theirs = dict.fromkeys(("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP"), "/theirs")
    command = ["make", "--eval", "show:; @env", "show"]
    seen = subprocess.check_output(command, cwd=tmp_path, env=os.environ | theirs, text=True)
    assert "PATH=" in seen
    assert "/theirs" not in seen


def test_pip_says_nothing_about_how_packages_are_built(tmp_path: Path) -> None:
    """pyspark comes as source, and pip warns of its older ways to build that."""
    lines = [
        line for line in dry_run("integration", tmp_path).splitlines() if "pip install" in line
    ]
    assert lines
    for line in lines:
        assert {"--quiet", "--use-pep517", "--disable-pip-version-check"} <= set(line.split())


@pytest.mark.parametrize("target", ["setup", "integration", "bench"])
def test_bytecode_is_stored_before_a_broker_starts(target: str, tmp_path: Path) -> None:
    """Where PYTHONDONTWRITEBYTECODE is set, each start would otherwise compile all modules."""
    assert ".venv/bin/python -m compileall -q kafka08 zk tools\n" in dry_run(target, tmp_path)


@pytest.mark.parametrize(
    ("words", "module"),
    [
        ("bench", "integration.bench "),
        ("bench WHAT=storage", "integration.bench.storage "),
        ("bench-storage", "integration.bench.storage "),
    ],
)
def test_one_target_runs_every_benchmark(words: str, module: str, tmp_path: Path) -> None:
    assert f".venv/bin/python -m {module}" in dry_run(words, tmp_path)


def test_a_release_is_checked_before_it_is_built_and_tagged(tmp_path: Path) -> None:
    commands = dry_run("release", tmp_path)
    steps = [".ci/release.py --check\n", "python -m build\n", ".ci/release.py\n"]
    positions = [commands.index(step) for step in steps]
    assert positions == sorted(positions)


# Tested versions


def served() -> list[str]:
    """The releases of Python, as the setup says."""
    return sorted(path.stem for path in (ROOT / "constraints").glob("*.txt"))


def direct() -> dict[str, str]:
    """The dependencies of all extras: name to requirement."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    texts = [config["options"]["install_requires"], *config["options.extras_require"].values()]
    lines = (line.strip() for text in texts for line in text.splitlines())
    return {
        re.split(r"[\[><=~]", line)[0].lower(): line
        for line in lines
        if line and not line.startswith("#")
    }


def test_every_python_served_has_a_file() -> None:
    assert served() == ["3.10", "3.11", "3.12", "3.13"]


@pytest.mark.parametrize("python", served())
def test_every_dependency_has_a_tested_version(python: str) -> None:
    text = (ROOT / "constraints" / f"{python}.txt").read_text()
    pinned = dict(line.split("==") for line in text.splitlines())
    for name, requirement in direct().items():
        assert name in pinned, f"make constraints: {requirement}"
        least = re.search(">=([0-9.]+)", requirement)
        if least is not None:
            assert numbers(pinned[name]) >= numbers(least[1]), requirement


def numbers(version: str) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", version)]


def test_targets_install_tested_versions(tmp_path: Path) -> None:
    (installed,) = re.findall("^.* -m pip install .*$", dry_run("quickstart", tmp_path), re.M)
    assert "constraints/" in installed


@pytest.mark.parametrize("has_file", [True, False])
def test_a_python_without_a_file_gets_the_newest_versions(has_file: bool, tmp_path: Path) -> None:
    """The shell's part of the command, with an echo in place of pip."""
    command = re.findall("^.* -m pip install .*$", dry_run("quickstart", tmp_path), re.M)[0]
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\ntest "$1" = -c && echo 3.99 || echo "$@"\n')
    python.chmod(0o755)
    if has_file:
        (tmp_path / "constraints").mkdir()
        (tmp_path / "constraints" / "3.99.txt").touch()
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ("-c constraints/3.99.txt" in done.stdout) is has_file
