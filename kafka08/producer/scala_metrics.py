"""The metrics of the Scala-style producer under the names of the original's beans.

Mirrors kafka.producer.ProducerTopicStats, ProducerStats and ProducerRequestStats.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka08.client.meters import Now, Requests, Ticker, TopicMeters
from kafka08.metrics import client_names as names
from kafka08.metrics.clients import series
from kafka08.metrics.meters import Meter
from kafka08.metrics.registry import Series


class ScalaProducerMetrics:
    """``now`` gives monotonic seconds."""

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
