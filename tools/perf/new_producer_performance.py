"""How fast KafkaProducer sends, and how long records take.

Mirrors org.apache.kafka.clients.tools.ProducerPerformance. Differences: a rate of 0 means no limit,
as a negative one does, where the original fails; percentiles of no records are 0.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from typing import Any

from kafka08.errors import KafkaError
from kafka08.producer.kafka_config import KafkaProducerConfig
from kafka08.producer.kafka_producer import KafkaProducer
from tools.perf.perf_options import MEGABYTE, decimal, follow, rate

REPORT_MS = 5000
LATENCIES = 500_000
SHORTEST_SLEEP_S = 0.002
USAGE = (
    "USAGE: java org.apache.kafka.clients.tools.ProducerPerformance topic_name num_records "
    "record_size target_records_sec [prop_name=prop_value]*"
)


class ArgumentError(KafkaError):
    java_class = "java.lang.IllegalArgumentException"


class NumberError(KafkaError):
    java_class = "java.lang.NumberFormatException"


class Stats:
    """Counts what is acknowledged, and prints a line every five seconds. Latencies are whole ms."""

    def __init__(self, records: int, now: float) -> None:
        self._lock = threading.Lock()
        self._begin = self._window_begin = now
        self._sampling = max(1, records // max(1, min(records, LATENCIES)))
        self._samples: list[int] = []
        self._seen = 0
        self._total = [0, 0, 0, 0]
        self._window = [0, 0, 0, 0]

    @property
    def count(self) -> int:
        return self._total[0]

    def record(self, latency_ms: int, size: int, now: float) -> str | None:
        """A line to print, when it is time."""
        with self._lock:
            for sums in (self._total, self._window):
                sums[0] += 1
                sums[1] += size
                sums[2] += latency_ms
                sums[3] = max(sums[3], latency_ms)
            if self._seen % self._sampling == 0:
                self._samples.append(latency_ms)
            self._seen += 1
            if (now - self._window_begin) * 1000 < REPORT_MS:
                return None
            count, size, latency, highest = self._window
            seconds, self._window_begin = now - self._window_begin, now
            self._window = [0, 0, 0, 0]
        return (
            f"{count} records sent, {decimal(rate(count, seconds), 1)} records/sec "
            f"({decimal(rate(size / MEGABYTE, seconds), 2)} MB/sec), "
            f"{decimal(rate(latency, count), 1)} ms avg latency, {highest:.1f} max latency."
        )

    def total(self, now: float) -> str:
        """The last line."""
        count, size, latency, highest = self._total
        seconds = now - self._begin
        percentiles = self._percentiles(0.5, 0.95, 0.99, 0.999)
        return (
            f"{count} records sent, {decimal(rate(count, seconds), 6)} records/sec "
            f"({decimal(rate(size / MEGABYTE, seconds), 2)} MB/sec), "
            f"{decimal(rate(latency, count), 2)} ms avg latency, "
            f"{highest:.2f} ms max latency, {percentiles[0]} ms 50th, {percentiles[1]} ms 95th, "
            f"{percentiles[2]} ms 99th, {percentiles[3]} ms 99.9th."
        )

    def _percentiles(self, *shares: float) -> list[int]:
        ranked = sorted(self._samples) or [0]
        return [ranked[int(share * len(ranked))] for share in shares]


class Throttle:
    """Holds a loop to this many turns a second, with sleeps of two milliseconds or more."""

    def __init__(self, per_second: int) -> None:
        self._step = 1 / per_second if per_second > 0 else 0.0
        self._owed = 0.0

    def turn(self) -> None:
        self._owed += self._step
        if self._owed >= SHORTEST_SLEEP_S:
            time.sleep(self._owed)
            self._owed = 0.0


def main(argv: list[str]) -> int:
    if len(argv) < 4:
        print(USAGE, file=sys.stderr)
        return 1
    topic, *numbers = argv[:4]
    records, size, per_second = map(_number, numbers)
    settings = _settings(argv[4:])
    payload = b"\x01" * size
    throttle = Throttle(per_second)
    with KafkaProducer(settings) as producer:
        stats = Stats(records, time.time())
        sender = threading.Thread(
            target=_send_all, args=(producer, topic, payload, records, throttle, stats), daemon=True
        )
        sender.start()
        follow(records, topic, lambda: stats.count, [sender])
    print(stats.total(time.time()), flush=True)
    return 0


def _send_all(
    producer: KafkaProducer,
    topic: str,
    payload: bytes,
    records: int,
    throttle: Throttle,
    stats: Stats,
) -> None:
    for _ in range(records):
        began = time.time()

        def ended(_metadata: Any, error: BaseException | None, began: float = began) -> None:
            now = time.time()
            line = stats.record(int((now - began) * 1000), len(payload), now)
            if line is not None:
                print(line, flush=True)
            if error is not None:
                print(f"{type(error).__name__}: {error}", file=sys.stderr)

        producer.send(topic, payload, callback=ended)
        throttle.turn()


def _number(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]+", text):
        raise NumberError(f'For input string: "{text}"')
    return int(text)


def _settings(words: list[str]) -> dict[str, str]:
    settings = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not value or "=" in value:
            raise ArgumentError(f"Invalid property: {word}")
        settings[key] = value
    return KafkaProducerConfig.known(settings)
