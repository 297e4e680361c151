"""kill -9 under load, again and again: what was acknowledged stays, in order, without holes."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.harness import Broker, Process, ZooKeeper
from integration.wire import Entry, Wire, WireError, entry, gzip_set, wait_until

ROUNDS = 20
PARTITIONS = 3
TOPIC = "crash"
SEED = 20150902
# Small segments and index intervals, so that recovery meets rolls and index entries.
PROPS = {"log.segment.bytes": 300_000, "log.index.interval.bytes": 1000}


class Load(threading.Thread):
    """Produces to one partition with acks=1 and remembers what was acknowledged.

    A lost connection is opened again; the record in flight may be stored or not.
    """

    def __init__(self, broker: Broker, partition: int, compressed: bool) -> None:
        super().__init__(name=f"load-{partition}", daemon=True)
        self.acknowledged: list[tuple[int, bytes]] = []
        self.sent: set[bytes] = set()
        self.refused: list[int] = []
        self._broker = broker
        self._partition = partition
        self._compressed = compressed
        self._end = threading.Event()

    def run(self) -> None:
        while not self._end.is_set():
            with contextlib.suppress(OSError), self._broker.wire() as wire:
                self._produce(wire)
            time.sleep(0.05)

    def _produce(self, wire: Wire) -> None:
        while not self._end.is_set():
            values = [self._value() for _ in range(random.randint(1, 20))]
            if self._compressed:
                message_set = gzip_set([(None, value) for value in values])
            else:
                message_set = b"".join(entry(b"k", value) for value in values)
            try:
                base = wire.produce(TOPIC, self._partition, message_set)
            except WireError as error:
                self.refused.append(error.code)
                time.sleep(0.05)
                continue
            self.acknowledged += [(base + i, value) for i, value in enumerate(values)]

    def _value(self) -> bytes:
        value = b"%d-%d-" % (self._partition, len(self.sent)) + b"v" * random.randint(0, 400)
        self.sent.add(value)
        return value

    def stop(self) -> None:
        self._end.set()
        self.join(30)
        assert not self.is_alive()


def verify(entries: list[Entry], load: Load) -> None:
    assert [e.offset for e in entries] == list(range(len(entries))), "offsets are not dense"
    stored = [e.value for e in entries]
    for offset, value in load.acknowledged:
        assert offset < len(stored), f"acknowledged offset {offset} lost, end {len(stored)}"
        assert stored[offset] == value, f"another value at acknowledged offset {offset}"
    assert set(stored) <= load.sent
    assert set(load.refused) <= {3, 5, 6}, "errors other than a leader not yet there"


@pytest.mark.slow
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
def test_acknowledged_survives_kill_9(
    kind: str,
    compressed: bool,
    zookeeper: ZooKeeper,
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    random.seed(SEED)
    chroot = f"{zookeeper.connect}/crash-{kind}-{compressed}"
    broker = Broker(kind, tmp_path, chroot, props=PROPS)
    launch(broker)
    broker.start()
    broker.create_topic(TOPIC, PARTITIONS)
    loads = [Load(broker, number, compressed) for number in range(PARTITIONS)]
    for load in loads:
        load.start()
    try:
        for _ in range(ROUNDS):
            before = [len(load.acknowledged) for load in loads]
            wait_until("load", 30, lambda before=before: _progress(loads, before))
            time.sleep(random.uniform(0, 0.5))
            broker.kill()
            broker.start()
            broker.wait_for_leader(TOPIC, PARTITIONS)
    finally:
        for load in loads:
            load.stop()
    with broker.wire() as wire:
        for number, load in enumerate(loads):
            assert load.acknowledged
            verify(wire.read_all(TOPIC, number), load)
    assert broker.stop() == 143


def _progress(loads: list[Load], before: list[int]) -> bool:
    return all(len(load.acknowledged) > n for load, n in zip(loads, before, strict=True))


def test_a_clean_stop_under_load_loses_nothing(
    kind: str, zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    broker = Broker(kind, tmp_path, f"{zookeeper.connect}/stop-{kind}", props=PROPS)
    launch(broker)
    broker.start()
    broker.create_topic(TOPIC)
    load = Load(broker, 0, compressed=False)
    load.start()
    try:
        wait_until("load", 30, lambda: len(load.acknowledged) > 1000)
        assert broker.stop() == 143
        assert "shut down completed" in broker.log
        assert (broker.log_dir / ".kafka_cleanshutdown").exists()
        broker.start()
        assert not (broker.log_dir / ".kafka_cleanshutdown").exists()
        broker.wait_for_leader(TOPIC)
    finally:
        load.stop()
    with broker.wire() as wire:
        verify(wire.read_all(TOPIC, 0), load)
