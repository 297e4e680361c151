from __future__ import annotations

import pytest

from kafka08.client.meters import Distribution, Meter, Requests, Timer, TopicMeters
from kafka08.metrics import client_names as names
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


def test_topics_add_up() -> None:
    meters = TopicMeters(FakeClock().monotonic)
    meters.mark("t", 3)
    meters.mark("u")
    meters.mark("t")
    assert meters.counts() == {"t": 4, "u": 1}
    found = {
        each.tags.get("topic", ""): each.value.count
        for each in meters.series(names.BYTES_READ, "c")
    }
    assert found == {"": 5, "t": 4, "u": 1}


def test_a_distribution_forgets_without_being_told() -> None:
    clock = FakeClock()
    sizes = Distribution(clock.monotonic)
    sizes.update(1000)
    clock.now_ms += 60_000
    assert sizes.quantiles((0.5,)) == [1000]
    clock.now_ms += 10 * 60_000
    sizes.update(10)
    assert sizes.quantiles((0.999,)) == [pytest.approx(10, rel=0.1)]
    assert (sizes.count, sizes.sum, sizes.max) == (2, 1010, 1000)


def test_requests_by_broker_and_in_all() -> None:
    requests = Requests(FakeClock().monotonic)
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
