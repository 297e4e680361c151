"""Batches of format 2, TLS and transactions: ours and a broker of a later release in one run, round
by round in turn.

`python -m integration.bench.later [--quick] [--rounds N] [--only TEXT]`. Records are those of
`make bench`, without and with headers. *fetched as format 0* is what a consumer of 0.8 sends. Over
TLS the generator encrypts too, on the same processors, so compare the brokers' processor time.
Transactions are those of Java's producers, over the partitions of a topic.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from integration import harness, modern
from integration.bench import load, reading, secure, transactions
from integration.bench.cells import CONNECTIONS, FETCH_BYTES, FULL, IN_FLIGHT, QUICK, Effort
from integration.bench.load import Amount
from integration.bench.machine import described
from integration.bench.reading import Cycle, Reader
from integration.bench.records import (
    AROUND_100,
    FEWEST_SETS,
    KIND_BYTES,
    MOST_SETS,
    Batch,
    encode,
    stream,
)
from integration.bench.table import Row, markdown
from integration.certificates import PASSWORD, Authority, as_pkcs12
from integration.harness import Broker, ZooKeeper, free_port, kill_everything
from integration.later import frames
from integration.modern import ModernBroker
from integration.wire import Wire

MB = 1e6
PARTITIONS = 6
SET_BYTES = 16384
HEAP = ("-Xmx1G", "-Xms1G")
BEFORE = "another checkout, set up and compiled, that is measured in place of 3.9.1"
START = "format 2 ~100 B x 16 KB"
OPEN = f"memory of {transactions.OPEN_IDS:,} open transactions"


class Sets(NamedTuple):
    """The same records as batches of format 2 and as sets of format 0."""

    stored: tuple[Batch, ...]
    converted: tuple[Batch, ...]


@functools.cache
def sets(headers: bool) -> Sets:
    """Batches of at most ``SET_BYTES``, of this moment: brokers delete what is a week old."""
    now = round(time.time() * 1000)
    noise = random.Random(f"format 2 {headers}")
    stored, converted = [], []
    taken: list[frames.Record] = []
    size = frames.RECORDS_AT
    wanted = max(FEWEST_SETS, min(MOST_SETS, KIND_BYTES // SET_BYTES))
    for key, value in stream(AROUND_100, False, noise):
        named = (
            [(b"trace", noise.randbytes(16)), (b"source", b"service-%d" % noise.randrange(20))]
            if headers
            else []
        )
        record = frames.Record(key, value, named, len(taken))
        encoded = len(frames.encode_record(record, len(taken)))
        if size + encoded > SET_BYTES:
            # The broker corrects a largest time that is wrong, and computes the checksum again.
            newest = now + max(each.time_delta for each in taken)
            records = frames.encode_records(taken)
            whole = frames.batch(records, len(taken), time=now, newest=newest)
            pairs = [(each.key, each.value or b"") for each in taken]
            payload = sum(len(pair[1]) for pair in pairs)
            stored.append(Batch(whole, len(taken), payload, ()))
            converted.append(encode(pairs))
            if len(stored) == wanted:
                break
            taken, size = [], frames.RECORDS_AT
        taken.append(record)
        size += encoded
    return Sets(tuple(stored), tuple(converted))


class BatchCycle(Cycle):
    """A partition of batches, whose offset is that of their first record."""

    def read(self, offset: int, data: memoryview, at: int, end: int) -> tuple[int, int]:
        payload = 0
        number, inside = self._where(offset)
        while at + frames.RECORDS_AT <= end:
            each = self._batches[number]
            stop = at + len(each.message_set)
            found = int.from_bytes(data[at : at + 8], "big", signed=True)
            if found != offset - inside:
                raise RuntimeError(f"offset {found} where {offset - inside} was expected")
            if stop > end:
                break
            at = stop
            offset, payload = found + each.records, payload + each.payload
            number, inside = (number + 1) % len(self._batches), 0
        return offset, payload


class BatchReader(Reader):
    """Fetches version 4."""

    _version = 4

    def _make_cycle(self, batches: Sequence[Batch]) -> Cycle:
        return BatchCycle(batches)

    def _reply(self) -> tuple[int, int, int, int]:
        found = frames.fetched(self._buffer, self._topic, 8)
        return found.error, found.high_watermark, found.start, found.size


Server = Broker | ModernBroker


class Bench:
    """The numbers of a cell gather in ``rows`` by its name."""

    def __init__(self, effort: Effort, tls: secure.Ends) -> None:
        self.rows: dict[str, Row] = {}
        self._tls = tls
        self._effort = effort
        self._topics = itertools.count()
        self._filled: dict[tuple[str, bool], str] = {}

    def _note(self, kind: str, name: str, unit: str, value: float, more: bool = False) -> None:
        row = self.rows.setdefault(name, Row(name, unit, more, {}))
        row.values.setdefault(kind, []).append(value)

    def _note_amount(self, kind: str, name: str, amount: Amount) -> None:
        note = functools.partial(self._note, kind)
        note(name, "MB/s", amount.payload / MB / amount.seconds, more=True)
        note(f"{name}: records", "k/s", amount.records / 1e3 / amount.seconds, more=True)
        cpu = amount.broker_cpu_s
        note(f"{name}: CPU per M records", "s", cpu / amount.records * 1e6)
        note(f"{name}: CPU per GB", "s", cpu / amount.payload * 1e9)
        busy = 100 * amount.generator_cpu_s / amount.seconds
        note(f"{name}: generator busy", "%", busy)

    def _topic(self, broker: Server) -> str:
        topic = f"later{next(self._topics):04}"
        broker.create_topic(topic, PARTITIONS)
        return topic

    def _rings(self, topic: str, headers: bool) -> list[load.Ring]:
        each_batch = itertools.cycle(sets(headers).stored)
        rings = []
        for number in range(CONNECTIONS):
            requests = []
            for at in range(load.MOST_IN_RING // PARTITIONS * PARTITIONS):
                one = next(each_batch)
                data = frames.produce_frame(
                    topic,
                    one.message_set,
                    partition=(number + at) % PARTITIONS,
                    client_id=f"bench-client-{number}",
                )
                requests.append(load.Request(data, one.records, one.payload))
            rings.append(load.Ring(requests))
        return rings

    def _send(
        self, broker: Server, topic: str, headers: bool, seconds: float, tls_port: int | None = None
    ) -> Amount:
        """``tls_port``: that of the broker, to produce over TLS."""
        send = load.send_rings if tls_port is None else self._tls.send_rings
        amount = send(
            broker.port if tls_port is None else tls_port,
            self._rings(topic, headers),
            reply_size=frames.produce_reply_bytes(topic),
            in_flight=IN_FLIGHT,
            seconds=seconds,
            max_bytes=self._effort.max_cell_bytes,
            cpu=broker.cpu_seconds,
        )
        with Wire(broker.port) as wire:
            stored = sum(wire.offset(topic, partition) for partition in range(PARTITIONS))
        if stored != amount.records:
            raise RuntimeError(f"{topic}: sent {amount.records} records, {stored} stored")
        load.discard(broker, topic)
        return amount

    def warm(self, broker: Server) -> None:
        self._send(broker, self._topic(broker), True, self._effort.warm_s)

    def produce(self, kind: str, broker: Server, name: str, headers: bool) -> None:
        amount = self._send(broker, self._topic(broker), headers, self._effort.cell_s)
        self._note_amount(kind, name, amount)

    def produce_over_tls(self, kind: str, broker: Server, name: str) -> None:
        port = self._tls.ports[kind]
        amount = self._send(broker, self._topic(broker), False, self._effort.cell_s, port)
        self._note_amount(kind, name, amount)

    def fetch_over_tls(self, kind: str, broker: Server, name: str, max_bytes: int) -> None:
        amount = self._tls.fetch(
            self._tls.ports[kind],
            functools.partial(BatchReader, broker.port, self._full(kind, broker, False)),
            sets(False).stored,
            max_bytes=max_bytes,
            connections=CONNECTIONS,
            seconds=self._effort.cell_s,
            cpu=broker.cpu_seconds,
        )
        self._note_amount(kind, name, amount)

    def _full(self, kind: str, broker: Server, headers: bool) -> str:
        """A topic with data, the same for all cells."""
        if (kind, headers) not in self._filled:
            topic = self._filled[kind, headers] = self._topic(broker)
            load.preload(
                broker.port, topic, PARTITIONS, sets(headers).stored, self._effort.preload_bytes
            )
        return self._filled[kind, headers]

    def fetch(
        self, kind: str, broker: Server, name: str, headers: bool, max_bytes: int, old: bool
    ) -> None:
        """``old``: as a consumer of 0.8."""
        amount = reading.fetch(
            broker.port,
            self._full(kind, broker, headers),
            PARTITIONS,
            sets(headers).converted if old else sets(headers).stored,
            max_bytes=max_bytes,
            connections=CONNECTIONS,
            seconds=self._effort.cell_s,
            cpu=broker.cpu_seconds,
            reader=Reader if old else BatchReader,
        )
        self._note_amount(kind, name, amount)

    def transact(self, kind: str, broker: Server, name: str, shape: transactions.Shape) -> None:
        topic = self._topic(broker)
        amount = transactions.send(
            broker.address, topic, PARTITIONS, shape, self._effort.cell_s, broker.cpu_seconds
        )
        with Wire(broker.port) as wire:
            stored = sum(wire.offset(topic, partition) for partition in range(PARTITIONS))
        if stored < amount.records:
            raise RuntimeError(f"{topic}: committed {amount.records} records, {stored} stored")
        self._note_amount(kind, name, amount)
        load.discard(broker, topic)

    def open_transactions(self, kind: str, broker: Server) -> None:
        """Memory that open transactions take. A JVM's is that of its live objects: what it takes
        from the system follows its collector."""
        is_java = isinstance(broker, ModernBroker)
        before = transactions.live_heap(broker.pid) if is_java else broker.memory()
        transactions.open_many("127.0.0.1", broker.port, self._topic(broker), PARTITIONS)
        after = transactions.live_heap(broker.pid) if is_java else broker.memory()
        self._note(kind, OPEN, "MB", (after - before) / MB)
        self._note(kind, f"{OPEN}, all of the broker's", "MB", broker.memory() / MB)


Cell = Callable[[str, Server], None]


def cells(bench: Bench) -> dict[str, Cell]:
    found: dict[str, Cell] = {}
    for headers in (False, True):
        start = START + (", with headers" if headers else "")
        name = f"produce {start}, acks 1"
        found[name] = functools.partial(bench.produce, name=name, headers=headers)
        for shown, size in FETCH_BYTES.items():
            for old in (False, True):
                name = f"fetch {start}, {shown}" + (", as format 0" if old else "")
                found[name] = functools.partial(
                    bench.fetch, name=name, headers=headers, max_bytes=size, old=old
                )
    name = f"produce {START}, TLS, acks 1"
    found[name] = functools.partial(bench.produce_over_tls, name=name)
    for shown, size in FETCH_BYTES.items():
        name = f"fetch {START}, TLS, {shown}"
        found[name] = functools.partial(bench.fetch_over_tls, name=name, max_bytes=size)
    for name, shape in transactions.SHAPES.items():
        found[name] = functools.partial(bench.transact, name=name, shape=shape)
    return found


def run(effort: Effort, only: str, directory: Path, other: str) -> list[Row]:
    zookeeper = ZooKeeper(directory / "zookeeper").start()
    authority = Authority(directory / "authority")
    keys = authority.issue("broker")
    brokers: dict[str, Server] = {}
    ports: dict[str, int] = {}
    for kind in ("ours", other) if other == "before" else ("ours",):
        port, ports[kind] = free_port(), free_port()
        props = {
            "api.versions.enable": "true",
            "delete.topic.enable": "true",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{ports[kind]}",
            "ssl.keystore.location": keys,
        }
        chroot = f"{zookeeper.connect}/{kind}"
        brokers[kind] = Broker(kind, directory / kind, chroot, port=port, props=props).start()
    if other == modern.VERSION:
        tls = {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": as_pkcs12(keys),
            "ssl.keystore.password": PASSWORD,
        }
        theirs = ModernBroker(directory / "modern", java=HEAP, tls=tls)
        brokers[modern.VERSION] = theirs.start()
        ports[modern.VERSION] = theirs.tls_port
    bench = Bench(effort, secure.Ends(authority.path, ports))
    for number in range(effort.rounds):
        if not number or other == "before":  # as in integration.bench
            for broker in brokers.values():
                if number:
                    broker.stop()
                    broker.start()
                bench.warm(broker)
        for name, cell in cells(bench).items():
            if only not in name:
                continue
            print(f"round {number + 1}: {name}", file=sys.stderr, flush=True)
            for kind, broker in list(brokers.items())[:: 1 if number % 2 == 0 else -1]:
                cell(kind, broker)
    if only in OPEN:
        for kind, broker in brokers.items():
            print(OPEN, file=sys.stderr, flush=True)
            bench.open_transactions(kind, broker)
    return list(bench.rows.values())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m integration.bench.later", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of short cells")
    parser.add_argument("--rounds", type=int, help="rounds per cell")
    parser.add_argument("--only", default="", help="only cells whose name holds this")
    parser.add_argument("--before", type=Path, help=BEFORE)
    options = parser.parse_args()
    effort = QUICK if options.quick else FULL
    if options.rounds:
        effort = effort._replace(rounds=options.rounds)
    if options.before:
        harness.HOMES["before"] = options.before.resolve()
    elif modern.missing():
        print(f"{modern.VERSION} is not measured: {modern.missing()}\n")
    other = "before" if options.before else "" if modern.missing() else modern.VERSION
    with tempfile.TemporaryDirectory(prefix="kafka08-bench-") as directory:
        try:
            rows = run(effort, options.only, Path(directory), other)
        finally:
            kill_everything()
    print(f"{described()}, median of {effort.rounds}\n")
    print(markdown(rows, ["ours", other] if other else ["ours"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
