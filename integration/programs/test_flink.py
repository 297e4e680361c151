"""Flink's sink with exactly once: each record comes once, whatever is killed."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from integration import builds
from integration.harness import Broker, Process, ZooKeeper
from integration.modern import LOG4J, ModernBroker
from integration.programs import flink, topics
from integration.programs.topics import Sent
from integration.wire import wait_until

WAIT_S = 120.0
PARTITIONS = 2
ROUND = 4000
OFTEN_MS, NEVER_MS = 1000, 3_600_000
THREE = {
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
}

Server = Broker | ModernBroker


class Job(Process):
    """Goes on from its last checkpoint whenever it is started."""

    def __init__(self, address: str, name: str, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._words = address, name, directory / "checkpoints"
        self._log4j = directory / "log4j.properties"
        self._log4j.write_text(LOG4J)
        super().__init__("Flink", [], directory)

    def begin(self, interval_ms: int = OFTEN_MS) -> None:
        self.command = flink.command(*self._words, interval_ms, self._log4j)
        self.spawn()


class Copied:
    """The two topics of a job."""

    def __init__(self, address: str, name: str) -> None:
        self.expected: list[int] = []
        self._address = address
        self._name = name

    def write(self) -> None:
        start = len(self.expected)
        numbers = range(start, start + ROUND)
        sent = (Sent(f"k{n}", str(n), partition=n % PARTITIONS) for n in numbers)
        topics.write(self._address, f"{self._name}-in", sent)
        self.expected.extend(numbers)

    def read(self, *, committed: bool) -> list[int]:
        """In ascending order."""
        found = topics.read(self._address, f"{self._name}-out", committed=committed)
        return sorted(int(value) for _, value in found)

    def count(self, *, committed: bool) -> int:
        return len(self.read(committed=committed))

    def arrive(self) -> None:
        wait_until("all numbers", WAIT_S, lambda: self.read(committed=True) == self.expected)


@pytest.mark.scenario("transactions-43")
def test_each_record_is_copied_once(
    server: Server, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """The job is killed between checkpoints that come often, and in one long transaction."""
    name = f"flink-{uuid.uuid4().hex[:8]}"
    job = Job(server.address, name, tmp_path)
    launch(job)
    for topic in ("in", "out"):
        server.create_topic(f"{name}-{topic}", PARTITIONS)
    copied = Copied(server.address, name)
    try:
        job.begin()
    except builds.MissingError as error:
        pytest.skip(str(error))

    def has_more_than(count: int) -> bool:
        assert job.alive, job.log[-3000:]
        return copied.count(committed=True) > count

    for number in range(2):
        before = len(copied.expected)
        copied.write()
        wait_until("some of a round", WAIT_S, lambda least=before: has_more_than(least))
        job.kill()
        seen = copied.read(committed=True)
        assert len(seen) == len(set(seen)), number
        job.begin()
    copied.arrive()

    job.kill()
    job.begin(NEVER_MS)
    stored = copied.count(committed=False)
    copied.write()
    wait_until(
        "an open transaction", WAIT_S, lambda: copied.count(committed=False) == stored + ROUND
    )
    assert copied.read(committed=True) == copied.expected[:-ROUND]
    job.kill()
    job.begin()
    copied.arrive()
    assert copied.count(committed=False) >= stored + 2 * ROUND
    job.kill()
    assert copied.read(committed=True) == copied.expected


@pytest.mark.scenario("transactions-43")
@pytest.mark.slow
def test_each_record_is_copied_once_while_brokers_are_killed(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """Each broker of three in turn, and the job itself."""
    name = f"flink-{uuid.uuid4().hex[:8]}"
    brokers = {}
    for number in (1, 2, 3):
        chroot = f"{zookeeper.connect}/{name}"
        broker = Broker("ours", tmp_path / str(number), chroot, broker_id=number, props=THREE)
        launch(broker)
        brokers[number] = broker.start()
    for topic in ("in", "out"):
        brokers[1].create_topic(f"{name}-{topic}", PARTITIONS, replicas=[1, 2, 3])
    address = ",".join(broker.address for broker in brokers.values())
    job = Job(address, name, tmp_path / "job")
    launch(job)
    copied = Copied(address, name)
    try:
        job.begin()
    except builds.MissingError as error:
        pytest.skip(str(error))
    for broker in brokers.values():
        before = len(copied.expected)
        copied.write()

        def has_begun(least: int = before) -> bool:
            assert job.alive, job.log[-3000:]
            return copied.count(committed=True) > least

        wait_until("some of a round", WAIT_S, has_begun)
        broker.kill()
        copied.write()
        broker.start()
        copied.arrive()
    copied.write()
    job.kill()
    job.begin()
    copied.arrive()
    job.kill()
    for broker in brokers.values():
        assert "Traceback" not in broker.log, broker.log[-5000:]
