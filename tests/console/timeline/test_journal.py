"""kafka08.console.timeline.journal."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from kafka08.console.timeline.happenings import GROUP, KINDS, TOPIC, Happening, happening
from kafka08.console.timeline.journal import MOST, SEEN_EVERY_MS, Journal


def event(time_ms: int, kind: str = TOPIC, name: str = "t") -> Happening:
    return happening((time_ms - 1, time_ms), kind, f"{name} at {time_ms}", [name])


def test_the_newest_come_first() -> None:
    journal = Journal()
    journal.add([event(1), event(3, GROUP)])
    journal.add([event(2)])
    journal.add([])
    assert [each.time_ms for each in journal.events()] == [3, 2, 1]


def test_a_restless_group_drives_out_no_other_kind(tmp_path: Path) -> None:
    path = str(tmp_path / "h")
    journal = Journal(path)
    journal.add([event(1)])
    journal.add([event(n, GROUP) for n in range(2, MOST + 12)])
    expected = [*range(MOST + 11, 11, -1), 1]
    assert [each.time_ms for each in journal.events()] == expected
    journal.close()
    again = Journal(path)
    assert [each.time_ms for each in again.events()] == expected
    again.close()
    rows = sqlite3.connect(path).execute("SELECT count(*) FROM events").fetchone()
    assert rows == (MOST + 1,)


def test_all_of_an_event_outlives_the_console(tmp_path: Path) -> None:
    path = str(tmp_path / "h")
    kept = [happening((1, 2), kind, 'a "b"; \u00e9', ["x", "y" * 3000]) for kind in KINDS]
    journal = Journal(path)
    journal.add(kept)
    journal.note_seen("cluster", 77)
    journal.close()
    again = Journal(path)
    assert sorted(again.events()) == sorted(kept)
    assert (again.seen("cluster"), again.seen("groups")) == (77, None)
    again.close()


def test_what_was_seen_last_is_stored_at_most_30_s_late(tmp_path: Path) -> None:
    path = str(tmp_path / "h")
    journal = Journal(path)
    for time_ms in (1000, 1001, 999 + SEEN_EVERY_MS):
        journal.note_seen("cluster", time_ms)
    assert Journal(path).seen("cluster") == 1000
    journal.note_seen("cluster", 1000 + SEEN_EVERY_MS)
    assert Journal(path).seen("cluster") == 1000 + SEEN_EVERY_MS
    journal.note_seen("cluster", 500)  # the clock was set back
    assert Journal(path).seen("cluster") == 500


@pytest.mark.parametrize(
    "row",
    [
        ("x", 1, TOPIC, "t", "[]", 0),
        (1, None, TOPIC, "t", "[]", 0),
        (1, 1, "unknown", "t", "[]", 0),
        (1, 1, None, "t", "[]", 0),
        (1, 1, TOPIC, "t", "{", 0),
        (1, 1, TOPIC, "t", "{}", 0),
        (1, 1, TOPIC, "t", "[1]", 0),
        (1, 1, TOPIC, "t", "[" * 100_000, 0),
        (1, 1, TOPIC, "t", "[]", "x"),
    ],
)
def test_rows_of_others_are_left_out(row: tuple[object, ...], tmp_path: Path) -> None:
    path = str(tmp_path / "h")
    Journal(path).close()
    with sqlite3.connect(path) as database:
        database.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", row)
        database.execute("INSERT INTO seen VALUES ('cluster', 'x')")
    journal = Journal(path)
    assert journal.events() == []
    assert journal.seen("cluster") is None
    journal.add([event(1)])
    journal.close()


def test_a_file_that_is_no_database(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "h"
    path.write_text("something else, which is long enough to be no database " * 30)
    journal = Journal(str(path))
    journal.add([event(1)])
    journal.note_seen("cluster", 1)
    assert len(journal.events()) == 1
    assert "console.history.path" in caplog.text
    journal.close()
