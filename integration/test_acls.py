"""Access rules among real clients, which are User:ANONYMOUS without a login."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import TopicAuthorizationFailedError
from kazoo.client import KazooClient

from integration.harness import Broker, Tools, ZooKeeper
from integration.wire import entry, wait_until

ACLS = "kafka.admin.AclCommand"
ANONYMOUS = "User:ANONYMOUS"
PROPS = {
    "authorizer.class.name": "kafka.security.auth.SimpleAclAuthorizer",
    "num.partitions": 1,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
}
TOPIC_CODE, GROUP_CODE = 29, 30
BROKERS = "127.0.0.1"


class Rules:
    """kafka-acls, ours or that of Kafka 3.9, on one chroot."""

    def __init__(self, connect: str, tools: Tools) -> None:
        self.connect = connect
        self._tools = tools
        self._where = ("--authorizer-properties", f"zookeeper.connect={connect}")
        client = KazooClient(connect.partition("/")[0], timeout=10)
        client.start(30)
        client.ensure_path("/" + connect.partition("/")[2])
        client.stop()
        client.close()

    def ours(self, *words: str) -> str:
        done = self._tools.run(ACLS, *self._where, *words)
        assert (done.code, done.err) == (0, "")
        return done.out

    def allow(self, *words: str, to: str = ANONYMOUS) -> None:
        self.ours("--add", "--allow-principal", to, *words)


@pytest.fixture(scope="module")
def closed(
    zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory, our_tools: Tools
) -> Iterator[tuple[Broker, Rules]]:
    """A broker that serves everybody ``open``; ``closed`` may be described alone."""
    rules = Rules(f"{zookeeper.connect}/acls", our_tools)
    rules.allow("--cluster", "--operation", "ClusterAction", "--allow-host", BROKERS)
    rules.allow("--topic", "*", "--operation", "Describe")
    rules.allow("--topic", "open", "--operation", "All")
    rules.allow("--group", "mine", "--operation", "Read")
    broker = Broker("ours", tmp_path_factory.mktemp("closed"), rules.connect, props=PROPS).start()
    for topic in ("open", "closed"):
        broker.create_topic(topic)
    yield broker, rules
    broker.kill()


def test_librdkafka_is_refused_by_name(closed: tuple[Broker, Rules]) -> None:
    broker, _ = closed
    told: dict[str, KafkaError | None] = {}

    def delivered(error: KafkaError | None, message: Message) -> None:
        told[str(message.topic())] = error

    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    for topic in ("open", "closed"):
        producer.produce(topic, b"from librdkafka", on_delivery=delivered)
    assert producer.flush(60) == 0
    assert told["open"] is None
    assert told["closed"] is not None
    assert told["closed"].name() == "TOPIC_AUTHORIZATION_FAILED"
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "yours", "log_level": 0})
    consumer.subscribe(["open"])
    try:
        assert _error_of(consumer) == "GROUP_AUTHORIZATION_FAILED"
    finally:
        consumer.close()


def _error_of(consumer: Consumer) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        error = None if message is None else message.error()
        if error is not None:
            return error.name()
    raise AssertionError("no error within a minute")


def test_kafka_python_is_refused_by_name(closed: tuple[Broker, Rules]) -> None:
    broker, _ = closed
    where = {"bootstrap_servers": broker.address, "api_version": (0, 8, 2)}
    producer = KafkaProducer(**where, retries=0)
    producer.send("open", b"from kafka-python").get(60)
    with pytest.raises(TopicAuthorizationFailedError):
        producer.send("closed", b"x").get(60)
    producer.close()
    consumer = KafkaConsumer("closed", **where, group_id=None, auto_offset_reset="earliest")
    with pytest.raises(TopicAuthorizationFailedError):
        consumer.poll(30_000)
    consumer.close()


def test_33_a_refusal_without_acks_closes_the_connection(closed: tuple[Broker, Rules]) -> None:
    broker, _ = closed
    with broker.wire() as wire:
        body = struct.pack(">hii", 0, 1000, 1) + b"\0\6closed" + struct.pack(">ii", 1, 0)
        data = entry(None, b"x")
        body += struct.pack(">i", len(data)) + data
        head = struct.pack(">hhih", 0, 0, 1, 0)
        wire.socket.sendall(struct.pack(">i", len(head + body)) + head + body)
        assert wire.socket.recv(1) == b""
    with broker.wire() as wire:
        assert wire.offset("closed", 0) == 0


def test_42_offsets_of_another_group_are_refused(closed: tuple[Broker, Rules]) -> None:
    broker, _ = closed
    with broker.wire() as wire:
        assert wire.coordinator_error("yours") == GROUP_CODE
        assert wire.commit("yours", "open", 0, 1) == GROUP_CODE
        assert wire.committed("yours", "open", 0) == (-1, GROUP_CODE)
        wait_until("a coordinator", 60, lambda: wire.coordinator_error("mine") == 0)
        wait_until("a commit", 60, lambda: wire.commit("mine", "open", 0, 1) == 0)
        assert wire.committed("mine", "open", 0) == (1, 0)
        assert wire.commit("mine", "closed", 0, 1) == TOPIC_CODE
