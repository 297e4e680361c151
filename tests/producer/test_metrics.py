from __future__ import annotations

import pytest

from kafka08.producer.metrics import WINDOW_S, ProducerMetrics, ScalaProducerMetrics, Sensor
from tests.fakes.runtime import FakeClock
from tests.producer.fake_producer import ProducerDriver

IO = ("select-rate", "io-time-ns-avg", "io-wait-time-ns-avg", "io-ratio", "io-wait-ratio")


def test_two_windows() -> None:
    sensor = Sensor(0.0)
    assert (sensor.rate(0.0), sensor.average(0.0), sensor.largest(0.0)) == (0, None, None)
    sensor.record(10, 1.0)
    sensor.record(30, 10.0)
    assert sensor.rate(10.0) == 4.0
    assert sensor.average(10.0) == 20.0
    sensor.record(5, WINDOW_S + 1)  # the first window is the one before now
    assert sensor.rate(45.0) == 1.0
    assert sensor.average(45.0) == 15.0
    assert sensor.largest(45.0) == 30
    assert sensor.largest(WINDOW_S * 2 + 2) == 5  # and now forgotten
    assert sensor.rate(WINDOW_S * 10) == 0
    assert sensor.total == 45


def test_other_samples() -> None:
    sensor = Sensor(0.0, window=1.0, samples=3)
    for second in range(10):
        sensor.record(second, float(second))
    assert sensor.largest(9.0) == 9
    assert sensor.average(9.0) == (7 + 8 + 9) / 3
    assert sensor.rate(9.0) == (7 + 8 + 9) / 2
    assert sensor.total == 45


def io(metrics: ProducerMetrics, now: float) -> dict[str, float]:
    """By attribute; one without data is not there."""
    found = metrics.series("me", {}, now)
    values = {each.metric.bean.partition(" ")[2]: each.value for each in found}
    return {name: values[name] for name in IO if name in values}


def test_rounds_of_the_tasks_that_write() -> None:
    metrics = ProducerMetrics(0.0)
    assert io(metrics, 0.0) == {"select-rate": 0}
    metrics.round(0.5, 1.0, 2.0)
    metrics.round(0.5, 2.0, 4.0)
    assert io(metrics, 4.0) == {
        "select-rate": 0.5,
        "io-time-ns-avg": 500_000_000,
        "io-wait-time-ns-avg": 1_500_000_000,
        "io-ratio": 0.25,
        "io-wait-ratio": 0.75,
    }
    assert io(metrics, 4 * WINDOW_S) == {"select-rate": 0}


@pytest.mark.scenario("ops-19")
def test_a_round_is_counted_by_the_task_that_writes() -> None:
    driver = ProducerDriver(linger_ms=400)
    driver.producer.send("one", b"a")
    (lane,) = driver.lanes.values()
    driver.sender.serve(lane)
    found = driver.producer.metrics()
    assert found["select-rate"] > 0
    assert found["io-wait-time-ns-avg"] == pytest.approx(400_000_000)
    assert (found["io-wait-ratio"], found["io-ratio"]) == (1, 0)


def test_each_meter_of_the_scala_producer_has_its_own_name() -> None:
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
