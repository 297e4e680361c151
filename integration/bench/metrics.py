"""The cost of a broker's metrics: `make bench WHAT=metrics`.

- CPU time of a kafka08 broker for a produce of 16 KB: without a reader of its metrics, with
  ``http.port``, and while Prometheus would scrape it each second. The three take turns, and the
  least of each counts, because other programs can only add to it;
- with ``--partitions``, a cluster of so many: the time and the bytes of a scrape of a broker, and
  how long other requests wait for their answers meanwhile; the rate of 16 KB produces without and
  with two scrapers, which take turns, and the most of each counts; the console's overview and
  list of topics, and its page with the lag of a group that has committed in each partition. With
  ``--brokers`` they are divided between brokers, as the open files of each are limited.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kazoo.client import KazooClient

from integration.bench import load, records
from integration.console import Console
from integration.harness import Broker, ZooKeeper, free_port, kill_everything
from integration.wire import wait_until

TOPIC = "metrics"
PARTITIONS = 6
SET_BYTES = 16384
# Topics are made with so many partitions.
EACH = 100
# Produces without and with scrapers, of ``--seconds`` each.
SCRAPED_ROUNDS = 10
PROPS = {
    "log.segment.bytes": 64 << 20,
    "log.retention.bytes": 256 << 20,
    "log.index.size.max.bytes": 1 << 20,
    "zookeeper.session.timeout.ms": 60_000,
    "zookeeper.connection.timeout.ms": 60_000,
}


class Scraped(NamedTuple):
    """``port``: that of its metrics."""

    broker: Broker
    port: int


def show(name: str, value: float, unit: str) -> None:
    print(f"| {name} | {value:.4g} | {unit} |", flush=True)


def scrape(port: int) -> tuple[float, int]:
    """Seconds and bytes of the answer."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    with contextlib.closing(connection):
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        body = answer.read()
    if answer.status != 200:
        raise OSError(f"/metrics answers {answer.status}")
    return time.perf_counter() - began, len(body)


@contextlib.contextmanager
def scraped(port: int, scrapers: int = 1) -> Iterator[None]:
    """Each second, by so many other threads."""
    over = threading.Event()

    def scrape_again_and_again() -> None:
        while not over.wait(1):
            scrape(port)

    threads = [threading.Thread(target=scrape_again_and_again) for _ in range(scrapers)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def produce(broker: Broker, seconds: float) -> float:
    """Microseconds of the broker's CPU time for each request."""
    sets = [records.equal(100, SET_BYTES, "none")]
    amount = load.produce(
        broker.port, TOPIC, PARTITIONS, sets, acks=1, connections=1, in_flight=1,
        seconds=seconds, max_bytes=1 << 40, cpu=broker.cpu_seconds,
    )  # fmt: skip
    return 1e6 * amount.broker_cpu_s / (amount.records / sets[0].records)


def produces(quiet: Broker, read: Broker, port: int, rounds: int, seconds: float) -> None:
    found: dict[str, list[float]] = {"nobody reads": [], "http.port is set": [], "scraped": []}
    for broker in (quiet, read):
        broker.create_topic(TOPIC, PARTITIONS)
        produce(broker, seconds)
    for _ in range(rounds):
        found["nobody reads"].append(produce(quiet, seconds))
        found["http.port is set"].append(produce(read, seconds))
        with scraped(port):
            found["scraped"].append(produce(read, seconds))
    least = {name: min(values) for name, values in found.items()}
    for name, value in least.items():
        show(f"16 KB produce, {name}", value, "us CPU")
    for name in list(least)[1:]:
        more = 100 * (least[name] / least["nobody reads"] - 1)
        show(f"16 KB produce, {name}: more than without", more, "%")


def answers(broker: Broker, over: threading.Event, found: list[float]) -> None:
    """The seconds that small requests take, one after the other, until it is over."""
    with broker.wire() as wire:
        while not over.is_set():
            began = time.perf_counter()
            wire.call(load.ASK_NOTHING)
            found.append(time.perf_counter() - began)
            time.sleep(0.001)


def longest_answer(broker: Broker, port: int | None) -> tuple[float, float, int]:
    """The longest wait for an answer during a scrape, its seconds and its bytes; without a port the
    longest wait of a second."""
    over = threading.Event()
    found: list[float] = []
    thread = threading.Thread(target=answers, args=(broker, over, found))
    thread.start()
    try:
        time.sleep(1.1)  # a scrape within a second of another one gets the same text
        before = len(found)
        took, size = scrape(port) if port is not None else (0.0, 0)
        during = found[before:] if port is not None else found[:before]
    finally:
        over.set()
        thread.join()
    return max(during, default=0.0), took, size


def many(brokers: Sequence[Scraped], topics: dict[str, int], count: int) -> None:
    """``topics``: those that are there already, with their partitions; more are added, to each
    broker in turn. The first broker is measured."""
    for first in range(sum(topics.values()), count, EACH):
        on = brokers[len(topics) % len(brokers)].broker
        topics[f"many{first}"] = min(EACH, count - first)
        on.create_topic(f"many{first}", topics[f"many{first}"])
    broker, port = brokers[0]
    for each in brokers:
        scrape(each.port)
    idle = min(longest_answer(broker, None)[0] for _ in range(5))
    runs = [longest_answer(broker, port) for _ in range(5)]
    cpu = broker.cpu_seconds()
    time.sleep(1.1)
    size = scrape(port)[1]
    cpu = broker.cpu_seconds() - cpu
    show(f"{count:,} partitions, text", size / 1e6, "MB")
    show(f"{count:,} partitions, scrape", 1e3 * min(run[1] for run in runs), "ms")
    show(f"{count:,} partitions, scrape", 1e3 * cpu, "ms CPU")
    show(f"{count:,} partitions, longest answer during it", 1e3 * min(r[0] for r in runs), "ms")
    show(f"{count:,} partitions, longest answer otherwise", 1e3 * idle, "ms")


def throughput(on: Scraped, topic: str, count: int, seconds: float) -> None:
    """Produces to ten partitions of ``topic``, which is on this broker. ``count``: those of all."""
    sets = [records.equal(100, SET_BYTES, "none")]

    def rate() -> float:
        moved = load.produce(
            on.broker.port, topic, 10, sets, acks=1, connections=4, in_flight=2,
            seconds=seconds, max_bytes=1 << 40,
        )  # fmt: skip
        return moved.payload / moved.seconds / 1e6

    rate()
    alone, beside = [], []
    for _ in range(SCRAPED_ROUNDS):
        alone.append(rate())
        with scraped(on.port, 2):
            beside.append(rate())
    without, with_ = max(alone), max(beside)
    show(f"{count:,} partitions, 16 KB produces", without, "MB/s")
    show(f"{count:,} partitions, 16 KB produces, two scrapers", with_, "MB/s")
    show(f"{count:,} partitions, two scrapers: less", 100 * (1 - with_ / without), "%")


def allow_open_files(partitions: int) -> None:
    """Have the processes that are started from now on open two files of each partition."""
    wanted = 2 * partitions + 2000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))
        except (OSError, ValueError):
            sys.exit(f"{partitions:,} partitions take {wanted:,} open files, of {hard:,} allowed")


