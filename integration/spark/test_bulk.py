"""Bulk loads on Spark: runs that follow each other, killed at any moment, and back into topics."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.harness import HOME, Broker, Process, ZooKeeper
from integration.spark.scene import SPARK_WARNINGS
from integration.spark.support import missing, produce, spark_conf
from integration.wire import wait_until

if missing():
    pytest.skip(missing(), allow_module_level=True)

from pyspark.sql import SparkSession

from kafka08.errors import ConfigError, KafkaError
from kafka08.spark import bulk
from kafka08.spark.errors import DataLossError
from kafka08.spark.files.run_history import HISTORY, RunConflictError, RunHistory
from kafka08.spark.params import SourceParams, endpoints_in

pytestmark = SPARK_WARNINGS
PROPS = {
    "log.retention.check.interval.ms": 500,
    "log.segment.delete.delay.ms": 100,
    "delete.topic.enable": "true",
}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = SparkSession.builder.config(conf=spark_conf("local[2]")).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def broker(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    chroot = f"{zookeeper.connect}/bulk-{uuid.uuid4().hex[:6]}"
    broker = Broker("ours", tmp_path_factory.mktemp("bulk"), chroot, props=PROPS).start()
    yield broker
    broker.kill()


def new_topic(broker: Broker, partitions: int = 1, **config: object) -> str:
    topic = f"b-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, partitions, {k.replace("_", "."): v for k, v in config.items()})
    return topic


def send(broker: Broker, topic: str, partition: int, *numbers: int) -> None:
    produce(broker, topic, partition, [(b"k%d" % n, b"v%d" % n) for n in range(*numbers)])


def content(spark: SparkSession, root: Path, format: str = "parquet") -> list[Any]:
    """(partition, offset, value) of all that a reader sees."""
    rows = spark.read.format(format).load(str(root)).collect()
    return sorted((row.partition, row.offset, bytes(row.value)) for row in rows)


def expected(partition: int, *numbers: int) -> list[Any]:
    return [(partition, n, b"v%d" % n) for n in range(*numbers)]


def test_each_run_goes_on_where_the_last_one_ended(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = new_topic(broker, 2)
    root = tmp_path / "lake"
    send(broker, topic, 0, 100)
    first = bulk.unload(spark, broker.address, [topic], str(root))
    assert first is not None
    assert first.counts == {f"{topic}-0": 100}
    assert content(spark, root) == expected(0, 100)
    assert bulk.unload(spark, broker.address, [topic], str(root)) is None
    send(broker, topic, 0, 100, 150)
    send(broker, topic, 1, 7)
    second = bulk.unload(spark, broker.address, [topic], str(root))
    assert second is not None
    assert (second.number, [(r.start, r.end) for r in second.ranges]) == (2, [(100, 150), (0, 7)])
    assert content(spark, root) == expected(0, 150) + expected(1, 7)
    frame = spark.read.parquet(str(root))
    assert {"run", "topic", "bucket"} <= set(frame.columns)
    assert sorted(p.name for p in root.iterdir() if p.name.startswith("run=")) == [
        "run=00000001",
        "run=00000002",
    ]
    for name in second.files:
        assert (root / "run=00000002" / name).is_file()
    assert not list((root / "_staging").iterdir())


def test_buckets_by_a_field_of_the_values(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = new_topic(broker)
    moments: list[object] = ["2014-07-01T10:59:59Z", 1404212400000, "2014-07-01 11:00:00", "x"]
    records = [(None, json.dumps({"at": each}).encode()) for each in moments]
    produce(broker, topic, 0, [*records, (None, b"no json"), (None, None)])
    root = tmp_path / "lake"
    run = bulk.unload(spark, broker.address, [topic], str(root), timestamp_field="at")
    assert run is not None
    counts = Counter(str(row.bucket) for row in spark.read.parquet(str(root)).collect())
    now = time.strftime("%Y-%m-%d", time.gmtime(run.time_ms / 1000))
    assert counts.pop("2014-07-01-10") == 1
    assert counts.pop("2014-07-01-11") == 2
    ((rest, count),) = counts.items()
    assert rest.startswith(now)
    assert count == 3


def test_json_is_text_that_comes_back(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    topic, copy, odd = new_topic(broker), new_topic(broker), new_topic(broker)
    records = [(None, '{"ä": 1}'.encode()), (b"k", b""), (b"k", None)]
    produce(broker, topic, 0, records)
    root = tmp_path / "lake"
    assert bulk.unload(spark, broker.address, [topic], str(root), format="json")
    assert bulk.load(spark, broker.address, str(root), topics={topic: copy}) == 3
    with broker.wire() as wire:
        assert [(e.key, e.value) for e in wire.read_all(copy, 0)] == records
    produce(broker, odd, 0, [(None, b"\xff")])
    with pytest.raises(Exception, match="is not UTF-8"):
        bulk.unload(spark, broker.address, [odd], str(tmp_path / "odd"), format="json")
    assert RunHistory(spark.sparkContext, str(tmp_path / "odd")).numbers() == []


def test_back_into_topics_partition_by_partition_and_once(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic, copy = new_topic(broker, 2), new_topic(broker, 2)
    root = str(tmp_path / "lake")
    for start in (0, 500):
        for partition in (0, 1):
            send(broker, topic, partition, start, start + 500)
        assert bulk.unload(spark, broker.address, [topic], root, max_records_per_task=100)
    names = {topic: copy}
    assert bulk.load(spark, broker.address, root, topics=names) == 2000
    assert bulk.load(spark, broker.address, root, topics=names) == 0
    with broker.wire() as wire:
        for partition in (0, 1):
            there = [(e.key, e.value) for e in wire.read_all(topic, partition)]
            assert [(e.key, e.value) for e in wire.read_all(copy, partition)] == there
    assert bulk.load(spark, broker.address, root, topics=names, name="another") == 2000


def test_what_retention_took_is_an_error(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = new_topic(broker, segment_bytes=1000)
    root = str(tmp_path / "lake")
    send(broker, topic, 0, 5)
    assert bulk.unload(spark, broker.address, [topic], root)
    alter = [str(HOME / "bin" / "kafka-topics.sh"), "--zookeeper", broker.zookeeper, "--alter"]
    change = ["--topic", topic, "--config", "retention.ms=1"]
    subprocess.run([*alter, *change], check=True, capture_output=True)
    for _ in range(20):
        send(broker, topic, 0, 10)
    wait_until("retention", 30, lambda: earliest(broker, topic) > 150)
    with pytest.raises(DataLossError, match=rf"of \[{topic},0\], but the log now has"):
        bulk.unload(spark, broker.address, [topic], root)
    ranges, _ = bulk.plan(
        SourceParams(endpoints_in(broker.address)),
        [topic],
        RunHistory(spark.sparkContext, root).last(),
        max_messages=0,
        fail_on_data_loss=False,
    )
    assert ranges[0].start > 150


def earliest(broker: Broker, topic: str) -> int:
    with broker.wire() as wire:
        return wire.offset(topic, 0, -2)


def test_of_two_at_once_one_is_refused(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic(broker)
    root = str(tmp_path / "lake")
    send(broker, topic, 0, 10)
    stage = RunHistory.stage

    def overtaken(self: RunHistory, number: int) -> str:
        monkeypatch.setattr(RunHistory, "stage", stage)
        directory = stage(self, number)
        assert bulk.unload(spark, broker.address, [topic], root)
        return directory

    monkeypatch.setattr(RunHistory, "stage", overtaken)
    with pytest.raises(RunConflictError, match="run 1"):
        bulk.unload(spark, broker.address, [topic], root)
    assert content(spark, Path(root)) == expected(0, 10)


def test_a_run_may_be_bounded(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    topic = new_topic(broker, 2)
    send(broker, topic, 0, 90)
    send(broker, topic, 1, 10)
    root = str(tmp_path / "lake")
    run = bulk.unload(spark, broker.address, [topic], root, max_messages=50)
    assert run is not None
    assert run.counts == {f"{topic}-0": 45, f"{topic}-1": 5}


def test_bad_input(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    root = str(tmp_path / "lake")
    with pytest.raises(ConfigError, match="format has value avro"):
        bulk.unload(spark, broker.address, ["t"], root, format="avro")
    with pytest.raises(ConfigError, match="bucket has value year"):
        bulk.unload(spark, broker.address, ["t"], root, bucket="year")
    with pytest.raises(KafkaError, match=r"not in the correct format of <host>:<port> \[nowhere\]"):
        bulk.unload(spark, "nowhere", ["t"], root)
    with pytest.raises(KafkaError, match="no such topic"):
        bulk.unload(spark, broker.address, ["no such topic"], root)
    (tmp_path / "lake" / "run=00000001").mkdir(parents=True)
    (tmp_path / "lake" / "run=00000001" / HISTORY).write_text("{")
    with pytest.raises(KafkaError, match="cannot be read"):
        bulk.unload(spark, broker.address, ["t"], root)


@pytest.mark.slow
def test_killed_at_any_moment(
    spark: SparkSession, broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """Each message is in one run, although processes were killed while the topic grew."""
    topic = new_topic(broker, 2)
    root = tmp_path / "lake"
    sent = 0
    rng = random.Random(3)
    for attempt in range(4):
        for partition in (0, 1):
            send(broker, topic, partition, sent, sent + 3000)
        sent += 3000
        job = submit(tmp_path / f"job-{attempt}", broker, root, topic)
        launch(job)
        staging = root / "_staging"
        deadline = time.monotonic() + 60
        while job.alive and not (staging.exists() and list(staging.iterdir())):
            assert time.monotonic() < deadline, job.log
            time.sleep(0.02)
        time.sleep(rng.random() * 2)
        job.kill()
    bulk.unload(spark, broker.address, [topic], str(root))
    assert content(spark, root) == expected(0, sent) + expected(1, sent)


def submit(directory: Path, broker: Broker, root: Path, topic: str) -> Process:
    import pyspark

    command = [
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        "--master=local[2]",
        "--conf=spark.ui.enabled=false",
        "--conf=spark.sql.shuffle.partitions=2",
        "--conf=spark.driver.host=127.0.0.1",
        str(HOME / "kafka08" / "spark" / "bulk.py"),
        "unload",
        f"--bootstrap-server={broker.address}",
        f"--root={root}",
        f"--topics={topic}",
    ]
    os.environ["PYTHONPATH"] = str(HOME)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    process = Process("bulk", command, directory)
    process.spawn()
    return process


def test_the_program(broker: Broker, tmp_path: Path) -> None:
    topic = new_topic(broker)
    send(broker, topic, 0, 5)
    job = submit(tmp_path / "job", broker, tmp_path / "lake", topic)
    try:
        assert job.exit_code(90) == 0, job.log
    finally:
        job.kill()
    assert "Run 1: 5 messages, 1 files" in job.log
    program = [sys.executable, str(HOME / "kafka08" / "spark" / "bulk.py"), "unload"]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "--bootstrap-server" in done.stderr
