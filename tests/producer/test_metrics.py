from __future__ import annotations

from kafka08.producer.metrics import WINDOW_S, Sensor


def test_two_windows() -> None:
    sensor = Sensor(0.0)
    assert (sensor.rate(0.0), sensor.average(0.0), sensor.largest(0.0)) == (0, 0, 0)
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