def commit_everywhere(broker: Broker, topics: Mapping[str, int]) -> None:
    """A group in ZooKeeper that is at the beginning of each partition."""
    client = KazooClient(broker.zookeeper, timeout=60)
    client.start(60)
    try:
        for topic, partitions in topics.items():
            node = f"/consumers/all/offsets/{topic}"
            client.ensure_path(node)
            there = client.get_children(node)
            commits = client.transaction()
            for partition in range(len(there), partitions):
                commits.create(f"{node}/{partition}", b"0")
            commits.commit()
    finally:
        client.stop()
        client.close()


def console(broker: Broker, directory: Path, topics: Mapping[str, int]) -> None:
    """The pages of a console that looks at the broker's cluster at its usual intervals."""
    process = Console(
        broker.zookeeper, directory, **{"console.refresh.ms": 5000, "lag.interval.ms": 10_000}
    )
    began = time.perf_counter()
    process.begin()
    try:
        count, series = sum(topics.values()), 'kafka_consumergroup_lag{consumergroup="all"'
        wait_until("the lag", 1200, lambda: process.ask("/metrics")[1].count(series) == count)
        show(
            f"{count:,} partitions, console from its start to the lag",
            time.perf_counter() - began,
            "s",
        )
        wait_until("the overview", 600, lambda: process.ask("/")[0] == 200)
        for path, name in (("/", "overview"), ("/topics", "topics"), ("/metrics", "lag")):
            took = []
            for _ in range(5):
                began = time.perf_counter()
                assert process.ask(path)[0] == 200
                took.append(time.perf_counter() - began)
            show(f"{count:,} partitions, console: {name}", 1e3 * min(took), "ms")
    finally:
        process.kill()


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each round's parts")
    parser.add_argument("--partitions", type=int, nargs="*", default=[])
    parser.add_argument("--brokers", type=int, default=1, help="of the cluster with --partitions")
    args = parser.parse_args(argv)
    allow_open_files(max(args.partitions, default=0) // args.brokers)
    print("| | | |\n| --- | ---: | --- |")
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        try:
            zookeeper = ZooKeeper(root / "zookeeper").start()
            brokers = []
            for number in range(args.brokers):
                port = free_port()
                broker = Broker(
                    "ours",
                    root / f"read-{number}",
                    f"{zookeeper.connect}/read",
                    broker_id=number,
                    props={**PROPS, "http.port": port},
                )
                brokers.append(Scraped(broker.start(), port))
            read, port = brokers[0]
            if args.rounds:
                connect = f"{zookeeper.connect}/quiet"
                quiet = Broker("ours", root / "quiet", connect, props=PROPS).start()
                produces(quiet, read, port, args.rounds, args.seconds)
                quiet.kill()
            topics: dict[str, int] = {}
            for count in sorted(args.partitions):
                many(brokers, topics, count)
                throughput(brokers[0], next(iter(topics)), count, args.seconds)
                commit_everywhere(read, topics)
                console(read, root / f"console-{count}", topics)
        finally:
            kill_everything()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
