"""Consumers among brokers and ZooKeepers that hang, die and talk nonsense: nothing is lost."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.harness import Broker, ZooKeeper
from integration.proxy import BAD_MODES, Proxy
from integration.wire import entry, wait_until
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.errors import ConsumerRebalanceFailedError, ConsumerTimeoutError
from zk.errors import ZkConnectionError

TOPIC = "t"


class World:
    def __init__(self, directory: Path) -> None:
        self.zookeeper = ZooKeeper(directory / "zookeeper").start()
        self.proxy = Proxy()
        props = {"advertised.port": self.proxy.port, "offsets.topic.num.partitions": 1}
        props["offsets.topic.replication.factor"] = 1
        self.broker = Broker("ours", directory / "broker", self.zookeeper.connect, props=props)
        self.proxy.target = self.broker.port
        self.broker.start()
        self.broker.create_topic(TOPIC, 2)
        self.written = 0

    def close(self) -> None:
        self.proxy.close()
        self.broker.kill()
        self.zookeeper.kill()

    def write(self, count: int = 20) -> None:
        with self.broker.wire() as wire:
            for number in range(self.written, self.written + count):
                wire.produce(TOPIC, number % 2, entry(None, b"%d" % number))
        self.written += count

    def connector(self, **settings: object) -> ConsumerConnector:
        values: dict[str, object] = {
            "group.id": "g",
            "zookeeper.connect": self.zookeeper.connect,
            "zookeeper.session.timeout.ms": 3000,
            "auto.offset.reset": "smallest",
            "auto.commit.interval.ms": 200,
            "socket.timeout.ms": 1000,
            "offsets.channel.socket.timeout.ms": 1000,
            "offsets.channel.backoff.ms": 100,
            "rebalance.backoff.ms": 200,
            "consumer.timeout.ms": 100,
            **settings,
        }
        return ConsumerConnector(
            ConsumerConfig.from_properties({key: str(value) for key, value in values.items()})
        )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("bad-input"))
    yield made
    made.close()


class Reader:
    """A connector and all it has read."""

    def __init__(self, connector: ConsumerConnector) -> None:
        self.connector = connector
        [self.stream] = connector.create_message_streams({TOPIC: 1})[TOPIC]
        self.values: list[int] = []

    def read_for(self, seconds: float) -> None:
        self.read_until(lambda: False, seconds, must=False)

    def read_until(self, done: Callable[[], bool], seconds: float = 30, must: bool = True) -> None:
        deadline = time.monotonic() + seconds
        while not done() and time.monotonic() < deadline:
            with contextlib.suppress(ConsumerTimeoutError):
                self.values.append(int(next(self.stream).value))
        assert done() or not must, f"only {sorted(set(self.values))}"


@pytest.mark.parametrize("storage", ["zookeeper", "kafka"])
@pytest.mark.parametrize("mode", BAD_MODES)
def test_bad_answers_lose_nothing(world: World, mode: str, storage: str) -> None:
    connector = world.connector(
        **{"group.id": f"{mode.replace(' ', '-').replace(chr(39), '')}-{storage}"},
        **{"offsets.storage": storage},
    )
    with connector:
        reader = Reader(connector)
        world.write()
        reader.read_until(lambda: len(set(reader.values)) == world.written)
        before, world.proxy.mode = world.proxy.answers, mode
        try:
            world.write()
            reader.read_for(2)
            assert world.proxy.answers > before, "it no longer asks"
        finally:
            world.proxy.mode = "pass"
        reader.read_until(lambda: len(set(reader.values)) == world.written)
        assert sorted(reader.values) == list(range(world.written)), "duplicates without a cause"
        wait_until("a commit", 20, connector.commit_offsets)


def test_a_broker_that_hangs_then_dies_and_returns(world: World) -> None:
    with world.connector(**{"group.id": "hangs"}) as connector:
        reader = Reader(connector)
        world.write()
        reader.read_until(lambda: len(set(reader.values)) == world.written)
        world.broker.pause()
        reader.read_for(3)
        world.broker.resume()
        world.broker.kill()
        reader.read_for(1)
        world.broker.start()
        world.broker.wait_for_leader(TOPIC, 2)
        world.write()
        reader.read_until(lambda: len(set(reader.values)) == world.written)


def test_closing_does_not_wait_for_a_hung_broker(world: World) -> None:
    connector = world.connector(**{"group.id": "closing", "offsets.storage": "kafka"})
    reader = Reader(connector)
    world.write()
    reader.read_until(lambda: len(set(reader.values)) == world.written)
    world.broker.pause()
    try:
        begin = time.monotonic()
        connector.close()
        # Six tries at the last commit, a second each and a little in between.
        assert time.monotonic() - begin < 30
    finally:
        world.broker.resume()


def test_zookeeper_gone_and_back(world: World) -> None:
    with world.connector(**{"group.id": "gone"}) as connector:
        reader = Reader(connector)
        world.write()
        reader.read_until(lambda: len(set(reader.values)) == world.written)
        world.zookeeper.kill()
        try:
            world.write()  # a partition of one replica is served without ZooKeeper
            reader.read_until(lambda: len(set(reader.values)) == world.written)
            begin = time.monotonic()
            with pytest.raises(ZkConnectionError):
                connector.commit_offsets()
            assert time.monotonic() - begin < 10
        finally:
            world.zookeeper.start()
        wait_until("the broker", 60, lambda: world.broker.wait_for_leader(TOPIC, 2) is None)

        def commits() -> bool:
            with contextlib.suppress(ZkConnectionError):
                return connector.commit_offsets()
            return False

        wait_until("a commit", 30, commits)
        world.write()
        reader.read_until(lambda: len(set(reader.values)) == world.written)


def test_closing_without_zookeeper(world: World) -> None:
    connector = world.connector(**{"group.id": "without"})
    Reader(connector)
    world.zookeeper.kill()
    try:
        begin = time.monotonic()
        connector.close()
        assert time.monotonic() - begin < 30
        with pytest.raises(ZkConnectionError, match="Unable to connect to zookeeper server"):
            world.connector(**{"zookeeper.connection.timeout.ms": 1000})
    finally:
        world.zookeeper.start()
    wait_until("the broker", 60, lambda: world.broker.wait_for_leader(TOPIC, 2) is None)


@pytest.mark.scenario("client-10")
def test_garbage_of_others_in_the_group(world: World) -> None:
    client = world.zookeeper.client()
    try:
        client.create("/consumers/odd/ids/alien", b"\xff{", makepath=True)
        refused = pytest.raises(ConsumerRebalanceFailedError, match="/consumers/odd/ids/alien")
        with world.connector(**{"group.id": "odd"}) as connector, refused:
            Reader(connector)
        client.delete("/consumers/odd/ids/alien")
        client.create("/consumers/odd/owners/t/x", b"\xff", makepath=True)
        client.create("/consumers/odd/offsets/t/x", b"\xff", makepath=True)
        with world.connector(**{"group.id": "odd"}) as connector:
            reader = Reader(connector)
            world.write()
            reader.read_until(lambda: len(set(reader.values)) == world.written)
            # It comes while we are running, and goes again.
            client.create("/consumers/odd/ids/alien", b"[]")
            owners = ["0", "1", "x"]

            def given_up() -> bool:
                return client.get_children("/consumers/odd/owners/t") == ["x"]

            wait_until("giving up", 20, given_up)
            client.delete("/consumers/odd/ids/alien")
            wait_until(
                "recovery",
                20,
                lambda: sorted(client.get_children("/consumers/odd/owners/t")) == owners,
            )
            world.write()
            reader.read_until(lambda: len(set(reader.values)) == world.written)
    finally:
        client.stop()
        client.close()


GREENLETS = """
import sys
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.runtime import GeventRuntime

runtime = GeventRuntime()
config = ConsumerConfig(
    group_id="greenlets", zookeeper_connect=sys.argv[1], auto_offset_reset="smallest",
    consumer_timeout_ms=20000,
)
wanted, got, ticks, done = int(sys.argv[2]), set(), [], runtime.event()

def read(stream):
    for message in stream:
        got.add(int(message.value))
        if len(got) == wanted:
            done.set()

def tick():
    while not done.is_set():
        runtime.sleep(0.01)
        ticks.append(1)

with ConsumerConnector(config, runtime=runtime) as connector:
    runtime.spawn("ticks", tick)
    tasks = [
        runtime.spawn("reader", read, stream)
        for stream in connector.create_message_streams({"t": 2})["t"]
    ]
    assert done.wait(20), sorted(got)
for task in tasks:
    assert task.join(10)
assert ticks, "a call held up all other greenlets"
print("got", len(got))
"""


def test_a_consumer_on_greenlets(world: World) -> None:
    world.write()
    done = subprocess.run(
        [sys.executable, "-c", GREENLETS, world.zookeeper.connect, str(world.written)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=Path(__file__).parent.parent,
    )
    assert (done.returncode, done.stdout) == (0, f"got {world.written}\n"), done.stderr
