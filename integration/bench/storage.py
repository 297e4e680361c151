"""How storage fares as data grows, ours beside the original: `make bench WHAT=storage`.

Per kind, one after the other, so that only one's data is on the disk:

- append and fetch rate at the log's end with 1 GB of retained data and with 30 GB (`--retained`),
  in turn, and the second over the first;
- produce round trips, one 16 KB batch at a time: alone, beside a reader that drains the same hot
  data again and again, and beside one that drains data dropped from the page cache (p50, p99; the
  readers' rates). The hot reader costs processor time alone, so the two readers' difference is
  what the disk does;
- start after kill -9 without any recovery point, the page cache dropped: seconds per GB, for ours
  also with the side files of sealed segments removed;
- the cleaner's own account of its work on a compacted topic: MB/s read and written.

Cells of the first two kinds run ROUNDS times; the median counts. Every number is also
printed as it comes. Without the original only ours is measured. Dropping the page cache takes
root; without it the files of the broker are dropped one by one.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from integration import original
from integration.bench import load, reading, records
from integration.bench.machine import described
from integration.bench.table import Row, markdown
from integration.harness import Broker, ZooKeeper, kill_everything
from integration.wire import Wire, entry, produce_frame, wait_until

GB = 1 << 30
MB = 1e6
PARTITIONS = 6
RETAINED, OTHER, COMPACTED = "retained", "other", "compacted"
TAIL_BYTES = 64 << 20
KEYS = 100_000
ROUNDS = 3
SETTLE_S = 5
HOT_BYTES = 32 << 20
PATIENCE_S = 1200
PROPS = {
    "log.retention.hours": 10000,
    "log.flush.offset.checkpoint.interval.ms": 10_000_000,
    "log.cleaner.enable": "true",
    "log.cleaner.min.cleanable.ratio": 0.01,
    "log.cleaner.backoff.ms": 500,
    "num.network.threads": 3,
    "num.io.threads": 8,
    "zookeeper.session.timeout.ms": 6000,
}
HEAP = ("-Xmx1G", "-Xms1G")
CLEANED = re.compile(r"([\d,.]+) MB of log processed in ([\d,.]+) seconds")


class Storage:
    """One broker of a kind in `directory`; numbers gather in `rows`."""

    def __init__(
        self,
        rows: dict[str, Row],
        kind: str,
        zookeeper: str,
        directory: Path,
        seconds: float,
        segment_bytes: int,
    ) -> None:
        self.kind = kind
        self._rows = rows
        self._seconds = seconds
        self._batch = records.equal(1024, 65536)
        self._segment_bytes = segment_bytes
        props = {**PROPS, "log.segment.bytes": segment_bytes}
        self.broker = Broker(kind, directory, zookeeper, props=props, heap=HEAP)

    def note(self, name: str, unit: str, value: float, more_is_better: bool = False) -> None:
        row = self._rows.setdefault(name, Row(name, unit, more_is_better, {}))
        row.values.setdefault(self.kind, []).append(value)
        say(f"{self.kind}: {name} {value:.4g} {unit}")

    # Rates with little and with much data

    def size(self) -> int:
        return sum(path.stat().st_size for path in self.broker.log_dir.glob("*/*.log"))

    def grow(self, to: int) -> None:
        """Produce until there is so much."""
        while (missing := to - self.size()) > 0:
            self._produce(RETAINED, self._batch, 600, missing)

    def _produce(self, topic: str, batch: records.Batch, seconds: float, size: int) -> load.Amount:
        return load.produce(
            self.broker.port,
            topic,
            PARTITIONS,
            [batch],
            acks=1,
            connections=4,
            in_flight=5,
            seconds=seconds,
            max_bytes=size,
        )

    def warm_up(self) -> None:
        batch = records.equal(100, 16384)
        self._produce(OTHER, batch, self._seconds, GB)
        self._fetch_tail(batch)

    def rates(self, shown: str) -> None:
        batch = records.equal(100, 16384)
        os.sync()  # what is still to be written back is not this cell's business
        amount = self._produce(OTHER, batch, self._seconds, GB)
        self.note(f"append with {shown}", "MB/s", amount.payload / MB / amount.seconds, True)
        self.note(f"fetch with {shown}", "MB/s", self._fetch_tail(batch), True)

    def note_ratios(self, much: str, little: str) -> None:
        for what in ("append", "fetch"):
            first, second = (self._median(f"{what} with {shown}") for shown in (much, little))
            self.note(f"{what}, {much} / {little}", "", first / second, True)

    def _median(self, name: str) -> float:
        return self._rows[name].median(self.kind) or 0.0

    def _fetch_tail(self, batch: records.Batch) -> float:
        with Wire(self.broker.port) as wire:
            ends = [wire.offset(OTHER, number) for number in range(PARTITIONS)]
        back = TAIL_BYTES // len(batch.message_set) * batch.records
        readers = [
            reading.Reader(
                self.broker.port, OTHER, number, 1 << 20, [batch], first=max(0, end - back)
            )
            for number, end in enumerate(ends[:4])
        ]
        begin, size = time.perf_counter(), 0
        for reader in readers:
            reader.ask()
        while time.perf_counter() - begin < self._seconds:
            for reader in readers:
                while not reader.receive():
                    pass
                reader.ask()
        took = time.perf_counter() - begin
        size = sum(reader.payload for reader in readers)
        for reader in readers:
            reader.connection.close()
        return size / MB / took

    # Hot traffic beside a cold reader

    def cold_reader(self) -> None:
        for _ in range(ROUNDS):
            time.sleep(SETTLE_S)  # what is some seconds old counts as in memory
            self._note_round_trips("alone", self._round_trips())
            self._beside_a_reader("hot")
            self._beside_a_reader("cold")
        for percent in ("p50", "p99"):
            for reader in ("hot", "cold"):
                beside = self._median(f"produce {percent} beside a {reader} reader")
                ratio = beside / self._median(f"produce {percent} alone")
                self.note(f"produce {percent}, beside a {reader} reader / alone", "", ratio)

    def _note_round_trips(self, where: str, found: list[float]) -> None:
        for percent in (50, 99):
            value = found[len(found) * percent // 100] * 1e3
            self.note(f"produce p{percent} {where}", "ms", value)

    def _beside_a_reader(self, kind: str) -> None:
        if kind == "cold":
            drop_page_cache(self.broker.log_dir)
        context = multiprocessing.get_context("spawn")
        drained = context.Value("q", 0)
        stop = context.Event()
        reader = context.Process(
            target=drain,
            args=(self.broker.port, self._batch, self.broker.log_dir, kind, drained, stop),
            daemon=True,
        )
        reader.start()
        hot = HOT_BYTES * PARTITIONS if kind == "hot" else 0  # by then it is
        wait_until("the reader", 60, lambda: drained.value > hot)
        begin, before = time.perf_counter(), drained.value
        self._note_round_trips(f"beside a {kind} reader", self._round_trips())
        rate = (drained.value - before) / MB / (time.perf_counter() - begin)
        stop.set()
        reader.join(30)
        reader.kill()
        self.note(f"{kind} reader", "MB/s", rate, True)

    def _round_trips(self) -> list[float]:
        frame = produce_frame(OTHER, 0, records.equal(100, 16384).message_set, 1)
        found = []
        with Wire(self.broker.port) as wire:
            end = time.perf_counter() + self._seconds
            while time.perf_counter() < end:
                begin = time.perf_counter()
                wire.call(frame)
                found.append(time.perf_counter() - begin)
                time.sleep(0.001)
        return sorted(found)

    # The cleaner

    def clean(self, size: int) -> None:
        self.broker.create_topic(COMPACTED, 1, {"cleanup.policy": "compact"})
        value = records.words(100, 3)
        batches = [
            b"".join(entry(b"%08d" % ((start + i) % KEYS), value) for i in range(1000))
            for start in range(0, KEYS, 1000)
        ]
        with self.broker.wire() as wire:
            for number in range(size // len(batches[0])):
                wire.produce(COMPACTED, 0, batches[number % len(batches)])

        def accounts() -> list[tuple[float, float]]:
            told = CLEANED.findall(self._cleaner_log())
            return [(amount(size), amount(seconds)) for size, seconds in told]

        sealed = size - self._segment_bytes
        wait_until(
            "the cleaner",
            PATIENCE_S,
            lambda: sum(size for size, _ in accounts()) * (1 << 20) > sealed * 0.9,
        )
        found = accounts()
        rate = sum(size for size, _ in found) / sum(seconds for _, seconds in found)
        self.note("cleaner", "MB/s", rate * (1 << 20) / MB, True)

    def _cleaner_log(self) -> str:
        own = sorted(self.broker.directory.rglob("log-cleaner.log*"))  # a new one each hour
        return "".join(path.read_text() for path in own) or self.broker.log

    # Recovery

    def recovery(self) -> None:
        size = self.size()
        self._recover("recovery per GB", size)
        if self.kind == "ours":
            for path in self.broker.log_dir.glob("*/*.crc32c"):
                path.unlink()
            self._recover("recovery per GB, without side files", size)

    def _recover(self, name: str, size: int) -> None:
        self.broker.kill()
        (self.broker.log_dir / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
        drop_page_cache(self.broker.log_dir)
        self.broker.start(timeout=PATIENCE_S)
        self.note(name, "s", self.broker.started_in_s * GB / size)


def amount(text: str) -> float:
    return float(text.replace(",", ""))


def drain(
    port: int, batch: records.Batch, log_dir: Path, kind: str, drained: Any, stop: Any
) -> None:
    """Read all partitions from the beginning, 1 MB at a time, round and round; a cold reader each
    time with the page cache emptied of them, a hot one but the first HOT_BYTES of each."""
    hot_records = HOT_BYTES // len(batch.message_set) * batch.records
    readers = [reading.Reader(port, RETAINED, n, 1 << 20, [batch]) for n in range(PARTITIONS)]
    for reader in readers:
        reader.ask()
    before = 0
    while not stop.is_set():
        if kind == "cold" and readers[0].offset < before:
            forget(log_dir.glob(f"{RETAINED}-*/*.log"))
        before = readers[0].offset
        for reader in readers:
            while not reader.receive():
                pass
            if kind == "hot":
                reader.offset %= hot_records
            reader.ask()
        drained.value = sum(reader.payload for reader in readers)


def drop_page_cache(directory: Path) -> None:
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("1\n")
    except OSError:
        forget(directory.glob("*/*"))


def forget(paths: Iterable[Path]) -> None:
    """Drop what the page cache has of files."""
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure(rows: dict[str, Row], kind: str, options: argparse.Namespace, root: Path) -> None:
    zookeeper = ZooKeeper(root / f"zookeeper-{kind}").start()
    retained, recovered = int(options.retained * GB), int(options.recovered * GB)

    def broker(part: str) -> Storage:
        chroot, directory = f"{zookeeper.connect}/{kind}-{part}", root / f"{kind}-{part}"
        segment_bytes = (256 if part in ("grow", "little") else 32) << 20
        made = Storage(rows, kind, chroot, directory, options.seconds, segment_bytes)
        made.broker.start()
        for topic in (RETAINED, OTHER):
            made.broker.create_topic(topic, PARTITIONS)
        return made

    def parts() -> Iterator[tuple[str, Callable[[Storage], None]]]:
        def growing(storage: Storage) -> None:
            little = broker("little")
            shown = {little: "1 GB", storage: f"{options.retained:g} GB"}
            try:
                little.grow(GB)
                storage.grow(retained)
                for each in shown:
                    each.warm_up()
                for number in range(ROUNDS):  # in turn, since machines change their pace
                    for each in list(shown)[:: -1 if number % 2 else 1]:
                        each.rates(shown[each])
            finally:
                discard(little)
            storage.note_ratios(shown[storage], shown[little])
            storage.cold_reader()

        def recovering(storage: Storage) -> None:
            storage.grow(recovered)
            if kind == "ours":  # as on any broker that has run for a minute
                wait_until("side files", 60, lambda: _sealed(storage.broker.log_dir))
            storage.recovery()

        yield "grow", growing
        yield "recover", recovering
        yield "clean", lambda storage: storage.clean(int(options.cleaned * GB))

    for part, act in parts():
        if options.only not in part:
            continue
        storage = broker(part)
        try:
            act(storage)
        finally:
            discard(storage)
    zookeeper.kill()


def discard(storage: Storage) -> None:
    storage.broker.kill()
    shutil.rmtree(storage.broker.directory, ignore_errors=True)


def disk_needed(options: argparse.Namespace) -> float:
    """GB. One broker's data at a time: what is retained, and what the rounds append."""
    grown = options.retained * 1.1 + 1.1 + 2 * 1.1 * (ROUNDS + 1)
    return float(max(grown, options.recovered * 1.1, options.cleaned * 3) + 2)


