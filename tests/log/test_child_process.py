"""A module in a process of its own: its lines, its end, and its end by force."""

from __future__ import annotations

import pytest

from kafka08.log.child_process import ChildProcess


@pytest.fixture
def children():
    started: list[ChildProcess] = []

    def start(module: str, job: bytes = b"") -> ChildProcess:
        started.append(ChildProcess(module, job))
        return started[-1]

    yield start
    for child in started:
        child.kill()


def test_lines_and_the_exit_status(children) -> None:
    child = children("this")
    assert child._process.wait() == child.exit_status == 0
    lines = child.lines()
    assert lines[0] == b"The Zen of Python, by Tim Peters"
    assert not any(b"\n" in line for line in lines)
    assert child.lines() == []


def test_a_module_that_is_not_there(children) -> None:
    child = children("kafka08.no_such_module", b"x" * 1_000_000 + b"\n")
    assert child._process.wait() == child.exit_status == 1
    assert child.lines() == []


def test_a_child_that_waits_is_killed(children) -> None:
    """It reads its input, which stays open."""
    child = children("json.tool", b"{}\n")
    assert child.exit_status is None
    child.kill()
    assert child.exit_status == -9
    child.kill()
