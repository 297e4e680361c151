"""The requests that a unit of two brokers answers, beside one broker: `make bench WHAT=cores`.

The load is produces of one set of 16 KB with records of 100 bytes and acks 1, by two generators,
which are processes of their own, with --connections each and two requests in flight on each. Both
generators load the one broker, and then one of them does. Of the unit, each loads the broker that
leads its topic. So a broker of the unit has as many requests waiting as the one broker with one
generator, and half as many as that with both: it finds fewer at once, which costs
more for each. The three take turns in short rounds. Other programs can only add to the CPU time of
a request, so the round with the least is shown, and the median.

**It counts by CPU time, not by the clock.** The generators and other programs share the cores, so
the rate by the clock depends on how many cores the brokers got. The rate that one core can serve is
the number of requests for each CPU second of a broker's process. A unit can use a core for each of
its brokers, so it can serve the sum of their rates. This leaves out that brokers on two cores take
memory bandwidth and shared caches from each other only where both run at the same time, which the
column of used cores tells. Rates by the clock are shown too.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from integration.bench import load, records
from integration.harness import Broker, ZooKeeper, cpu_seconds, kill_everything
from integration.units import Unit

PARTITIONS = 6
GENERATORS = 2
NAMES = ("one broker", "one broker with one of the generators", "a unit of two")
IN_FLIGHT = 2
SET_BYTES = 16384
RECORD_BYTES = 100
PROPS = {
    "log.segment.bytes": 64 << 20,
    "log.retention.bytes": 64 << 20,
    "log.retention.check.interval.ms": 5000,
    "log.segment.delete.delay.ms": 1000,
    "log.index.size.max.bytes": 1 << 20,
    "zookeeper.session.timeout.ms": 60_000,
    "zookeeper.connection.timeout.ms": 60_000,
}


class Loaded(NamedTuple):
    """Requests and records that were answered, seconds by the clock, and the CPU seconds of each
    broker and of the supervisor."""

    requests: int
    records: int
    seconds: float
    broker_cpu_s: tuple[float, ...]
    supervisor_cpu_s: float

    @property
    def capacity(self) -> float:
        """Requests a second, if each broker had a core for itself."""
        share = self.requests / len(self.broker_cpu_s)
        return sum(share / each for each in self.broker_cpu_s)

    @property
    def cpu_for_a_million(self) -> float:
        """CPU seconds of the brokers and the supervisor for a million records."""
        return 1e6 * (sum(self.broker_cpu_s) + self.supervisor_cpu_s) / self.records


def send(port: int, topic: str, connections: int, requests: int) -> load.Amount:
    """One generator's load of this many requests."""
    batch = records.equal(RECORD_BYTES, SET_BYTES)
    return load.produce(
        port, topic, PARTITIONS, [batch], acks=1, connections=connections, in_flight=IN_FLIGHT,
        seconds=3600, max_bytes=requests * len(batch.message_set),
    )  # fmt: skip


def loaded(
    pool: ProcessPoolExecutor,
    targets: Sequence[tuple[int, str]],
    brokers: Sequence[int],
    supervisor: int | None,
    connections: int,
    requests: int,
) -> Loaded:
    """``targets``: port and topic for each generator. ``brokers``: their processes."""
    watched = [*brokers, *([] if supervisor is None else [supervisor])]
    before, began = list(map(cpu_seconds, watched)), time.perf_counter()
    each = requests // len(targets)
    jobs = [pool.submit(send, *target, connections, each) for target in targets]
    moved = [job.result() for job in jobs]
    seconds = time.perf_counter() - began
    used = [cpu_seconds(pid) - first for pid, first in zip(watched, before, strict=True)]
    sent = sum(one.records for one in moved)
    count = sent // records.equal(RECORD_BYTES, SET_BYTES).records
    of_brokers = tuple(used[: len(brokers)])
    return Loaded(count, sent, seconds, of_brokers, sum(used[len(brokers) :]))


def show(name: str, run: Loaded) -> None:
    requests = run.requests / run.seconds
    cores = sum(run.broker_cpu_s) / run.seconds
    print(
        f"| {name} | {1e6 * sum(run.broker_cpu_s) / run.requests:.1f} | "
        f"{run.cpu_for_a_million:.2f} | {run.capacity:,.0f} | {requests:,.0f} | {cores:.2f} |",
        flush=True,
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--requests", type=int, default=5000, help="of each, in each round")
    parser.add_argument("--connections", type=int, default=8, help="of each generator")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as directory, ProcessPoolExecutor(GENERATORS) as pool:
        root = Path(directory)
        try:
            zookeeper = ZooKeeper(root / "zookeeper").start()
            one = Broker("ours", root / "one", f"{zookeeper.connect}/one", props=PROPS).start()
            unit = Unit(root / "unit", f"{zookeeper.connect}/unit", props=PROPS).begin()
            second = unit.second()
            for broker, topic in ((one, "a"), (one, "b"), (unit, "a"), (second, "b")):
                broker.create_topic(topic, PARTITIONS)
            children = unit.children()
            pids = [children[number] for number in sorted(children)]
            alone = [(one.port, "a"), (one.port, "b")]
            both = [(unit.port, "a"), (second.port, "b")]
            found: dict[str, list[Loaded]] = {name: [] for name in NAMES}
            for number in range(args.rounds + 1):
                rest = args.connections, args.requests
                runs = (
                    loaded(pool, alone, [one.pid], None, *rest),
                    loaded(pool, alone[:1], [one.pid], None, *rest),
                    loaded(pool, both, pids, unit.pid, *rest),
                )
                if number:  # the round before is to warm up
                    for name, run in zip(NAMES, runs, strict=True):
                        found[name].append(run)
            report(found)
            with suppress(AssertionError):
                unit.stop()
        finally:
            kill_everything()
    return 0


def report(found: dict[str, list[Loaded]]) -> None:
    """``found``: the rounds by name, the unit's last."""
    print("| | us CPU a request | CPU s a million records | requests/s with a core each |", end="")
    print(" requests/s by the clock | cores used |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    chosen: dict[str, list[Loaded]] = {}
    for name, runs in found.items():
        by_cpu = sorted(runs, key=lambda run: run.capacity)
        chosen[name] = [by_cpu[-1], by_cpu[len(runs) // 2]]
        show(f"{name}, least CPU time", chosen[name][0])
        show(f"{name}, median CPU time", chosen[name][1])
    *alone, unit = found
    print()
    for name in alone:
        least, median = (
            two.capacity / one.capacity for one, two in zip(chosen[name], chosen[unit], strict=True)
        )
        both = zip(found[name], found[unit], strict=True)
        pairs = sorted(two.capacity / one.capacity for one, two in both)
        quarter, middle = len(pairs) // 4, pairs[len(pairs) // 2]
        print(
            f"{unit} serves, with a core each, so many times as much as {name}: by the least CPU "
            f"time {least:.2f}, by the medians {median:.2f}, in pairs {middle:.2f} "
            f"(half of them {pairs[quarter]:.2f} to {pairs[-1 - quarter]:.2f})."
        )


if __name__ == "__main__":
    raise SystemExit(main())
