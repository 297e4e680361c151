"""Queries while brokers restart: a broker that has just started knows no topics."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.harness import Broker
from integration.spark.scene import (
    DEADLINE_S,
    SPARK_WARNINGS,
    Servers,
    addresses,
    new_topic,
    partition_state,
    replicated_topic,
    send,
)
from integration.spark.support import missing, spark_conf
from integration.wire import WireError, entry, wait_until

if missing():
    pytest.skip(missing(), allow_module_level=True)
pytest.importorskip("pyarrow")

from pyspark.sql import DataFrame, SparkSession

from kafka08.spark.datasource import register
from kafka08.spark.structured.source_offsets import from_json, to_json

pytestmark = [pytest.mark.slow, *SPARK_WARNINGS]
PROPS = {
    # Creating it on demand would hide that a broker does not know a topic.
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    # The default. After a kill a broker may know nothing for so long.
    "zookeeper.session.timeout.ms": 6000,
}
# The default's patience, in smaller steps: some questions fall into the tenth of a second in which
# the only broker serves, and is not controller yet.
OFTEN = {"fetchOffset.numRetries": "3000", "fetchOffset.retryIntervalMs": "10"}
# Codes of a broker that does not lead a partition, or does not know it yet.
NOT_YET = (3, 5, 6)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = SparkSession.builder.config(conf=spark_conf()).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    register(session)
    yield session
    session.stop()


class Query:
    """A stream of numbers, and all it gave."""

    def __init__(self, frame: DataFrame, checkpoint: Path) -> None:
        self.values: list[int] = []
        self.checkpoint = checkpoint

        def take(batch: DataFrame, number: int) -> None:
            self.values += [int(bytes(row["value"])) for row in batch.collect()]

        writer = frame.writeStream.foreachBatch(take)
        self.query = writer.option("checkpointLocation", str(checkpoint)).start()

    def wait_for(self, count: int) -> None:
        def enough() -> bool:
            return len(self.values) >= count or not self.query.isActive

        wait_until(f"{count} messages", DEADLINE_S, enough)
        if self.query.exception() is not None:
            raise self.query.exception()

    def offsets(self) -> list[dict[str, Any]]:
        """Of all batches in the checkpoint, without the time of reading."""
        files = sorted((self.checkpoint / "offsets").glob("[0-9]*"), key=lambda p: int(p.name))
        found = [json.loads(path.read_text().splitlines()[-1]) for path in files]
        return [to_json(from_json(each)) for each in found]


@contextlib.contextmanager
def reading(
    spark: SparkSession, brokers: list[Broker], checkpoint: Path, **options: str
) -> Iterator[Query]:
    given = {"kafka.bootstrap.servers": addresses(brokers), "startingOffsets": "earliest"}
    reader = spark.readStream.format("kafka08").options(**given, **options)
    found = Query(reader.load(), checkpoint)
    try:
        yield found
    finally:
        found.query.stop()


@pytest.fixture
def three(servers: Servers) -> Iterator[list[Broker]]:
    brokers = servers.cluster("ours", 3)
    yield brokers
    for broker in brokers:
        broker.kill()


def in_sync(brokers: list[Broker], topic: str) -> None:
    ids = [broker.broker_id for broker in brokers]
    wait_until(
        "replicas in sync",
        DEADLINE_S,
        lambda: sorted(partition_state(brokers[0], topic).get("isr", ())) == ids,
    )


def deliver(brokers: list[Broker], topic: str, values: range) -> None:
    """Produce to the present leader of partition 0, and wait until all replicas have the values."""
    messages = b"".join(entry(None, b"%d" % value) for value in values)

    def delivered() -> bool:
        for broker in brokers:
            with broker.wire() as wire:
                try:
                    if wire.leader(topic, 0) == broker.broker_id:
                        wire.produce(topic, 0, messages, acks=-1)
                        return True
                except WireError as error:
                    if error.code not in NOT_YET:
                        raise
        return False

    wait_until(f"a leader of {topic}", DEADLINE_S, delivered)


def leader_of(brokers: list[Broker], topic: str) -> Broker:
    leader = partition_state(brokers[0], topic)["leader"]
    return next(each for each in brokers if each.broker_id == leader)


def test_a_clean_rolling_restart_under_a_pattern(
    spark: SparkSession, three: list[Broker], tmp_path: Path
) -> None:
    topic = replicated_topic(three[0], [0, 1, 2])
    send(three[0], topic, 0, range(100))
    with reading(spark, three, tmp_path / "c", subscribePattern="t-.*") as query:
        query.wait_for(100)
        for number, broker in enumerate(three, 1):
            broker.stop()
            broker.start()
            in_sync(three, topic)
            deliver(three, topic, range(100 * number, 100 * number + 100))
            query.wait_for(100 * number + 100)
        assert query.values == list(range(400)), "each message once"


@pytest.mark.parametrize("fail_on_data_loss", ["true", "false"])
def test_the_only_broker_is_killed(
    spark: SparkSession,
    servers: Servers,
    kind: str,
    tmp_path: Path,
    fail_on_data_loss: str,
) -> None:
    (broker,) = servers.cluster(kind, 1)
    topic = new_topic(broker, 2)
    for partition in range(2):
        send(broker, topic, partition, range(200 * partition, 200 * partition + 100))
    chosen = {"subscribe": topic, "failOnDataLoss": fail_on_data_loss, **OFTEN}
    with reading(spark, [broker], tmp_path / "c", **chosen) as query:
        query.wait_for(200)
        broker.kill()
        broker.start()
        broker.wait_for_leader(topic, 2)
        for partition in range(2):
            send(broker, topic, partition, range(200 * partition + 100, 200 * partition + 200))
        query.wait_for(400)
        assert sorted(query.values) == list(range(400)), "each message once"
        assert all(set(each[topic]) == {"0", "1"} for each in query.offsets())
    broker.kill()


def test_one_of_three_is_killed_under_a_pattern(
    spark: SparkSession, three: list[Broker], tmp_path: Path
) -> None:
    """Back before its session ends, it is still taken for the leader, and knows no partition."""
    topic = replicated_topic(three[0], [0, 1, 2])
    send(three[0], topic, 0, range(100))
    lenient = {"subscribePattern": "t-.*", "failOnDataLoss": "false"}
    with reading(spark, three, tmp_path / "c", **lenient) as query:
        query.wait_for(100)
        leader = leader_of(three, topic)
        leader.kill()
        leader.start()
        deliver(three, topic, range(100, 200))
        query.wait_for(200)
        assert query.values == list(range(200))
