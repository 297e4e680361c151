"""The database interface of the JDBC connectors, and SQLite through Python's own driver.

Databases with a JDBC driver are reached through Spark (``spark_database``). Values have the types
of JSON, or are bytes; times and decimals are strings.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from kafka08.connect.interface import ConnectError
from kafka08.errors import ConfigError

Row = Mapping[str, Any]
SQLITE = ("jdbc:sqlite:", "sqlite:")


class DatabaseError(ConnectError):
    """The database rejected a statement or cannot be reached. The call may be repeated."""


class Query(NamedTuple):
    """The rows of ``source`` (a table's name, or a SELECT in parentheses) after a given row.

    An empty column name means that rows are not ordered by it. ``after`` is (timestamp,
    incrementing) of the last row read, None at first. Rows with timestamps younger than
    ``delay_ms`` are left out.
    """

    source: str
    timestamp: str = ""
    incrementing: str = ""
    after: tuple[Any, Any] = (None, None)
    delay_ms: int = 0


class Database(Protocol):
    """One connection, for one task. All methods may raise DatabaseError."""

    def columns(self, table: str) -> list[str]:
        """The names of a table's columns; empty if the table does not exist."""

    def execute(self, statements: Iterable[str]) -> None:
        """In one transaction."""

    def rows(self, query: Query) -> Iterator[Row]:
        """The rows of a query, in the order of its columns."""

    def replace(
        self,
        table: str,
        columns: Sequence[str],
        keys: Sequence[str],
        rows: Sequence[Row],
        gone: Sequence[Row] = (),
    ) -> None:
        """Write in one transaction: rows replace those with equal keys (without ``keys`` they are
        inserted), and rows with the keys of ``gone`` are deleted."""

    def close(self) -> None: ...


def quoted(name: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


_PLAIN = re.compile(r"\w+(\.\w+)*")


def table_name(table: str) -> str:
    """A table's name in SQL. Plain names are not quoted, so the database decides on their case."""
    return table if _PLAIN.fullmatch(table) or '"' in table else quoted(table)


_TYPES: dict[type, str] = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", bytes: "BLOB"}


def create_table(table: str, row: Row, keys: Sequence[str]) -> str:
    """DDL for a table with the columns that these rows need."""
    columns = [
        f"{quoted(name)} {_TYPES.get(type(value), 'VARCHAR(4000)')}"
        + (" NOT NULL" if name in keys else "")
        for name, value in row.items()
    ]
    if keys:
        columns.append(f"PRIMARY KEY ({', '.join(map(quoted, keys))})")
    return f"CREATE TABLE {table_name(table)} ({', '.join(columns)})"


class SqliteDatabase:
    def __init__(self, path: str) -> None:
        """Raises DatabaseError."""
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
    def _transaction(self) -> Iterator[Callable[..., Any]]:
        with _errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection.executemany
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.rollback()
                raise

    def execute(self, statements: Iterable[str]) -> None:
        with self._transaction():
            for statement in statements:
                self._connection.execute(statement)

    def rows(self, query: Query) -> Iterator[Row]:
        sql, values = select(query)
        with _errors():
            for row in self._connection.execute(sql, values):
                yield dict(row)

    def replace(
        self,
        table: str,
        columns: Sequence[str],
        keys: Sequence[str],
        rows: Sequence[Row],
        gone: Sequence[Row] = (),
    ) -> None:
        where = " AND ".join(f"{quoted(key)} = ?" for key in keys)
        names, marks = ", ".join(map(quoted, columns)), ", ".join("?" for _ in columns)
        with self._transaction() as many:
            if keys:
                old = [tuple(row[key] for key in keys) for row in (*rows, *gone)]
                many(f"DELETE FROM {table_name(table)} WHERE {where}", old)
            new = [tuple(row.get(column) for column in columns) for row in rows]
            many(f"INSERT INTO {table_name(table)} ({names}) VALUES ({marks})", new)

    def close(self) -> None:
        self._connection.close()


def select(query: Query) -> tuple[str, list[Any]]:
    """SQL with ``?`` for values, in SQLite's dialect."""
    source = query.source if query.source.startswith("(") else table_name(query.source)
    timestamp, incrementing = quoted(query.timestamp), quoted(query.incrementing)
    moment, number = query.after
    conditions: list[str] = []
    values: list[Any] = []
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


def prepare(url: str) -> None:
    """Import the modules that ``connect`` needs, before threads start: PySpark's modules import
    each other, and two threads that import them at the same time would block each other.

    Raises ConfigError without PySpark.
    """
    if url.startswith(SQLITE):
        return
    try:
        import kafka08.connect.spark_database  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"connection.url: a JDBC database needs PySpark ({error})") from None


def connect(url: str, properties: Mapping[str, str], name: str) -> Database:
    """Connect the task ``name`` to ``connection.url``: SQLite directly, ``jdbc:`` through Spark.

    Raises DatabaseError.
    """
    for prefix in SQLITE:
        if url.startswith(prefix):
            return SqliteDatabase(url.removeprefix(prefix))
    from kafka08.connect.spark_database import SparkDatabase

    return SparkDatabase(url, properties, name)
