"""JDBC connectors on a database with a JDBC driver: Derby, which is among Spark's jars."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.harness import Broker, Process, ZooKeeper, free_port
from integration.spark.scene import SPARK_WARNINGS
from integration.spark.support import JVM_OPTIONS, missing
from integration.test_connect import Workplace, topic_of
from integration.wire import wait_until

if missing():
    pytest.skip(missing(), allow_module_level=True)

from pyspark.sql import SparkSession

from kafka08.connect.database import DatabaseError, Query, TableChange
from kafka08.connect.interface import ConnectError, Context, RetriableError, SinkRecord
from kafka08.connect.jdbc import JdbcSinkTask, JdbcSourceTask
from kafka08.connect.spark_database import SparkDatabase
from kafka08.connect.spark_session import session
from kafka08.runtime import ThreadRuntime

pytestmark = SPARK_WARNINGS
SPARK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    **JVM_OPTIONS,
}
DEADLINE_S = 120


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    made = session(SPARK)
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


@pytest.fixture
def url(spark: SparkSession) -> str:
    return f"jdbc:derby:memory:{uuid.uuid4().hex};create=true"


@pytest.fixture
def base(url: str) -> Iterator[SparkDatabase]:
    made = SparkDatabase(url, SPARK, "test")
    yield made
    made.close()


def rows(base: SparkDatabase, table: str) -> list[dict[str, Any]]:
    return [dict(row) for row in base.rows(Query(table, incrementing="ID"))]


def test_values_of_all_types(base: SparkDatabase) -> None:
    base.execute(
        [
            "CREATE TABLE t (id INT PRIMARY KEY, big BIGINT, price DECIMAL(12, 3), "
            "name VARCHAR(30), moment TIMESTAMP, day DATE, data VARCHAR(8) FOR BIT DATA, "
            "ratio DOUBLE, ok BOOLEAN)",
            "INSERT INTO t VALUES (1, 9007199254740993, 12.345, 'ä', '2014-07-01 10:00:00.123456',"
            " '2014-07-02', X'00ff', 0.5, true)",
            "INSERT INTO t (id) VALUES (2)",
        ]
    )
    first, second = rows(base, "t")
    assert first == {
        "ID": 1,
        "BIG": 9007199254740993,
        "PRICE": "12.345",
        "NAME": "ä",
        "MOMENT": "2014-07-01T10:00:00.123456",
        "DAY": "2014-07-02",
        "DATA": b"\x00\xff",
        "RATIO": 0.5,
        "OK": True,
    }
    assert {value for name, value in second.items() if name != "ID"} == {None}
    # And back, into the same types.
    base.execute(["CREATE TABLE copied AS SELECT * FROM t WITH NO DATA"])
    columns = base.columns("copied")
    base.replace(TableChange("copied", columns, ["ID"], [first, second]))
    base.replace(TableChange("copied", columns, ["ID"], [first, {**second, "NAME": "new"}]))
    assert rows(base, "copied") == [first, {**second, "NAME": "new"}]
    base.replace(TableChange("copied", ["ID"], ["ID"], [], [{"ID": 1}]))
    assert [row["ID"] for row in rows(base, "copied")] == [2]


def source(url: str, offset: Any = None, **options: str) -> JdbcSourceTask:
    task = JdbcSourceTask()
    task.context = Context("s-0", ThreadRuntime().event(), lambda place: offset)
    named = {key.replace("_", "."): value for key, value in options.items()}
    given = {"connection.url": url, "topic.prefix": "p-", "table.whitelist": "t"}
    task.start({**SPARK, **given, "poll.interval.ms": "0", "connection.backoff.ms": "0", **named})
    return task


def test_a_source_by_time_and_number(base: SparkDatabase, url: str) -> None:
    base.execute(["CREATE TABLE t (id INT PRIMARY KEY, moment TIMESTAMP)"])
    for number in range(1, 6):
        base.execute([f"INSERT INTO t VALUES ({number}, '2014-07-01 10:00:0{number // 2}')"])
    options = {
        "mode": "timestamp+incrementing",
        "timestamp_column_name": "moment",
        "incrementing_column_name": "id",
        "batch_max_rows": "2",
    }
    task = source(url, **options)
    records = [record for _ in range(4) for record in task.poll()]
    assert [record.value["ID"] for record in records] == [1, 2, 3, 4, 5]
    base.execute(["UPDATE t SET moment = '2014-07-01 10:00:07' WHERE id = 2"])
    assert [r.value["ID"] for _ in range(2) for r in task.poll()] == [2]
    task.stop()
    task = source(url, records[1].offset, **options)
    assert [r.value["ID"] for _ in range(3) for r in task.poll()] == [3, 4, 5, 2]
    task.stop()
    task = source(url, mode="incrementing", incrementing_column_name="id")
    assert [r.value["ID"] for r in task.poll()] == [1, 2, 3, 4, 5]
    task.stop()
    task = source(url, mode="incrementing", incrementing_column_name="nr", connection_attempts="1")
    with pytest.raises(ConnectError, match="there is no column nr"):
        task.poll()
    task.stop()


def record(offset: int, value: Any, key: Any = None) -> SinkRecord:
    return SinkRecord("t", 0, offset, key, value)


def sink(url: str, **options: str) -> JdbcSinkTask:
    task = JdbcSinkTask()
    task.context = Context("k-0", ThreadRuntime().event())
    named = {key.replace("_", "."): value for key, value in options.items()}
    task.start({**SPARK, "connection.url": url, "max.retries": "1", **named})
    return task


def test_a_sink_that_follows_a_change_log(base: SparkDatabase, url: str) -> None:
    task = sink(
        url,
        insert_mode="upsert",
        pk_mode="record_key",
        pk_fields="id",
        delete_enabled="true",
        auto_create="true",
    )
    task.put([record(0, {"name": "a", "n": 1}, 1), record(1, {"name": "b", "n": 2}, 2)])
    task.put([record(2, None, 1), record(3, {"name": "c", "n": 3}, 2)])
    task.put([record(2, None, 1), record(3, {"name": "c", "n": 3}, 2)])
    found = [dict(row) for row in base.rows(Query("t"))]
    assert found == [{"name": "c", "n": 3, "id": 2}]
    task.stop()
    again = sink(url, insert_mode="upsert", pk_mode="record_value", pk_fields="id")
    again.put([record(4, {"id": 7, "name": "d", "n": 4})])
    assert len(list(base.rows(Query("t")))) == 2
    with pytest.raises((RetriableError, ConnectError), match=r"connection\.url has value jdbc"):
        again.put([record(5, {"id": 8, "n": "not a number"})])
    again.stop()


def test_a_database_that_is_not_there(spark: SparkSession) -> None:
    with pytest.raises(DatabaseError, match="not found"):
        SparkDatabase("jdbc:derby:memory:nothing", SPARK, "test")
    with pytest.raises(DatabaseError, match="No suitable driver"):
        SparkDatabase("jdbc:nosuch://h", SPARK, "test")
    with pytest.raises(DatabaseError, match=r"no\.such\.Driver"):
        SparkDatabase("jdbc:derby:x", {**SPARK, "connection.driver": "no.such.Driver"}, "test")
    with pytest.raises(
        ConnectError, match=r"connection\.jar has value /x\.jar, but Spark was started"
    ):
        SparkDatabase("jdbc:x", {**SPARK, "connection.jar": "/x.jar"}, "test")
    task = source("jdbc:nosuch:x", mode="bulk", connection_attempts="2")
    assert task.poll() == []
    with pytest.raises(ConnectError, match=r"connection\.url has value jdbc:nosuch:x"):
        task.poll()


def test_a_worker_with_everything(
    spark: SparkSession,
    zookeeper: ZooKeeper,
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    """Table -> topic -> table and Parquet files, with a worker that is killed in between."""
    broker = Broker("ours", tmp_path / "b", f"{zookeeper.connect}/jdbc-{uuid.uuid4().hex[:6]}")
    launch(broker)
    broker.start()
    place = Workplace(tmp_path, broker)
    place.change(**{key.replace(".", "__"): value for key, value in SPARK.items()})
    url = f"jdbc:derby:{tmp_path / 'shop'};create=true"
    topic = topic_of(broker).replace("connect-", "t_")
    with_table(url, f"CREATE TABLE {topic} (id INT PRIMARY KEY, name VARCHAR(20))", range(0))
    broker.create_topic(f"p_{topic}")
    common = {
        "connection__url": url,
        "value__converter": "json",
        "value__converter__schemas__enable": "false",
    }
    place.connector(
        "source",
        "io.confluent.connect.jdbc.JdbcSourceConnector",
        mode="incrementing",
        incrementing__column__name="id",
        table__whitelist=topic,
        topic__prefix="p_",
        poll__interval__ms=100,
        **common,
    )
    place.connector(
        "sink",
        "JdbcSink",
        topics=f"p_{topic}",
        insert__mode="upsert",
        pk__mode="record_value",
        pk__fields="ID",
        auto__create="true",
        **common,
    )
    lake = tmp_path / "lake"
    place.connector("lake", "ParquetSink", topics=f"p_{topic}", path=lake, run__interval__ms=500)
    with_table(url, "", [(topic, number) for number in range(50)])
    worker = place.process()
    launch(worker)
    wait_until("a run", DEADLINE_S, lambda: check(worker) and list(lake.glob("run=*")))
    wait_until("50", DEADLINE_S, lambda: check(worker) and end(broker, f"p_{topic}") >= 50)
    worker.kill()
    wait_until("the end of its JVM", 30, lambda: no_lock(tmp_path / "shop"))
    with_table(url, "", [(topic, number) for number in range(50, 80)])
    worker = place.process()
    launch(worker)
    wait_until("80", DEADLINE_S, lambda: check(worker) and end(broker, f"p_{topic}") >= 80)
    total = end(broker, f"p_{topic}")
    group = "connect-sink"
    with broker.wire() as wire:
        wait_until(
            "all put", DEADLINE_S, lambda: wire.committed(group, f"p_{topic}", 0)[0] == total
        )
    wait_until(
        "all in files",
        DEADLINE_S,
        lambda: check(worker) and spark.read.parquet(str(lake)).count() == total,
    )
    assert worker.stop() == 143
    wait_until("the end of its JVM", 30, lambda: no_lock(tmp_path / "shop"))
    base = SparkDatabase(url, SPARK, "look")
    found = [dict(row) for row in base.rows(Query(f"p_{topic}", incrementing="ID"))]
    base.close()
    assert found == [{"ID": number, "NAME": f"name {number}"} for number in range(80)]


def with_table(url: str, ddl: str, numbers: Any) -> None:
    """One visit to the database, which only one JVM may use at a time."""
    base = SparkDatabase(url, SPARK, "setup")
    statements = [ddl] if ddl else []
    statements += [f"INSERT INTO {table} VALUES ({n}, 'name {n}')" for table, n in numbers]
    base.execute(statements)
    base.close()
    with pytest.raises(DatabaseError, match="shut"):
        SparkDatabase(url.replace("create=true", "shutdown=true"), SPARK, "setup")


def check(worker: Process) -> bool:
    assert worker.alive, worker.log[-3000:]
    return True


def end(broker: Broker, topic: str) -> int:
    with broker.wire() as wire:
        return wire.offset(topic, 0)


def no_lock(database: Path) -> bool:
    """Whether no other JVM has the database open."""
    base = None
    try:
        base = SparkDatabase(f"jdbc:derby:{database}", SPARK, "look")
    except DatabaseError:
        return False
    base.close()
    return True


def test_a_driver_that_needs_spark_fails_by_name(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    broker = Broker("ours", tmp_path / "b", f"{zookeeper.connect}/jdbc-{uuid.uuid4().hex[:6]}")
    launch(broker)
    broker.start()
    place = Workplace(tmp_path, broker)
    place.connector(
        "gone",
        "JdbcSource",
        connection__url=f"jdbc:postgresql://127.0.0.1:{free_port()}/none",
        mode="bulk",
        table__whitelist="t",
        topic__prefix="p",
        connection__attempts=1,
        **{key.replace(".", "__"): value for key, value in SPARK.items()},
    )
    done = place.run()
    assert done.returncode == 1
    assert "connection.url has value jdbc:postgresql://127.0.0.1:" in done.stderr
