"""The resources a kafka08 broker uses when idle and over time: `make bench WHAT=steady`.

- memory with 10,000 idle connections;
- CPU share of an idle broker that leads 2,000 partitions;
- CPU of the broker while one consumer group and 24 groups read the same topic;
- rate of one broker and of two at the same time, each with a load of its own;
- memory while it is produced to and read from at full load, plain and compressed, for `--soak`
  minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import resource
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from integration.bench import load, reading, records
from integration.harness import Broker, ZooKeeper, kill_everything

MB = 1e6
PARTITIONS = 6
GROUP_BYTES = 96 << 20  # for each partition
GROUPS = 24
LONE_GROUPS = 6
SOAK_CODECS = ("none", "gzip", "snappy")
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
    topic, sets = f"groups-{codec}", [records.equal(100, 16384, codec)]
    broker.create_topic(topic, PARTITIONS)
    load.preload(broker.port, topic, PARTITIONS, sets, GROUP_BYTES)

    def cost(readers: int) -> float:
        cpu = broker.cpu_seconds()
        reading.drain(broker.port, topic, PARTITIONS, sets, max_bytes=1 << 20, groups=readers)
        return broker.cpu_seconds() - cpu

    # One after the other; of compressed sets the first pays for what the others find done.
    one = statistics.mean(cost(1) for _ in range(LONE_GROUPS))
    show(f"{GROUPS} groups at once, {codec}: CPU, over one group's", cost(GROUPS) / one, "times")


def side_by_side(brokers: Sequence[Broker], seconds: float) -> None:
    """Each broker under a load generator of its own, all at the same time."""
    topic = f"beside{len(brokers)}"
    for broker in brokers:
        broker.create_topic(topic, PARTITIONS)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(brokers), mp_context=context) as pool:
        list(pool.map(produce, *zip(*[(b.port, topic, "none", 1.0) for b in brokers], strict=True)))
        loads = [(broker.port, topic, "none", seconds) for broker in brokers]
        amounts = list(pool.map(produce, *zip(*loads, strict=True)))
    rate = sum(amount.payload / MB / amount.seconds for amount in amounts)
    show(f"produce 100 B x 16 KB, {len(brokers)} brokers at once", rate, "MB/s")


def produce(port: int, topic: str, codec: str, seconds: float) -> load.Amount:
    return load.produce(
        port,
        topic,
        PARTITIONS,
        [records.equal(100, 16384, codec)],
        acks=1,
        connections=4,
        in_flight=5,
        seconds=seconds,
        max_bytes=1 << 40,
    )


def soak(broker: Broker, minutes: float) -> None:
    """Turns of ten seconds: a codec's sets go in, and the last of them come out."""
    begin, told = time.monotonic(), []
    for codec in SOAK_CODECS:
        broker.create_topic(f"soak-{codec}", PARTITIONS)
    while time.monotonic() - begin < minutes * 60:
        codec = SOAK_CODECS[len(told) % len(SOAK_CODECS)]
        produce(broker.port, f"soak-{codec}", codec, 7)
        reading.fetch(
            broker.port,
            f"soak-{codec}",
            PARTITIONS,
            [records.equal(100, 16384, codec)],
            max_bytes=1 << 20,
            connections=PARTITIONS,
            seconds=3,
            back=200_000,
        )
        told.append(broker.memory() / MB)
        print(f"{time.monotonic() - begin:6.0f} s {told[-1]:.0f} MB", file=sys.stderr, flush=True)
    tenth = max(1, len(told) // 10)
    show("memory after the first tenth of the soak", max(told[:tenth]), "MB")
    show("memory in its last tenth", max(told[-tenth:]), "MB")


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
            for codec in SOAK_CODECS:
                groups(second, codec)
            side_by_side([second], 10)
            side_by_side([second, start("beside")], 10)
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
