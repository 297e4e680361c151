"""A deleted topic leaves nothing to the next one of that name, here and in Kafka 3.9.1."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from integration import modern
from integration.harness import Broker, Process, Tools, ZooKeeper, properties, zookeeper_text
from integration.later.frames import plain, produce_frame, produced
from integration.modern import ModernBroker
from integration.wire import OFFSET_COMMIT, Wire, entry, frame, string, wait_until

NOTHING = -1001  # librdkafka's number for a partition without a committed offset
UNKNOWN = 3
NO_COORDINATOR = {14, 15, 16}
TIMEOUT_S = 60
KINDS = ("ours", "modern")

Server = Broker | ModernBroker


@pytest.fixture(scope="module")
def servers(
    zookeeper: ZooKeeper, modern_broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Server]]:
    """Ours, and a later release with its metadata in ZooKeeper."""
    found: dict[str, Server] = {"ours": modern_broker}
    if not modern.missing():
        directory = tmp_path_factory.mktemp("later-release")
        found["modern"] = ModernBroker(directory, f"{zookeeper.connect}/later-release").start()
    yield found
    for each in found.values():
        if isinstance(each, ModernBroker):
            each.kill()


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, servers: dict[str, Server]) -> Server:
    if request.param not in servers:
        pytest.skip(modern.missing())
    return servers[request.param]


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def consumer(server: Server, group: str) -> Any:
    from confluent_kafka import Consumer

    return Consumer(
        {
            "bootstrap.servers": server.address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )


def commit(server: Server, group: str, *offsets: tuple[str, int, int]) -> list[int]:
    """OffsetCommit 2 by nobody in particular; the wire codes."""
    body = string(group) + struct.pack(">i", -1) + string("") + struct.pack(">q", -1)
    body += struct.pack(">i", len(offsets))
    for topic, partition, offset in offsets:
        body += string(topic) + struct.pack(">iiq", 1, partition, offset) + string("")
    codes: list[int] = []

    def answered() -> bool:
        with Wire(server.port) as wire:
            if wire.coordinator_error(group):
                return False
            reply = wire.call(frame(OFFSET_COMMIT, body, version=2))
        codes[:] = _codes(reply)
        return not NO_COORDINATOR.intersection(codes)

    wait_until("an answer to a commit", TIMEOUT_S, answered)
    return codes


def _codes(reply: bytes) -> list[int]:
    """Of the partitions, by topic and partition in the order of their numbers."""
    (count,), at = struct.unpack_from(">i", reply), 4
    found = {}
    for _ in range(count):
        (size,) = struct.unpack_from(">h", reply, at)
        topic = reply[at + 2 : at + 2 + size]
        at += 2 + size
        (partitions,) = struct.unpack_from(">i", reply, at)
        at += 4
        for _ in range(partitions):
            partition, code = struct.unpack_from(">ih", reply, at)
            found[topic, partition] = code
            at += 6
    return [found[key] for key in sorted(found)]


def committed(client: Any, *partitions: tuple[str, int]) -> list[int]:
    from confluent_kafka import TopicPartition

    found = client.committed([TopicPartition(*each) for each in partitions], timeout=TIMEOUT_S)
    return [each.offset for each in found]


def send(server: Server, topic: str, first: int, after: int) -> None:
    with Wire(server.port) as wire:
        for number in range(first, after):
            wire.produce(topic, 0, entry(None, str(number).encode()))


def read(client: Any, topic: str, last: int) -> list[int]:
    """All numbers of a topic from where the group begins up to ``last``."""
    client.subscribe([topic])
    numbers: list[int] = []

    def done() -> bool:
        message = client.poll(1.0)
        if message is not None and message.error() is None:
            numbers.append(int(message.value()))
        return bool(numbers) and numbers[-1] == last

    wait_until(f"message {last}", TIMEOUT_S, done)
    return numbers


def delete(server: Server, topic: str) -> None:
    server.delete_topic(topic)
    assert server.zookeeper is not None
    client = KazooClient(server.zookeeper, timeout=10)
    client.start(30)
    path = f"/admin/delete_topics/{topic}"
    wait_until("the deletion", TIMEOUT_S, lambda: client.exists(path) is None)
    client.stop()
    client.close()
    wait_until("no metadata", TIMEOUT_S, lambda: _is_unknown(server, topic))


def _is_unknown(server: Server, topic: str) -> bool:
    names = consumer(server, "metadata").list_topics(timeout=10).topics
    return topic not in names


def test_commits_for_what_does_not_exist(server: Server) -> None:
    topic, other = unique("t"), unique("unknown")
    server.create_topic(topic, 2)
    group = unique("g")
    offsets = [(topic, 0, 5), (topic, 1, 6), (topic, 2, 5), (other, 0, 5)]
    assert commit(server, group, *offsets) == [0, 0, UNKNOWN, UNKNOWN]
    client = consumer(server, group)
    server.create_topic(other)
    partitions = [(topic, 0), (other, 0), (topic, 1)]
    assert committed(client, *partitions) == [5, NOTHING, 6]
    client.close()


def test_a_group_in_kafka_misses_nothing_of_the_next_topic(server: Server) -> None:
    topic, other, group = unique("t"), unique("u"), unique("g")
    for each in (topic, other):
        server.create_topic(each)
    send(server, topic, 0, 20)
    assert commit(server, group, (topic, 0, 20), (other, 0, 7)) == [0, 0]
    client = consumer(server, group)
    delete(server, topic)
    wait_until(
        "no offset of the topic",
        TIMEOUT_S,
        lambda: committed(client, (topic, 0), (other, 0)) == [NOTHING, 7],
    )
    server.create_topic(topic)
    send(server, topic, 100, 130)
    assert committed(client, (topic, 0), (other, 0)) == [NOTHING, 7]
    assert read(client, topic, 129) == list(range(100, 130))
    client.close()


def test_offsets_stay_away_after_a_restart(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    props = {
        "api.versions.enable": "true",
        "delete.topic.enable": "true",
        "offsets.topic.num.partitions": 2,
    }
    chroot = f"{zookeeper.connect}/{unique('restarted')}"
    broker = Broker("ours", tmp_path, chroot, props=props)
    launch(broker)
    broker.start()
    topic, group = unique("t"), unique("g")
    broker.create_topic(topic)
    assert commit(broker, group, (topic, 0, 20)) == [0]
    delete(broker, topic)
    assert not list(broker.log_dir.glob(f"{topic}-*"))
    broker.kill()
    broker.start()
    broker.create_topic(topic)
    client = consumer(broker, group)
    assert committed(client, (topic, 0)) == [NOTHING]
    client.close()


def test_a_group_in_zookeeper_misses_nothing_of_the_next_topic(
    modern_broker: Broker, tools: Tools, tmp_path: Path
) -> None:
    topic, group = unique("t"), unique("g")
    config = tmp_path / "consumer.properties"
    config.write_text(properties({"group.id": group, "auto.commit.interval.ms": 100}))

    def consume(count: int) -> list[str]:
        args = ["--zookeeper", modern_broker.zookeeper, "--topic", topic, "--from-beginning"]
        args += ["--consumer.config", str(config), "--max-messages", str(count)]
        done = tools.run("kafka.tools.ConsoleConsumer", *args)
        assert done.code == 0, done.err
        return done.lines

    modern_broker.create_topic(topic)
    send(modern_broker, topic, 0, 20)
    assert consume(20) == [str(number) for number in range(20)]
    offsets = f"/consumers/{group}/offsets"
    assert zookeeper_text(modern_broker.zookeeper, f"{offsets}/{topic}/0") == "20"
    delete(modern_broker, topic)
    client = KazooClient(modern_broker.zookeeper, timeout=10)
    client.start(30)
    client.delete(offsets)  # an empty node; the console consumer refuses to begin beside it
    client.stop()
    client.close()
    modern_broker.create_topic(topic)
    send(modern_broker, topic, 100, 130)
    assert consume(30) == [str(number) for number in range(100, 130)]


def test_an_idempotent_producer_goes_on_in_the_next_topic(server: Server) -> None:
    topic = unique("t")

    def send_batch(sequence: int) -> tuple[int, int]:
        data = plain(b"x", producer=(4711, 0, sequence))
        with Wire(server.port) as wire:
            return produced(wire.call(produce_frame(topic, data)), topic)

    server.create_topic(topic)
    assert [send_batch(number) for number in (0, 1, 2)] == [(0, 0), (0, 1), (0, 2)]
    delete(server, topic)
    server.create_topic(topic)
    # Not taken for a repetition, and not for a gap.
    assert [send_batch(number) for number in (2, 3)] == [(0, 0), (0, 1)]
