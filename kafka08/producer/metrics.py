"""The metrics of a producer under the names of the Java producer's ``producer-metrics``.

Rates, averages and maxima are over the last samples, two of 30 seconds by default. Records are
counted when a request is sent, so that ``send`` has no extra cost. There is no lock: when two tasks
count at once, one count may be lost.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from kafka08.errors import KafkaError
from kafka08.producer.accumulator import Part
from kafka08.producer.batch import Batch

WINDOW_S = 30.0
SAMPLES = 2


class Sensor:
    """Sum, count and maximum of recent values; times in monotonic seconds.

    A sample lasts ``window`` seconds; only the last ``samples`` samples are kept.
    """

    __slots__ = ("_span", "_windows", "total")

    def __init__(self, begin: float, window: float = WINDOW_S, samples: int = SAMPLES) -> None:
        self.total = 0.0
        self._span = window
        # Each: begin, sum, count, maximum.
        self._windows = deque([[begin, 0.0, 0, 0.0]], samples)

    def record(
        self, value: float, now: float, count: int = 1, largest: float | None = None
    ) -> None:
        self._roll(now)
        window = self._windows[-1]
        window[1] += value
        window[2] += count
        window[3] = max(window[3], value if largest is None else largest)
        self.total += value

    def _roll(self, now: float) -> None:
        windows = self._windows
        if now - windows[-1][0] >= self._span:
            windows.append([now, 0.0, 0, 0.0])
            samples = windows.maxlen or 1
            while len(windows) > 1 and now - windows[0][0] >= samples * self._span:
                windows.popleft()

    def rate(self, now: float) -> float:
        """Per second."""
        self._roll(now)
        return sum(w[1] for w in self._windows) / max(now - self._windows[0][0], 1.0)

    def average(self, now: float) -> float:
        self._roll(now)
        count = sum(w[2] for w in self._windows)
        return sum(w[1] for w in self._windows) / count if count else 0.0

    def largest(self, now: float) -> float:
        self._roll(now)
        return max(w[3] for w in self._windows)


class ProducerMetrics:
    """Methods that the sender calls, and ``snapshot``."""

    def __init__(self, now: float, window: float = WINDOW_S, samples: int = SAMPLES) -> None:
        self._records = Sensor(now, window, samples)
        self._record_bytes = Sensor(now, window, samples)
        self._batch_bytes = Sensor(now, window, samples)
        self._compression = Sensor(now, window, samples)
        self._queue_ms = Sensor(now, window, samples)
        self._requests = Sensor(now, window, samples)
        self._latency_ms = Sensor(now, window, samples)
        self._retries = Sensor(now, window, samples)
        self._errors = Sensor(now, window, samples)
        self._outgoing = Sensor(now, window, samples)

    def sent(self, parts: list[Part], request: Any, now: float) -> None:
        records = 0
        for _, batches in parts:
            for batch in batches:
                count = len(batch.values)
                records += count
                self._record_bytes.record(batch.size, now, count, batch.size / max(count, 1))
                self._queue_ms.record((now - batch.created) * 1000, now)
        self._records.record(records, now)
        self._requests.record(1, now, 0)
        raw = sum(batch.size for part in parts for batch in part.batches)
        for topic in request.topics:
            for partition in topic.partitions:
                self._batch_bytes.record(len(partition.message_set), now)
        encoded = sum(len(p.message_set) for topic in request.topics for p in topic.partitions)
        self._outgoing.record(encoded, now)
        self._compression.record(encoded / max(raw, 1), now)

    def answered(self, latency: float, now: float) -> None:
        self._latency_ms.record(latency * 1000, now)

    def failed(self, part: Part, ended: list[Batch], error: KafkaError, now: float) -> None:
        lost = sum(batch.count for batch in ended)
        again = sum(len(batch.values) for batch in part.batches if not batch.done)
        if lost:
            self._errors.record(lost, now)
        if again:
            self._retries.record(again, now)

    def refused(self, now: float) -> None:
        """Count a record that ``send`` itself failed."""
        self._errors.record(1, now)

    def expired(self, ended: list[Batch], now: float) -> None:
        if ended:
            self._errors.record(sum(batch.count for batch in ended), now)

    def snapshot(self, now: float) -> dict[str, float]:
        return {
            "batch-size-avg": self._batch_bytes.average(now),
            "batch-size-max": self._batch_bytes.largest(now),
            "byte-rate": self._outgoing.rate(now),
            "compression-rate-avg": self._compression.average(now),
            "record-queue-time-avg": self._queue_ms.average(now),
            "record-queue-time-max": self._queue_ms.largest(now),
            "request-latency-avg": self._latency_ms.average(now),
            "request-latency-max": self._latency_ms.largest(now),
            "request-rate": self._requests.rate(now),
            "record-send-rate": self._records.rate(now),
            "record-send-total": self._records.total,
            "records-per-request-avg": self._records.average(now),
            "record-retry-rate": self._retries.rate(now),
            "record-retry-total": self._retries.total,
            "record-error-rate": self._errors.rate(now),
            "record-error-total": self._errors.total,
            "record-size-avg": self._record_bytes.average(now),
            "record-size-max": self._record_bytes.largest(now),
        }
