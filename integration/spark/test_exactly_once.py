"""A running sum over a topic while its driver, its executors and leaders are killed in turn: each
message of the log counts once, after every kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from integration.harness import Broker, Process, ZooKeeper
from integration.spark.support import driver, missing
from integration.wire import wait_until

if missing():
    pytest.skip(missing(), allow_module_level=True)
pytest.importorskip("pyarrow")

from kafka08.common import TopicPartition
from kafka08.producer.config import ProducerConfig
from kafka08.producer.event_handler import KeyedMessage
from kafka08.producer.producer import Producer
from kafka08.spark.params import SourceParams
from kafka08.spark.planner import Range

JOB = Path(__file__).parent / "jobs" / "running_sum.py"
DEADLINE_S = 240
ROUND = 100
PARTITIONS = 2
PROPS = {"default.replication.factor": 2, "zookeeper.session.timeout.ms": 4000}
DRIVER, EXECUTOR, LEADER = "driver", "executor", "leader"


class Scene:
    """Two brokers, a replicated topic, a driver; and who may be killed."""

    def __init__(self, zookeeper: ZooKeeper, directory: Path, master: str) -> None:
        self.directory = directory
        self.out = directory / "out"
        self.out.mkdir()
        self._master = master
        self._sent = 0
        chroot = f"{zookeeper.connect}/sums-{uuid.uuid4().hex[:6]}"
        self.brokers = [
            Broker("ours", directory / f"b{number}", chroot, broker_id=number, props=PROPS)
            for number in range(2)
        ]
        for broker in self.brokers:
            broker.start()
        self.addresses = ",".join(broker.address for broker in self.brokers)
        self.topic = f"t-{uuid.uuid4().hex[:8]}"
        self._zk = KazooClient(chroot)
        self._zk.start(30)
        self._zk.create(f"/config/topics/{self.topic}", b'{"version":1,"config":{}}', makepath=True)
        assignment = {"version": 1, "partitions": {"0": [0, 1], "1": [1, 0]}}
        self._zk.create(f"/brokers/topics/{self.topic}", json.dumps(assignment).encode())
        self.wait_for_replicas()
        self.driver = self._start_driver()

    def _state(self, partition: int) -> dict[str, Any]:
        path = f"/brokers/topics/{self.topic}/partitions/{partition}/state"
        found: dict[str, Any] = json.loads(self._zk.get(path)[0]) if self._zk.exists(path) else {}
        return found

    def wait_for_replicas(self) -> None:
        def whole() -> bool:
            return all(
                sorted(self._state(partition).get("isr", ())) == [0, 1]
                for partition in range(PARTITIONS)
            )

        wait_until("two in sync", DEADLINE_S, whole)

    def _start_driver(self) -> Process:
        args = (self.directory / "checkpoint", self.out, self.addresses, self.topic, self._master)
        return driver("sums", self.directory / f"driver-{uuid.uuid4().hex[:4]}", JOB, *args)

    def send(self) -> None:
        """More numbers; a retry may send one twice, and then it counts twice."""
        config = ProducerConfig(
            metadata_broker_list=self.addresses,
            request_required_acks=-1,
            message_send_max_retries=100,
        )
        with Producer(config) as producer:
            for _ in range(2):
                numbers = range(self._sent, self._sent + ROUND // 2)
                producer.send(*[KeyedMessage(self.topic, b"%d" % number) for number in numbers])
                self._sent += ROUND // 2

    def kill(self, victim: str) -> None:
        if victim == DRIVER:
            self.driver.kill()
            self.driver = self._start_driver()
        elif victim == EXECUTOR:
            command = f"pgrep -g {os.getpgid(self.driver.pid)} -f CoarseGrainedExecutorBackend"
            wait_until("executors", DEADLINE_S, lambda: _pids(command))
            os.kill(_pids(command)[0], signal.SIGKILL)
        else:
            self.wait_for_replicas()
            broker = self.brokers[self._state(0)["leader"]]
            broker.kill()
            self.send()
            broker.start()

    def counted(self) -> dict[str, int]:
        path = self.out / "sum"
        found: dict[str, int] = json.loads(path.read_text()) if path.exists() else {"count": 0}
        return found

    def wait_for_count(self, count: int) -> None:
        def there() -> bool:
            assert self.driver.alive, self.driver.log[-3000:]
            return self.counted()["count"] >= count

        wait_until(f"{count} counted", DEADLINE_S, there)

    def logged(self) -> list[int]:
        """Every number in the log."""
        params = SourceParams(tuple(("127.0.0.1", broker.port) for broker in self.brokers))
        found: list[int] = []
        with params.offset_reader(3) as offsets, params.range_reader(3) as reader:
            for tp in (TopicPartition(self.topic, number) for number in range(PARTITIONS)):
                wanted = Range(*tp, 0, offsets.latest([tp])[tp])
                found += [int(m.value or b"") for part in reader.read(wanted) for m in part]
        return found

    def check(self) -> None:
        logged = self.logged()
        assert set(logged) == set(range(self._sent))
        self.wait_for_count(len(logged))
        found = self.counted()
        assert (found["count"], found["sum"]) == (len(logged), sum(logged))
        (self.out / "stop").touch()
        assert self.driver.exit_code(DEADLINE_S) == 0
        lines = [json.loads(line) for line in (self.out / "history").read_text().splitlines()]
        by_batch = {line["batch"]: line for line in lines}
        assert all(by_batch[line["batch"]] == line for line in lines), "a replay is the same batch"
        assert sorted(by_batch) == list(range(len(by_batch)))

    def close(self) -> None:
        self._zk.stop()
        self._zk.close()
        for process in (self.driver, *self.brokers):
            process.kill()


def _pids(command: str) -> list[int]:
    done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
    return [int(word) for word in done.stdout.split()]


@pytest.fixture
def scene(zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Callable[[str], Scene]]:
    made: list[Scene] = []

    def make(master: str) -> Scene:
        made.append(Scene(zookeeper, tmp_path, master))
        return made[0]

    yield make
    for each in made:
        each.close()


def kill_in_turn(scene: Scene, victims: list[str]) -> None:
    scene.send()
    scene.wait_for_count(1)
    for number, victim in enumerate(victims):
        scene.send()
        scene.kill(victim)
        scene.send()
        if number % 3:
            # Every third time the next kill comes before anything has recovered.
            scene.wait_for_count(scene.counted()["count"] + 1)
    scene.check()


@pytest.mark.scenario("spark-12", "spark-13")
def test_each_message_counts_once_after_three_kills(scene: Callable[[str], Scene]) -> None:
    kill_in_turn(scene("local-cluster[2,1,512]"), [DRIVER, EXECUTOR, LEADER])


@pytest.mark.slow
def test_each_message_counts_once_after_thirty_kills(scene: Callable[[str], Scene]) -> None:
    kill_in_turn(scene("local-cluster[2,1,512]"), [DRIVER, EXECUTOR, LEADER] * 10)
