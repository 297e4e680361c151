"""Timestamps and headers in Spark: the format kafka08, and Spark's own connector, on topics that
clients of 0.8 fill too."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession

from integration import builds
from integration.harness import Broker, ZooKeeper
from integration.spark import environments
from integration.spark.jobs import connector
from integration.spark.scene import SPARK_WARNINGS, new_topic
from integration.spark.support import missing, produce, spark_conf
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.spark.datasource import register

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), *SPARK_WARNINGS]

PROPS = {"api.versions.enable": "true", "offsets.topic.num.partitions": 1}
TIME = 1700000000123
HEADERS = [("a", b"1"), ("a", None), ("b", b"")]
TIMEOUT_S = 900


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = SparkSession.builder.config(conf=spark_conf(sql_session_timeZone="UTC")).getOrCreate()
    register(session)
    yield session
    session.stop()


def fill(broker: Broker, topic: str) -> None:
    """Two messages of 0.8, then three of later clients."""
    produce(broker, topic, 0, [(b"old", b"0"), (None, None)])
    settings = {"bootstrap.servers": broker.address, "api.versions.request": "true"}
    with KafkaProducer({**settings, "compression.type": "gzip"}) as producer:
        producer.send(topic, b"2", b"new", timestamp=TIME, headers=HEADERS)
        producer.send(topic, None, b"new", timestamp=TIME + 1)
        producer.send(topic, b"4", None, timestamp=5)


FILLED = [
    (2, b"new", b"2", TIME, 0, HEADERS),
    (3, b"new", None, TIME + 1, 0, []),
    (4, None, b"4", 5, 0, []),
]


def load(spark: SparkSession, broker: Broker, topic: str, **options: str) -> DataFrame:
    given = {"kafka.bootstrap.servers": broker.address, "subscribe": topic, **options}
    return spark.read.format("kafka08").options(**given).load()


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Offset, key, value, ms, type, headers."""
    return [
        (
            row.offset,
            None if row.key is None else bytes(row.key),
            None if row.value is None else bytes(row.value),
            row.ms,
            row.timestampType,
            [(h.key, None if h.value is None else bytes(h.value)) for h in row.headers or []],
        )
        for row in frame.selectExpr("*", "unix_millis(timestamp) AS ms").orderBy("offset").collect()
    ]


def test_the_source_shows_timestamps_and_headers(spark: SparkSession, broker: Broker) -> None:
    topic = new_topic(broker)
    fill(broker, topic)
    found = rows(load(spark, broker, topic, includeHeaders="true"))
    assert found[2:] == FILLED
    assert [(*row[:3], *row[4:]) for row in found[:2]] == [
        (0, b"old", b"0", -1, []),
        (1, None, None, -1, []),
    ]
    assert found[0][3] == found[1][3] > TIME  # when it was planned
    asked = {"kafka.api.versions.request": "true"}
    for options, times in ((asked, [TIME, TIME + 1, 5]), ({}, [found[0][3]] * 3)):
        frame = load(spark, broker, topic, **options)
        assert "headers" not in frame.columns
        shown = frame.selectExpr("unix_millis(timestamp) AS ms", "timestampType AS type", "offset")
        shown = shown.orderBy("offset").collect()[2:]
        assert [row.type for row in shown] == ([0] * 3 if options else [-1] * 3)
        if options:
            assert [row.ms for row in shown] == times


