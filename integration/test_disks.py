"""Disks that fail for real: file systems on loop devices that are shut down, and full ones.

Skipped where file systems cannot be mounted (they take root and a loop device).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import struct
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from integration.cluster.disks import LoopDisk
from integration.harness import Broker, Process, ZooKeeper, isr, partition_state, zookeeper_text
from integration.wire import Wire, WireError, entry, wait_until
from kafka08.producer.kafka_producer import KafkaProducer

EXT4_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2
WAIT_S = 60


class Disk(LoopDisk):
    """One that can also fail."""

    def __init__(self, root: Path, megabytes: int = 64) -> None:
        root.mkdir(parents=True)
        try:
            super().__init__(root / "disk.img", root / "disk", megabytes)
        except RuntimeError as error:
            pytest.skip(f"no file system of our own: {error}")

    def fail(self) -> None:
        """From now on every access that is not served from memory is EIO."""
        fd = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        except OSError as error:
            pytest.skip(f"file systems cannot be shut down here: {error}")
        finally:
            os.close(fd)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    disk = Disk(tmp_path / "loop")
    yield disk
    disk.unmount()


class Load(threading.Thread):
    """Numbered records to every partition with acks -1; what was acknowledged, and where."""

    def __init__(self, brokers: list[Broker], topic: str, partitions: int) -> None:
        super().__init__(daemon=True)
        self.acknowledged: list[tuple[int, int, bytes]] = []
        self.failed: list[BaseException] = []
        self._addresses = ",".join(broker.address for broker in brokers)
        self._topic = topic
        self._partitions = partitions
        self._end = threading.Event()

    def run(self) -> None:
        with KafkaProducer(
            bootstrap_servers=self._addresses,
            acks=-1,
            retries=1000,
            max_in_flight_requests_per_connection=1,
            retry_backoff_ms=100,
            timeout_ms=5000,
        ) as producer:
            number = 0
            while not self._end.is_set():
                sent = []
                for partition in range(self._partitions):
                    value = b"%d" % number
                    number += 1
                    sent.append(
                        (producer.send(self._topic, value, partition=partition), partition, value)
                    )
                for future, partition, value in sent:
                    try:
                        offset = future.result(WAIT_S).offset
                        self.acknowledged.append((partition, offset, value))
                    except Exception as error:
                        self.failed.append(error)

    def partitions_after(self, count: int) -> set[int]:
        """The partitions that took records after the first ``count`` of all."""
        return {partition for partition, _, _ in self.acknowledged[count:]}

    def stop(self) -> None:
        self._end.set()
        self.join(WAIT_S)
        assert not self.is_alive()


class Three:
    """Brokers 1 to 3, the first with a directory on the disk; a topic that it leads."""

    PARTITIONS = 4

    def __init__(
        self, zookeeper: ZooKeeper, root: Path, disk: Disk, kinds: tuple[str, str, str]
    ) -> None:
        self.topic = f"disks-{uuid.uuid4().hex[:8]}"
        self.connect = f"{zookeeper.connect}/{self.topic}"
        self.bad, self.good = disk.path / "data", root / "good"
        self.brokers = {
            number: Broker(
                kind,
                root / f"broker-{number}",
                self.connect,
                broker_id=number,
                props={
                    "log.dirs": f"{self.bad},{self.good}" if number == 1 else root / f"d{number}",
                    "default.replication.factor": 3,
                    "replica.lag.time.max.ms": 3000,
                    "auto.leader.rebalance.enable": "false",
                    "unclean.leader.election.enable": "false",
                },
            )
            for number, kind in enumerate(kinds, 1)
        }

    def create_topic(self) -> None:
        client = KazooClient(self.connect, timeout=10)
        client.start(30)
        try:
            config = {"version": 1, "config": {"min.insync.replicas": "2"}}
            client.create(
                f"/config/topics/{self.topic}", json.dumps(config).encode(), makepath=True
            )
            replicas = {str(number): [1, 2, 3] for number in range(self.PARTITIONS)}
            payload = json.dumps({"version": 1, "partitions": replicas}).encode()
            client.create(f"/brokers/topics/{self.topic}", payload, makepath=True)
        finally:
            client.stop()
            client.close()
        wait_until("full isr", WAIT_S, lambda: self.isrs() == [[1, 2, 3]] * self.PARTITIONS)

    def states(self) -> list[dict[str, object]]:
        return [partition_state(self.connect, self.topic, n) for n in range(self.PARTITIONS)]

    def isrs(self) -> list[list[int]]:
        return [isr(self.connect, self.topic, n) for n in range(self.PARTITIONS)]

    def leaders(self) -> list[object]:
        return [state.get("leader") for state in self.states()]

    def on(self, directory: Path) -> list[int]:
        """Partitions in a directory of broker 1."""
        return sorted(int(path.name.rpartition("-")[2]) for path in directory.glob("disks-*"))

    def verify(self, load: Load) -> None:
        """Nothing acknowledged is lost or has moved."""
        leaders = self.leaders()
        for partition in range(self.PARTITIONS):
            with self.brokers[int(str(leaders[partition]))].wire() as wire:
                found = {e.offset: e.value for e in wire.read_all(self.topic, partition)}
            for where, offset, value in load.acknowledged:
                assert where != partition or found.get(offset) == value


@pytest.fixture
def three(
    zookeeper: ZooKeeper, tmp_path: Path, disk: Disk, launch: Callable[[Process], None]
) -> Callable[..., Three]:
    def make(*kinds: str) -> Three:
        made = Three(zookeeper, tmp_path, disk, kinds)  # type: ignore[arg-type]
        for broker in made.brokers.values():
            launch(broker)
        return made

    return make


@contextlib.contextmanager
def load_on(three: Three) -> Iterator[Load]:
    load = Load(list(three.brokers.values()), three.topic, three.PARTITIONS)
    load.start()
    try:
        wait_until("load", WAIT_S, lambda: len(load.acknowledged) > 200)
        yield load
    finally:
        load.stop()


def test_a_failed_disk_takes_its_partitions_only(
    three: Callable[..., Three], disk: Disk, tmp_path: Path
) -> None:
    cluster = three("ours", "ours", "ours")
    for number in (2, 1, 3):
        cluster.brokers[number].start()
    cluster.create_topic()
    lost, kept = cluster.on(cluster.bad), cluster.on(cluster.good)
    assert len(lost) == len(kept) == 2
    with load_on(cluster) as load:
        disk.fail()
        wait_until(
            "other leaders",
            WAIT_S,
            lambda: all(cluster.leaders()[n] in (2, 3) for n in lost),
        )
        count = len(load.acknowledged)
        wait_until(
            "records everywhere", WAIT_S, lambda: load.partitions_after(count) == {0, 1, 2, 3}
        )
        assert [cluster.leaders()[n] for n in kept] == [1, 1]
        wait_until("isr", WAIT_S, lambda: all(cluster.isrs()[n] == [2, 3] for n in lost))
        assert [cluster.isrs()[n] for n in kept] == [[1, 2, 3]] * 2
    assert load.failed == []
    cluster.verify(load)
    first = cluster.brokers[1]
    assert f"The data directory {cluster.bad} has failed, and with it 2 partitions" in first.log
    # restarted while the disk is still away, then with the disk there again
    first.stop()
    first.start()
    assert f"Continuing without the data directory {cluster.bad}" in first.log
    wait_until("isr", WAIT_S, lambda: all(cluster.isrs()[n] == [1, 2, 3] for n in kept))
    assert [cluster.isrs()[n] for n in lost] == [[2, 3]] * 2
    first.stop()
    disk.unmount()
    disk.mount()
    first.start()
    wait_until("full isr", WAIT_S, lambda: cluster.isrs() == [[1, 2, 3]] * 4)
    cluster.verify(load)


@pytest.mark.slow
@pytest.mark.original
def test_under_an_original_controller_the_broker_halts(
    three: Callable[..., Three], disk: Disk
) -> None:
    cluster = three("ours", "original", "original")
    for number in (2, 1, 3):
        cluster.brokers[number].start()
    cluster.create_topic()
    with load_on(cluster) as load:
        disk.fail()
        wait_until("other leaders", WAIT_S, lambda: set(cluster.leaders()) <= {2, 3})
        count = len(load.acknowledged)
        wait_until(
            "records everywhere", WAIT_S, lambda: load.partitions_after(count) == {0, 1, 2, 3}
        )
    assert load.failed == []
    assert "Halting: The controller leaves 2 lost partitions with us" in cluster.brokers[1].log
    cluster.verify(load)


def test_the_only_disk_halts_the_broker(
    zookeeper: ZooKeeper, tmp_path: Path, disk: Disk, launch: Callable[[Process], None]
) -> None:
    chroot = f"{zookeeper.connect}/{tmp_path.name}"
    broker = Broker("ours", tmp_path / "b", chroot, log_dir=disk.path / "data")
    launch(broker)
    broker.start().create_topic("t")
    with broker.wire() as wire:
        wire.produce("t", 0, entry(None, b"before"))
        disk.fail()
        with pytest.raises((OSError, WireError)):
            wire.produce("t", 0, entry(None, b"after"))
    wait_until("the end", WAIT_S, lambda: "Halting: No data directory is left" in broker.log)
    wait_until("its session", WAIT_S, lambda: zookeeper_text(chroot, "/brokers/ids/0") is None)


def test_a_full_disk_refuses_writes_and_serves_reads(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    disk = Disk(tmp_path / "loop", megabytes=24)
    try:
        broker = Broker(
            "ours",
            tmp_path / "b",
            f"{zookeeper.connect}/{tmp_path.name}",
            log_dir=disk.path / "data",
            props={"log.index.size.max.bytes": 65536},
        )
        launch(broker)
        broker.start().create_topic("t")
        (disk.path / "filler").write_bytes(bytes(8 << 20))
        acknowledged = fill(broker)
        assert len(acknowledged) > 50
        with broker.wire() as wire:
            assert [e.value for e in wire.read_all("t", 0)] == acknowledged
            (disk.path / "filler").unlink()
            wait_until("room", WAIT_S, lambda: _took(wire, acknowledged, b"once more"))
            assert [e.value for e in wire.read_all("t", 0)] == acknowledged
        broker.kill()
        broker.start().wait_for_leader("t")
        with broker.wire() as wire:
            assert [e.value for e in wire.read_all("t", 0)] == acknowledged
    finally:
        disk.unmount()


def fill(broker: Broker) -> list[bytes]:
    """Produce until the broker refuses; what it took."""
    taken: list[bytes] = []
    with broker.wire() as wire:
        while _took(wire, taken, os.urandom(100_000)):
            assert len(taken) < 1000
        # and again and again: each refusal leaves nothing behind
        refused = [_took(wire, [], os.urandom(100_000)) for _ in range(5)]
    assert refused == [False] * 5
    return taken


def _took(wire: Wire, taken: list[bytes], value: bytes) -> bool:
    try:
        wire.produce("t", 0, entry(None, value))
    except WireError as error:
        assert error.code == 6
        return False
    taken.append(value)
    return True
