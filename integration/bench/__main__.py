"""Ours and the original in one run, cell by cell and round by round in turn.

`--quick` is one round of short cells (under five minutes); `--json FILE` also keeps the numbers.
Without the original only ours is measured. A cell's number is the median of its rounds.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from integration import original
from integration.bench import load
from integration.bench.table import Row, markdown
from integration.harness import Broker, ZooKeeper, kill_everything

PARTITIONS = 6
CONNECTIONS = 4
IN_FLIGHT = 5
RECORD_BYTES = {"10 B": 10, "100 B": 100, "1 KB": 1024}
BATCH_BYTES = {"1 record": 0, "16 KB": 16384, "64 KB": 65536}
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


QUICK = Effort(1, 1.5, 2.0, 200 << 20, 8 << 20, 500)
FULL = Effort(3, 4.0, 5.0, 1 << 30, 32 << 20, 5000)


class Bench:
    """Runs cells against one broker; the numbers of a cell gather in `rows` by its name."""

    def __init__(self, rows: dict[str, Row], effort: Effort) -> None:
        self._rows = rows
        self._effort = effort
        self._topics = 0

    def note(self, kind: str, name: str, unit: str, value: float, more_is_better: bool) -> None:
        row = self._rows.setdefault(name, Row(name, unit, more_is_better, {}))
        row.values.setdefault(kind, []).append(value)

    def start(self, broker: Broker) -> None:
        """Start time and idle memory, then a warm-up nobody measures."""
        broker.start()
        self.note(broker.kind, "start time", "s", broker.started_in_s, False)
        topic = self._topic(broker)
        self.note(broker.kind, "idle memory", "MB", broker.memory() / MB, False)
        for record in (10, 1024):
            self._produce(broker, topic, load.batch(record, 16384), 1, self._effort.warm_s)
        self._produce(broker, topic, load.batch(100, 0), 1, self._effort.warm_s)
        broker.delete_topic(topic)
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
        found = load.latencies(broker.port, topic, self._effort.latency_records)
        for percent in (50, 99):
            value = found[len(found) * percent // 100] * 1e3
            self.note(broker.kind, f"end-to-end latency p{percent}", "ms", value, False)
        broker.delete_topic(topic)

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
    found.append(("latency", bench.latency))
    return found


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
    for number in range(effort.rounds):
        for name, cell in cells(benches):
            if only not in name:
                continue
            print(f"round {number + 1}: {name}", file=sys.stderr, flush=True)
            for broker in brokers if number % 2 == 0 else brokers[::-1]:
                cell(broker)
    for broker in brokers:
        benches.memory(broker)
    return list(rows.values())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m integration.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of short cells")
    parser.add_argument("--rounds", type=int, help="rounds per cell")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
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
    if options.json:
        numbers = {row.name: {"unit": row.unit, **row.values} for row in rows}
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
