"""The Scala-style producer's metrics by the names of the original's beans."""

from __future__ import annotations

from kafka08.producer.scala_metrics import ScalaProducerMetrics
from tests.fakes.runtime import FakeClock


def test_each_meter_has_its_own_name() -> None:
    metrics = ScalaProducerMetrics(FakeClock().monotonic)
    topics = [metrics.messages, metrics.bytes, metrics.dropped_messages]
    for number, of_topics in enumerate(topics, 1):
        of_topics.mark("t", number)
    for number, meter in enumerate(
        [metrics.resends, metrics.failed_sends, metrics.serialization_errors], 4
    ):
        meter.mark(number)
    counts = {name: value for name, value in metrics.numbers().items() if name.endswith(".Count")}
    assert counts == {
        "MessagesPerSec.Count": 1,
        "BytesPerSec.Count": 2,
        "DroppedMessagesPerSec.Count": 3,
        "ResendsPerSec.Count": 4,
        "FailedSendsPerSec.Count": 5,
        "SerializationErrorsPerSec.Count": 6,
    }
