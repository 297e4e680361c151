from __future__ import annotations

import pytest

from kafka08.client.meters import Requests, Ticker, TopicMeters
from kafka08.metrics import client_names as names
from kafka08.metrics.meters import Histogram, Meter, Timer
from tests.fakes.runtime import FakeClock


def test_meter() -> None:
    clock = FakeClock()
    ticker = Ticker(clock.monotonic)
    meter = ticker.add(Meter())
    assert set(ticker.numbers("X", meter).values()) == {0}
    for _ in range(600):
        meter.mark(5)
        clock.now_ms += 1000
        ticker.tick()
    numbers = ticker.numbers("XPerSec", meter)
    assert numbers["XPerSec.Count"] == 3000
    assert numbers["XPerSec.MeanRate"] == 5
    assert numbers["XPerSec.OneMinuteRate"] == pytest.approx(5, rel=0.02)
    clock.now_ms += 60_000
    assert ticker.numbers("X", meter)["X.OneMinuteRate"] == pytest.approx(5 / 2.718, rel=0.02)


def test_timer() -> None:
    ticker = Ticker(FakeClock().monotonic)
    timer = ticker.add(Timer())
    assert ticker.numbers("X", timer)["X.Mean"] == 0
    timer.record(0.1)
    timer.record(0.3)
    numbers = ticker.numbers("X", timer)
    assert (numbers["X.Count"], numbers["X.Mean"], numbers["X.Max"]) == (2, 200, 300)


def test_topics_add_up() -> None:
    meters = TopicMeters(Ticker(FakeClock().monotonic))
    meters.mark("t", 3)
    meters.mark("u")
    meters.mark("t")
    assert meters.counts() == {"t": 4, "u": 1}
    found = {
        each.tags.get("topic", ""): each.value.count
        for each in meters.series(names.BYTES_READ, "c")
    }
    assert found == {"": 5, "t": 4, "u": 1}


def test_a_distribution_forgets_as_time_passes() -> None:
    clock = FakeClock()
    ticker = Ticker(clock.monotonic)
    sizes = ticker.add(Histogram())
    sizes.update(1000)
    clock.now_ms += 60_000
    ticker.tick()
    assert sizes.quantiles((0.5,)) == [1000]
    clock.now_ms += 10 * 60_000
    ticker.tick()
    sizes.update(10)
    assert sizes.quantiles((0.999,)) == [pytest.approx(10, rel=0.1)]
    assert (sizes.count, sizes.sum, sizes.max) == (2, 1010, 1000)


def test_requests_by_broker_and_in_all() -> None:
    requests = Requests(Ticker(FakeClock().monotonic))
    requests.record("b0", 9092, 0.1, 10)
    requests.record("b1", 9092, 0.3, 20)
    found = {
        (each.metric.name, each.tags.get("brokerHost", "")): each.value
        for each in requests.series(names.SEND_TIMES, names.SEND_SIZES, "c")
    }
    assert found[names.SEND_TIMES.name, ""].times.sum == 400
    assert found[names.SEND_TIMES.name, "b1"].times.sum == 300
    assert found[names.SEND_SIZES.name, "b0"].sum == 10
    assert len(found) == 6
