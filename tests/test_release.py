"""``make release``: the checks before a tag, in repositories of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "release.py"
CHANGELOG = """\
# Changelog

## [Unreleased]

## [0.2.0] - 2026-11-26

- New.

## [0.1.0] - 2026-11-22
"""


def git(place: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, cwd=place, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "a")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@b")
    (tmp_path / "setup.cfg").write_text("[metadata]\nversion = 0.2.0\n")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def release(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *words]
    return subprocess.run(command, cwd=place, check=False, capture_output=True, text=True)


def test_a_checked_release_is_tagged_here(checkout: Path) -> None:
    assert release(checkout, "--check").returncode == 0
    assert git(checkout, "tag") == ""
    assert release(checkout).returncode == 0
    assert git(checkout, "tag") == "v0.2.0\n"
    assert git(checkout, "cat-file", "-t", "v0.2.0") == "tag\n"


def test_a_release_is_tagged_once(checkout: Path) -> None:
    git(checkout, "tag", "v0.2.0")
    assert "the tag v0.2.0 exists" in release(checkout).stderr


def test_uncommitted_changes_are_refused(checkout: Path) -> None:
    (checkout / "new.py").touch()
    done = release(checkout, "--check")
    assert (done.returncode, "not committed" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("0.2.0", "0.3.0", "does not have [0.2.0] with a date"),
        (" - 2026-11-26", "", "does not have [0.2.0] with a date"),
        ("[Unreleased]\n", "[Unreleased]\n\n- More.\n", "an empty section [Unreleased]"),
        ("## [Unreleased]\n", "", "an empty section [Unreleased]"),
    ],
)
def test_a_changelog_of_another_state_is_refused(
    checkout: Path, before: str, after: str, reason: str
) -> None:
    (checkout / "CHANGELOG.md").write_text(CHANGELOG.replace(before, after))
    git(checkout, "commit", "-qam", "second")
    done = release(checkout, "--check")
    assert (done.returncode, reason in done.stderr) == (1, True)
    assert git(checkout, "tag") == ""
