"""The database interface of the JDBC connectors, and what implements it for a URL.

Values have the types of JSON, or are bytes; times and decimals are strings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from kafka08.connect.interface import ConnectError, Value
from kafka08.connect.plugins import load
from kafka08.errors import ConfigError

Row = Mapping[str, Value]
# The timestamp and the incrementing column of a row; None before the first.
Position: TypeAlias = tuple[Value, Value]
# The beginning of a URL -> module.Class; the first one that fits. Everything else is up to Spark.
DATABASES = {
    "jdbc:sqlite:": "kafka08.connect.sqlite.SqliteDatabase",
    "sqlite:": "kafka08.connect.sqlite.SqliteDatabase",
    "": "kafka08.connect.spark_database.SparkDatabase",
}


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
    after: Position = (None, None)
    delay_ms: int = 0


class TableChange(NamedTuple):
    """``rows`` replace those with equal keys (without ``keys`` they are inserted), and rows with
    the keys of ``gone`` are deleted."""

    table: str
    columns: Sequence[str]
    keys: Sequence[str]
    rows: Sequence[Row]
    gone: Sequence[Row] = ()


class Database(Protocol):
    """One connection, for one task. All methods may raise DatabaseError."""

    def columns(self, table: str) -> list[str]:
        """The names of a table's columns; empty if the table does not exist."""

    def execute(self, statements: Iterable[str]) -> None:
        """In one transaction."""

    def rows(self, query: Query) -> Iterator[Row]:
        """The rows of a query, in the order of its columns."""

    def replace(self, change: TableChange) -> None:
        """In one transaction."""

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


def database_class(url: str) -> Callable[[str, Mapping[str, str], str], Database]:
    """The class that connects a task to ``connection.url``: (URL, properties, the task's name).

    Its module is imported by the connector, before threads start: PySpark's modules import each
    other, and two threads that import them at the same time would block each other.

    Raises ConfigError without PySpark.
    """
    path = next(path for prefix, path in DATABASES.items() if url.startswith(prefix))
    try:
        found: Callable[[str, Mapping[str, str], str], Database] = load(path)
    except ImportError as error:
        raise ConfigError(f"connection.url: a JDBC database needs PySpark ({error})") from None
    return found
