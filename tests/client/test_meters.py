from __future__ import annotations

import pytest

from kafka08.client.meters import Meter, Timer
from tests.fakes.runtime import FakeClock


def test_meter() -> None:
    clock = FakeClock()
    meter = Meter(clock.monotonic)
    meter.mark(0)
    assert set(meter.numbers("X").values()) == {0}
    for _ in range(600):
        clock.now_ms += 1000
        meter.mark(5)
    numbers = meter.numbers("XPerSec")
    assert numbers["XPerSec.Count"] == 3000
    assert numbers["XPerSec.MeanRate"] == 5
    assert numbers["XPerSec.OneMinuteRate"] == pytest.approx(5, rel=0.02)
    clock.now_ms += 60_000
    assert meter.numbers("X")["X.OneMinuteRate"] == pytest.approx(5 / 2.718, rel=0.02)


def test_timer() -> None:
    timer = Timer(FakeClock().monotonic)
    assert timer.numbers("X")["X.Mean"] == 0
    timer.record(0.1)
    timer.record(0.3)
    numbers = timer.numbers("X")
    assert (numbers["X.Count"], numbers["X.Mean"], numbers["X.Max"]) == (2, 200, 300)
