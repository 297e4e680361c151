"""Deleted records stay deleted: after kill -9, a new leader, a move, and a visit of 0.8.2.2."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration.harness import Broker, Process, ZooKeeper, isr
from integration.later import programs
from integration.wire import WireError, entry, wait_until

TOPIC = "short"
COUNT, KEPT_FROM = 100, 37
PROPS = {"api.versions.enable": "true", "replica.lag.time.max.ms": 5000}
STARTS = "log-start-offset-checkpoint"


def fill(address: str, codec: str) -> None:
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": address, "compression.type": codec, "linger.ms": 20}
    producer = Producer({**settings, "batch.num.messages": 10})
    for number in range(COUNT):
        producer.produce(TOPIC, b"%d" % number, b"k", 0)
    assert producer.flush(30) == 0


def delete(address: str, offset: int) -> int:
    """The low watermark."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": address})
    (future,) = admin.delete_records(
        [TopicPartition(TOPIC, 0, offset)], request_timeout=30, operation_timeout=20
    ).values()
    return int(future.result(60).low_watermark)


def readable(address: str) -> list[tuple[int, bytes]]:
    """(offset, value) of what a consumer gets from the beginning, which is what it is told."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    low, high = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=30)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])  # deleted: it begins at the earliest
    found: list[tuple[int, bytes]] = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        found.append((message.offset(), message.value()))
    consumer.close()
    assert [offset for offset, _ in found] == list(range(low, high))
    return found


REST = [(number, b"%d" % number) for number in range(KEPT_FROM, COUNT)]


def starts(broker: Broker) -> str:
    path = broker.log_dir / STARTS
    return path.read_text() if path.exists() else ""


@pytest.mark.scenario("modern-50")
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_in_a_cluster(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None], codec: str
) -> None:
    """The leader is killed, comes back, and all replicas move to a broker that was not there."""
    chroot = f"{zookeeper.connect}/deleted-{codec}"
    brokers = [
        Broker("ours", tmp_path / str(number), chroot, broker_id=number, props=PROPS)
        for number in range(3)
    ]
    for broker in brokers:
        launch(broker)
        broker.start()
    first, second, third = brokers
    first.create_topic(TOPIC, replicas=[0, 1])
    wait_until("both replicas", 30, lambda: isr(chroot, TOPIC) == [0, 1])
    fill(first.address, codec)
    assert delete(first.address, KEPT_FROM) == KEPT_FROM
    assert starts(first) == starts(second) == f"0\n1\n{TOPIC} 0 {KEPT_FROM}\n"
    assert readable(first.address) == REST

    first.kill()
    second.wait_for_leader(TOPIC)
    assert readable(second.address) == REST
    with second.wire() as wire:  # a client of 0.8
        assert wire.offset(TOPIC, 0, -2) == KEPT_FROM
        with pytest.raises(WireError):
            wire.fetch(TOPIC, 0, KEPT_FROM - 1)
    first.start()
    wait_until("both replicas again", 30, lambda: isr(chroot, TOPIC) == [0, 1])

    move(zookeeper, chroot, [2])
    third.wait_for_leader(TOPIC)
    assert readable(third.address) == REST
    assert starts(third) == f"0\n1\n{TOPIC} 0 {KEPT_FROM}\n"
    assert delete(third.address, -1) == COUNT
    assert readable(third.address) == []
    for broker in brokers:
        assert " ERROR " not in broker.log


def move(zookeeper: ZooKeeper, chroot: str, replicas: list[int]) -> None:
    client = zookeeper.client(chroot.removeprefix(zookeeper.connect))
    moves = [{"topic": TOPIC, "partition": 0, "replicas": replicas}]
    payload = json.dumps({"version": 1, "partitions": moves}).encode()
    client.create("/admin/reassign_partitions", payload)
    wait_until("the move", 60, lambda: client.exists("/admin/reassign_partitions") is None)
    client.stop()
    client.close()


@pytest.mark.scenario("modern-50")
@pytest.mark.original
def test_an_original_opens_the_directory(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """It does not know the file: what is still on disk can be read there, and not here again."""
    chroot = f"{zookeeper.connect}/deleted-visited"
    props: dict[str, Any] = {**PROPS, "log.compressed.sets": "normalised"}
    ours = Broker("ours", tmp_path / "ours", chroot, props=props)
    original = Broker("original", tmp_path / "original", chroot, log_dir=ours.log_dir)
    for broker in (ours, original):
        launch(broker)
    ours.start()
    ours.create_topic(TOPIC)
    with ours.wire() as wire:
        for number in range(COUNT):
            wire.produce(TOPIC, 0, entry(None, b"%d" % number))
    assert delete(ours.address, KEPT_FROM) == KEPT_FROM
    assert ours.stop() == 143
    told = starts(ours)
    original.start()
    original.wait_for_leader(TOPIC)
    with original.wire() as wire:
        assert [each.offset for each in wire.read_all(TOPIC, 0)] == list(range(COUNT))
        wire.produce(TOPIC, 0, entry(None, b"more"))
    assert original.stop() == 143
    assert starts(ours) == told == f"0\n1\n{TOPIC} 0 {KEPT_FROM}\n"
    ours.start()
    ours.wait_for_leader(TOPIC)
    assert readable(ours.address) == [*REST, (COUNT, b"more")]
    assert STARTS not in original.log
    assert " ERROR " not in ours.log


@pytest.mark.scenario("modern-50")
def test_kafkajs_deletes_records(modern_broker: Broker) -> None:
    if reason := programs.missing("kafkajs"):
        pytest.skip(reason)
    topic = "deleted-by-kafkajs"
    modern_broker.create_topic(topic)
    with modern_broker.wire() as wire:
        for number in range(10):
            wire.produce(topic, 0, entry(None, b"%d" % number))
        lines = programs.run("kafkajs", "delete", modern_broker.address, topic, 4)
        assert lines == ["4 10"]
        assert wire.offset(topic, 0, -2) == 4
        assert [each.offset for each in wire.read_all(topic, 0, 4)] == list(range(4, 10))
        with pytest.raises(WireError):
            wire.fetch(topic, 0, 3)
