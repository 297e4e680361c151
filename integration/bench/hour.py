"""An hour of mixed load on three brokers, with the events of a cluster's year:
`make bench WHAT=hour`.

Four topics of three replicas are written with acks -1, in every codec, by producers of 0.8 and of
today, and each is read by the other kind. Old segments are deleted and one topic is compacted all
the time. On the way a broker loses its disk and copies everything again, and all brokers are
restarted one after the other. At the end every acknowledged record must have been read.

`--picture FILE` draws latencies, CPU time, memory, descriptors and disk over time.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import queue
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from integration.bench import hour_load, lines
from integration.bench.hour_load import PARTITIONS, Spread, Stream, Stretch, Told
from integration.bench.lines import Panel
from integration.bench.machine import described
from integration.bench.table import figure, figures
from integration.harness import Broker, ZooKeeper, kill_everything, zookeeper_client
from integration.wire import wait_until

MB = 1e6
KINDS = ("produce", "end to end")
SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
BROKERS = 3
LOOK_S = 5.0
EVENTS = LOST, RESTART = "a lost disk", "rolling restart"
PROPS = {
    "api.versions.enable": "true",
    "log.segment.bytes": 16 << 20,
    "log.retention.bytes": 64 << 20,
    "log.retention.check.interval.ms": 5000,
    "file.delete.delay.ms": 1000,
    "log.index.size.max.bytes": 1 << 20,
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": 5000,
    "delete.topic.enable": "true",
    "min.insync.replicas": 2,
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": 20,
    "zookeeper.session.timeout.ms": 6000,
}
STREAMS = (
    Stream("orders", "lz4", False, {}),
    Stream("clicks", "snappy", True, {}),
    Stream("state", "none", False, {"cleanup.policy": "compact", "segment.bytes": 4 << 20}),
    Stream("lines", "gzip", True, {}),
)


class Look(NamedTuple):
    """One broker at a time (monotonic seconds): CPU seconds since its start, bytes of memory and
    of its logs, open descriptors."""

    at: float
    cpu: float
    memory: int
    descriptors: int
    disk: int


class Watch:
    """Looks at the brokers every few seconds, and gathers what clients tell."""

    def __init__(self, brokers: Sequence[Broker], out: Any) -> None:
        self.looks: dict[int, list[Look]] = {broker.broker_id: [] for broker in brokers}
        self.busy: list[tuple[float, float]] = []  # CPU seconds of the machine so far
        self.samples: list[Stretch] = []
        self.told: list[Told] = []
        self._brokers, self._out = brokers, out
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(LOOK_S):
            self.busy.append((time.monotonic(), busy_seconds()))
            for broker in self._brokers:
                self.looks[broker.broker_id].append(look(broker))
            self.gather()

    def gather(self) -> None:
        while True:
            try:
                told = self._out.get_nowait()
            except queue.Empty:
                return
            (self.samples if isinstance(told, Stretch) else self.told).append(told)


def busy_seconds() -> float:
    """CPU time of all processors that was not idle, since the start of the system."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    ticks = [int(word) for word in words]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def look(broker: Broker) -> Look:
    used = broker.cpu_seconds(), broker.memory(), broker.descriptors(), disk_bytes(broker.log_dir)
    return Look(time.monotonic(), *used)


def disk_bytes(directory: Path) -> int:
    """The room that files take on the disk; those that vanish meanwhile do not count."""
    total = 0
    for file in directory.rglob("*"):
        try:
            total += file.stat().st_blocks * 512
        except FileNotFoundError:
            continue
    return total


