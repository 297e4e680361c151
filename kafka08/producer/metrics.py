"""The metrics of a producer under the names of the Java producer's ``producer-metrics``,
``producer-topic-metrics`` and ``producer-node-metrics``.

Rates, averages and maxima are over the last samples, two of 30 seconds by default. Records are
counted when a request is sent, so that ``send`` has no extra cost. There is no lock: when two tasks
count at once, one count may be lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from kafka08.client.meters import Now, Requests, Ticker, TopicMeters
from kafka08.metrics import client_names as names
from kafka08.metrics.meters import Meter
from kafka08.metrics.registry import Series, series
from kafka08.producer.accumulator import PartitionBatches
from kafka08.producer.batch import ProducerBatch
from kafka08.protocol.schemas import ProduceRequest

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

    def average(self, now: float) -> float | None:
        """None: there is no data."""
        self._roll(now)
        count = sum(w[2] for w in self._windows)
        return sum(w[1] for w in self._windows) / count if count else None

    def largest(self, now: float) -> float | None:
        """None: there is no data."""
        self._roll(now)
        return max((w[3] for w in self._windows if w[2]), default=None)


NewSensor = Callable[[], Sensor]
Figures = dict[str, float | None]
"""By name; None: there is no data."""


class _Node:
    """The traffic with one broker, or with all."""

    def __init__(self, new: NewSensor) -> None:
        self.sizes, self.latency_ms, self.received = new(), new(), new()

    def figures(self, now: float) -> Figures:
        return {
            "outgoing-byte-rate": self.sizes.rate(now),
            "request-rate": self.sizes.frequency(now),
            "request-size-avg": self.sizes.average(now),
            "request-size-max": self.sizes.largest(now),
            "incoming-byte-rate": self.received.rate(now),
            "response-rate": self.received.frequency(now),
            "request-latency-avg": self.latency_ms.average(now),
            "request-latency-max": self.latency_ms.largest(now),
        }


class _Topic:
    """The records that were sent to one topic."""

    def __init__(self, new: NewSensor) -> None:
        self.records, self.bytes, self.compression = new(), new(), new()
        self.retries, self.errors = new(), new()

    def figures(self, now: float) -> Figures:
        return {
            "record-send-rate": self.records.rate(now),
            "byte-rate": self.bytes.rate(now),
            "compression-rate": self.compression.average(now),
            "record-retry-rate": self.retries.rate(now),
            "record-error-rate": self.errors.rate(now),
        }


class ProducerMetrics:
    """Methods that the sender calls, and ``snapshot`` and ``series``."""

    def __init__(self, now: float, window: float = WINDOW_S, samples: int = SAMPLES) -> None:
        new = partial(Sensor, now, window, samples)
        self._window = window, samples
        self._node = _Node(new)
        self._nodes: dict[int, _Node] = {}
        self._topics: dict[str, _Topic] = {}
        self._records, self._record_bytes, self._batch_bytes = new(), new(), new()
        self._compression, self._encoded, self._queue_ms = new(), new(), new()
        self._retries, self._errors = new(), new()
        self._opened, self._closed = new(), new()
        self._waited, self._io, self._io_wait = new(), new(), new()

    def _of_node(self, node: int, now: float) -> _Node:
        if node not in self._nodes:
            self._nodes[node] = _Node(partial(Sensor, now, *self._window))
        return self._nodes[node]

    def _of_topic(self, topic: str, now: float) -> _Topic:
        if topic not in self._topics:
            self._topics[topic] = _Topic(partial(Sensor, now, *self._window))
        return self._topics[topic]

    def sent(
        self,
        node: int,
        parts: list[PartitionBatches],
        request: ProduceRequest,
        size: int,
        now: float,
    ) -> None:
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

    def failed(self, part: PartitionBatches, ended: list[ProducerBatch], now: float) -> None:
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

    def expired(self, ended: list[ProducerBatch], now: float) -> None:
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

    def _figures(self, now: float) -> Figures:
        def nanoseconds(sensor: Sensor) -> float | None:
            average = sensor.average(now)
            return None if average is None else average * 1e9

        node = self._node.figures(now)
        # There is a task for each broker: shares are those of the time of all.
        io, io_wait = self._io.rate(now), self._io_wait.rate(now)
        of_both = io + io_wait
        return {
            "batch-size-avg": self._batch_bytes.average(now),
            "batch-size-max": self._batch_bytes.largest(now),
            "compression-rate-avg": self._compression.average(now),
            "record-queue-time-avg": self._queue_ms.average(now),
            "record-queue-time-max": self._queue_ms.largest(now),
            "record-send-rate": self._records.rate(now),
            "records-per-request-avg": self._records.average(now),
            "record-retry-rate": self._retries.rate(now),
            "record-error-rate": self._errors.rate(now),
            "record-size-avg": self._record_bytes.average(now),
            "record-size-max": self._record_bytes.largest(now),
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

    def series(self, client_id: str, gauges: Figures, now: float) -> Iterator[Series]:
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


class ScalaProducerMetrics:
    """Those of the Scala-style producer, under the names of the original's beans.

    Mirrors kafka.producer.ProducerTopicStats, ProducerStats and ProducerRequestStats. ``now`` gives
    monotonic seconds.
    """

    def __init__(self, now: Now) -> None:
        self._ticker = ticker = Ticker(now)
        self.messages = TopicMeters(ticker)
        self.bytes = TopicMeters(ticker)
        self.dropped_messages = TopicMeters(ticker)
        self.resends = ticker.add(Meter())
        self.failed_sends = ticker.add(Meter())
        self.serialization_errors = ticker.add(Meter())
        self.requests = Requests(ticker)

    def numbers(self) -> dict[str, float]:
        """Over all topics and brokers."""
        return {
            **self.messages.numbers("MessagesPerSec"),
            **self.bytes.numbers("BytesPerSec"),
            **self.dropped_messages.numbers("DroppedMessagesPerSec"),
            **self._ticker.numbers("ResendsPerSec", self.resends),
            **self._ticker.numbers("FailedSendsPerSec", self.failed_sends),
            **self._ticker.numbers("SerializationErrorsPerSec", self.serialization_errors),
        }

    def series(self, client_id: str, queued: int | None) -> Iterator[Series]:
        """``queued``: messages that wait; None for a producer without a queue."""
        self._ticker.tick()
        yield from self.messages.series(names.MESSAGES_SENT, client_id)
        yield from self.bytes.series(names.BYTES_SENT, client_id)
        yield from self.dropped_messages.series(names.DROPPED, client_id)
        yield series(names.RESENDS, self.resends, client_id)
        yield series(names.FAILED_SENDS, self.failed_sends, client_id)
        yield series(names.SERIALIZATION_ERRORS, self.serialization_errors, client_id)
        if queued is not None:
            yield series(names.QUEUE_SIZE, queued, client_id)
        yield from self.requests.series(names.SEND_TIMES, names.SEND_SIZES, client_id)
