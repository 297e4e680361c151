"""Disks that are full to the last block or not mounted; directories with strays in them.

Full file systems are skipped where none can be mounted (they take root and a loop device).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration import harness
from integration.clients import KAFKA_08
from integration.harness import Broker, Process, ZooKeeper, isr, partition_state
from integration.test_disks import WAIT_S, Disk, Load
from integration.wire import Wire, WireError, entry, wait_until

GROUP, TOPIC = "full-group", "t"
SMALL = {
    "log.index.size.max.bytes": 65536,
    "offsets.topic.num.partitions": 1,
    "num.partitions": 1,
}


class SmallDisk(Disk):
    """One that is soon full."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, megabytes=24)
        self._names = self.path / "names"

    def take_inodes(self) -> None:
        """Leave no room for new files: a block that a checkpoint frees would hold a new log."""
        self._names.mkdir()
        with contextlib.suppress(OSError):
            for number in itertools.count():
                (self._names / str(number)).touch()

    def make_room(self) -> None:
        super().make_room()
        shutil.rmtree(self._names, ignore_errors=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    disk = SmallDisk(tmp_path / "loop")
    yield disk
    disk.unmount()


@pytest.fixture
def start(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> Callable[..., Broker]:
    def start(log_dirs: str, *, kind: str = "ours", broker_id: int = 0, **props: object) -> Broker:
        broker = Broker(
            kind,
            tmp_path / f"broker-{broker_id}",
            f"{zookeeper.connect}/{tmp_path.name}",
            broker_id=broker_id,
            props={"log.dirs": log_dirs, **SMALL, **props},
        )
        launch(broker)
        return broker.start()

    return start


def send(wire: Wire, taken: list[bytes], value: bytes, acks: int = 1) -> bool:
    """Whether the broker took it; kept in ``taken`` then."""
    try:
        wire.produce(TOPIC, 0, entry(None, value), acks)
    except WireError as error:
        assert error.code == 6  # "try again": nobody else can lead
        return False
    taken.append(value)
    return True


def send_until_refused(wire: Wire, taken: list[bytes]) -> None:
    while send(wire, taken, os.urandom(3000)):
        assert len(taken) < 5000


def values(wire: Wire) -> list[bytes | None]:
    return [each.value for each in wire.read_all(TOPIC, 0)]


def test_killed_and_restarted_while_there_is_no_room(
    start: Callable[..., Broker], disk: SmallDisk
) -> None:
    settings = {"log.segment.bytes": 1 << 20, "log.flush.offset.checkpoint.interval.ms": 3_600_000}
    broker = start(f"{disk.path}/data", **settings)
    broker.create_topic(TOPIC)
    # As after a partition was moved away: a start has to replace this file.
    points = disk.path / "data" / "recovery-point-offset-checkpoint"
    points.write_text("0\n1\ngone 0 7\n")
    taken: list[bytes] = []
    with broker.wire() as wire:
        wait_until("coordinator", WAIT_S, lambda: wire.coordinator_error(GROUP) == 0)
        wait_until("commit", WAIT_S, lambda: wire.commit(GROUP, TOPIC, 0, 7) == 0)
        for _ in range(100):
            assert send(wire, taken, os.urandom(3000))
        disk.fill()
        send_until_refused(wire, taken)
        assert wire.commit(GROUP, TOPIC, 0, 8) in (0, -1)
        assert values(wire) == taken
    for _ in range(2):
        broker.kill()
        broker.start().wait_for_leader(TOPIC)
        assert points.read_text() == ""
        with broker.wire() as wire:
            assert values(wire) == taken
            send_until_refused(wire, taken)  # the last block of a file may have a little room
            assert values(wire) == taken
    disk.make_room()
    with broker.wire() as wire:
        wait_until("room", WAIT_S, lambda: send(wire, taken, b"again"))
        for _ in range(500):  # two segments
            assert send(wire, taken, os.urandom(3000))
        assert values(wire) == taken
        wait_until("coordinator", WAIT_S, lambda: wire.coordinator_error(GROUP) == 0)
        assert wire.committed(GROUP, TOPIC, 0)[0] in (7, 8)
        assert wire.commit(GROUP, TOPIC, 0, 9) == 0
    broker.stop()
    broker.start().wait_for_leader(TOPIC)
    with broker.wire() as wire:
        assert values(wire) == taken
        wait_until("offsets", WAIT_S, lambda: wire.committed(GROUP, TOPIC, 0) == (9, 0))


def test_a_segment_cannot_be_rolled(start: Callable[..., Broker], disk: SmallDisk) -> None:
    broker = start(f"{disk.path}/data")
    broker.create_topic(TOPIC, config={"segment.ms": 1000})
    taken: list[bytes] = []
    with broker.wire() as wire:
        assert send(wire, taken, b"before")
        disk.fill()
        wait_until("refusal", WAIT_S, lambda: not send(wire, taken, os.urandom(2000)))
        assert values(wire) == taken
        disk.make_room()
        wait_until("room", WAIT_S, lambda: send(wire, taken, b"after"))
        assert values(wire) == taken


def test_a_topic_made_while_there_is_no_room_comes_to_life(
    start: Callable[..., Broker], disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = start(f"{disk.path}/data")
    disk.take_inodes()
    with monkeypatch.context() as patch, pytest.raises(TimeoutError):
        patch.setattr(harness, "START_TIMEOUT_S", 2)
        broker.create_topic(TOPIC)
    disk.make_room()
    broker.wait_for_leader(TOPIC)
    with broker.wire() as wire:
        taken: list[bytes] = []
        assert send(wire, taken, b"x") and values(wire) == taken


def test_a_new_topic_goes_where_there_is_room(
    start: Callable[..., Broker], disk: SmallDisk, tmp_path: Path
) -> None:
    broker = start(f"{disk.path}/data,{tmp_path}/roomy")
    disk.take_inodes()
    broker.create_topic(TOPIC, partitions=4)
    assert len(list((tmp_path / "roomy").glob(f"{TOPIC}-*"))) == 4
    broker.kill()
    broker.start().wait_for_leader(TOPIC, 4)


@pytest.mark.parametrize("leader", ["ours", pytest.param("original", marks=pytest.mark.original)])
def test_a_follower_has_no_room(
    start: Callable[..., Broker], disk: SmallDisk, tmp_path: Path, leader: str
) -> None:
    lag = {"replica.lag.time.max.ms": 2000, "replica.lag.max.messages": 1000000}
    first = start(f"{tmp_path}/first", kind=leader, broker_id=1, **lag)
    second = start(f"{disk.path}/data", broker_id=2, **lag)
    first.create_topic(TOPIC, replicas=[1, 2])
    taken: list[bytes] = []
    with first.wire() as wire:
        wait_until("both", WAIT_S, lambda: isr(first.zookeeper, TOPIC) == [1, 2])
        assert send(wire, taken, b"first", -1)
        disk.fill()
        for _ in range(50):
            wire.produce(TOPIC, 0, entry(None, value := os.urandom(5000)), -1)
            taken.append(value)
        assert "No space left on device" in second.log
        assert isr(first.zookeeper, TOPIC) == [1]
        assert values(wire) == taken
        disk.make_room()
        log = disk.path / "data" / f"{TOPIC}-0" / f"{0:020d}.log"
        ours = tmp_path / "first" / f"{TOPIC}-0" / f"{0:020d}.log"
        wait_until("the rest", WAIT_S, lambda: log.read_bytes() == ours.read_bytes())
    wait_until("full isr", WAIT_S, lambda: isr(first.zookeeper, TOPIC) == [1, 2])
    assert second.alive


@contextlib.contextmanager
def librdkafka_load(brokers: list[Broker]) -> Iterator[Counter[str]]:
    """Produce with librdkafka meanwhile; counts messages by result."""
    from confluent_kafka import Producer

    outcomes: Counter[str] = Counter()
    settings = {"bootstrap.servers": ",".join(each.address for each in brokers), **KAFKA_08}
    producer = Producer({**settings, "request.required.acks": -1})
    end = threading.Event()

    def told(error: object, message: object) -> None:
        outcomes["sent" if error is None else str(error)] += 1

    def send() -> None:
        while not end.wait(0.01):
            producer.produce(TOPIC, b"by librdkafka", partition=0, on_delivery=told)
            producer.poll(0)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield outcomes
    finally:
        end.set()
        thread.join(WAIT_S)
        producer.flush(WAIT_S)


def test_others_lead_while_a_disk_is_full(
    start: Callable[..., Broker], disk: SmallDisk, tmp_path: Path
) -> None:
    """No send fails, the log stays short, and the broker is back as soon as it has room."""
    settings = {
        "replica.lag.time.max.ms": 2000,
        "leader.imbalance.check.interval.seconds": 3,
        "unclean.leader.election.enable": "false",
        "min.insync.replicas": 2,
    }
    # Broker 2 comes first, and is controller.
    second = start(f"{tmp_path}/second", broker_id=2, **settings)
    first = start(f"{disk.path}/data", broker_id=1, **settings)
    third = start(f"{tmp_path}/third", broker_id=3, **settings)
    first.create_topic(TOPIC, replicas=[1, 2, 3])
    wait_until("full isr", WAIT_S, lambda: isr(first.zookeeper, TOPIC) == [1, 2, 3])
    load = Load([first, second, third], TOPIC, 1)
    load.start()
    with contextlib.ExitStack() as stack:
        stack.callback(load.stop)
        outcomes = stack.enter_context(librdkafka_load([first, second, third]))
        wait_until("load", WAIT_S, lambda: len(load.acknowledged) > 100)
        wait_until("librdkafka", WAIT_S, lambda: outcomes["sent"] > 100)
        disk.fill()
        wait_until(
            "another leader",
            WAIT_S,
            lambda: partition_state(first.zookeeper, TOPIC)["leader"] in (2, 3),
        )
        count = len(load.acknowledged)
        wait_until("more records", WAIT_S, lambda: len(load.acknowledged) > count + 100)
        disk.make_room()
        wait_until("full isr", WAIT_S, lambda: isr(first.zookeeper, TOPIC) == [1, 2, 3])
        wait_until(
            "leader again", WAIT_S, lambda: partition_state(first.zookeeper, TOPIC)["leader"] == 1
        )
        count = len(load.acknowledged)
        wait_until("more records", WAIT_S, lambda: len(load.acknowledged) > count + 100)
    assert load.failed == []
    assert outcomes.keys() == {"sent"}
    with first.wire() as wire:
        found = {each.offset: each.value for each in wire.read_all(TOPIC, 0)}
    assert all(found.get(offset) == value for _, offset, value in load.acknowledged)
    assert "Traceback" not in first.log
    assert 2 <= first.log.count("No space left on device") <= 6
    assert re.search(r"No more of this in .*/data .*No space left on device", first.log)


def test_a_disk_that_is_not_mounted_at_the_start(
    start: Callable[..., Broker], disk: SmallDisk, tmp_path: Path
) -> None:
    """The last of the isr must not come back empty: its follower would cut its log to nothing."""
    safe = {"unclean.leader.election.enable": "false"}
    first = start(f"{disk.path},{tmp_path}/first", broker_id=1, **safe)
    second = start(f"{tmp_path}/second", broker_id=2, **safe)
    first.create_topic(TOPIC, replicas=[1, 2])
    assert (disk.path / f"{TOPIC}-0").is_dir()
    taken: list[bytes] = []
    with first.wire() as wire:
        wait_until("both", WAIT_S, lambda: isr(first.zookeeper, TOPIC) == [1, 2])
        assert send(wire, taken, b"both", -1)
        second.stop()
        wait_until("alone", WAIT_S, lambda: isr(first.zookeeper, TOPIC) == [1])
        assert send(wire, taken, b"alone", -1)
    first.kill()
    disk.unmount()
    first.start()
    assert f"{disk.path} was in use and is empty now" in first.log
    second.start()
    assert list(disk.path.iterdir()) == [] and not list(tmp_path.glob(f"first/{TOPIC}-*"))
    for broker in (first, second):
        with broker.wire() as wire, pytest.raises(WireError) as refused:
            wire.produce(TOPIC, 0, entry(None, b"lost"))
        assert refused.value.code in (3, 6)
    first.stop()
    disk.mount()
    first.start().wait_for_leader(TOPIC)
    with first.wire() as wire:
        assert values(wire) == taken
        wait_until("full isr", WAIT_S, lambda: isr(first.zookeeper, TOPIC) == [1, 2])
        assert send(wire, taken, b"after", -1) and values(wire) == taken


def test_strays_and_garbage_in_a_data_directory(
    start: Callable[..., Broker], tmp_path: Path
) -> None:
    data, noise = tmp_path / "data", random.Random(8)
    broker = start(str(data), **{"log.segment.bytes": 1 << 20})
    broker.create_topic(TOPIC)
    taken: list[bytes] = []
    with broker.wire() as wire:
        for _ in range(500):
            assert send(wire, taken, os.urandom(3000))
    log = data / f"{TOPIC}-0"
    for round_ in range(2):
        broker.kill()
        for name in (
            "recovery-point-offset-checkpoint",
            "replication-offset-checkpoint",
            "cleaner-offset-checkpoint",
        ):
            path = data / name
            if round_:
                path.unlink()
                path.mkdir()
            else:
                path.write_bytes(noise.randbytes(500))
        for name in ("notes.txt", "x.tmp", "u-0"):
            (data / name).write_bytes(noise.randbytes(100))
        for name in ("lost+found", "t-01", "t-99999999999", "v-x", "-", ".Trash-0"):
            (data / name).mkdir(exist_ok=True)
        for name in ("5.log", "a.log", f"{1 << 63:020d}.log", f"{77:020d}.index", "core"):
            (log / name).write_bytes(noise.randbytes(100))
        (log / f"{len(taken):020d}.log").mkdir()
        (log / f"{0:020d}.crc32c").unlink(missing_ok=True)
        (log / f"{0:020d}.crc32c").write_bytes(noise.randbytes(50))
        broker.start().wait_for_leader(TOPIC)
        with broker.wire() as wire:
            assert values(wire) == taken
            for _ in range(400):  # beyond the next roll
                assert send(wire, taken, os.urandom(3000))
            assert values(wire) == taken
    broker.stop()
    assert (data / "u-0").is_file() and (data / "notes.txt").is_file()
    broker.start().wait_for_leader(TOPIC)
    with broker.wire() as wire:
        assert values(wire) == taken
