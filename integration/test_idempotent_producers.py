"""Idempotent producers, unmodified and ours: nothing is stored twice, whatever is lost or dies."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import struct
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError

from integration.harness import STARTED, Broker, Process, ZooKeeper, free_port
from integration.later import programs
from integration.later.sender import Sender
from integration.proxy import Proxy
from integration.wire import wait_until
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.server.cluster_view.originals import FORMATS
from zk import znodes

COUNT = 10_000
BATCH = 20
BACKLOG = 500
TIMEOUT_S = 120
GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "modern-vectors.json"
PROPS = {"api.versions.enable": "true", "auto.create.topics.enable": "false"}
PRODUCE = b"\0\0"


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


class Counted:
    """A proxy's ``loses``: every ``nth`` produce request loses its answer."""

    def __init__(self, nth: int) -> None:
        self.lost = 0
        self._nth = nth
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def __call__(self, frame: bytes) -> bool:
        if frame[4:6] != PRODUCE:
            return False
        with self._lock:
            is_lost = next(self._numbers) % self._nth == 0
            self.lost += is_lost
        return is_lost


Before = Callable[[int], None]


def by_confluent(
    address: str,
    topic: str,
    before: Before = lambda number: None,
    settings: Mapping[str, object] | None = None,
) -> None:
    """Send the numbers from 0 on; ``before`` is called with each before it is sent. All but the
    last ``BACKLOG`` are acknowledged then."""
    from confluent_kafka import Producer

    failed: list[object] = []
    ended = 0
    producer = Producer(
        {
            "bootstrap.servers": address,
            "enable.idempotence": True,
            "linger.ms": 2,
            "batch.num.messages": BATCH,
            "reconnect.backoff.max.ms": 200,
            "retry.backoff.ms": 50,
            "log_level": 2,
            **(settings or {}),
        }
    )

    def delivered(error: Any, message: Any) -> None:
        nonlocal ended
        ended += 1
        if error:
            failed.append(error)

    deadline = time.monotonic() + 2 * TIMEOUT_S
    for number in range(COUNT):
        while ended < number - BACKLOG:
            assert time.monotonic() < deadline, f"{ended} of {COUNT}"
            producer.poll(0.1)
        before(number)
        producer.produce(topic, str(number), partition=0, on_delivery=delivered)
        producer.poll(0)
    assert not producer.flush(TIMEOUT_S)
    assert not failed


def by_java(address: str, topic: str, before: Before = lambda number: None) -> None:
    """As ``by_confluent``, by the producer that Java applications have by default."""
    client = f"java-{programs.JAVA[-1]}"
    if reason := programs.missing(client):
        pytest.skip(reason)
    sender = Sender(client, address, topic, "batch.size=400", "reconnect.backoff.max.ms=200")
    try:
        for number in range(COUNT):
            if number % BATCH == 0:
                sender.await_ends(number - BACKLOG, 2 * TIMEOUT_S)
            before(number)
            sender.send(str(number).encode())
        ends = sender.await_ends(COUNT, TIMEOUT_S)
        sender.close()
    finally:
        sender.kill()
    assert [each for each in ends if each.error] == []


def by_kafka08(address: str, topic: str, before: Before = lambda number: None) -> None:
    """As ``by_confluent``, by KafkaProducer of this project."""
    with KafkaProducer(
        bootstrap_servers=address,
        enable_idempotence=True,
        linger_ms=2,
        batch_size=400,
        max_request_size=3000,
        request_timeout_ms=5000,
    ) as producer:
        futures = []
        for number in range(COUNT):
            if number >= BACKLOG:
                futures[number - BACKLOG].result(2 * TIMEOUT_S)
            before(number)
            futures.append(producer.send(topic, str(number).encode(), partition=0))
        producer.flush(TIMEOUT_S)
    assert [future.result(0).offset for future in futures] == list(range(COUNT))


def stored(broker: Broker, topic: str) -> list[int]:
    with broker.wire() as wire:
        return [int(entry.value or b"-1") for entry in wire.read_all(topic, 0)]


@pytest.mark.scenario("modern-43")
@pytest.mark.parametrize("write", [by_confluent, by_java, by_kafka08])
def test_every_seventh_answer_is_lost(
    zookeeper: ZooKeeper, tmp_path: Path, write: Callable[[str, str], None]
) -> None:
    proxy, topic = Proxy(), unique("lost")
    props = {**PROPS, "advertised.port": proxy.port}
    broker = Broker("ours", tmp_path, f"{zookeeper.connect}/{topic}", props=props).start()
    proxy.target = broker.port
    broker.create_topic(topic)
    proxy.loses = lost = Counted(7)
    write(proxy.address, topic)
    assert lost.lost > 10
    assert stored(broker, topic) == list(range(COUNT))
    proxy.close()
    assert broker.stop() == 143
    assert " ERROR " not in broker.log


