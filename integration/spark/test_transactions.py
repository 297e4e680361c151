"""Spark on a topic with transactions, on this broker and on Kafka 3.9.1: the format kafka08, the
old API, bulk loads, and Spark's own connector."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("confluent_kafka")

from pyspark.sql import SparkSession

from integration import builds, modern, transactional
from integration.harness import Broker, ZooKeeper
from integration.modern import ModernBroker
from integration.spark import environments
from integration.spark.jobs import isolation
from integration.spark.scene import SPARK_WARNINGS
from integration.spark.support import missing, spark_conf
from integration.transactional import ALL, COMMITTED, END, LATER, STABLE
from kafka08.spark import bulk
from kafka08.spark.datasource import register
from kafka08.spark.dstream import KafkaUtils, OffsetRange

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing()), *SPARK_WARNINGS]

AnyBroker = Broker | ModernBroker
TIMEOUT_S = 900


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = SparkSession.builder.config(conf=spark_conf()).getOrCreate()
    register(session)
    yield session
    session.stop()


@pytest.fixture(scope="module", params=["ours", "modern"])
def broker(
    request: pytest.FixtureRequest, zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AnyBroker]:
    directory = tmp_path_factory.mktemp("isolation")
    made: AnyBroker
    if request.param == "ours":
        props = {"api.versions.enable": "true", "offsets.topic.num.partitions": 1}
        made = Broker("ours", directory, f"{zookeeper.connect}/isolation", props=props)
    else:
        if reason := modern.missing():
            pytest.skip(reason)
        made = ModernBroker(directory, f"{zookeeper.connect}/isolation39")
    yield made.start()
    made.kill()


@pytest.fixture
def address(broker: AnyBroker) -> str:
    return broker.address


@pytest.fixture
def versions(broker: AnyBroker) -> dict[str, str]:
    """Options for readers of all messages. To readers of format 0 Kafka 3.9.1 sends the message
    behind a marker twice if a fetch begins at the marker, and no end of the log behind one."""
    return {} if isinstance(broker, Broker) else {"kafka.api.versions.request": "true"}


@pytest.fixture
def topic(broker: AnyBroker) -> str:
    name = f"t-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name)
    return name


def as_rows(messages: dict[int, bytes]) -> list[list[Any]]:
    return [[offset, value.decode()] for offset, value in sorted(messages.items())]


@pytest.mark.scenario("transactions-45")
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_the_source(
    spark: SparkSession, address: str, topic: str, versions: dict[str, str], codec: str
) -> None:
    open_one = transactional.fill(address, topic, **{"compression.type": codec})
    found = isolation.read(spark, "kafka08", address, topic, versions)
    for way in ("batch", "stream"):
        assert found[f"{way} read_committed"] == as_rows(COMMITTED)
        assert found[f"{way} read_uncommitted"] == as_rows(ALL)
    transactional.commit(open_one, address, topic)
    found = isolation.read(spark, "kafka08", address, topic, versions)
    for way in ("batch", "stream"):
        assert found[f"{way} read_committed"] == as_rows({**COMMITTED, **LATER})


def test_a_stream_waits_at_the_open_transaction(
    spark: SparkSession, address: str, topic: str, versions: dict[str, str], tmp_path: Path
) -> None:
    """Batches that begin and end anywhere, and a checkpoint of a query that read all."""
    open_one = transactional.fill(address, topic)
    options = {"kafka.bootstrap.servers": address, "subscribe": topic}
    options |= {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "2", **versions}

    def run(level: str, checkpoint: str) -> list[list[Any]]:
        """The rows that the query reads until nothing is left."""
        batches: list[list[Any]] = []
        reader = spark.readStream.format("kafka08").options(**options)
        stream = reader.option("kafka.isolation.level", level).load()
        writer = stream.writeStream.foreachBatch(
            lambda frame, _number: batches.append(isolation.rows(frame))
        )
        writer = writer.option("checkpointLocation", str(tmp_path / checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()
        return [row for batch in batches for row in batch]

    assert run("read_committed", "a") == as_rows(COMMITTED)
    assert run("read_committed", "a") == []
    assert run("read_uncommitted", "b") == as_rows(ALL)
    assert run("read_committed", "b") == []
    transactional.commit(open_one, address, topic)
    assert run("read_committed", "a") == as_rows(LATER)
    assert run("read_committed", "b") == []


def test_a_range_in_an_open_transaction(spark: SparkSession, address: str, topic: str) -> None:
    open_one = transactional.fill(address, topic)
    options = {
        "kafka.bootstrap.servers": address,
        "subscribe": topic,
        "kafka.isolation.level": "read_committed",
        "endingOffsets": json.dumps({topic: {"0": END}}),
        "failOnDataLoss": "false",
        "fetchOffset.numRetries": "1",
    }
    frame = spark.read.format("kafka08").options(**options).load()
    with pytest.raises(Exception, match=f"a transaction that began at {STABLE} is open"):
        frame.collect()
    transactional.commit(open_one, address, topic)
    assert isolation.rows(frame) == as_rows({**COMMITTED, **LATER})


@pytest.mark.parametrize("level", isolation.LEVELS)
def test_ranges_as_an_rdd(spark: SparkSession, address: str, topic: str, level: str) -> None:
    _open = transactional.fill(address, topic)
    params = {"metadata.broker.list": address, "isolation.level": level}
    ranges = [OffsetRange(topic, 0, start, start + 1) for start in range(STABLE)]
    rdd = KafkaUtils.createRDD(spark.sparkContext, params, ranges)
    expected = COMMITTED if level == "read_committed" else ALL
    found = [value for _, value in rdd.collect()]
    assert found == [value for offset, value in as_rows(expected) if offset < STABLE]


@pytest.mark.parametrize("level", isolation.LEVELS)
def test_bulk_loads(
    spark: SparkSession,
    address: str,
    topic: str,
    versions: dict[str, str],
    level: str,
    tmp_path: Path,
) -> None:
    open_one = transactional.fill(address, topic)
    root = f"file://{tmp_path}"

    def unload() -> int:
        run = bulk.unload(spark, address, [topic], root, isolation_level=level)
        return 0 if run is None else sum(run.counts.values())

    is_all = level == "read_uncommitted"
    if is_all and versions:
        pytest.skip("bulk loads of all messages are for brokers of 0.8.2.2 and kafka08")
    assert unload() == len(ALL if is_all else COMMITTED)
    transactional.commit(open_one, address, topic)
    # All that is new for readers of all messages is a marker.
    assert unload() == (0 if is_all else len(LATER))
    assert unload() == 0


@pytest.mark.scenario("transactions-45")
def test_sparks_own_connector(address: str, topic: str) -> None:
    try:
        python, jars = environments.other_connector()
    except builds.MissingError as error:
        pytest.skip(str(error))
    _open = transactional.fill(address, topic)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYSPARK"))}
    done = subprocess.run(
        [str(python), str(Path(isolation.__file__)), address, topic, jars],
        env={**environment, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert not done.returncode, done.stderr[-5000:]
    found = json.loads(done.stdout)
    for way in ("batch", "stream"):
        assert found[f"{way} read_committed"] == as_rows(COMMITTED)
        assert found[f"{way} read_uncommitted"] == as_rows(ALL)
