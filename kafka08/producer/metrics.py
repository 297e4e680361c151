"""The metrics of a producer under the names of the Java producer's ``producer-metrics``,
``producer-topic-metrics`` and ``producer-node-metrics``.

Rates, averages and maxima are over the last samples, two of 30 seconds by default. Records are
counted when a request is sent, so that ``send`` has no extra cost. There is no lock: when two tasks
count at once, one count may be lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from kafka08.metrics import client_names as names
from kafka08.metrics.clients import series
from kafka08.metrics.registry import Series
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

    def frequency(self, now: float) -> float:
        """Values per second."""
        self._roll(now)
        return sum(w[2] for w in self._windows) / max(now - self._windows[0][0], 1.0)

    def average(self, now: float) -> float:
        self._roll(now)
        count = sum(w[2] for w in self._windows)
        return sum(w[1] for w in self._windows) / count if count else 0.0

    def largest(self, now: float) -> float:
        self._roll(now)
        return max(w[3] for w in self._windows)

    def has_data(self, now: float) -> bool:
        self._roll(now)
        return any(w[2] for w in self._windows)


class _Node:
    """The traffic with one broker, or with all."""

    def __init__(self, now: float, window: float, samples: int) -> None:
        self.sizes = Sensor(now, window, samples)
        self.latency_ms = Sensor(now, window, samples)
        self.received = Sensor(now, window, samples)

    def figures(self, now: float) -> dict[str, float | None]:
        """None: there is no data."""
        sent, latency, received = self.sizes, self.latency_ms, self.received
        timed = latency.has_data(now)
        return {
            "outgoing-byte-rate": sent.rate(now),
            "request-rate": sent.frequency(now),
            "request-size-avg": sent.average(now) if sent.has_data(now) else None,
            "request-size-max": sent.largest(now) if sent.has_data(now) else None,
            "incoming-byte-rate": received.rate(now),
            "response-rate": received.frequency(now),
            "request-latency-avg": latency.average(now) if timed else None,
            "request-latency-max": latency.largest(now) if timed else None,
        }


class _Topic:
    """The records that were sent to one topic."""

    def __init__(self, now: float, window: float, samples: int) -> None:
        self.records = Sensor(now, window, samples)
        self.bytes = Sensor(now, window, samples)
        self.compression = Sensor(now, window, samples)
        self.retries = Sensor(now, window, samples)
        self.errors = Sensor(now, window, samples)

    def figures(self, now: float) -> dict[str, float | None]:
        compression = self.compression
        return {
            "record-send-rate": self.records.rate(now),
            "byte-rate": self.bytes.rate(now),
            "compression-rate": compression.average(now) if compression.has_data(now) else None,
            "record-retry-rate": self.retries.rate(now),
            "record-error-rate": self.errors.rate(now),
        }


class ProducerMetrics:
    """Methods that the sender calls, and ``snapshot`` and ``series``."""

    def __init__(self, now: float, window: float = WINDOW_S, samples: int = SAMPLES) -> None:
        self._window = window, samples
        self._node = _Node(now, window, samples)
        self._nodes: dict[int, _Node] = {}
        self._topics: dict[str, _Topic] = {}
        self._records = Sensor(now, window, samples)
        self._record_bytes = Sensor(now, window, samples)
        self._batch_bytes = Sensor(now, window, samples)
        self._compression = Sensor(now, window, samples)
        self._queue_ms = Sensor(now, window, samples)
        self._retries = Sensor(now, window, samples)
        self._errors = Sensor(now, window, samples)
        self._encoded = Sensor(now, window, samples)
        self._opened = Sensor(now, window, samples)
        self._closed = Sensor(now, window, samples)
        self._waited = Sensor(now, window, samples)
        self._io = Sensor(now, window, samples)
        self._io_wait = Sensor(now, window, samples)

    def _of_node(self, node: int, now: float) -> _Node:
        found = self._nodes.get(node)
        if found is None:
            found = self._nodes[node] = _Node(now, *self._window)
        return found

    def _of_topic(self, topic: str, now: float) -> _Topic:
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = _Topic(now, *self._window)
        return found

    def sent(self, node: int, parts: list[Part], request: Any, size: int, now: float) -> None:
        """``size``: bytes of the whole request."""
        records = 0
        sets = {
            (topic.topic, partition.partition): len(partition.message_set)
            for topic in request.topics
            for partition in topic.partitions
        }
        raw = 0
        for queue, batches in parts:
            of_queue = of_bytes = 0
            for batch in batches:
                count = len(batch.values)
                of_queue += count
                of_bytes += batch.size
                self._record_bytes.record(batch.size, now, count, batch.size / max(count, 1))
                self._queue_ms.record((now - batch.created) * 1000, now)
            encoded = sets[queue.tp]
            self._batch_bytes.record(encoded, now)
            topic = self._of_topic(queue.tp.topic, now)
            topic.records.record(of_queue, now)
            topic.bytes.record(encoded, now)
            topic.compression.record(encoded / max(of_bytes, 1), now)
            records += of_queue
            raw += of_bytes
        self._records.record(records, now)
        encoded = sum(sets.values())
        self._encoded.record(encoded, now)
        self._compression.record(encoded / max(raw, 1), now)
        for each in (self._node, self._of_node(node, now)):
            each.sizes.record(size, now)

    def received(self, node: int, size: int, responses: int, now: float) -> None:
        for each in (self._node, self._of_node(node, now)):
            each.received.record(size, now, responses)

    def answered(self, node: int, latency: float, now: float) -> None:
        for each in (self._node, self._of_node(node, now)):
            each.latency_ms.record(latency * 1000, now)

    def failed(self, part: Part, ended: list[Batch], now: float) -> None:
        lost = sum(batch.count for batch in ended)
        again = sum(len(batch.values) for batch in part.batches if not batch.done)
        topic = self._of_topic(part.queue.tp.topic, now)
        if lost:
            self._errors.record(lost, now)
            topic.errors.record(lost, now)
        if again:
            self._retries.record(again, now)
            topic.retries.record(again, now)

    def refused(self, topic: str, now: float) -> None:
        """Count a record that ``send`` itself failed."""
        self._errors.record(1, now)
        self._of_topic(topic, now).errors.record(1, now)

    def expired(self, ended: list[Batch], now: float) -> None:
        for batch in ended:
            self._errors.record(batch.count, now)
            self._of_topic(batch.tp.topic, now).errors.record(batch.count, now)

    def opened(self, now: float) -> None:
        self._opened.record(1, now)

    def closed(self, now: float) -> None:
        self._closed.record(1, now)

    def waited(self, seconds: float, now: float) -> None:
        """A task waited for memory."""
        self._waited.record(seconds, now)

    def round(self, io: float, wait: float, now: float) -> None:
        """A task that writes to a broker took ``io`` seconds, and then waited for work."""
        self._io.record(io, now)
        self._io_wait.record(wait, now)

    def _figures(self, now: float) -> dict[str, float | None]:
        def average(sensor: Sensor) -> float | None:
            return sensor.average(now) if sensor.has_data(now) else None

        def largest(sensor: Sensor) -> float | None:
            return sensor.largest(now) if sensor.has_data(now) else None

        def nanoseconds(sensor: Sensor) -> float | None:
            return sensor.average(now) * 1e9 if sensor.has_data(now) else None

        node = self._node.figures(now)
        # There is a task for each broker: shares are those of the time of all.
        io, io_wait = self._io.rate(now), self._io_wait.rate(now)
        of_both = io + io_wait
        return {
            "batch-size-avg": average(self._batch_bytes),
            "batch-size-max": largest(self._batch_bytes),
            "compression-rate-avg": average(self._compression),
            "record-queue-time-avg": average(self._queue_ms),
            "record-queue-time-max": largest(self._queue_ms),
            "record-send-rate": self._records.rate(now),
            "records-per-request-avg": average(self._records),
            "record-retry-rate": self._retries.rate(now),
            "record-error-rate": self._errors.rate(now),
            "record-size-avg": average(self._record_bytes),
            "record-size-max": largest(self._record_bytes),
            "bufferpool-wait-ratio": self._waited.rate(now),
            "connection-creation-rate": self._opened.rate(now),
            "connection-close-rate": self._closed.rate(now),
            "network-io-rate": (node["request-rate"] or 0.0) + (node["response-rate"] or 0.0),
            "select-rate": self._io.frequency(now),
            "io-time-ns-avg": nanoseconds(self._io),
            "io-wait-time-ns-avg": nanoseconds(self._io_wait),
            "io-ratio": io / of_both if of_both else None,
            "io-wait-ratio": io_wait / of_both if of_both else None,
            **node,
        }

    def snapshot(self, now: float) -> dict[str, float]:
        """0 where there is no data. ``byte-rate`` and the totals are not of the original."""
        return {
            **{name: value or 0.0 for name, value in self._figures(now).items()},
            "byte-rate": self._encoded.rate(now),
            "record-send-total": self._records.total,
            "record-retry-total": self._retries.total,
            "record-error-total": self._errors.total,
        }

    def series(
        self, client_id: str, gauges: dict[str, float | None], now: float
    ) -> Iterator[Series]:
        """``gauges``: the figures that others know. One without data has no series."""
        for name, value in {**gauges, **self._figures(now)}.items():
            if value is not None:
                yield series(names.PRODUCER[name], value, client_id)
        for topic, found in list(self._topics.items()):
            for name, value in found.figures(now).items():
                if value is not None:
                    yield series(names.PRODUCER_TOPIC[name], value, client_id, topic)
        for node, traffic in list(self._nodes.items()):
            for name, value in traffic.figures(now).items():
                if value is not None:
                    yield series(names.PRODUCER_NODE[name], value, client_id, f"node-{node}")