def test_times_choose_what_is_read(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    topic, asked = new_topic(broker), {"kafka.api.versions.request": "true"}
    fill(broker, topic)

    def offsets(**options: str) -> list[int]:
        frame = load(spark, broker, topic, **asked, **options)
        return sorted(row.offset for row in frame.select("offset").collect())

    assert offsets(startingTimestamp=str(TIME)) == [2, 3, 4]
    assert offsets(startingTimestamp="5") == [2, 3, 4]  # the messages of 0.8 have no times
    assert offsets(startingTimestamp=str(TIME + 1), startingOffsets="earliest") == [3, 4]
    assert offsets(endingTimestamp=str(TIME + 1)) == [0, 1, 2]
    times = json.dumps({topic: {"0": TIME + 2}})
    assert offsets(endingOffsetsByTimestamp=times) == [0, 1, 2, 3, 4]
    with pytest.raises(Exception, match="startingOffsetsByTimestamp has a time after the last"):
        offsets(startingOffsetsByTimestamp=times)
    latest = {"startingOffsetsByTimestampStrategy": "latest"}
    assert offsets(startingOffsetsByTimestamp=times, **latest) == []

    given = {"kafka.bootstrap.servers": broker.address, "subscribe": topic}
    reader = spark.readStream.format("kafka08").options(
        **given, **asked, startingTimestamp=str(TIME + 1)
    )
    writer = reader.load().select("offset").writeStream.format("memory").queryName("since")
    writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    writer.start().awaitTermination()
    assert sorted(row.offset for row in spark.table("since").collect()) == [3, 4]


def test_times_need_a_broker_that_knows_them(
    spark: SparkSession, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """When the query is planned, and not the start of a segment."""
    props = {"api.versions.enable": "false"}
    old = Broker("ours", tmp_path, f"{zookeeper.connect}/untimed", props=props).start()
    try:
        topic = new_topic(old)
        options = {"fetchOffset.numRetries": "1", "startingTimestamp": str(TIME)}
        with pytest.raises(Exception, match=r"which needs kafka\.api\.versions\.request true"):
            load(spark, old, topic, **options).collect()
        asked = {"kafka.api.versions.request": "true"}
        with pytest.raises(Exception, match="closed the connection when asked for its versions"):
            load(spark, old, topic, **asked, **options).collect()
    finally:
        old.kill()


def test_a_stream_copies_headers(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    source, target = new_topic(broker), new_topic(broker)
    fill(broker, source)
    given = {"kafka.bootstrap.servers": broker.address}
    reader = spark.readStream.format("kafka08").options(
        **given, subscribe=source, startingOffsets="earliest", includeHeaders="true"
    )
    writer = reader.load().select("key", "value", "headers").writeStream.format("kafka08")
    writer = writer.options(**given, topic=target, checkpointLocation=str(tmp_path))
    writer.trigger(availableNow=True).start().awaitTermination()
    found = rows(load(spark, broker, target, includeHeaders="true"))
    # Keys choose partitions; there is one.
    assert [row[5] for row in found] == [[], [], HEADERS, [], []]
    assert [row[1:3] for row in found[2:]] == [row[1:3] for row in FILLED]
    assert {row[4] for row in found} == {0}


@pytest.fixture(scope="module")
def own_connector() -> list[str]:
    """The interpreter that has Spark's own connector, and its jars."""
    try:
        python, jars = environments.other_connector()
    except builds.MissingError as error:
        pytest.skip(str(error))
    return [str(python), jars]


@pytest.mark.scenario("modern-51")
def test_sparks_own_connector(
    spark: SparkSession, broker: Broker, own_connector: list[str]
) -> None:
    source, target = new_topic(broker), new_topic(broker)
    fill(broker, source)
    python, jars = own_connector
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYSPARK"))}
    done = subprocess.run(
        [python, str(Path(connector.__file__)), broker.address, source, target, jars],
        env={**environment, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert not done.returncode, done.stderr[-5000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(found)[2:] == [
        [offset, _text(key), _text(value), time, kind, [[k, _text(v)] for k, v in headers]]
        for offset, key, value, time, kind, headers in FILLED
    ]
    assert [row[:3] for row in sorted(found)[:2]] == [
        [0, _text(b"old"), _text(b"0")],
        [1, None, None],
    ]
    written = rows(load(spark, broker, target, includeHeaders="true"))
    assert [row[5] for row in written[:5]] == [[], [], HEADERS, [], []]
    assert [row[1:3] for row in written[:2]] == [(b"old", b"0"), (None, None)]
    assert [row[1:3] for row in written[2:5]] == [row[1:3] for row in FILLED]
    assert {row[4] for row in written} == {0}
    # Two tasks wrote these.
    assert sorted((*row[1:3], row[5]) for row in written[5:]) == [
        (b"batch", b"%d" % number, [("n", b"%d" % number)]) for number in range(3)
    ]


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
