"""SQLite as a database of the JDBC connectors, through Python's own driver."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from kafka08.connect.database import DatabaseError, Query, Row, TableChange, quoted, table_name
from kafka08.connect.interface import Value


class SqliteDatabase:
    """The file of a URL such as ``sqlite:PATH``."""

    def __init__(self, url: str, properties: Mapping[str, str], name: str) -> None:
        """Raises DatabaseError."""
        path = url.removeprefix("jdbc:").removeprefix("sqlite:")
        with _errors():
            self._connection = sqlite3.connect(path, isolation_level=None)
            self._connection.row_factory = sqlite3.Row

    def columns(self, table: str) -> list[str]:
        with _errors():
            return [
                row["name"]
                for row in self._connection.execute(f"PRAGMA table_info({table_name(table)})")
            ]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _errors(), self._connection:  # which commits at its end, or rolls back
            self._connection.execute("BEGIN IMMEDIATE")
            yield

    def execute(self, statements: Iterable[str]) -> None:
        with self._transaction():
            for statement in statements:
                self._connection.execute(statement)

    def rows(self, query: Query) -> Iterator[Row]:
        sql, values = select(query)
        with _errors():
            for row in self._connection.execute(sql, values):
                yield dict(row)

    def replace(self, change: TableChange) -> None:
        table, columns, keys, rows, gone = change
        where = " AND ".join(f"{quoted(key)} = ?" for key in keys)
        names, marks = ", ".join(map(quoted, columns)), ", ".join("?" for _ in columns)
        many = self._connection.executemany
        with self._transaction():
            if keys:
                old = [tuple(row[key] for key in keys) for row in (*rows, *gone)]
                many(f"DELETE FROM {table_name(table)} WHERE {where}", old)
            new = [tuple(row.get(column) for column in columns) for row in rows]
            many(f"INSERT INTO {table_name(table)} ({names}) VALUES ({marks})", new)

    def close(self) -> None:
        self._connection.close()


def select(query: Query) -> tuple[str, list[Value]]:
    """SQL with ``?`` for values, in SQLite's dialect."""
    source = query.source if query.source.startswith("(") else table_name(query.source)
    timestamp, incrementing = quoted(query.timestamp), quoted(query.incrementing)
    moment, number = query.after
    conditions: list[str] = []
    values: list[Value] = []
    if query.timestamp:
        conditions.append(f"{timestamp} IS NOT NULL")
        if query.delay_ms:
            conditions.append(f"{timestamp} <= strftime('%Y-%m-%d %H:%M:%f', 'now', ?)")
            values.append(f"-{query.delay_ms / 1000} seconds")
        if moment is not None and query.incrementing:
            conditions.append(f"({timestamp} > ? OR ({timestamp} = ? AND {incrementing} > ?))")
            values += [moment, moment, number]
        elif moment is not None:
            conditions.append(f"{timestamp} > ?")
            values.append(moment)
    elif query.incrementing and number is not None:
        conditions.append(f"{incrementing} > ?")
        values.append(number)
    order = [quoted(name) for name in (query.timestamp, query.incrementing) if name]
    sql = f"SELECT * FROM {source}"
    if conditions:
        sql += f" WHERE {' AND '.join(conditions)}"
    if order:
        sql += f" ORDER BY {', '.join(order)}"
    return sql, values


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning, OverflowError) as error:
        raise DatabaseError(str(error)) from error
