"""The measured cells of `make bench`: each runs against one broker and leaves its numbers in rows.

A cell's name is a row's name: `~100 B` are records of log-normal sizes around 100 bytes, `16 KB`
is the most that a set holds before compression.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from integration.bench import latency, load, reading, trace
from integration.bench.load import Amount
from integration.bench.records import AROUND_1K, AROUND_100, EQUAL_100, Batch, Sizes, batches
from integration.bench.table import Row
from integration.harness import Broker
from integration.wire import wait_until

MB = 1e6
PARTITIONS = 6
# The bytes that groups read of each partition: they fit the caches of kafka08.
GROUP_BYTES = 16 << 20
IDLE_BEFORE_OLD_SETS_S = 60.0
CONNECTIONS = 4
IN_FLIGHT = 5
TRACE_CONNECTIONS = 24
SET_BYTES = {"1 record": 0, "16 KB": 16384, "64 KB": 65536}
FETCH_BYTES = {"64 KB": 65536, "1 MB": 1 << 20}
OLD_CODECS = ("gzip", "snappy")


class Effort(NamedTuple):
    """How long things take."""

    rounds: int
    cell_s: float
    warm_s: float
    mixed_s: float
    max_cell_bytes: int
    preload_bytes: int
    latency_records: int
    partitions: int


QUICK = Effort(1, 1.0, 1.5, 3.0, 200 << 20, 8 << 20, 800, 200)
FULL = Effort(5, 4.0, 5.0, 60.0, 1 << 30, 32 << 20, 5000, 1000)


class Shape(NamedTuple):
    """How clients produce."""

    sizes: Sizes = AROUND_100
    set_bytes: int = 16384
    codec: str = "none"
    keyed: bool = False
    acks: int = 1
    connections: int = CONNECTIONS
    in_flight: int = IN_FLIGHT
    at_once: int = 1

    @property
    def sets(self) -> tuple[Batch, ...]:
        return batches(self.sizes, self.set_bytes, self.codec, self.keyed)


HEADLINE = Shape()
START = "produce ~100 B x 16 KB"
PRODUCE = {
    **{
        f"produce {sizes.name} x {shown}, acks 1": Shape(sizes, set_bytes)
        for sizes in (AROUND_100, AROUND_1K)
        for shown, set_bytes in SET_BYTES.items()
    },
    f"{START}, acks 0": Shape(acks=0),
    f"{START}, with keys, acks 1": Shape(keyed=True),
    # One request as large as the one to a single partition, so that the two compare.
    f"{START} over 6 partitions, acks 1": Shape(set_bytes=16384 // PARTITIONS, at_once=PARTITIONS),
    "produce 100 B equal x 16 KB, acks 1": Shape(EQUAL_100),
    "produce ~100 B x 4 KB, acks 1, 100 connections": Shape(
        set_bytes=4096, connections=100, in_flight=1
    ),
    "produce ~100 B x 1 KB, acks 1, 1,000 connections": Shape(
        set_bytes=1024, connections=1000, in_flight=1
    ),
    **{f"{START} {codec}, acks 1": Shape(codec=codec) for codec in ("gzip", "snappy", "lz4")},
}
REPLAY = "produce, a day of four services replayed, all codecs"
MIXED = "mixed load"
OLD_SETS = {codec: f"fetch ~100 B {codec}, first group of old sets" for codec in OLD_CODECS}
REPLICATED = "3 replicas, ~100 B x 16 KB, acks -1"


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

    def _measured(
        self, broker: Broker, name: str, amount: Amount, cpu: float | None = None
    ) -> None:
        kind = broker.kind
        used = amount.broker_cpu_s if cpu is None else cpu
        self.note(kind, name, "MB/s", amount.payload / MB / amount.seconds, True)
        self.note(kind, f"{name}: records", "k/s", amount.records / 1e3 / amount.seconds, True)
        self.note(kind, f"{name}: CPU per M records", "s", used / amount.records * 1e6, False)
        self.note(kind, f"{name}: CPU per GB", "s", used / amount.payload * 1e9, False)
        share = 100 * amount.generator_cpu_s / amount.seconds
        self.note(kind, f"{name}: generator busy", "%", share, False)

    # Before and after

    def start(self, broker: Broker) -> None:
        """Start time and idle memory, then a warm-up nobody measures."""
        broker.start()
        self.note(broker.kind, "start, empty", "s", broker.started_in_s, False)
        topic = self._topic(broker)
        self.note(broker.kind, "memory, idle", "MB", broker.memory() / MB, False)
        for shape in (HEADLINE, Shape(set_bytes=0)):
            self._produce(broker, topic, shape, self._effort.warm_s)
        load.discard(broker, topic)
        self._replay(broker, self._effort.warm_s)
        load.discard(broker, self._warm_reads(broker))

    def _warm_reads(self, broker: Broker) -> str:
        """Returns the topic. A deletion goes on when its files are gone, so it is not a part of
        this."""
        topic, sets = self._topic(broker), batches(AROUND_100, 16384, "snappy")
        load.preload(broker.port, topic, PARTITIONS, sets, 1 << 20)
        self._fetch(broker, topic, sets, 65536, self._effort.warm_s)
        return topic

    def memory(self, broker: Broker) -> None:
        self.note(broker.kind, "memory after load", "MB", broker.memory() / MB, False)
        self.note(broker.kind, "memory, peak under load", "MB", broker.memory("VmHWM") / MB, False)

    def find_half_load(self, brokers: list[Broker]) -> None:
        """Half of the requests a second that the slowest of them takes."""
        rates = []
        for broker in brokers:
            topic = self._topic(broker)
            amount = self._produce(broker, topic, HEADLINE, self._effort.warm_s)
            each = statistics.mean(batch.records for batch in HEADLINE.sets)
            rates.append(amount.records / each / amount.seconds)
            load.discard(broker, topic)
        self.half_load = min(rates) / 2

    def forget_first(self, prefix: str) -> None:
        """The first number of each row was a warm-up."""
        for name, row in self._rows.items():
            if name.startswith(prefix):
                for kind, values in row.values.items():
                    row.values[kind] = values[-self._effort.rounds :]

    def _topic(self, broker: Broker) -> str:
        self._topics += 1
        topic = f"bench{self._topics:04}"
        broker.create_topic(topic, PARTITIONS)
        return topic

    # Producing

    def _produce(
        self,
        broker: Broker,
        topic: str,
        shape: Shape,
        seconds: float,
        cpu: Callable[[], float] = load.no_meter,
    ) -> Amount:
        return load.produce(
            broker.port,
            topic,
            PARTITIONS,
            shape.sets,
            acks=shape.acks,
            connections=shape.connections,
            in_flight=shape.in_flight,
            seconds=seconds,
            max_bytes=self._effort.max_cell_bytes,
            at_once=shape.at_once,
            cpu=cpu,
        )

    def produce(self, broker: Broker, name: str, shape: Shape) -> None:
        topic = self._topic(broker)
        amount = self._produce(broker, topic, shape, self._effort.cell_s, broker.cpu_seconds)
        self._end(broker, [topic], amount)
        self._measured(broker, name, amount)

    def replay(self, broker: Broker) -> None:
        """The day's requests in turn, as fast as they are answered, again and again."""
        self._measured(broker, REPLAY, self._replay(broker, self._effort.cell_s))

    def _replay(self, broker: Broker, seconds: float) -> Amount:
        self._topics += 1
        name = f"day{self._topics:04}"
        topics = trace.topics(name)
        for topic in topics:
            broker.create_topic(topic, PARTITIONS)
        amount = load.send_rings(
            broker.port,
            trace.rings(name, PARTITIONS, TRACE_CONNECTIONS, trace.day()),
            reply_size=trace.answer_bytes(name),
            in_flight=IN_FLIGHT,
            seconds=seconds,
            max_bytes=self._effort.max_cell_bytes,
            cpu=broker.cpu_seconds,
        )
        self._end(broker, topics, amount)
        return amount

    def _end(self, broker: Broker, topics: Sequence[str], amount: Amount) -> None:
        """Delete the topics, once all of it is seen to be there: answers were thrown away."""
        with broker.wire() as wire:
            stored = sum(wire.offset(topic, n) for topic in topics for n in range(PARTITIONS))
        if stored != amount.records:
            raise RuntimeError(f"{topics}: sent {amount.records} records, {stored} stored")
        for topic in topics:
            load.discard(broker, topic)

    def replicated(self, three: list[Broker]) -> None:
        """Three replicas, acks -1: all partitions led by the first."""
        leader = three[0]
        topic = f"rf3-{time.monotonic_ns()}"
        leader.create_topic(topic, PARTITIONS, replicas=[b.broker_id for b in three])
        # Until all followers fetch: one that asked before its leader knew the topic pauses first.
        self._produce(leader, topic, Shape(acks=-1), 0.1)
        amount = self._produce(
            leader,
            topic,
            Shape(acks=-1),
            self._effort.cell_s,
            lambda: sum(broker.cpu_seconds() for broker in three),
        )
        self._measured(leader, REPLICATED, amount)
        load.discard(leader, topic)

    # Fetching

    def _fetch(
        self,
        broker: Broker,
        topic: str,
        sets: Sequence[Batch],
        max_bytes: int,
        seconds: float,
        cpu: Callable[[], float] = load.no_meter,
    ) -> Amount:
        return reading.fetch(
            broker.port,
            topic,
            PARTITIONS,
            sets,
            max_bytes=max_bytes,
            connections=CONNECTIONS,
            seconds=seconds,
            cpu=cpu,
        )

    def fetch(self, broker: Broker, name: str, sizes: Mapping[str, int]) -> None:
        topic = self._topic(broker)
        load.preload(broker.port, topic, PARTITIONS, HEADLINE.sets, self._effort.preload_bytes)
        for shown, max_bytes in sizes.items():
            amount = self._fetch(
                broker, topic, HEADLINE.sets, max_bytes, self._effort.cell_s, broker.cpu_seconds
            )
            self._measured(broker, f"{name} {shown}", amount)
        load.discard(broker, topic)

    def groups(self, broker: Broker, name: str, sets: Sequence[Batch]) -> None:
        """A compressed topic that nobody has read yet: one group, then others."""
        topic = self._topic(broker)
        load.preload(broker.port, topic, PARTITIONS, sets, GROUP_BYTES)
        self._drain(broker, f"{name}, first group", topic, sets)
        amount = self._fetch(broker, topic, sets, 1 << 20, self._effort.cell_s, broker.cpu_seconds)
        self._measured(broker, f"{name}, later groups", amount)
        load.discard(broker, topic)

    def _drain(self, broker: Broker, name: str, topic: str, sets: Sequence[Batch]) -> None:
        amount = reading.drain(
            broker.port,
            topic,
            PARTITIONS,
            sets,
            max_bytes=1 << 20,
            groups=1,
            cpu=broker.cpu_seconds,
        )
        self._measured(broker, name, amount)

    def old_sets(self, broker: Broker, names: Mapping[str, str]) -> None:
        """A group that reads what was produced before this broker started, so that nothing of it
        is in the broker's memory. The broker is idle for a while before it stops, as a broker is
        at some hour of a day: kafka08 prepares old sets then. `names` of the rows by codec."""
        broker.start()
        sets = {codec: batches(AROUND_100, 16384, codec) for codec in names}
        topics = {codec: self._topic(broker) for codec in names}
        for codec, topic in topics.items():
            load.preload(broker.port, topic, PARTITIONS, sets[codec], GROUP_BYTES)
        time.sleep(IDLE_BEFORE_OLD_SETS_S)
        for _ in range(self._effort.rounds):
            broker.stop()
            broker.start()
            warm = self._warm_reads(broker)
            for codec, name in names.items():
                self._drain(broker, name, topics[codec], sets[codec])
            load.discard(broker, warm)
        broker.stop()

    # Waiting

    def latency(self, broker: Broker) -> None:
        topic = self._topic(broker)
        latency.latencies(broker.port, topic, self._effort.latency_records // 5)
        self._latencies(broker, topic, "end-to-end latency")
        load.discard(broker, topic)

    def latency_beside_load(self, broker: Broker) -> None:
        """While another client produces half of what the slower kind can take."""
        topic, busy = self._topic(broker), self._topic(broker)
        context = multiprocessing.get_context("spawn")
        stop = context.Event()
        args = (broker.port, busy, PARTITIONS, HEADLINE.sets, self.half_load, stop)
        other = context.Process(target=load.produce_at, args=args, daemon=True)
        other.start()
        wait_until("load", 60, lambda: self._offset(broker, busy))
        self._latencies(broker, topic, "end-to-end latency beside half load")
        stop.set()
        other.join(30)
        other.kill()
        load.discard(broker, topic)
        load.discard(broker, busy)

    def _latencies(self, broker: Broker, topic: str, name: str) -> None:
        self._percentiles(
            broker, name, latency.latencies(broker.port, topic, self._effort.latency_records)
        )

    def _percentiles(self, broker: Broker, name: str, seconds: Sequence[float]) -> None:
        """`seconds` sorted."""
        for percent in (50, 99):
            value = seconds[len(seconds) * percent // 100] * 1e3
            self.note(broker.kind, f"{name} p{percent}", "ms", value, False)

    def _offset(self, broker: Broker, topic: str) -> int:
        with broker.wire() as wire:
            return wire.offset(topic, 0)

    def mixed(self, broker: Broker) -> None:
        topic = self._topic(broker)
        found = latency.mixed(
            broker.port,
            topic,
            warm_s=min(self._effort.warm_s, 5.0),
            seconds=self._effort.mixed_s,
            cpu=broker.cpu_seconds,
        )
        kind, share = broker.kind, 100 * found.broker_cpu_s / found.seconds
        self.note(kind, f"{MIXED}, broker's CPU", "% of a core", share, False)
        self._percentiles(broker, f"{MIXED}, produce", found.answers)
        self._percentiles(broker, f"{MIXED}, end to end", found.end_to_end)
        self.note(kind, f"{MIXED}, memory", "MB", broker.memory() / MB, False)
        load.discard(broker, topic)

    # Starting

    def start_with_partitions(self, broker: Broker) -> None:
        """A broker of its own, with so many partitions of a few records each."""
        broker.start()
        for first in range(0, self._effort.partitions, 50):
            broker.create_topic(f"many{first:04}", 50)
            load.preload(broker.port, f"many{first:04}", 50, batches(AROUND_100, 1024), 1)
        for _ in range(self._effort.rounds):
            broker.stop()
            broker.start()
            name = f"start, {self._effort.partitions} partitions"
            self.note(broker.kind, name, "s", broker.started_in_s, False)
        broker.stop()


def cells(bench: Bench) -> dict[str, Callable[[Broker], None]]:
    """The cells that are measured in every round, by name."""
    found: dict[str, Callable[[Broker], None]] = {}
    for name, shape in PRODUCE.items():
        found[name] = lambda broker, n=name, s=shape: bench.produce(broker, n, s)  # type: ignore[misc]
    found[REPLAY] = bench.replay
    found["fetch ~100 B"] = lambda broker: bench.fetch(broker, "fetch ~100 B", FETCH_BYTES)
    for codec in OLD_CODECS:
        name, sets = f"fetch ~100 B {codec}", batches(AROUND_100, 16384, codec)
        found[name] = lambda broker, n=name, s=sets: bench.groups(broker, n, s)  # type: ignore[misc]
    found["end-to-end latency"] = bench.latency
    found["end-to-end latency beside half load"] = bench.latency_beside_load
    found[MIXED] = bench.mixed
    return found
