"""How fast KafkaProducer sends, and how long records take.

Mirrors org.apache.kafka.clients.tools.ProducerPerformance. Differences: a rate of 0 means no limit,
as a negative one does, where the original fails; percentiles of no records are 0.
"""

from __future__ import annotations

import sys
import threading
import time

from kafka08.admin import InvalidArgumentError
from kafka08.producer.kafka_config import KafkaProducerConfig
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.settings.settings import INT, LONG
from tools.perf.perf_options import MEGABYTE, decimal, follow, percentiles, rate

REPORT_MS = 5000
LATENCIES = 500_000
SHORTEST_SLEEP_S = 0.002
USAGE = (
    "USAGE: java org.apache.kafka.clients.tools.ProducerPerformance topic_name num_records "
    "record_size target_records_sec [prop_name=prop_value]*"
)


class SendStats:
    """Counts what is acknowledged, and prints a line every five seconds. Latencies are whole ms."""

    def __init__(self, records: int, now: float) -> None:
        self._lock = threading.Lock()
        self._begin = self._window_begin = now
        self._sampling = max(1, records // max(1, min(records, LATENCIES)))
        self._samples: list[int] = []
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
            if (self.count - 1) % self._sampling == 0:
                self._samples.append(latency_ms)
            if (now - self._window_begin) * 1000 < REPORT_MS:
                return None
            sums, self._window = self._window, [0, 0, 0, 0]
            seconds, self._window_begin = now - self._window_begin, now
        return f"{_rates(sums, seconds, 1, 1)}, {sums[3]:.1f} max latency."

    def total(self, now: float) -> str:
        """The last line."""
        median, *highest = percentiles(self._samples, 0.5, 0.95, 0.99, 0.999)
        return (
            f"{_rates(self._total, now - self._begin, 6, 2)}, {self._total[3]:.2f} ms max latency, "
            f"{median} ms 50th, {highest[0]} ms 95th, {highest[1]} ms 99th, {highest[2]} ms 99.9th."
        )


def _rates(sums: list[int], seconds: float, *digits: int) -> str:
    """``digits``: after the point of records a second, and of the average latency."""
    count, size, latency, _ = sums
    return (
        f"{count} records sent, {decimal(rate(count, seconds), digits[0])} records/sec "
        f"({decimal(rate(size / MEGABYTE, seconds), 2)} MB/sec), "
        f"{decimal(rate(latency, count), digits[1])} ms avg latency"
    )


class ThroughputThrottler:
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
    topic, records, size = argv[0], LONG.parse(argv[1]), INT.parse(argv[2])
    throttle = ThroughputThrottler(INT.parse(argv[3]))
    settings = _settings(argv[4:])
    payload = b"\x01" * size
    with KafkaProducer(settings) as producer:
        stats = SendStats(records, time.time())
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
    throttle: ThroughputThrottler,
    stats: SendStats,
) -> None:
    for _ in range(records):
        began = time.time()

        def ended(_metadata: object, error: BaseException | None, began: float = began) -> None:
            now = time.time()
            line = stats.record(int((now - began) * 1000), len(payload), now)
            if line is not None:
                print(line, flush=True)
            if error is not None:
                print(f"{type(error).__name__}: {error}", file=sys.stderr)

        producer.send(topic, payload, callback=ended)
        throttle.turn()


def _settings(words: list[str]) -> dict[str, str]:
    settings = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not value or "=" in value:
            raise InvalidArgumentError(f"Invalid property: {word}")
        settings[key] = value
    return KafkaProducerConfig.known(settings)
