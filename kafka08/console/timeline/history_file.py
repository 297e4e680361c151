"""The SQLite file of ``console.history.path``, in which graphs and events outlive the console."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Iterator, Sequence

logger = logging.getLogger("kafka.console.History")

Value = str | int | float


class HistoryFile:
    """``path`` "": no file, all writes are void. A file that cannot be used is logged, and is then
    as none. ``schema``: statements that create what is missing."""

    def __init__(self, path: str, schema: Iterable[str]) -> None:
        self._path = path
        self._database: sqlite3.Connection | None = None
        if path:
            try:
                self._database = sqlite3.connect(path)
                for statement in schema:
                    self._database.execute(statement)
            except sqlite3.Error as error:
                self._give_up(error)

    def rows(self, query: str, *values: Value) -> Iterator[Sequence[object]]:
        """None, or none any more, if the file cannot be used."""
        if self._database is not None:
            try:
                yield from self._database.execute(query, values)
            except sqlite3.Error as error:
                self._give_up(error)

    def _give_up(self, error: sqlite3.Error) -> None:
        logger.error("console.history.path: %s cannot be used: %s", self._path, error)
        self.close()

    def write(self, *changes: tuple[str, Sequence[Sequence[Value]]]) -> None:
        """Statements, each with the rows that it is for, in one transaction. A failure is logged:
        what is in memory goes on."""
        if self._database is None:
            return
        try:
            with self._database:
                for statement, rows in changes:
                    self._database.executemany(statement, rows)
        except sqlite3.Error as error:
            logger.error("console.history.path: a change was not stored: %s", error)

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None
