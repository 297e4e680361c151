"""Queries whose driver is killed, whose brokers die, whose workers lack what they need."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.harness import HOME, Broker, Process
from integration.spark.scene import DEADLINE_S, SPARK_WARNINGS, Servers, lines_of, new_topic, send
from integration.spark.support import driver, missing, spark_conf
from integration.wire import wait_until

if missing():
    pytest.skip(missing(), allow_module_level=True)
pytest.importorskip("pyarrow")

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafka08.spark.datasource import register

pytestmark = [pytest.mark.slow, *SPARK_WARNINGS]
JOBS = Path(__file__).parent / "jobs"
PROPS = {"auto.create.topics.enable": "false"}
# An interpreter that has the standard library alone.
BARE = Path(sys.base_prefix) / "bin" / "python3"


@pytest.mark.scenario("spark-23")
def test_a_driver_killed_in_batch_1(
    either: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """Batches of at most 200 of the job: 200 and 100, and more is there when it restarts."""
    topic = new_topic(either, 2)
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    out.mkdir()

    def begun() -> list[dict[str, Any]]:
        return [json.loads(line) for line in lines_of(out / "begun")]

    def start(name: str) -> Process:
        arguments = (checkpoint, out, either.address, topic)
        process = driver(name, tmp_path / name, JOBS / "running_sum.py", *arguments)
        launch(process)
        return process

    for partition in range(2):
        send(either, topic, partition, range(150))
    (out / "hold-1").touch()
    first = start("first")
    wait_until("batch 1", DEADLINE_S, lambda: len(begun()) == 2 or not first.alive)
    first.kill()
    offsets = {name: (checkpoint / "offsets" / name).read_text() for name in ("0", "1")}
    assert not (checkpoint / "commits" / "1").exists()
    assert [each["count"] for each in begun()] == [200, 300]
    (out / "hold-1").unlink()
    for partition in range(2):
        send(either, topic, partition, range(150, 200))
    second = start("second")
    wait_until("all", DEADLINE_S, lambda: len(begun()) == 4 or not second.alive)
    (out / "stop").touch()
    assert second.exit_code(DEADLINE_S) == 0, second.log[-3000:]
    assert begun()[2] == begun()[1], "batch 1 again, with the same messages"
    assert [each["batch"] for each in begun()] == [0, 1, 1, 2]
    assert begun()[3] == {"batch": 2, "count": 400, "sum": 2 * sum(range(200))}
    for name, text in offsets.items():
        assert (checkpoint / "offsets" / name).read_text() == text


# --- brokers that die and stay away


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = SparkSession.builder.config(conf=spark_conf()).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    register(session)
    yield session
    session.stop()


def options(broker: Broker, topic: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": broker.address,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "fetchOffset.numRetries": "2",
        "fetchOffset.retryIntervalMs": "200",
    }


def named(broker: Broker) -> str:
    return rf"kafka\.bootstrap\.servers has value {broker.address}"


@pytest.mark.scenario("spark-input-5")
def test_brokers_that_die_under_a_stream_and_stay_away(
    spark: SparkSession, servers: Servers, tmp_path: Path
) -> None:
    (broker,) = servers.cluster("ours", 1)
    topic = new_topic(broker)
    send(broker, topic, 0, range(10))
    seen: list[int] = []
    frame = spark.readStream.format("kafka08").options(**options(broker, topic)).load()
    writer = frame.writeStream.foreachBatch(lambda df, n: seen.append(df.count()))
    query = writer.option("checkpointLocation", str(tmp_path / "c")).start()
    try:
        wait_until("a batch", DEADLINE_S, lambda: seen or not query.isActive)
        broker.kill()
        with pytest.raises(PySparkException, match=named(broker)):
            query.awaitTermination(DEADLINE_S)
        assert not query.isActive
    finally:
        query.stop()
    assert seen == [10]


@pytest.mark.scenario("spark-input-5")
def test_brokers_that_die_before_a_batch_and_stay_away(
    spark: SparkSession, servers: Servers
) -> None:
    """Known when it is planned, and known when it is read."""
    (broker,) = servers.cluster("ours", 1)
    topic = new_topic(broker)
    send(broker, topic, 0, range(10))
    frame = spark.read.format("kafka08").options(**options(broker, topic)).load()
    assert frame.count() == 10
    broker.kill()
    for each in (frame, spark.read.format("kafka08").options(**options(broker, topic)).load()):
        begin = time.monotonic()
        with pytest.raises(PySparkException, match=named(broker)):
            each.count()
        assert time.monotonic() - begin < DEADLINE_S


@pytest.mark.scenario("spark-input-5")
def test_brokers_that_die_under_a_sink_and_stay_away(
    spark: SparkSession, servers: Servers, tmp_path: Path
) -> None:
    (broker,) = servers.cluster("ours", 1)
    topic = new_topic(broker)
    target = {
        "kafka.bootstrap.servers": broker.address,
        "topic": topic,
        "kafka.metadata.fetch.timeout.ms": "1000",
    }
    source = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
    rows = source.selectExpr("cast(value as string) value")
    writer = rows.writeStream.format("kafka08").options(**target)
    query = writer.option("checkpointLocation", str(tmp_path / "c")).start()
    try:
        with broker.wire() as wire:
            wait_until("rows", DEADLINE_S, lambda: wire.offset(topic, 0) > 0 or not query.isActive)
        broker.kill()
        with pytest.raises(PySparkException, match=named(broker)):
            query.awaitTermination(DEADLINE_S)
    finally:
        query.stop()


# --- workers without pyarrow


def without_pyarrow() -> bool:
    if not BARE.exists():
        return False
    done = subprocess.run([BARE, "-I", "-c", "import pyarrow"], capture_output=True, check=False)
    return done.returncode != 0


@pytest.mark.scenario("spark-input-8")
def test_workers_without_pyarrow_are_refused(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    if not without_pyarrow():
        pytest.skip("no interpreter without pyarrow")
    topic = new_topic(broker)
    send(broker, topic, 0, range(10))
    command = ["env", f"PYSPARK_PYTHON={BARE}", f"PYTHONPATH={HOME}", "SPARK_LOCAL_IP=127.0.0.1"]
    program = str(JOBS / "without_pyarrow.py")
    job = Process("job", [*command, sys.executable, program, broker.address, topic], tmp_path)
    launch(job)
    job.spawn()
    assert job.exit_code(DEADLINE_S) == 0, job.log[-3000:]
    assert f"REFUSED PYSPARK_PYTHON (spark.pyspark.python) has value {BARE}, " in job.log
    assert "No module named 'pyarrow'" in job.log
    assert "ROWS 10" in job.log
