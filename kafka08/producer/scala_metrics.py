"""The metrics of the Scala-style producer under the names of the original's beans.

Mirrors kafka.producer.ProducerTopicStats and ProducerStats, over all topics.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka08.client.meters import Meter


class ScalaProducerMetrics:
    """``now`` gives monotonic seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.messages = Meter(now)
        self.bytes = Meter(now)
        self.dropped_messages = Meter(now)
        self.resends = Meter(now)
        self.failed_sends = Meter(now)
        self.serialization_errors = Meter(now)

    def numbers(self) -> dict[str, float]:
        return {
            **self.messages.numbers("MessagesPerSec"),
            **self.bytes.numbers("BytesPerSec"),
            **self.dropped_messages.numbers("DroppedMessagesPerSec"),
            **self.resends.numbers("ResendsPerSec"),
            **self.failed_sends.numbers("FailedSendsPerSec"),
            **self.serialization_errors.numbers("SerializationErrorsPerSec"),
        }
