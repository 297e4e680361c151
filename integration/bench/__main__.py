"""Ours and the original in one run, cell by cell and round by round in turn.

`--quick` is one round of short cells (under five minutes); `--json FILE` also keeps the numbers.
Without the original only ours is measured. A cell's number is the median of its rounds.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from integration import original
from integration.bench import chart, load
from integration.bench.table import Row, markdown
from integration.harness import Broker, ZooKeeper, kill_everything
from integration.wire import wait_until

PARTITIONS = 6
# What groups read, for each partition: all of it fits the caches of ours.
GROUP_BYTES = 16 << 20
CONNECTIONS = 4
IN_FLIGHT = 5
RECORD_BYTES = {"10 B": 10, "100 B": 100, "1 KB": 1024}
BATCH_BYTES = {"1 record": 0, "4 KB": 4096, "16 KB": 16384, "64 KB": 65536}
FETCH_BYTES = {"64 KB": 65536, "1 MB": 1 << 20}
FETCH_CODECS = ("none", "gzip", "snappy")
HEAP = ("-Xmx1G", "-Xms1G")
PROPS = {
    "delete.topic.enable": "true",
    "num.network.threads": 3,
    "num.io.threads": 8,
    "socket.send.buffer.bytes": 102400,
    "socket.receive.buffer.bytes": 102400,
    "zookeeper.session.timeout.ms": 6000,
}
MB = 1e6


class Effort(NamedTuple):
    """How long things take."""

    rounds: int
    cell_s: float
    warm_s: float
    max_cell_bytes: int
    preload_bytes: int
    latency_records: int
    partitions: int


QUICK = Effort(1, 1.5, 2.0, 200 << 20, 8 << 20, 1000, 200)
FULL = Effort(5, 4.0, 5.0, 1 << 30, 32 << 20, 5000, 1000)


class Bench:
    """Runs cells against one broker; the numbers of a cell gather in `rows` by its name."""

    def __init__(self, rows: dict[str, Row], effort: Effort) -> None:
        self._rows = rows
        self._effort = effort
        self._topics = 0
        self.half_load = 100.0

    def note(self, kind: str, name: str, unit: str, value: float, more_is_better: bool) -> None:
        row = self._rows.setdefault(name, Row(name, unit, more_is_better, {}))
        row.values.setdefault(kind, []).append(value)

    def start(self, broker: Broker) -> None:
        """Start time and idle memory, then a warm-up nobody measures."""
        broker.start()
        self.note(broker.kind, "start, empty", "s", broker.started_in_s, False)
        topic = self._topic(broker)
        self.note(broker.kind, "idle memory", "MB", broker.memory() / MB, False)
        for record in (10, 1024):
            self._produce(broker, topic, load.batch(record, 16384), 1, self._effort.warm_s)
        self._produce(broker, topic, load.batch(100, 0), 1, self._effort.warm_s)
        broker.delete_topic(topic)
        self._warm_reads(broker)

    def _warm_reads(self, broker: Broker) -> None:
        topic, batch = self._topic(broker), load.batch(100, 16384, "snappy")
        load.preload(broker.port, topic, PARTITIONS, batch, 1 << 20)
        self._fetch(broker, topic, batch, 65536, self._effort.warm_s)
        broker.delete_topic(topic)

    def _topic(self, broker: Broker) -> str:
        self._topics += 1
        topic = f"bench{self._topics:04}"
        broker.create_topic(topic, PARTITIONS)
        return topic

    def _produce(
        self, broker: Broker, topic: str, batch: load.Batch, acks: int, seconds: float
    ) -> load.Amount:
        return load.produce(
            broker.port,
            topic,
            PARTITIONS,
            batch,
            acks=acks,
            connections=CONNECTIONS,
            in_flight=IN_FLIGHT,
            seconds=seconds,
            max_bytes=self._effort.max_cell_bytes,
        )

    def _fetch(
        self, broker: Broker, topic: str, batch: load.Batch, max_bytes: int, seconds: float
    ) -> load.Amount:
        return load.fetch(
            broker.port,
            topic,
            PARTITIONS,
            batch,
            max_bytes=max_bytes,
            connections=CONNECTIONS,
            seconds=seconds,
        )

    def produce(self, broker: Broker, name: str, batch: load.Batch, acks: int) -> None:
        topic = self._topic(broker)
        cpu = broker.cpu_seconds()
        amount = self._produce(broker, topic, batch, acks, self._effort.cell_s)
        self._measured(broker, name, amount, broker.cpu_seconds() - cpu)
        with broker.wire() as wire:
            stored = sum(wire.offset(topic, number) for number in range(PARTITIONS))
        if stored != amount.records:
            raise RuntimeError(f"{name}: sent {amount.records} records, {stored} stored")
        broker.delete_topic(topic)

    def fetch(self, broker: Broker, name: str, batch: load.Batch, sizes: dict[str, int]) -> None:
        topic = self._topic(broker)
        load.preload(broker.port, topic, PARTITIONS, batch, self._effort.preload_bytes)
        for size, max_bytes in sizes.items():
            cpu = broker.cpu_seconds()
            amount = self._fetch(broker, topic, batch, max_bytes, self._effort.cell_s)
            self._measured(broker, f"{name} {size}", amount, broker.cpu_seconds() - cpu)
        broker.delete_topic(topic)

    def _measured(self, broker: Broker, name: str, amount: load.Amount, cpu: float) -> None:
        kind = broker.kind
        self.note(kind, name, "MB/s", amount.payload / MB / amount.seconds, True)
        self.note(kind, f"{name}: records", "k/s", amount.records / 1e3 / amount.seconds, True)
        self.note(kind, f"{name}: CPU per M records", "s", cpu / amount.records * 1e6, False)
        self.note(kind, f"{name}: CPU per GB", "s", cpu / amount.payload * 1e9, False)
        share = 100 * amount.generator_cpu_s / amount.seconds
        self.note(kind, f"{name}: generator busy", "%", share, False)

    def latency(self, broker: Broker) -> None:
        topic = self._topic(broker)
        load.latencies(broker.port, topic, self._effort.latency_records // 5)
        self._latencies(broker, topic, "end-to-end latency")
        broker.delete_topic(topic)

    def latency_beside_load(self, broker: Broker) -> None:
        """While another client produces half of what the slower kind can take."""
        topic, busy = self._topic(broker), self._topic(broker)
        batch = load.batch(100, 16384)
        context = multiprocessing.get_context("spawn")
        stop = context.Event()
        args = (broker.port, busy, PARTITIONS, batch, self.half_load, stop)
        other = context.Process(target=load.produce_at, args=args, daemon=True)
        other.start()
        wait_until("load", 60, lambda: self._end(broker, busy))
        self._latencies(broker, topic, "end-to-end latency beside half load")
        stop.set()
        other.join(30)
        other.kill()
        broker.delete_topic(topic)
        broker.delete_topic(busy)

    def _latencies(self, broker: Broker, topic: str, name: str) -> None:
        found = load.latencies(broker.port, topic, self._effort.latency_records)
        for percent in (50, 99, 99.9):
            value = found[int(len(found) * percent / 100)] * 1e3
            self.note(broker.kind, f"{name} p{percent:g}", "ms", value, False)

    def _end(self, broker: Broker, topic: str) -> int:
        with broker.wire() as wire:
            return wire.offset(topic, 0)

    def find_half_load(self, brokers: list[Broker]) -> None:
        """Half of the batches a second that the slowest of them takes."""
        batch, rates = load.batch(100, 16384), []
        for broker in brokers:
            topic = self._topic(broker)
            amount = self._produce(broker, topic, batch, 1, self._effort.warm_s)
            rates.append(amount.records / batch.records / amount.seconds)
            broker.delete_topic(topic)
        self.half_load = min(rates) / 2

    def groups(self, broker: Broker, name: str, batch: load.Batch) -> None:
        """A topic that nobody has read yet: one group, then four more at a time."""
        topic = self._topic(broker)
        load.preload(broker.port, topic, PARTITIONS, batch, GROUP_BYTES)
        for shown, groups in (("first group", 1), ("four more", 4)):
            cpu = broker.cpu_seconds()
            amount = load.drain(
                broker.port, topic, PARTITIONS, batch, max_bytes=1 << 20, groups=groups
            )
            self._measured(broker, f"{name}, {shown}", amount, broker.cpu_seconds() - cpu)
        broker.delete_topic(topic)

    def past_the_cache(self, broker: Broker, name: str, batch: load.Batch) -> None:
        """A group that reads what was produced before this broker started, so that nothing of it
        is at hand; a broker of its own."""
        broker.start()
        topic = self._topic(broker)
        load.preload(broker.port, topic, PARTITIONS, batch, GROUP_BYTES)
        for _ in range(self._effort.rounds):
            broker.stop()
            broker.start()
            self._warm_reads(broker)
            cpu = broker.cpu_seconds()
            amount = load.drain(broker.port, topic, PARTITIONS, batch, max_bytes=1 << 20, groups=1)
            self._measured(broker, name, amount, broker.cpu_seconds() - cpu)
        broker.stop()

    def replicated(self, three: list[Broker]) -> None:
        """Three replicas, acks -1: all partitions led by the first."""
        leader = three[0]
        topic = f"rf3-{time.monotonic_ns()}"
        leader.create_topic(topic, PARTITIONS, replicas=[b.broker_id for b in three])
        cpu = sum(broker.cpu_seconds() for broker in three)
        amount = self._produce(leader, topic, load.batch(100, 16384), -1, self._effort.cell_s)
        cpu = sum(broker.cpu_seconds() for broker in three) - cpu
        self._measured(leader, "3 replicas, 100 B x 16 KB, acks -1", amount, cpu)
        leader.delete_topic(topic)

    def start_with_partitions(self, broker: Broker) -> None:
        """A broker of its own, with so many partitions of a few records each."""
        broker.start()
        for first in range(0, self._effort.partitions, 50):
            broker.create_topic(f"many{first:04}", 50)
            with broker.wire() as wire:
                for number in range(50):
                    wire.produce(f"many{first:04}", number, load.batch(100, 1000).message_set)
        for _ in range(self._effort.rounds):
            broker.stop()
            broker.start()
            name = f"start, {self._effort.partitions} partitions"
            self.note(broker.kind, name, "s", broker.started_in_s, False)
        broker.stop()

    def forget_first(self, prefix: str) -> None:
        """The first number of each row was a warm-up."""
        for name, row in self._rows.items():
            if name.startswith(prefix):
                for kind, values in row.values.items():
                    row.values[kind] = values[-self._effort.rounds :]

    def memory(self, broker: Broker) -> None:
        self.note(broker.kind, "memory after load", "MB", broker.memory() / MB, False)
        self.note(broker.kind, "peak memory", "MB", broker.memory("VmHWM") / MB, False)


def cells(bench: Bench) -> list[tuple[str, Callable[[Broker], None]]]:
    """Every measured cell as (name, run)."""
    found: list[tuple[str, Callable[[Broker], None]]] = []

    def produce(name: str, batch: load.Batch, acks: int) -> None:
        found.append((name, lambda broker: bench.produce(broker, name, batch, acks)))

    def fetch(name: str, batch: load.Batch) -> None:
        found.append((name, lambda broker: bench.fetch(broker, name, batch, FETCH_BYTES)))

    for acks in (1, 0):
        for record, record_bytes in RECORD_BYTES.items():
            for size, batch_bytes in BATCH_BYTES.items():
                name = f"produce {record} x {size}, acks {acks}"
                produce(name, load.batch(record_bytes, batch_bytes), acks)
    for codec in ("gzip", "snappy"):
        produce(f"produce 100 B x 16 KB {codec}, acks 1", load.batch(100, 16384, codec), 1)
    for codec in FETCH_CODECS:
        shown = "plain" if codec == "none" else codec
        fetch(f"fetch 100 B {shown}", load.batch(100, 16384, codec))
    for codec in ("gzip", "snappy"):
        name, batch = f"fetch {codec}", load.batch(100, 16384, codec)
        found.append((name, lambda broker, n=name, b=batch: bench.groups(broker, n, b)))
    found.append(("latency", bench.latency))
    found.append(("latency beside half load", bench.latency_beside_load))
    return found


def run_replicated(bench: Bench, kinds: list[str], rounds: int, connect: str, root: Path) -> None:
    """Three brokers of one kind at a time: six would want more memory than they are worth."""
    for kind in kinds:
        three = [
            Broker(
                kind,
                root / f"{kind}-{number}",
                f"{connect}/{kind}-3",
                broker_id=number,
                props=PROPS,
                heap=HEAP,
            ).start()
            for number in range(3)
        ]
        for _ in range(rounds + 1):
            say(f"3 replicas: {kind}")
            bench.replicated(three)
        bench.forget_first("3 replicas")
        for broker in three:
            broker.kill()


def run(kinds: list[str], effort: Effort, only: str, directory: Path) -> list[Row]:
    rows: dict[str, Row] = {}
    benches = Bench(rows, effort)
    zookeeper = ZooKeeper(directory / "zookeeper").start()
    brokers = []
    for kind in kinds:
        chroot = f"{zookeeper.connect}/{kind}"
        broker = Broker(kind, directory / kind, chroot, props=PROPS, heap=HEAP)
        benches.start(broker)
        brokers.append(broker)
    benches.find_half_load(brokers)
    for number in range(effort.rounds):
        for name, cell in cells(benches):
            if only not in name:
                continue
            say(f"round {number + 1}: {name}")
            for broker in brokers if number % 2 == 0 else brokers[::-1]:
                cell(broker)
    for broker in brokers:
        benches.memory(broker)
        broker.kill()
    for codec in ("gzip", "snappy"):
        name = f"fetch {codec}, first group past the cache"
        if only in name:
            for kind in kinds:
                say(f"{name}: {kind}")
                chroot = f"{zookeeper.connect}/{kind}-{codec}"
                restarted = Broker(
                    kind, directory / f"{kind}-{codec}", chroot, props=PROPS, heap=HEAP
                )
                benches.past_the_cache(restarted, name, load.batch(100, 16384, codec))
    if only in "3 replicas":
        run_replicated(benches, kinds, effort.rounds, zookeeper.connect, directory)
    if only in "start, partitions":
        for kind in kinds:
            say(f"start with partitions: {kind}")
            chroot = f"{zookeeper.connect}/{kind}-many"
            props = {**PROPS, "log.index.size.max.bytes": 1 << 20}
            many = Broker(kind, directory / f"{kind}-many", chroot, props=props, heap=HEAP)
            benches.start_with_partitions(many)
    return list(rows.values())


def chart_of(rows: list[Row], kinds: list[str]) -> str:
    """What producing with acks 1 gives, by record and batch size."""
    found = {row.name: row for row in rows}
    values = {}
    for record in RECORD_BYTES:
        for size in BATCH_BYTES:
            row = found.get(f"produce {record} x {size}, acks 1")
            for kind in kinds:
                value = row and row.median(kind)
                if value:
                    values[record, size, kind] = value
    title = "Produce rate, acks 1, 6 partitions"
    return chart.svg(title, "MB/s", list(RECORD_BYTES), list(BATCH_BYTES), kinds, values)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m integration.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of short cells")
    parser.add_argument("--rounds", type=int, help="rounds per cell")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--chart", type=Path, help="also draw rate against sizes, an SVG")
    parser.add_argument("--only", default="", help="only cells whose name holds this")
    parser.add_argument("--kind", choices=("ours", "original"), help="measure this one alone")
    parser.add_argument("--dir", type=Path, help="where the data goes (a temporary directory)")
    options = parser.parse_args()
    effort = QUICK if options.quick else FULL
    if options.rounds:
        effort = effort._replace(rounds=options.rounds)
    kinds = [options.kind] if options.kind else ["ours", "original"]
    if "original" in kinds and not original.available():
        print(f"The original is not measured: {original.missing()}\n")
        kinds.remove("original")
    try:
        with tempfile.TemporaryDirectory(prefix="kafka08-bench-", dir=options.dir) as directory:
            try:
                rows = run(kinds, effort, options.only, Path(directory))
            finally:
                kill_everything()
    except KeyboardInterrupt:
        return 130
    print(f"{platform.machine()}, Python {platform.python_version()}, median of {effort.rounds}\n")
    print(markdown(rows, kinds))
    if options.chart:
        options.chart.write_text(chart_of(rows, kinds))
    if options.json:
        numbers = {row.name: {"unit": row.unit, **row.values} for row in rows}
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
