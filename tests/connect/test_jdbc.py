"""JDBC source and sink tasks on SQLite, without worker and broker."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kafka08.connect.interface import (
    ConnectError,
    Context,
    DataError,
    RetriableError,
    SinkRecord,
    SourceRecord,
)
from kafka08.connect.jdbc import (
    JdbcSinkConfig,
    JdbcSinkTask,
    JdbcSource,
    JdbcSourceTask,
    SourceConfig,
)
from kafka08.errors import ConfigError
from kafka08.runtime import ThreadRuntime


class Base:
    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:{path}"
        self._connection = sqlite3.connect(path, isolation_level=None)
        self.close = self._connection.close

    def run(self, sql: str) -> list[Any]:
        return self._connection.execute(sql).fetchall()


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    made = Base(tmp_path / "base.db")
    with closing(made):
        yield made


def context(offset: Any = None) -> Context:
    return Context("j-0", ThreadRuntime().event(), lambda source: offset)


def source(base: Base, offset: Any = None, **options: str) -> JdbcSourceTask:
    task = JdbcSourceTask()
    task.context = context(offset)
    named = {key.replace("_", "."): value for key, value in options.items()}
    task.start(
        {
            "connection.url": base.url,
            "topic.prefix": "p-",
            "table.whitelist": "t",
            "poll.interval.ms": "0",
            "connection.backoff.ms": "0",
            **named,
        }
    )
    return task


def polled(task: JdbcSourceTask, times: int = 6) -> list[SourceRecord]:
    return [record for _ in range(times) for record in task.poll()]


def ids(records: list[SourceRecord]) -> list[int]:
    return [record.value["id"] for record in records]


def test_an_incrementing_column(base: Base) -> None:
    base.run("CREATE TABLE t (id INTEGER PRIMARY KEY, data BLOB, n REAL)")
    base.run("INSERT INTO t VALUES (1, x'ff', 0.5), (3, NULL, NULL)")
    task = source(base, mode="incrementing", incrementing_column_name="id")
    first = polled(task)
    assert [record.value for record in first] == [
        {"id": 1, "data": b"\xff", "n": 0.5},
        {"id": 3, "data": None, "n": None},
    ]
    assert {record.topic for record in first} == {"p-t"}
    assert first[-1].offset == {"timestamp": None, "incrementing": 3}
    base.run("INSERT INTO t VALUES (4, NULL, NULL)")
    base.run("UPDATE t SET n = 9 WHERE id = 1")
    assert ids(polled(task)) == [4]
    task.stop()
    again = source(base, first[0].offset, mode="incrementing", incrementing_column_name="id")
    assert ids(polled(again)) == [3, 4]
    again.stop()


def test_a_timestamp_column_remembers_whole_steps_only(base: Base) -> None:
    base.run("CREATE TABLE t (id INTEGER, at TEXT)")
    base.run("INSERT INTO t VALUES (1, '10:00'), (2, '10:01'), (3, '10:01'), (4, NULL)")
    task = source(base, mode="timestamp", timestamp_column_name="at", batch_max_rows="1")
    records = polled(task)
    assert ids(records) == [1, 2, 3]
    assert [record.offset["timestamp"] for record in records] == ["10:00", "10:00", "10:01"]
    base.run("UPDATE t SET at = '10:02' WHERE id = 1")
    assert ids(polled(task)) == [1]
    task.stop()
    # Killed between two rows of one time: both come again.
    again = source(base, records[1].offset, mode="timestamp", timestamp_column_name="at")
    assert ids(polled(again)) == [2, 3, 1]
    again.stop()


def test_timestamp_and_incrementing(base: Base) -> None:
    base.run("CREATE TABLE t (id INTEGER PRIMARY KEY, at TEXT)")
    base.run("INSERT INTO t VALUES (1, '10:01'), (2, '10:00'), (3, '10:00')")
    mode = {
        "mode": "timestamp+incrementing",
        "timestamp_column_name": "at",
        "incrementing_column_name": "ID",
    }
    task = source(base, **mode)
    records = polled(task)
    assert ids(records) == [2, 3, 1]
    task.stop()
    again = source(base, records[0].offset, **mode)
    assert ids(polled(again)) == [3, 1]
    base.run("UPDATE t SET at = '10:01' WHERE id = 2")
    assert ids(polled(again)) == [2]
    again.stop()


def test_bulk_and_queries(base: Base) -> None:
    base.run("CREATE TABLE t (id INTEGER)")
    base.run("INSERT INTO t VALUES (1), (2)")
    task = source(base, mode="bulk")
    assert ids(polled(task, 4)) == [1, 2, 1, 2]
    task.stop()
    task = source(
        base,
        mode="incrementing",
        incrementing_column_name="id",
        query="SELECT id, id * 2 AS twice FROM t",
        table_whitelist="",
    )
    records = polled(task)
    assert [record.value["twice"] for record in records] == [2, 4]
    assert records[0].topic == "p-"
    task.stop()


def test_young_changes_wait(base: Base) -> None:
    base.run("CREATE TABLE t (id INTEGER, at TEXT)")
    base.run("INSERT INTO t VALUES (1, datetime('now', '-1 hour')), (2, datetime('now'))")
    mode = {"mode": "timestamp", "timestamp_column_name": "at"}
    task = source(base, timestamp_delay_interval_ms="60000", **mode)
    assert ids(polled(task)) == [1]
    task.stop()


def test_tables_take_turns_and_are_shared_out(base: Base) -> None:
    for name in "abc":
        base.run(f"CREATE TABLE {name} (id INTEGER)")
        base.run(f"INSERT INTO {name} VALUES (1)")
    options = {"mode": "incrementing", "incrementing_column_name": "id"}
    task = source(base, table_whitelist="a,b", **options)
    assert [record.topic for record in polled(task)] == ["p-a", "p-b"]
    task.stop()
    connector = JdbcSource()
    connector.start(
        {"connection.url": base.url, "topic.prefix": "p", "mode": "bulk"}
        | {"table.whitelist": "a,b,c"}
    )
    shares = [config["table.whitelist"] for config in connector.task_configs(2)]
    assert shares == ["a,c", "b"]
    assert len(connector.task_configs(9)) == 3


def test_a_database_that_is_gone_is_an_error_after_some_tries(base: Base) -> None:
    base.run("CREATE TABLE t (id INTEGER)")
    task = source(base, mode="incrementing", incrementing_column_name="id")
    assert polled(task) == []
    base.run("DROP TABLE t")
    assert task.poll() == []
    base.run("CREATE TABLE t (id INTEGER)")
    base.run("INSERT INTO t VALUES (5)")
    assert ids(polled(task)) == [5]
    base.run("DROP TABLE t")
    with pytest.raises(ConnectError, match=r"connection\.url has value sqlite:.*no such table: t"):
        polled(task)
    task.stop()


def test_a_column_that_is_not_there(base: Base) -> None:
    base.run("CREATE TABLE t (id INTEGER)")
    base.run("INSERT INTO t VALUES (1)")
    task = source(base, mode="bulk", connection_attempts="1")
    task.stop()
    task = source(base, mode="incrementing", incrementing_column_name="nr", connection_attempts="1")
    with pytest.raises(ConnectError, match="nr"):
        polled(task)
    task.stop()


SOURCE = {"connection.url": "sqlite:x", "topic.prefix": "p", "mode": "bulk", "table.whitelist": "t"}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"connection.url": "mysql://x"}, "connection.url has value mysql://x"),
        ({"connection.jar": "/no/such.jar"}, "connection.jar has value /no/such.jar"),
        ({"mode": "cdc"}, "mode has value cdc"),
        ({"mode": "incrementing"}, "needs incrementing.column.name"),
        ({"mode": "timestamp+incrementing", "incrementing.column.name": "a"}, "timestamp.column"),
        ({"query": "SELECT 1"}, "one of table.whitelist and query"),
        ({"table.whitelist": ""}, "one of table.whitelist and query"),
        ({"batch.max.rows": "0"}, "batch.max.rows has value 0"),
    ],
)
def test_bad_options_of_a_source(change: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        SourceConfig.from_properties({**SOURCE, **change})


# --- sink


def sink(base: Base, **options: str) -> JdbcSinkTask:
    task = JdbcSinkTask()
    task.context = context()
    named = {key.replace("_", "."): value for key, value in options.items()}
    task.start({"connection.url": base.url, "max.retries": "1", **named})
    return task


def record(offset: int, value: Any, key: Any = None) -> SinkRecord:
    return SinkRecord("t", 0, offset, key, value)


UPSERT = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "id"}


def test_upserts_may_be_repeated(base: Base) -> None:
    base.run("CREATE TABLE t (ID INTEGER PRIMARY KEY, name TEXT)")
    task = sink(base, **UPSERT)
    batch = [
        record(0, {"id": 1, "name": "a"}),
        record(1, {"id": 2, "name": "b"}),
        record(2, {"id": 1, "name": "c"}),
    ]
    task.put(batch)
    task.put(batch)
    assert base.run("SELECT * FROM t ORDER BY id") == [(1, "c"), (2, "b")]
    task.stop()


def test_inserts_by_place_in_the_topic(base: Base) -> None:
    task = sink(base, insert_mode="upsert", pk_mode="kafka", auto_create="true")
    task.put([record(0, {"x": 1}), record(1, {"x": 1.5, "y": "z"})])
    task.put([record(1, {"x": 1.5, "y": "z"}), record(2, {"x": 3})])
    assert base.run("SELECT x, y, __connect_offset FROM t ORDER BY 3") == [
        (1, None, 0),
        (1.5, "z", 1),
        (3, None, 2),
    ]
    task.stop()


def test_a_change_log_with_deletions(base: Base) -> None:
    base.run("CREATE TABLE t_copy (id INTEGER PRIMARY KEY, name TEXT)")
    task = sink(
        base,
        insert_mode="upsert",
        pk_mode="record_key",
        pk_fields="id",
        delete_enabled="true",
        table_name_format="${topic}_copy",
    )
    task.put([record(0, {"name": "a"}, 1), record(1, {"name": "b"}, 2)])
    task.put([record(2, None, 1), record(3, {"name": "c"}, {"id": 3}), record(4, None, 9)])
    assert base.run("SELECT * FROM t_copy ORDER BY id") == [(2, "b"), (3, "c")]
    task.put([record(5, None, 3), record(6, {"name": "again"}, 3)])
    assert base.run("SELECT * FROM t_copy WHERE id = 3") == [(3, "again")]
    task.stop()


def test_a_batch_is_written_whole_or_not(base: Base) -> None:
    base.run("CREATE TABLE t (x INTEGER CHECK (x < 10))")
    task = sink(base)
    with pytest.raises(RetriableError, match="CHECK"):
        task.put([record(0, {"x": 1}), record(1, {"x": 11})])
    assert base.run("SELECT * FROM t") == []
    with pytest.raises(ConnectError, match=r"connection\.url has value sqlite") as caught:
        task.put([record(0, {"x": 1}), record(1, {"x": 11})])
    assert not caught.value.retriable
    task.stop()


@pytest.mark.parametrize(
    ("options", "value", "text"),
    [
        ({}, {"x": 1}, "there is no table t, and auto.create is false"),
        ({"table_name_format": "there"}, {"x": 1}, "has no column x; it has id"),
        ({}, "text", "offset 7 of t-0 is not an object"),
        ({}, None, "offset 7 of t-0 has no value"),
        (UPSERT, {"x": 1}, "has no id, which pk.fields asks for"),
        ({**UPSERT, "pk_mode": "record_key"}, {"x": 1}, "has key None"),
    ],
)
def test_records_that_fit_nowhere(
    base: Base, options: dict[str, str], value: Any, text: str
) -> None:
    base.run("CREATE TABLE there (id INTEGER)")
    task = sink(base, **options)
    with pytest.raises((DataError, ConnectError), match=text):
        task.put([record(7, value)])
    task.stop()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"insert.mode": "merge"}, "insert.mode has value merge"),
        ({"insert.mode": "upsert"}, "pk.mode has value none"),
        ({"pk.mode": "record_value"}, "needs pk.fields"),
        ({"pk.mode": "kafka", "pk.fields": "a,b"}, "takes three names"),
        ({"delete.enabled": "true"}, "delete.enabled needs record_key"),
    ],
)
def test_bad_options_of_a_sink(options: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        JdbcSinkConfig.from_properties({"connection.url": "sqlite:x", **options})


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (
            "jdbc:postgresql://h/d?user=a&password=secret&x=1",
            "jdbc:postgresql://h/d?user=a&password=***&x=1",
        ),
        ("jdbc:sqlserver://h;password=secret;x=1", "jdbc:sqlserver://h;password=***;x=1"),
        ("jdbc:mysql://a:secret@h/d", "jdbc:mysql://a:***@h/d"),
        ("jdbc:mysql://h:3306/d", "jdbc:mysql://h:3306/d"),
        ("sqlite:/a/b", "sqlite:/a/b"),
    ],
)
def test_errors_show_no_password(url: str, shown: str) -> None:
    assert JdbcSinkConfig.from_properties({"connection.url": url}).shown_url == shown