def _sealed(log_dir: Path) -> bool:
    """Whether every partition's segments but the last have side files."""
    return all(
        path.with_suffix(".crc32c").exists()
        for directory in log_dir.glob("*-*")
        for path in sorted(directory.glob("*.log"))[:-1]
    )


def main() -> int:
    parser = argparse.ArgumentParser("python -m integration.bench.storage", description=__doc__)
    parser.add_argument("--retained", type=float, default=30, help="GB of retained data")
    parser.add_argument("--recovered", type=float, default=4, help="GB to recover")
    parser.add_argument("--cleaned", type=float, default=1, help="GB to compact")
    parser.add_argument("--seconds", type=float, default=8, help="length of a round of a cell")
    parser.add_argument("--quick", action="store_true", help="4 GB, short cells")
    parser.add_argument("--only", default="", help="grow, recover or clean")
    parser.add_argument("--kind", choices=("ours", "original"), help="measure this one alone")
    parser.add_argument("--dir", type=Path, help="where the data goes (a temporary directory)")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    if options.quick:
        options.retained, options.recovered, options.cleaned, options.seconds = 4, 1, 0.5, 2
    kinds = [options.kind] if options.kind else ["ours", "original"]
    if "original" in kinds and not original.available():
        print(f"The original is not measured: {original.missing()}\n")
        kinds.remove("original")
    rows: dict[str, Row] = {}
    with tempfile.TemporaryDirectory(prefix="kafka08-storage-", dir=options.dir) as directory:
        free = shutil.disk_usage(directory).free / GB
        if free < (needed := disk_needed(options)):
            print(
                f"Skipped: {free:.0f} GB are free in {directory}, {needed:.0f} are needed. "
                "Take another --dir, a smaller --retained or --quick."
            )
            return 1
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # or brokers and data would stay
        try:
            for kind in kinds:
                measure(rows, kind, options, Path(directory))
        finally:
            kill_everything()
    print(f"{described()}\n")
    print(markdown(list(rows.values()), kinds))
    if options.json:
        numbers = {row.name: {"unit": row.unit, **row.values} for row in rows.values()}
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