class Clients:
    """A writer of all streams, and the two readers."""

    def __init__(self, bootstrap: str, streams: Sequence[Stream], rate: float, out: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._stops = context.Event(), context.Event()
        written, read = self._stops
        start = context.Process
        self._writer = start(
            target=hour_load.write, args=(bootstrap, streams, rate, written, out), daemon=True
        )
        self._readers = [
            start(
                target=hour_load.read,
                args=(bootstrap, [each for each in streams if each.is_old != is_old]),
                kwargs={"is_old": is_old, "stop": read, "out": out},
                daemon=True,
            )
            for is_old in (False, True)
        ]
        for process in (self._writer, *self._readers):
            process.start()

    def check(self) -> None:
        """Raises RuntimeError if one has ended."""
        if not all(each.is_alive() for each in (self._writer, *self._readers)):
            raise RuntimeError("a client has ended early")

    def stop(self, watch: Watch) -> None:
        """Until all is written and read. Somebody has to empty the queue meanwhile."""
        for stop, processes in zip(self._stops, ([self._writer], self._readers), strict=True):
            stop.set()
            for process in processes:
                while process.is_alive():
                    watch.gather()
                    process.join(0.2)
        watch.gather()


def create(brokers: Sequence[Broker], streams: Sequence[Stream]) -> None:
    ids = [broker.broker_id for broker in brokers]
    for number, stream in enumerate(streams):
        first = number % len(brokers)
        brokers[first].create_topic(
            stream.topic, PARTITIONS, config=stream.config, replicas=ids[first:] + ids[:first]
        )


def await_replicas(zookeeper: str) -> None:
    """Until all replicas of all streams are in sync."""

    def complete() -> bool:
        with zookeeper_client(zookeeper) as client:
            for stream in STREAMS:
                for number in range(PARTITIONS):
                    path = f"/brokers/topics/{stream.topic}/partitions/{number}/state"
                    if len(json.loads(client.get(path)[0])["isr"]) < BROKERS:
                        return False
        return True

    wait_until("all replicas in sync", 600, complete)


def lose_disk(broker: Broker) -> None:
    """Kill it and start it with an empty directory; until it has copied everything."""
    broker.kill()
    shutil.rmtree(broker.log_dir)
    broker.start()
    await_replicas(broker.zookeeper)


def restart_all(brokers: Sequence[Broker]) -> None:
    for broker in brokers:
        broker.stop()
        broker.start()
        await_replicas(broker.zookeeper)


class Phase(NamedTuple):
    name: str
    begin: float
    end: float


def run(
    brokers: Sequence[Broker], rate: float, seconds: float, out: Any
) -> tuple[Watch, list[Phase]]:
    """The hour: a quarter of quiet, a lost disk, a quarter, a rolling restart, and the rest."""
    bootstrap = ",".join(broker.address for broker in brokers)
    create(brokers, STREAMS)
    watch = Watch(brokers, out)
    clients = Clients(bootstrap, STREAMS, rate, out)
    begin = time.monotonic()
    phases: list[Phase] = []

    def until(at: float) -> None:
        while time.monotonic() < begin + at:
            clients.check()
            time.sleep(1)

    def phase(name: str, work: Any, *args: Any) -> None:
        say(name)
        started = time.monotonic()
        work(*args)
        phases.append(Phase(name, started, time.monotonic()))

    with watch.running():
        phase("begin", until, min(60.0, seconds / 10))
        phase("load", until, seconds / 4)
        phase(LOST, lose_disk, brokers[-1])
        phase("load again", until, seconds / 2)
        phase(RESTART, restart_all, brokers)
        phase("load to the end", until, seconds)
        clients.stop(watch)
    return watch, phases


def merged(samples: Sequence[Stretch]) -> Spread:
    found = Spread()
    for sample in samples:
        found.counts.update(sample.counts)
    return found


def latency_table(watch: Watch, phases: Sequence[Phase]) -> str:
    """Milliseconds by phase."""
    head = ["phase", "seconds", *[f"{kind} {name}" for kind in KINDS for name in SHARES]]
    rows = []
    whole = Phase("all", phases[0].begin, phases[-1].end)
    for each in (*phases, whole):
        cells = [each.name, f"{each.end - each.begin:.0f}"]
        for kind in KINDS:
            inside = [s for s in watch.samples if s.kind == kind and each.begin < s.at <= each.end]
            spread = merged(inside)
            cells += [figure(1000 * spread.share(part)) for part in SHARES.values()]
        rows.append(cells)
    return figures(head, rows)


def broker_table(watch: Watch, phases: Sequence[Phase]) -> str:
    """The resources of each broker in the second phase and in the last one."""
    rows = []
    early, late = phases[1], phases[-1]
    for broker, looks in watch.looks.items():
        cells = [str(broker)]
        pairs = []
        for each in (early, late):
            inside = [one for one in looks if each.begin < one.at <= each.end]
            if len(inside) < 2:
                continue
            took = inside[-1].at - inside[0].at
            share = 100 * (inside[-1].cpu - inside[0].cpu) / took
            memory = max(one.memory for one in inside) / MB
            pairs.append((share, memory, max(one.descriptors for one in inside)))
        cells += [
            ", then ".join(f"{value:.0f}" for value in column)
            for column in zip(*pairs, strict=True)
        ]
        rows.append(cells)
    return figures(["broker", "CPU, % of a core", "memory, MB", "descriptors"], rows)


def shares_of(used: Sequence[tuple[float, float]], zero: float) -> list[tuple[float, float]]:
    """CPU time between two looks, in percent of a core; none after a restart."""
    return [
        (later - zero, 100 * max(0.0, more - less) / (later - earlier))
        for (earlier, less), (later, more) in pairwise(used)
    ]


def together(watch: Watch, kind: str, zero: float) -> list[tuple[float, Spread]]:
    """The latencies of all clients of a kind, by the end of each interval."""
    ends: dict[int, list[Stretch]] = {}
    for each in watch.samples:
        if each.kind == kind and each.counts:
            ends.setdefault(round((each.at - zero) / hour_load.INTERVAL_S), []).append(each)
    return [(end * hour_load.INTERVAL_S, merged(ends[end])) for end in sorted(ends)]


def picture(watch: Watch, phases: Sequence[Phase], title: str) -> str:
    zero = phases[0].begin
    panels = []
    for kind in KINDS:
        spreads = together(watch, kind, zero)
        found: dict[str, lines.Points] = {
            name: [(at, 1000 * spread.share(part)) for at, spread in spreads]
            for name, part in SHARES.items()
        }
        panels.append(Panel(f"{kind}, ms", found, is_log=True))
    shown = {f"broker {number}": looks for number, looks in watch.looks.items()}
    shares = {"machine": shares_of(watch.busy, zero)} | {
        name: shares_of([(each.at, each.cpu) for each in looks], zero)
        for name, looks in shown.items()
    }
    panels.append(Panel("CPU, % of a core", shares))
    for name, field, unit in (
        ("memory, MB", "memory", MB),
        ("descriptors", "descriptors", 1),
        ("disk, MB", "disk", MB),
    ):
        found = {
            broker: [(each.at - zero, getattr(each, field) / unit) for each in looks]
            for broker, looks in shown.items()
        }
        panels.append(Panel(name, found))
    marks = [(each.begin - zero, each.name) for each in phases if each.name in EVENTS]
    return lines.svg(title, panels, marks)


def verdict(told: Sequence[Told]) -> list[str]:
    """The faults in the clients' numbers; none if every acknowledged record was read."""
    written = {key: n for each in told if each.kind == KINDS[0] for key, n in each.ends.items()}
    seen = {key: n for each in told if each.kind == KINDS[1] for key, n in each.ends.items()}
    wrong = []
    if len(told) != 3 or written.keys() != seen.keys():
        wrong.append(f"{len(told)} clients have told of {len(written)} and {len(seen)} partitions")
    for each in told:
        if each.missing:
            failed = "were not acknowledged" if each.kind == KINDS[0] else "were never read"
            wrong.append(f"{each.missing} records {failed}")
        if each.exact and each.again:
            wrong.append(f"{each.again} records of idempotent producers were read again")
    for key, count in written.items():
        if seen.get(key) != count:
            wrong.append(f"{key}: {count} were acknowledged, {seen.get(key)} read")
    return wrong


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser("python -m integration.bench.hour", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=float, default=12_000, help="records a second")
    parser.add_argument("--picture", type=Path, help="also draw it, an SVG")
    parser.add_argument("--dir", type=Path, help="where the data goes (a temporary directory)")
    options = parser.parse_args()
    out: Any = multiprocessing.get_context("spawn").Queue()
    with tempfile.TemporaryDirectory(prefix="kafka08-hour-", dir=options.dir) as directory:
        root = Path(directory)
        try:
            zookeeper = ZooKeeper(root / "zookeeper").start()
            brokers = [
                Broker(
                    "ours",
                    root / str(number),
                    f"{zookeeper.connect}/hour",
                    broker_id=number,
                    props=PROPS,
                ).start()
                for number in range(BROKERS)
            ]
            watch, phases = run(brokers, options.rate, options.minutes * 60, out)
        finally:
            kill_everything()
    minutes = (phases[-1].end - phases[0].begin) / 60
    about = f"{minutes:.0f} minutes of {options.rate:,.0f} records a second"
    print(f"{described()}\n\n{about}\n")
    print(latency_table(watch, phases) + "\n\n" + broker_table(watch, phases) + "\n")
    for each in watch.told:
        count, names = sum(each.ends.values()), ", ".join(sorted({name for name, _ in each.ends}))
        seen = f"{count:,} records, {each.missing} missing, {each.again} again"
        print(f"{each.kind}, {names}: {seen}")
    if options.picture:
        options.picture.write_text(picture(watch, phases, about))
    wrong = verdict(watch.told)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
