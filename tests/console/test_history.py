"""kafka08.console.history."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.console.history import POINTS, STEP_MS, History, Point


def test_points_are_kept_at_one_in_30_s() -> None:
    history = History()
    for time_ms in range(STEP_MS, STEP_MS * 3 + 1, STEP_MS // 3):
        history.note(time_ms, {"a": time_ms / 1000})
    assert history.points("a") == [Point(30000, 30), Point(60000, 60), Point(90000, 90)]
    assert history.points("b") == []


def test_a_day_is_kept() -> None:
    history = History()
    for number in range(1, POINTS + 10):
        history.note(number * STEP_MS, {"a": number, **({"old": 1} if number < 3 else {})})
    assert len(history.points("a")) == POINTS
    assert history.points("old") == []


@pytest.mark.scenario("ops-52")
def test_a_file_keeps_points_over_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "history.db")
    history = History(path, STEP_MS)
    history.note(STEP_MS, {"a": 1})
    history.note(STEP_MS * 2, {"a": 2})
    history.close()
    again = History(path, STEP_MS * 3)
    assert again.points("a") == [Point(STEP_MS, 1), Point(STEP_MS * 2, 2)]
    again.note(STEP_MS * (POINTS + 2), {"a": 3})
    again.close()
    last = History(path, STEP_MS * (POINTS + 2))
    assert [point.value for point in last.points("a")] == [2, 3]
    last.close()


def test_a_file_that_is_no_database_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "history.db"
    path.write_text("something else, which is long enough to be no database " * 30)
    history = History(str(path), 0)
    history.note(STEP_MS, {"a": 1})
    assert history.points("a") == [Point(STEP_MS, 1)]
    assert "console.history.path" in caplog.text
    assert path.read_text().startswith("something else")
