"""Quotas with real clients: of 0.8, which notice time alone, and of today, which are told.

The broker saves an unused rate for one second here, so that the rate holds almost from the start.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration import modern
from integration.clients import HighLevel, Record
from integration.harness import Broker, Tools, ZooKeeper, zookeeper_text
from integration.modern import ModernBroker
from integration.wire import Wire, entry, fetch_frame, produce_frame, wait_until
from kafka08.common import TopicPartition
from kafka08.consumer.simple import SimpleConsumer
from kafka08.producer.kafka_producer import KafkaProducer
from zk import entity_configs
from zk.client import ZkClient

CONFIGS = "kafka.admin.ConfigCommand"
RATE = 20_000
CLIENT = "clients/wire"  # the id of `Wire`


@pytest.fixture(scope="module")
def broker(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    props = {"quota.window.num": 2, "num.partitions": 1, "max.connections": 50}
    chroot = f"{zookeeper.connect}/quotas-{uuid.uuid4().hex[:8]}"
    made = Broker("ours", tmp_path_factory.mktemp("quotas"), chroot, props=props)
    yield made.start()
    made.kill()
    assert " ERROR " not in made.log


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"t{uuid.uuid4().hex[:8]}"
    broker.create_topic(name)
    return name


@pytest.fixture
def store(broker: Broker) -> Iterator[ZkClient]:
    """ZooKeeper, for quotas; those of the test end with it."""
    client = ZkClient(broker.zookeeper).start()
    yield client
    for kind in ("clients", "users", "ips"):
        for entity in entity_configs.names(client, kind):
            set_quota(client, entity)
    client.close()


def set_quota(client: ZkClient, entity: str, **rates: int) -> None:
    """Returns once every broker must follow it."""
    entity_configs.alter(client, entity, lambda _: {key: str(rates[key]) for key in rates})
    time.sleep(1)


def message(size: int) -> bytes:
    return entry(None, b"x" * (size - 80))


@pytest.mark.scenario("security-44", "security-48")
def test_44_a_producer_of_0_8_keeps_its_rate(broker: Broker, topic: str, store: ZkClient) -> None:
    set_quota(store, CLIENT, producer_byte_rate=RATE)
    with broker.wire() as wire:
        wire.produce(topic, 0, message(30_000))  # what was saved, and half a second more
        began, first = time.monotonic(), wire.produce(topic, 0, message(10_000))
        while time.monotonic() - began < 4:
            last = wire.produce(topic, 0, message(10_000))
        rate = 10_000 * (last - first) / (time.monotonic() - began)
    assert 0.7 * RATE < rate < 1.1 * RATE
    set_quota(store, CLIENT)
    with broker.wire() as wire:
        began = time.monotonic()
        for _ in range(20):
            wire.produce(topic, 0, message(10_000))
    assert time.monotonic() - began < 5  # 10 with the quota


@pytest.mark.scenario("security-45")
def test_45_a_producer_without_answers_is_held_by_tcp(
    broker: Broker, topic: str, store: ZkClient
) -> None:
    set_quota(store, CLIENT, producer_byte_rate=100_000)
    memory = broker.memory()
    frame = produce_frame(topic, 0, message(100_000), 0)
    with broker.wire() as wire:
        wire.socket.settimeout(1)
        sent, began = 0, time.monotonic()
        with pytest.raises(TimeoutError):
            while sent < 500:
                wire.socket.sendall(frame)
                sent += 1
        assert sent < 200  # as much as the buffers of the system hold
        wire.socket.setblocking(True)
        time.sleep(2)
        spent = time.monotonic() - began
        with broker.wire() as other:
            stored = other.offset(topic, 0)
        assert 1 <= stored <= spent + 4
        assert broker.memory() < memory + (8 << 20)


@pytest.mark.scenario("security-46")
def test_46_a_consumer_of_0_8_keeps_its_rate(broker: Broker, topic: str, store: ZkClient) -> None:
    with broker.wire() as wire:
        for _ in range(10):
            wire.produce(topic, 0, message(10_000))
        set_quota(store, CLIENT, consumer_byte_rate=RATE)
        began, offset = time.monotonic(), 0
        while offset < 10:
            _, data = wire.fetch(topic, 0, offset, 11_000)
            offset += bool(data)
        spent = time.monotonic() - began
        assert 3 < spent < 12  # 100 kB, of which a second's worth and one answer are free
        wire.socket.sendall(fetch_frame(topic, 0, 0))  # read after a pause
        with SimpleConsumer("127.0.0.1", broker.port, client_id="other") as other:
            began = time.monotonic()
            other.fetch({TopicPartition(topic, 0): 0})
            assert time.monotonic() - began < 1


def test_our_producer_and_consumer_of_0_8(broker: Broker, topic: str, store: ZkClient) -> None:
    set_quota(store, "users/ANONYMOUS", producer_byte_rate=RATE, consumer_byte_rate=RATE)
    began = time.monotonic()
    with KafkaProducer({"bootstrap.servers": broker.address, "batch.size": 5000}) as producer:
        for _ in range(20):
            producer.send(topic, b"x" * 5000).result(30)
    assert time.monotonic() - began > 2.5  # 100 kB, of which a second's worth is free
    with Wire(broker.port) as wire:
        began = time.monotonic()
        assert len(wire.read_all(topic, 0)) == 20
    assert time.monotonic() - began < 10


@pytest.mark.scenario("security-44")
@pytest.mark.original
def test_the_originals_tools_are_held_and_send_nothing_twice(
    broker: Broker, topic: str, store: ZkClient, tmp_path: Path
) -> None:
    """The Scala producer waits for an answer as long as it does by default."""
    set_quota(store, "users/<default>", producer_byte_rate=1000, consumer_byte_rate=1000)
    tools, records = (
        Tools("original", tmp_path),
        [Record(b"k%d" % at, b"x" * 3000) for at in range(6)],
    )
    words = ["--broker-list", broker.address, "--topic", topic, "--property", "parse.key=true"]
    words += ["--batch-size", "2", "--request-required-acks", "1", "--request-timeout-ms", "10000"]
    began = time.monotonic()
    lines = "".join(f"k{at}\t{'x' * 3000}\n" for at in range(6))
    done = tools.run("kafka.tools.ConsoleProducer", *words, stdin=lines)
    assert done.code == 0 and "Failed to send" not in done.err, done.err
    assert time.monotonic() - began > 10  # two pauses of 5 seconds
    HighLevel(tools).check(broker, topic, records)
    with Wire(broker.port) as wire:
        assert wire.offset(topic, 0) == len(records)


@pytest.mark.scenario("security-44")
def test_clients_of_today_are_told(broker: Broker, topic: str, store: ZkClient) -> None:
    from confluent_kafka import Consumer, Producer

    set_quota(store, "clients/<default>", producer_byte_rate=RATE, consumer_byte_rate=RATE)
    throttled: list[float] = []
    producer = Producer(
        {
            "bootstrap.servers": broker.address,
            "client.id": "today",
            "throttle_cb": lambda event: throttled.append(event.throttle_time),
            "batch.num.messages": 2,
        }
    )
    began = time.monotonic()
    for _ in range(20):
        producer.produce(topic, b"x" * 5000)
        producer.flush(30)
    assert time.monotonic() - began > 2.5
    assert throttled and max(throttled) <= 10
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "client.id": "today",
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic])
        got, until = 0, time.monotonic() + 60
        while got < 20 and time.monotonic() < until:
            found = consumer.poll(1)
            got += found is not None and found.error() is None
        assert got == 20
    finally:
        consumer.close()


@pytest.mark.scenario("security-48")
def test_a_share_of_the_loops_time(broker: Broker, topic: str, store: ZkClient) -> None:
    """Requests of a few bytes, which no rate of bytes would hold."""

    def answers() -> int:
        with broker.wire() as wire:
            count, until = 0, time.monotonic() + 4
            while time.monotonic() < until:
                wire.offset(topic, 0)
                count += 1
        return count

    set_quota(store, "clients/other", request_percentage=1)
    free = answers()
    set_quota(store, CLIENT, request_percentage=1)
    held = answers()
    set_quota(store, CLIENT)
    print(f"{free} requests in 4 s, {held} with 1 percent of the loop's time")
    assert 4 <= held < free / 3
    assert answers() > 2 * held


@pytest.mark.scenario("security-49")
def test_49_a_stop_does_not_wait_for_a_mute(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    chroot = f"{zookeeper.connect}/quotas-{uuid.uuid4().hex[:8]}"
    props = {"quota.producer.default": 10, "controlled.shutdown.enable": "false"}
    made = Broker("ours", tmp_path, chroot, props=props).start()
    try:
        made.create_topic("t")
        with made.wire() as wire:
            wire.produce("t", 0, message(1000))
            wire.socket.sendall(fetch_frame("t", 0, 0))  # not read for 5 seconds
            began = time.monotonic()
            made.stop()
            assert time.monotonic() - began < 4.5
    finally:
        made.kill()


def test_a_rate_of_new_connections(broker: Broker, store: ZkClient) -> None:
    set_quota(store, "ips/127.0.0.1", connection_creation_rate=5)

    def is_closed() -> bool:
        with socket.create_connection(("127.0.0.1", broker.port), 5) as sock:
            sock.settimeout(0.2)
            try:
                return sock.recv(1) == b""
            except TimeoutError:
                return False
            except ConnectionResetError:
                return True

    sockets = [socket.create_connection(("127.0.0.1", broker.port), 5) for _ in range(20)]
    assert is_closed()
    for each in sockets:
        each.close()
    set_quota(store, "ips/127.0.0.1")
    wait_until("an open door", 5, lambda: not is_closed())


BYTES = ("producer_byte_rate", "consumer_byte_rate")
# The words of a command, the settings, and the node.
KAFKAS = [
    (("--entity-type", "clients", "--entity-name", "a b*c"), BYTES, "clients/a%20b%2Ac"),
    (
        ("--entity-type", "users", "--entity-name", "CN=a b,O=x", "--entity-type", "clients",
         "--entity-default"),
        BYTES,
        "users/CN%3Da%20b%2CO%3Dx/clients/<default>",
    ),
    (
        ("--entity-type", "ips", "--entity-name", "10.0.0.1"),
        ("connection_creation_rate",),
        "ips/10.0.0.1",
    ),
]  # fmt: skip


@pytest.mark.scenario("security-48")
def test_kafkas_tool_writes_the_same_nodes(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    """Kafka 3.9.1 writes quotas through a broker of its own, in ZooKeeper mode."""
    if modern.missing():
        pytest.skip(modern.missing())
    theirs = f"{zookeeper.connect}/quotas-theirs-{uuid.uuid4().hex[:8]}"
    ours = f"{zookeeper.connect}/quotas-ours-{uuid.uuid4().hex[:8]}"
    client = zookeeper.client()
    for chroot in (theirs, ours):
        client.ensure_path(chroot.removeprefix(zookeeper.connect))
    client.stop()
    client.close()
    their_broker = ModernBroker(tmp_path / "theirs", theirs).start()
    tools = Tools("ours", tmp_path / "tools")
    java = ["java", "-Xmx256M", "-XX:TieredStopAtLevel=1", "-cp", f"{modern.directory()}/*"]
    try:
        for words, names, _ in KAFKAS:
            given = ["--alter", *words, "--add-config", ",".join(f"{name}=1000" for name in names)]
            command = [*java, CONFIGS, "--bootstrap-server", their_broker.address, *given]
            subprocess.run(command, check=True, capture_output=True, timeout=300)
            done = tools.run(CONFIGS, "--zookeeper", ours, *given)
            assert done.code == 0, done.err
    finally:
        their_broker.kill()
    for _, names, node in KAFKAS:
        for chroot in (theirs, ours):
            text = zookeeper_text(chroot, f"/config/{node}")
            assert text is not None, (chroot, node)
            found = json.loads(text)
            assert found["version"] == 1
            assert {
                name: float(found["config"][name]) for name in found["config"]
            } == dict.fromkeys(names, 1000)


@pytest.mark.scenario("security-44")
@pytest.mark.parametrize("kind", ["modern", "ours"])
def test_a_transactional_producer_is_held(kind: str, zookeeper: ZooKeeper, tmp_path: Path) -> None:
    """It is told, and loses nothing. A rate for all clients holds brokers' markers back nowhere."""
    from confluent_kafka import Producer

    if kind == "modern" and modern.missing():
        pytest.skip(modern.missing())
    chroot = f"{zookeeper.connect}/quotas-{uuid.uuid4().hex[:8]}"
    props = {"quota.window.num": 2, "transaction.state.log.replication.factor": 1}
    made: Broker | ModernBroker
    if kind == "ours":
        made = Broker("ours", tmp_path, chroot, props=props)
    else:
        made = ModernBroker(tmp_path, chroot, props=props)
    try:
        made.start()
        made.create_topic("t")
        client = ZkClient(chroot).start()
        rates = {"producer_byte_rate": RATE, "consumer_byte_rate": RATE, "request_percentage": 5}
        set_quota(client, "clients/<default>", **rates)
        client.close()
        throttled: list[float] = []
        producer = Producer(
            {
                "bootstrap.servers": made.address,
                "transactional.id": "id",
                "throttle_cb": lambda event: throttled.append(event.throttle_time),
                "log_level": 0,
            }
        )
        producer.init_transactions(60)
        began = time.monotonic()
        for _ in range(20):
            producer.begin_transaction()
            producer.produce("t", b"x" * 5000, partition=0)
            producer.commit_transaction(60)
            producer.poll(0)
        spent = time.monotonic() - began
        assert spent > 2.5  # 100 kB, of which a second's worth is free
        assert throttled and max(throttled) > 0
        with Wire(made.port) as wire:
            wait_until("the last marker", 60, lambda: wire.offset("t", 0) == 40)
        print(f"{kind}: {len(throttled)} answers told of a pause, {spent:.1f} s")
    finally:
        made.kill()
