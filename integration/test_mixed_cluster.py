"""Two brokers replicate for each other, of one kind or of both: leaders die, nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from integration.harness import Broker, Process, ZooKeeper, partition_state
from integration.wire import Wire, entry, wait_until

TOPIC = "mixed"
COUNT = 300
original = pytest.mark.original
PAIRS = [
    pytest.param("ours", "original", marks=original, id="ours-controls-original"),
    pytest.param("original", "ours", marks=original, id="original-controls-ours"),
    pytest.param("original", "original", marks=original, id="original-original"),
    pytest.param("ours", "ours", id="ours-ours"),
]
# An original that loses its session on a busy machine may not cost it the messages of the test.
PROPS = {
    "replica.lag.time.max.ms": 3000,
    "unclean.leader.election.enable": "false",
    "zookeeper.session.timeout.ms": 4000,
}


def create(zookeeper: str) -> None:
    """Partition 0 led by broker 0, partition 1 by broker 1, both on both."""
    client = KazooClient(zookeeper, timeout=10)
    client.start(30)
    try:
        payload = json.dumps({"version": 1, "partitions": {"0": [0, 1], "1": [1, 0]}}).encode()
        client.create(f"/brokers/topics/{TOPIC}", payload, makepath=True)
    finally:
        client.stop()
        client.close()


def state(zookeeper: str, partition: int) -> tuple[int, set[int]]:
    """Leader and isr; (-1, {}) before there is a state."""
    node = partition_state(zookeeper, TOPIC, partition)
    return node.get("leader", -1), set(node.get("isr", ()))


def produce(wire: Wire, partition: int, start: int) -> None:
    for number in range(start, start + COUNT):
        offset = wire.produce(TOPIC, partition, entry(None, b"%d" % number), acks=-1)
        assert offset == number


def contents(broker: Broker, partition: int) -> list[bytes | None]:
    with broker.wire() as wire:
        found = wire.read_all(TOPIC, partition)
    assert [e.offset for e in found] == list(range(len(found)))
    return [e.value for e in found]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_leadership_goes_to_and_fro(
    first: str,
    second: str,
    zookeeper: ZooKeeper,
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    chroot = f"{zookeeper.connect}/mixed-{first}-{second}"
    pair = []
    for broker_id, kind in enumerate((first, second)):
        broker = Broker(kind, tmp_path / str(broker_id), chroot, broker_id=broker_id, props=PROPS)
        launch(broker)
        pair.append(broker.start())
    create(chroot)
    both = {0, 1}
    for partition, broker in enumerate(pair):
        wait_until("isr", 30, lambda p=partition: state(chroot, p) == (p, both))
        wait_until("leader", 30, lambda b=broker, p=partition: _leads(b, p))
        with broker.wire() as wire:
            produce(wire, partition, 0)

    expected = [b"%d" % number for number in range(COUNT)]
    for dead, alive in ((0, 1), (1, 0)):
        pair[dead].kill()
        for partition in (0, 1):
            wait_until(
                f"broker {alive} alone on {partition}",
                30,
                lambda p=partition, a=alive: state(chroot, p) == (a, {a}),
            )
            wait_until("leader", 30, lambda p=partition, a=alive: _leads(pair[a], p))
            assert contents(pair[alive], partition) == expected
            with pair[alive].wire() as wire:
                produce(wire, partition, len(expected))
        expected = [b"%d" % number for number in range(len(expected) + COUNT)]
        pair[dead].start()
        for partition in (0, 1):
            wait_until("isr", 60, lambda p=partition: state(chroot, p)[1] == both)

    # A polite stop hands leadership over before the broker goes.
    assert pair[0].stop() == 143
    assert "Controlled shutdown succeeded" in pair[0].log
    for partition in (0, 1):
        wait_until("leader", 30, lambda p=partition: _leads(pair[1], p))
        assert contents(pair[1], partition) == expected
    assert pair[1].stop() == 143


def _leads(broker: Broker, partition: int) -> bool:
    with broker.wire() as wire:
        wire.offset(TOPIC, partition)
        return wire.leader(TOPIC, partition) == broker.broker_id
