"""Idempotent producers, unmodified: nothing is stored twice, whatever is lost or killed."""

from __future__ import annotations

import itertools
import json
import socket
import struct
import subprocess
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration import modern
from integration.harness import Broker, ZooKeeper
from integration.proxy import Proxy
from integration.wire import wait_until

COUNT = 10_000
BATCH = 20
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


def by_confluent(
    address: str, topic: str, during: Callable[[int], None] = lambda number: None
) -> None:
    """Send the numbers from 0 on; ``during`` is called with each before it is sent."""
    from confluent_kafka import Producer

    failed: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": address,
            "enable.idempotence": True,
            "linger.ms": 2,
            "batch.num.messages": BATCH,
            "reconnect.backoff.max.ms": 200,
            "retry.backoff.ms": 50,
            "log_level": 2,
        }
    )

    def delivered(error: Any, message: Any) -> None:
        if error:
            failed.append(error)

    for number in range(COUNT):
        during(number)
        producer.produce(topic, str(number), partition=0, on_delivery=delivered)
        producer.poll(0)
    assert not producer.flush(TIMEOUT_S)
    assert not failed


def by_java(address: str, topic: str) -> None:
    """As ``by_confluent``, by the producer that Java applications have by default."""
    if modern.missing():
        pytest.skip(modern.missing())
    command = ["java", "-Xmx256M", "-cp", f"{modern.directory()}/*", "kafka.tools.ConsoleProducer"]
    command += ["--bootstrap-server", address, "--topic", topic, "--max-memory-bytes", "33554432"]
    settings = {"batch.size": 400, "linger.ms": 2, "retries": 2147483647, "acks": "all"}
    settings |= {"reconnect.backoff.max.ms": 200, "enable.idempotence": "true"}
    for key, value in settings.items():
        command += ["--producer-property", f"{key}={value}"]
    lines = "".join(f"{number}\n" for number in range(COUNT))
    done = subprocess.run(
        command, input=lines, capture_output=True, text=True, timeout=2 * TIMEOUT_S
    )
    assert done.returncode == 0 and "ERROR" not in done.stdout + done.stderr, done.stderr[-2000:]


def stored(broker: Broker, topic: str) -> list[int]:
    with broker.wire() as wire:
        return [int(entry.value or b"-1") for entry in wire.read_all(topic, 0)]


@pytest.mark.parametrize("write", [by_confluent, by_java])
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


def test_the_leader_is_killed(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    topic = unique("killed")
    chroot = f"{zookeeper.connect}/{topic}"
    props = {**PROPS, "default.replication.factor": 3, "min.insync.replicas": 2}
    props |= {"unclean.leader.election.enable": "false", "log.segment.bytes": 100_000}
    brokers = {
        number: Broker("ours", tmp_path / str(number), chroot, broker_id=number, props=props)
        for number in (1, 2, 3)
    }
    for broker in brokers.values():
        broker.start()
    brokers[1].create_topic(topic, replicas=[1, 2, 3])
    killed: list[int] = []

    def kill(number: int) -> None:
        if number not in (COUNT // 3, 2 * COUNT // 3):
            return
        with next(each for each in brokers.values() if each.alive).wire() as wire:
            leader = wire.leader(topic, 0)
        brokers[leader].kill()
        killed.append(leader)
        if len(killed) == 2:
            brokers[killed[0]].start()

    by_confluent(",".join(each.address for each in brokers.values()), topic, kill)
    assert len(killed) == 2
    with next(each for each in brokers.values() if each.alive).wire() as wire:
        wait_until("a leader", 30, lambda: wire.leader(topic, 0) in brokers)
        leader = wire.leader(topic, 0)
    assert stored(brokers[leader], topic) == list(range(COUNT))
    for broker in brokers.values():
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
