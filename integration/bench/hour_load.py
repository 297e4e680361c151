"""The clients of the hour of mixed load: librdkafka's, in processes of their own, unmodified.

Each record holds its number in its partition and the time when it was due. So a reader knows how
long it took, and whether one is missing or came twice. Does not know brokers as processes.
"""

from __future__ import annotations

import itertools
import math
import random
import struct
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from multiprocessing import parent_process
from multiprocessing.synchronize import Event
from typing import Any, NamedTuple, Protocol

from integration.bench.records import AROUND_100, stream

PARTITIONS = 3
KEYS = 2000
LINGER_MS = 20
TICK_S = 0.005
GATHER_S = 0.02  # so long a reader waits for more messages than those that are there
INTERVAL_S = 5.0
HEAD = struct.Struct(">qd")  # a record's number, and when it was due (monotonic seconds)
# Buckets of latencies: each is a fiftieth larger than the one before.
STEP = math.log(1.02)


class Stream(NamedTuple):
    """A topic and how it is written. ``is_old``: its producer speaks as one of 0.8 does, and what
    today's producers write is read by a consumer of 0.8, and the other way round."""

    topic: str
    codec: str
    is_old: bool
    config: Mapping[str, object]


def spoken(is_old: bool) -> dict[str, object]:
    """Settings of librdkafka for a client of 0.8, or of today."""
    if not is_old:
        return {}
    return {"api.version.request": False, "broker.version.fallback": "0.8.2.2"}


