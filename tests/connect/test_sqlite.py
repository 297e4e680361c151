"""SQLite behind the JDBC connectors: rows after a place, and writes as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.connect.database import DatabaseError, TableChange
from kafka08.connect.sqlite import SqliteDatabase


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    made = SqliteDatabase(f"jdbc:sqlite:{tmp_path / 'a.db'}", {}, "c")
    made.execute(["CREATE TABLE t (id INTEGER, name TEXT NOT NULL)"])
    yield made
    made.close()


def stored(database: SqliteDatabase) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in database._connection.execute("SELECT * FROM t ORDER BY id")]


def rows(*pairs: tuple[int, str | None]) -> list[dict[str, Any]]:
    return [{"id": number, "name": name} for number, name in pairs]


def test_columns(database: SqliteDatabase) -> None:
    assert database.columns("t") == ["id", "name"]
    assert database.columns("unknown") == []


def test_rows_replace_those_of_the_same_key(database: SqliteDatabase) -> None:
    database.replace(TableChange("t", ["id", "name"], ["id"], rows((1, "a"), (2, "b"), (3, "c"))))
    database.replace(TableChange("t", ["id", "name"], ["id"], rows((2, "B")), gone=rows((3, None))))
    assert stored(database) == [(1, "a"), (2, "B")]


def test_without_keys_rows_are_added(database: SqliteDatabase) -> None:
    for _ in range(2):
        database.replace(TableChange("t", ["id", "name"], [], rows((1, "a"))))
    assert stored(database) == [(1, "a")] * 2


def test_a_write_is_whole_or_not_at_all(database: SqliteDatabase) -> None:
    database.replace(TableChange("t", ["id", "name"], ["id"], rows((1, "a"))))
    with pytest.raises(DatabaseError, match="NOT NULL"):
        database.replace(TableChange("t", ["id", "name"], ["id"], rows((1, "b"), (2, None))))
    assert stored(database) == [(1, "a")]
    with pytest.raises(DatabaseError):
        database.execute(["DELETE FROM t", "no sql"])
    assert stored(database) == [(1, "a")]


def test_numbers_beyond_64_bits(database: SqliteDatabase) -> None:
    with pytest.raises(DatabaseError, match="too large"):
        database.replace(TableChange("t", ["id", "name"], ["id"], rows((1 << 63, "a"))))
    assert stored(database) == []


def test_a_path_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError):
        SqliteDatabase(f"sqlite:{tmp_path / 'missing' / 'a.db'}", {}, "c")
