"""Bars on terminals, a line a minute elsewhere."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Generator
from typing import Any

import pytest

from kafka08.progress import EveryMinute, Progress, share
from tests.fakes.runtime import FakeClock
from tests.fakes.terminal import Terminal


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def work(clock: FakeClock) -> Generator[int, None, str]:
    """Five pieces of 25 seconds."""
    for _ in range(5):
        clock.advance(25)
        yield 100_000_000
    return "done"


def test_a_line_a_minute(clock: FakeClock, capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(500_000_000, "/data", millis=clock.millis)
    assert progress.follow(work(clock)) == "done"
    progress.close()
    # After 75 s, not again at 100 and 125.
    assert capsys.readouterr().err == "/data: 300.0 MB of 500.0 MB (60 %)\n"


def test_nothing_of_short_work(clock: FakeClock, capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(2, "/data", millis=clock.millis)
    clock.advance(59)
    progress.show(2)
    progress.close()
    assert capsys.readouterr().err == ""


def test_lines_can_be_off(clock: FakeClock, capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(2, "t", lines=False, millis=clock.millis)
    clock.advance(600)
    progress.show(1)
    assert capsys.readouterr().err == ""


def test_a_total_that_grows(clock: FakeClock, capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(None, "Run 1", unit="tasks", millis=clock.millis)
    clock.advance(60)
    progress.show(3)
    clock.advance(60)
    progress.show(4, 8)
    assert capsys.readouterr().err == "Run 1: 3 tasks\nRun 1: 4 of 8 tasks (50 %)\n"


def test_a_bar_on_a_terminal(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = Progress(500_000_000, "/data", millis=clock.millis)
    progress.follow(work(clock))
    progress.close()
    assert "/data: 100%" in terminal.getvalue()
    assert "60 %" not in terminal.getvalue()


@pytest.mark.parametrize(
    ("unit", "shown"),
    [("tasks", " 2/4 ["), ("msg", " 2.00/4.00 ["), ("B", " 2.00/4.00 [")],
)
def test_few_things_are_counted_in_whole_numbers(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, unit: str, shown: str
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = Progress(4, "t", unit=unit, millis=clock.millis)
    progress.show(2)
    progress.close()
    assert shown in terminal.getvalue()


def test_a_bar_below_another_goes_when_it_is_closed(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    outer = Progress(500_000_000, "outer", millis=clock.millis)
    inner = Progress(500_000_000, "inner", millis=clock.millis)
    inner.follow(work(clock))
    inner.close()
    assert terminal.getvalue().rpartition("\n")[2].strip("\r \x1b[A") == ""
    outer.close()
    outer.close()
    assert terminal.getvalue().count("\n") - terminal.getvalue().count("\x1b[A") == 1


def test_lines_on_a_terminal_without_tqdm(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    there = builtins.__import__

    def missing(name: str, *rest: Any, **named: Any) -> Any:
        if name == "tqdm":
            raise ImportError(name)
        return there(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    progress = Progress(500_000_000, "/data", millis=clock.millis)
    progress.follow(work(clock))
    assert terminal.getvalue() == "/data: 300.0 MB of 500.0 MB (60 %)\n"


def test_no_faster_than_asked(clock: FakeClock) -> None:
    slept: list[float] = []
    progress = Progress(500, "/data", bytes_per_second=50_000_000, sleep=slept.append)
    assert progress.follow(work(clock)) == "done"
    assert slept == [2.0] * 5


def test_every_minute(clock: FakeClock) -> None:
    minute = EveryMinute(clock.millis)
    due = []
    for _ in range(10):
        clock.advance(25)
        due.append(minute.is_due())
    assert due == [False, False, True] * 3 + [False]


@pytest.mark.parametrize(
    ("done", "total", "text"),
    [
        (0, 0, "0 B of 0 B"),
        (1, 999, "1 B of 999 B (0 %)"),
        (1500, 2_000_000, "1.5 kB of 2.0 MB (0 %)"),
        (3_000_000_000, 4_500_000_000_000, "3.0 GB of 4.5 TB (0 %)"),
        (10, 10, "10 B of 10 B (100 %)"),
    ],
)
def test_shares(done: int, total: int, text: str) -> None:
    assert share(done, total) == text