@pytest.mark.scenario("modern-44")
@pytest.mark.slow
@pytest.mark.parametrize("write", [by_confluent, by_java, by_kafka08])
def test_the_leader_is_killed(
    zookeeper: ZooKeeper,
    tmp_path: Path,
    launch: Callable[[Process], None],
    write: Callable[[str, str, Before], None],
) -> None:
    """Twice, while every seventh answer is lost."""
    topic = unique("killed")
    chroot = f"{zookeeper.connect}/{topic}"
    props = {**PROPS, "default.replication.factor": 3, "min.insync.replicas": 2}
    props |= {"unclean.leader.election.enable": "false", "log.segment.bytes": 100_000}
    lost = Counted(7)
    brokers: dict[int, Broker] = {}
    proxies: list[Proxy] = []
    for number in (1, 2, 3):
        proxy = Proxy()
        proxies.append(proxy)
        ports = {**props, "advertised.port": proxy.port}
        broker = Broker("ours", tmp_path / str(number), chroot, broker_id=number, props=ports)
        proxy.target, proxy.loses = broker.port, lost
        brokers[number] = broker
        launch(broker)
        broker.start()
    brokers[1].create_topic(topic, replicas=[1, 2, 3])
    killed: list[int] = []

    def leader() -> int:
        """-1 without one."""
        with next(each for each in brokers.values() if each.alive).wire() as wire:
            found = wire.leader(topic, 0)
        return found if found in brokers and brokers[found].alive else -1

    def kill(number: int) -> None:
        if number not in (COUNT // 3, 2 * COUNT // 3):
            return
        wait_until("a leader", 30, lambda: leader() > 0)
        killed.append(leader())
        brokers[killed[-1]].kill()
        if len(killed) == 2:
            brokers[killed[0]].start()

    write(",".join(each.address for each in proxies), topic, kill)
    assert len(set(killed)) == 2
    assert lost.lost > 10
    wait_until("a leader", 30, lambda: leader() > 0)
    assert stored(brokers[leader()], topic) == list(range(COUNT))
    for proxy in proxies:
        proxy.close()


class Registered:
    """Broker 2, which is registered and takes connections, and never says a word."""

    def __init__(self, chroot: str) -> None:
        self._listener = socket.create_server(("127.0.0.1", free_port()))
        host, port = self._listener.getsockname()
        self._zk = KazooClient(chroot, timeout=30)
        self._zk.start(30)
        registration = znodes.BrokerRegistration(host, port, -1, "1", FORMATS)
        self._zk.create(znodes.broker_path(2), znodes.encode_broker(registration), ephemeral=True)

    def take_over(self) -> None:
        """Be the controller as soon as nobody is."""

        def taken() -> bool:
            with contextlib.suppress(NodeExistsError):
                data = znodes.encode_controller(znodes.ControllerNode(2, "1"))
                self._zk.create(znodes.CONTROLLER, data, ephemeral=True)
                return True
            return False

        wait_until("the end of the controller", 30, taken)

    def resign(self) -> None:
        self._zk.delete(znodes.CONTROLLER)

    def close(self) -> None:
        self._zk.stop()
        self._zk.close()
        self._listener.close()


def test_the_leader_returns_before_there_is_a_controller(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """librdkafka 2.16 may send nothing ever again after it was told that there are no brokers, and
    it gives up messages after it was told that there is no topic (one of 30 s of age; here, any).
    """
    topic = unique("young")
    chroot = f"{zookeeper.connect}/{topic}"
    broker = Broker("ours", tmp_path, chroot, broker_id=1, props=PROPS).start()
    other = Registered(chroot)
    broker.create_topic(topic)

    def restart(number: int) -> None:
        if number in (COUNT // 3, 2 * COUNT // 3):
            broker.kill()
            other.take_over()
            broker.spawn()
            broker.wait_for(STARTED)
            time.sleep(1)  # for the client to ask while there is no controller
            other.resign()

    settings = {"topic.metadata.propagation.max.ms": 0}
    by_confluent(broker.address, topic, restart, settings)
    assert stored(broker, topic) == list(range(COUNT))
    other.close()
    broker.kill()


def answer(broker: Broker, name: str) -> tuple[int, int]:
    """(error, base offset) of a recorded produce request of version 3 to t-id-0."""
    vectors = json.loads(GOLDEN.read_text(encoding="utf-8"))["vectors"]
    frame = bytes.fromhex(next(each["hex"] for each in vectors if each["name"] == name))
    with socket.create_connection(("127.0.0.1", broker.port), 30) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        with connection.makefile("rb") as file:
            reply = file.read(struct.unpack(">i", file.read(4))[0])
    found: tuple[int, int] = struct.unpack_from(">hq", reply, 4 + 4 + 2 + 4 + 4 + 4)
    return found


@pytest.mark.scenario("modern-45")
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_the_last_batch_comes_again_after_a_restart(
    zookeeper: ZooKeeper, tmp_path: Path, end: str
) -> None:
    chroot = f"{zookeeper.connect}/{unique('again')}"
    broker = Broker("ours", tmp_path, chroot, props=PROPS).start()
    broker.create_topic("t-id")
    assert answer(broker, "raw: seq 0") == (0, 0)
    assert answer(broker, "raw: seq 3") == (0, 3)
    for _ in range(2):
        getattr(broker, end)()
        broker.start()
        broker.wait_for_leader("t-id")
        assert answer(broker, "raw: seq 3") == (0, 3)
        assert answer(broker, "raw: gap: seq 30") == (45, -1)
    assert stored_count(broker) == 6
    broker.kill()


def stored_count(broker: Broker) -> int:
    with broker.wire() as wire:
        return wire.offset("t-id", 0)
