"""Metrics: statsd and collectd over UDP to a topic, then a table by minute and a chart.

    .venv/bin/python docs/examples/metrics.py

metrics.md describes it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import random
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import charts
import topics
from metric_lines import Sample, lines, parse

from kafka08.producer.kafka_producer import KafkaProducer

SAMPLES, AGGREGATES, UNREADABLE = "metrics", "metrics-per-minute", "metrics-unreadable"
MINUTES = 10
Cell = tuple[str, str, int]  # name, kind, the minute in seconds since 1970


def collect(datagrams: Iterable[bytes], address: str) -> None:
    """Datagrams to samples in a topic, by name; lines that cannot be read go to another one."""
    with KafkaProducer(bootstrap_servers=address, acks=1, retries=3, linger_ms=50) as producer:
        for line in (line for datagram in datagrams for line in lines(datagram)):
            try:
                for sample in parse(line, time.time()):
                    value = json.dumps(sample._asdict()).encode()
                    producer.send(SAMPLES, value, key=sample.name.encode())
            except ValueError as error:
                producer.send(UNREADABLE, line.encode(), key=str(error).encode())


REDUCED: dict[str, Callable[[list[Any]], float]] = {
    "count": sum,
    "total": sum,
    "gauge": lambda values: sum(values) / len(values),
    "time": lambda values: sorted(values)[math.ceil(0.95 * len(values)) - 1],
    "set": lambda values: len(set(values)),
}


def aggregates(samples: Iterable[Sample]) -> dict[Cell, float]:
    """One number for each name, kind and minute.

    Counts are added and gauges averaged. Of times it is the 95th percentile, of sets the number of
    different members, of totals the increase. A total that falls began again at zero.
    """
    cells: dict[Cell, list[Any]] = defaultdict(list)
    totals: dict[str, float] = {}
    for name, kind, value, at in samples:
        found: Any = value
        if kind == "total":
            before = totals.get(name, found)
            totals[name] = found
            found = found - before if found >= before else found
        cells[name, kind, int(at) // 60 * 60].append(found)
    return {cell: REDUCED[cell[1]](values) for cell, values in sorted(cells.items())}


def aggregate(address: str) -> dict[Cell, float]:
    """The aggregates of all samples in the topic, stored by name, kind and minute."""
    found = aggregates(Sample(**json.loads(m.value)) for m in topics.read(address, SAMPLES))
    with KafkaProducer(bootstrap_servers=address, acks="all", retries=3) as producer:
        for cell, value in found.items():
            producer.send(AGGREGATES, json.dumps(value).encode(), key=json.dumps(cell).encode())
    return found


def show(found: dict[Cell, float], chosen: str) -> None:
    minutes = sorted({minute for *_, minute in found})[-MINUTES:]
    header = [time.strftime("%H:%M", time.localtime(minute)) for minute in minutes]
    rows = sorted({(name, kind) for name, kind, _ in found})
    cells = [[*row, *(found.get((*row, minute)) for minute in minutes)] for row in rows]
    print(charts.table(["name", "kind", *header], cells))
    kinds = {kind for name, kind in rows if name == chosen}
    for kind in sorted(kinds):
        values = [found.get((chosen, kind, minute), 0.0) for minute in minutes]
        print(f"\n{charts.columns(f'{chosen} ({kind})', list(zip(header, values, strict=True)))}")


def received(host: str, port: int, seconds: float, own: Iterable[bytes]) -> Iterator[bytes]:
    """The datagrams of ``own``, sent to the port one by one; then those of the next ``seconds``."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((host, port))
        for datagram in own:
            server.sendto(datagram, server.getsockname())
            yield server.recv(65535)
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            server.settimeout(left)
            with contextlib.suppress(TimeoutError):
                yield server.recv(65535)


def simulated(seed: int, start: int) -> Iterator[bytes]:
    """Ten minutes of a web server, whose clients of statsd send the time of each sample too."""
    rng = random.Random(seed)
    total = 0
    for at in range(start, start + MINUTES * 60, 10):
        requests = int(40 * (1 + 0.8 * math.sin((at - start) / 120)) + rng.randrange(10))
        total += requests * 1500
        answers = [f"web.answer:{rng.lognormvariate(4, 0.5):.1f}|ms|T{at}" for _ in range(5)]
        users = [f"web.users:u{rng.randrange(30)}|s|T{at}" for _ in range(5)]
        counts = [f"web.requests:{requests}|c|T{at}", f"cache.hits:{requests // 10}|c|@0.1|T{at}"]
        yield "\n".join([*counts, *answers, *users]).encode()
        yield f'PUTVAL "web1/load/load-short" interval=10 {at}:{requests / 40:.2f}\n'.encode()
        network = {"plugin": "interface", "plugin_instance": "eth0"}
        kind = {"type": "if_octets", "type_instance": "", "dstypes": ["derive"], "dsnames": ["tx"]}
        entry = {"host": "web1", "time": at, "interval": 10, "values": [total], **network, **kind}
        yield json.dumps([entry]).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bootstrap-server", default=topics.ADDRESS)
    parser.add_argument("--listen", default="127.0.0.1:0", help="the address for datagrams")
    parser.add_argument("--seconds", type=float, default=0, help="listen; do not simulate")
    parser.add_argument("--show", default="web.requests", help="the metric that is drawn")
    args = parser.parse_args()
    address = args.bootstrap_server
    compacted, kept = {"cleanup.policy": "compact"}, {"retention.ms": str(24 * 3600 * 1000)}
    for topic, config in ((SAMPLES, kept), (AGGREGATES, compacted), (UNREADABLE, kept)):
        topics.make(address, topic, 4, config)
    host, _, port = args.listen.rpartition(":")
    own = [] if args.seconds else simulated(8, int(time.time()) // 60 * 60 - MINUTES * 60)
    collect(received(host, int(port), args.seconds, own), address)
    show(aggregate(address), args.show)
    unreadable = sum(end - first for first, end in topics.bounds(address, UNREADABLE).values())
    print(f"\nLines that could not be read: {unreadable}")


if __name__ == "__main__":
    main()
