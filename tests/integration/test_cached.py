"""Directories that are made once, also by several processes at the same time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from integration import cached

ROOT = Path(__file__).parents[2]
MAKER = """
import sys
from pathlib import Path
from integration import cached

target, calls = Path(sys.argv[1]), Path(sys.argv[2])

def fill(directory):
    with calls.open("a") as file:
        file.write("filled\\n")
    print("filling", flush=True)
    sys.stdin.readline()
    (directory / "jar").write_text("x")

print("started", flush=True)
cached.once(target, fill)
print((target / "jar").read_text(), flush=True)
"""


def maker(*words: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", MAKER, *map(str, words)]
    return subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def test_processes_that_want_a_directory_at_the_same_time_fill_it_once(tmp_path: Path) -> None:
    words = tmp_path / "cache" / "jars", tmp_path / "calls"
    with maker(*words) as first:
        assert line_of(first) == "started\n"
        assert line_of(first) == "filling\n"
        with maker(*words) as second, maker(*words) as third:
            assert [line_of(second), line_of(third)] == ["started\n", "started\n"]
            outputs = [each.communicate("go\n")[0] for each in (first, second, third)]
    assert outputs == ["x\n", "x\n", "x\n"]
    assert words[1].read_text() == "filled\n"


def test_a_failure_leaves_nothing_and_the_next_call_tries_again(tmp_path: Path) -> None:
    target = tmp_path / "jars"

    def fail(directory: Path) -> None:
        (directory / "half").write_text("")
        raise OSError("no network")

    with pytest.raises(OSError, match="no network"):
        cached.once(target, fail)
    assert not target.exists()
    cached.once(target, lambda directory: None)
    assert list(target.iterdir()) == []


def test_an_incomplete_directory_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "jars"
    target.mkdir()
    (target / "old").write_text("")
    cached.once(
        target,
        lambda directory: (directory / "jar").touch(),
        has=(target / "jar").exists,
    )
    assert [each.name for each in target.iterdir()] == ["jar"]
