"""kill -9 of a broker whose cleaner works: its child ends by itself, and leaves no traceback."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from integration.harness import Broker, ZooKeeper
from integration.wire import entry, wait_until

PROPS = {
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": 20,
    "log.cleaner.io.max.bytes.per.second": 20_000,  # so that a cleaning takes long
    "log.segment.bytes": 50_000,
    "offsets.topic.num.partitions": 1,
}
TOPIC = "compacted"


def children(broker: Broker) -> list[int]:
    """The processes that the broker's cleaner has started."""
    path = Path(f"/proc/{broker.pid}/task")
    found = [int(pid) for task in path.iterdir() for pid in (task / "children").read_text().split()]
    return [pid for pid in found if "kafka08.log.cleaning.compaction" in command(pid)]


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_the_cleaners_child_ends_in_silence(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    broker = Broker("ours", tmp_path, f"{zookeeper.connect}/killed-broker", props=PROPS)
    broker.start()
    try:
        broker.create_topic(TOPIC, 1, {"cleanup.policy": "compact"})
        with broker.wire() as wire:
            for number in range(400):
                wire.produce(TOPIC, 0, entry(b"k%d" % (number % 10), b"v" * 1000), acks=1)
        wait_until("a cleaning", 60, lambda: bool(children(broker)))
        (child,) = children(broker)
        os.kill(broker.pid, signal.SIGKILL)
        wait_until("the end of its child", 10, lambda: "compaction" not in command(child))
    finally:
        broker.kill()
    assert "Traceback" not in broker.log
    assert "Error" not in broker.log
