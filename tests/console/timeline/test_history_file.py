"""kafka08.console.timeline.history_file."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.console.timeline.history_file import HistoryFile

SCHEMA = ["CREATE TABLE IF NOT EXISTS a (b INTEGER)"]
INSERT = "INSERT INTO a VALUES (?)"


def test_what_is_written_is_there_the_next_time(tmp_path: Path) -> None:
    file = HistoryFile(str(tmp_path / "h"), SCHEMA)
    file.write((INSERT, [(1,), (2,)]), ("DELETE FROM a WHERE b = ?", [(1,)]))
    file.close()
    again = HistoryFile(str(tmp_path / "h"), SCHEMA)
    assert list(again.rows("SELECT b FROM a WHERE b > ?", 0)) == [(2,)]
    again.close()


def test_without_a_path_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = HistoryFile("", SCHEMA)
    file.write((INSERT, [(1,)]))
    assert list(file.rows("SELECT b FROM a")) == []
    file.close()
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_opened(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = HistoryFile(str(tmp_path / "none" / "h"), SCHEMA)
    assert "console.history.path" in caplog.text
    file.write((INSERT, [(1,)]))
    assert list(file.rows("SELECT b FROM a")) == []


def test_a_write_that_fails_is_told_and_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = HistoryFile(str(tmp_path / "h"), SCHEMA)
    file.write((INSERT, [(1,)]), ("INSERT INTO none VALUES (?)", [(1,)]))
    assert "a change was not stored: no such table: none" in caplog.text
    assert list(file.rows("SELECT b FROM a")) == []
    file.write((INSERT, [(1,)]))
    assert list(file.rows("SELECT b FROM a")) == [(1,)]
    assert list(file.rows("SELECT c FROM a")) == []
    assert "cannot be used: no such column: c" in caplog.text
    file.close()
