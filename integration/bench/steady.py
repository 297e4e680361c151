"""What a broker of ours costs by itself, and whether that stays so: `make bench-steady`.

- memory with 10,000 idle connections;
- CPU share of an idle broker that leads 2,000 partitions;
- CPU of the broker while one consumer group and 24 groups read the same topic;
- memory while it is produced to and read from at full load for `--soak` minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import socket
import sys
import tempfile
import time
from pathlib import Path

from integration.bench import load
from integration.harness import Broker, ZooKeeper, kill_everything

MB = 1e6
PARTITIONS = 6
PROPS = {
    "log.segment.bytes": 64 << 20,
    "log.retention.bytes": 256 << 20,
    "log.retention.check.interval.ms": 5000,
    "file.delete.delay.ms": 1000,
    "log.index.size.max.bytes": 1 << 20,
    "delete.topic.enable": "true",
    "zookeeper.session.timeout.ms": 6000,
}
# Local addresses to connect from: one has but 28,000 ports, and others use them too.
SOURCES = ("127.0.0.1", "127.0.0.2", "127.0.0.3")


def show(name: str, value: float, unit: str) -> None:
    print(f"| {name} | {value:.4g} | {unit} |", flush=True)


def idle_connections(broker: Broker, count: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < count + 100:
        print(f"only {hard} descriptors are allowed: {count} connections cannot be tried")
        return
    with contextlib.ExitStack() as stack:
        for number in range(count):
            source = (SOURCES[number % len(SOURCES)], 0)
            address = ("127.0.0.1", broker.port)
            stack.enter_context(socket.create_connection(address, 30, source_address=source))
        with broker.wire() as wire:  # the last of them is served like the first
            wire.leader("none", 0)
        show(f"{count:,} idle connections", broker.memory() / MB, "MB")


def idle_partitions(broker: Broker, count: int, seconds: float) -> None:
    for first in range(0, count, 100):
        broker.create_topic(f"idle{first}", min(100, count - first))
    time.sleep(5)
    cpu = broker.cpu_seconds()
    time.sleep(seconds)
    share = 100 * (broker.cpu_seconds() - cpu) / seconds
    show(f"{count:,} partitions led, idle", share, "% CPU")


def groups(broker: Broker, codec: str) -> None:
    topic, batch = f"groups-{codec}", load.batch(100, 16384, codec)
    broker.create_topic(topic, PARTITIONS)
    load.preload(broker.port, topic, PARTITIONS, batch, 8 << 20)
    spent = []
    for number in (1, 1, 24):  # the first pays for what all others find done
        cpu = broker.cpu_seconds()
        load.drain(broker.port, topic, PARTITIONS, batch, max_bytes=1 << 20, groups=number)
        spent.append(broker.cpu_seconds() - cpu)
    show(f"24 groups, {codec}: CPU, over one group's", spent[2] / max(spent[0], 0.01), "times")


def soak(broker: Broker, minutes: float) -> None:
    topic, batch = "soak", load.batch(100, 16384)
    broker.create_topic(topic, PARTITIONS)
    begin, told = time.monotonic(), []
    while time.monotonic() - begin < minutes * 60:
        load.produce(
            broker.port,
            topic,
            PARTITIONS,
            batch,
            acks=1,
            connections=4,
            in_flight=5,
            seconds=10,
            max_bytes=1 << 40,
        )
        told.append(broker.memory() / MB)
        print(f"{time.monotonic() - begin:6.0f} s {told[-1]:.0f} MB", file=sys.stderr, flush=True)
    tenth = max(1, len(told) // 10)
    show("memory after the first tenth of the soak", told[tenth - 1], "MB")
    show("memory at its end", told[-1], "MB")


def main() -> int:
    parser = argparse.ArgumentParser("python -m integration.bench.steady", description=__doc__)
    parser.add_argument("--soak", type=float, default=30, help="minutes of full load (0: none)")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=2_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kafka08-steady-") as directory:
        root = Path(directory)
        try:
            zookeeper = ZooKeeper(root / "zookeeper").start()

            def start(name: str) -> Broker:
                chroot = f"{zookeeper.connect}/{name}"
                return Broker("ours", root / name, chroot, props=PROPS).start()

            print("| what | ours | unit |\n| - | - | - |")
            first = start("first")
            show("idle", first.memory() / MB, "MB")
            idle_connections(first, options.connections)
            first.kill()
            second = start("second")
            for codec in load.CODECS:
                groups(second, codec)
            if options.soak:
                soak(second, options.soak)
            second.kill()
            third = start("third")
            idle_partitions(third, options.partitions, 30)
        finally:
            kill_everything()
    return 0


if __name__ == "__main__":
    sys.exit(main())