class Spread:
    """Latencies, counted by size."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts = Counter(counts or {})

    def add(self, seconds: float) -> None:
        self.counts[math.floor(math.log(max(seconds, 1e-6)) / STEP)] += 1

    def share(self, part: float) -> float:
        """The latency (s) that this part of them does not exceed, 2 % too large at most."""
        left = part * sum(self.counts.values())
        for bucket, count in sorted(self.counts.items()):
            left -= count
            if left <= 0:
                return math.exp((bucket + 1) * STEP)
        return 0.0


class Stretch(NamedTuple):
    """Latencies that clients have seen in the seconds until ``at`` (monotonic), as in Spread."""

    at: float
    kind: str
    counts: dict[int, int]


class Told(NamedTuple):
    """The numbers of a client at its end. ``ends``: by (topic, partition) how many records were
    acknowledged, or read; then how many are missing, or came again, which they must not where a
    reader is ``exact``: the producer was idempotent."""

    kind: str
    ends: dict[tuple[str, int], int]
    missing: int = 0
    again: int = 0
    exact: bool = False


class Out(Protocol):
    """A queue to the process that measures."""

    def put(self, told: Stretch | Told) -> None: ...


class Interval:
    """Gathers latencies and passes them on every ``INTERVAL_S``."""

    def __init__(self, kind: str, out: Out) -> None:
        self._kind, self._out = kind, out
        self._spread = Spread()
        self._next = time.monotonic() + INTERVAL_S

    def add(self, seconds: float) -> None:
        self._spread.add(seconds)

    def tell(self, now: float, *, at_once: bool = False) -> None:
        if now >= self._next or at_once:
            self._out.put(Stretch(now, self._kind, dict(self._spread.counts)))
            self._spread = Spread()
            self._next = now + INTERVAL_S


def texts() -> list[bytes]:
    """Values of around 100 bytes, the same in each run."""
    drawn = itertools.islice(stream(AROUND_100, False, random.Random(1)), 4000)
    return [value for _, value in drawn]


def is_over(stop: Event) -> bool:
    """Whether the load is to end: it was told to, or the process that measures was killed."""
    parent = parent_process()
    return stop.is_set() or (parent is not None and not parent.is_alive())


class Writer:
    """One producer. Records go to the partitions in turn."""

    def __init__(self, bootstrap: str, written: Stream, interval: Interval) -> None:
        from confluent_kafka import Producer

        self._topic, self._interval = written.topic, interval
        settings = {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "linger.ms": LINGER_MS,
            # As Java's. Without a limit, requests of a few records each queue up at the broker: it
            # answers those of a connection one by one, and each has to wait for its acks.
            "max.in.flight": 5,
            "compression.codec": written.codec,
            "message.timeout.ms": 120_000,
            "queue.buffering.max.messages": 1_000_000,
            "message.send.max.retries": 1_000_000,
            "log_level": 2,  # brokers that are down are a part of it
            **spoken(written.is_old),
            **({} if written.is_old else {"enable.idempotence": True}),
        }
        self.producer: Any = Producer(settings)
        self._sent = [0] * PARTITIONS
        self.acknowledged = [0] * PARTITIONS
        self.failed = 0

    def send(self, number: int, value: bytes, due: float) -> None:
        partition = number % PARTITIONS
        data = HEAD.pack(self._sent[partition], due) + value
        self._sent[partition] += 1
        key = b"%d" % (number // PARTITIONS % KEYS)

        def delivered(error: object, message: object) -> None:
            if error is not None:
                self.failed += 1
                return
            self.acknowledged[partition] += 1
            self._interval.add(time.monotonic() - due)

        produce = partial(
            self.producer.produce,
            *(self._topic, data, key),
            partition=partition,
            on_delivery=delivered,
        )
        try:
            produce()
        except BufferError:
            self.producer.poll(1.0)
            produce()


def write(bootstrap: str, streams: Sequence[Stream], rate: float, stop: Event, out: Out) -> None:
    """Send ``rate`` records a second to all streams together until ``stop``."""
    interval = Interval("produce", out)
    writers = [Writer(bootstrap, each, interval) for each in streams]
    values = itertools.cycle(texts())
    begin = time.monotonic()
    sent = 0
    while not is_over(stop):
        now = time.monotonic()
        due = int((now - begin) * rate)
        for number in range(sent, due):
            writer = writers[number % len(writers)]
            writer.send(number // len(writers), next(values), begin + number / rate)
        sent = due
        for writer in writers:
            writer.producer.poll(0)
        interval.tell(now)
        rest = TICK_S - (time.monotonic() - now)
        if rest > 0:
            time.sleep(rest)
    for writer in writers:
        writer.producer.flush(150)
    interval.tell(time.monotonic(), at_once=True)
    ends = {
        (each.topic, partition): count
        for each, writer in zip(streams, writers, strict=True)
        for partition, count in enumerate(writer.acknowledged)
    }
    out.put(Told("produce", ends, missing=sum(writer.failed for writer in writers)))


class Seen:
    """The numbers of one partition that were read, in whatever order."""

    def __init__(self) -> None:
        self.end = 0
        self.skipped: set[int] = set()
        self.again = 0

    def add(self, number: int) -> None:
        if number >= self.end:
            self.skipped.update(range(self.end, number))
            self.end = number + 1
        elif number in self.skipped:
            self.skipped.remove(number)
        else:
            self.again += 1


def read(bootstrap: str, streams: Sequence[Stream], *, is_old: bool, stop: Event, out: Out) -> None:
    """Read all partitions of the streams from their begin; after ``stop`` until nothing came for
    some seconds."""
    from confluent_kafka import Consumer, TopicPartition

    kind = "end to end"
    interval = Interval(kind, out)
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": f"hour-{is_old}",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 100,
        "fetch.error.backoff.ms": 50,
        "log_level": 2,
        **spoken(is_old),
    }
    consumer = Consumer(settings)
    topics = [each.topic for each in streams]
    consumer.assign([TopicPartition(name, n, 0) for name in topics for n in range(PARTITIONS)])
    seen = {(name, n): Seen() for name in topics for n in range(PARTITIONS)}
    quiet_since = time.monotonic()
    while not is_over(stop) or time.monotonic() - quiet_since < 10:
        messages = consumer.consume(2000, GATHER_S)
        now = time.monotonic()
        for topic, partition, number, due in heads(messages):
            seen[topic, partition].add(number)
            interval.add(now - due)
            quiet_since = now
        interval.tell(now)
    interval.tell(time.monotonic(), at_once=True)
    consumer.close()
    missing = sum(len(each.skipped) for each in seen.values())
    again = sum(each.again for each in seen.values())
    out.put(Told(kind, {key: each.end for key, each in seen.items()}, missing, again, is_old))


def heads(messages: Iterable[Any]) -> Iterable[tuple[str, int, int, float]]:
    """Topic, partition, number and due time of each message; errors are left out, as librdkafka
    goes on by itself."""
    for message in messages:
        if message.error() is None:
            number, due = HEAD.unpack_from(message.value())
            yield message.topic(), message.partition(), number, due
