"""Mirrors and replays between real clusters, killed while they work."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.clients import config_file
from integration.harness import Broker, Process, Tools, ZooKeeper, zookeeper_text
from integration.wire import wait_until
from kafka08.producer.kafka_producer import KafkaProducer

MIRROR = "kafka.tools.MirrorMaker"
PARTITIONS = 3
WAIT_S = 90


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def values(broker: Broker, topic: str, partitions: int = PARTITIONS) -> list[list[tuple]]:
    """(key, value) of each partition in the order of offsets."""
    with broker.wire() as wire:
        return [[(e.key, e.value) for e in wire.read_all(topic, p)] for p in range(partitions)]


@pytest.fixture(scope="module")
def clusters(
    zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Broker, Broker]]:
    """Source and target, with a controller and a chroot of their own each."""
    made = []
    for name in ("source", "target"):
        props = {"num.partitions": PARTITIONS, "offsets.topic.num.partitions": 3}
        chroot = f"{zookeeper.connect}/{unique(name)}"
        made.append(Broker("ours", tmp_path_factory.mktemp(name), chroot, props=props).start())
    yield made[0], made[1]
    for broker in made:
        broker.kill()


class Mirror:
    """kafka-mirror-maker between two brokers, started as often as wanted."""

    def __init__(
        self,
        tools: Tools,
        directory: Path,
        source: Broker,
        target: Broker,
        *args: str,
        producer: dict[str, object] | None = None,
        consumer: dict[str, object] | None = None,
    ) -> None:
        self.group = unique("mirror")
        reading = {
            "group.id": self.group,
            "zookeeper.connect": source.zookeeper,
            "auto.offset.reset": "smallest",
            "auto.commit.interval.ms": 200,
            "zookeeper.session.timeout.ms": 1500,
            "rebalance.backoff.ms": 500,
            "rebalance.max.retries": 10,
        }
        writing = producer or {"metadata.broker.list": target.address}
        self._args = ["--consumer.config"]
        self._args += [str(config_file(directory, "consumer.properties", consumer or reading))]
        self._args += ["--producer.config"]
        self._args += [str(config_file(directory, "producer.properties", writing)), *args]
        self._tools = tools

    def start(self) -> Process:
        return self._tools.background(MIRROR, *self._args)


def load(broker: Broker, topic: str, count: int, keys: int = 50, start: int = 0) -> None:
    """``count`` records; the value of a key's records rises."""
    with KafkaProducer(bootstrap_servers=broker.address, acks="all", retries=10) as producer:
        futures = [
            producer.send(topic, b"%08d" % n, b"key-%d" % (n % keys))
            for n in range(start, start + count)
        ]
        for future in futures:
            future.result(WAIT_S)


def check_all(broker: Broker, topic: str, count: int) -> int:
    """Every number is there, and within a key each comes first after the ones before it.

    The number of repeated records.
    """
    found = values(broker, topic)
    by_key: dict[bytes, list[bytes]] = defaultdict(list)
    partition_of: dict[bytes, int] = {}
    for number, partition in enumerate(found):
        for key, value in partition:
            by_key[key].append(value)
            assert partition_of.setdefault(key, number) == number
    everything = {value for of_key in by_key.values() for value in of_key}
    assert everything == {b"%08d" % n for n in range(count)}
    for key, of_key in by_key.items():
        first_seen = list(dict.fromkeys(of_key))
        assert first_seen == sorted(first_seen), key
        assert of_key[-1] == first_seen[-1], f"{key!r} ends with an old value"
    return sum(map(len, found)) - count


def total(broker: Broker, topic: str) -> int:
    with broker.wire() as wire:
        return sum(wire.offset(topic, p) for p in range(PARTITIONS))


@pytest.mark.parametrize("args", [[], ["--new.producer", "--num.producers", "2"]])
def test_kill_9_loses_nothing(
    clusters: tuple[Broker, Broker],
    tmp_path: Path,
    launch: Callable[[Process], None],
    args: list[str],
) -> None:
    source, target = clusters
    topic, count = unique("killed"), 60_000
    for broker in clusters:
        broker.create_topic(topic, PARTITIONS)
    writing: dict[str, object] = {"metadata.broker.list": target.address}
    if args:
        writing = {"bootstrap.servers": target.address, "batch.size": 2000}
    filters = ["--whitelist", topic, "--num.streams", "2", *args]
    mirror = Mirror(Tools("ours", tmp_path), tmp_path, source, target, *filters, producer=writing)
    for round_number in range(4):
        process = mirror.start()
        launch(process)
        load(source, topic, count // 4, start=round_number * (count // 4))
        wait_until(
            "some of it",
            WAIT_S,
            lambda: total(target, topic) > total(source, topic) - count // 4 + 2000,
        )
        if round_number < 3:
            process.kill()
    wait_until("all of it", WAIT_S, lambda: check_or_wait(target, topic, count))
    code = process.stop()
    assert code == 143, process.log
    check_all(target, topic, count)
    assert sum(committed(source, mirror.group, topic)) == count


def check_or_wait(broker: Broker, topic: str, count: int) -> bool:
    try:
        check_all(broker, topic, count)
    except AssertionError:
        return False
    return True


def committed(broker: Broker, group: str, topic: str) -> list[int]:
    path = f"/consumers/{group}/offsets/{topic}"
    return [int(zookeeper_text(broker.zookeeper, f"{path}/{p}") or 0) for p in range(PARTITIONS)]
