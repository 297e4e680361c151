from __future__ import annotations

from math import exp

import pytest

from kafka08.metrics.clients import ClientCollector
from tests.fakes.runtime import FakeClock
from tools.mirror.channel import DataChannel, TimeShare


def test_the_mean_of_a_level_over_time() -> None:
    clock = FakeClock()
    level = TimeShare(clock.monotonic, 1.0)
    assert level.share.share == 1
    clock.now += 7
    assert level.share.share == 1
    level.set(0.5)
    clock.now += 600
    assert level.share.share == pytest.approx(0.5, abs=1e-4)
    level.set(0)
    clock.now += 60
    assert level.share.share == pytest.approx(0.5 * exp(-1), abs=1e-4)


def test_reading_changes_nothing() -> None:
    clock = FakeClock()
    one, other = (TimeShare(clock.monotonic) for _ in range(2))
    for number in range(40):
        clock.now += 1
        one.set(number % 2)
        other.set(number % 2)
        assert 0 <= other.share.share <= 1
    assert one.share.share == pytest.approx(other.share.share)


@pytest.mark.scenario("ops-19")
def test_sizes_and_the_waits_of_producers() -> None:
    clock = FakeClock()
    channel = DataChannel(clock.monotonic)
    names = {family.name for family in ClientCollector(channel).collect()}
    assert len(names) == 2, "no size was seen yet"
    clock.now += 60
    channel.put()
    channel.put()
    clock.now += 60
    channel.taken()
    sizes, put, take = (each.value for each in channel.series())
    assert (sizes.count, sizes.sum, sizes.max) == (3, 4, 2)
    assert put.share == 0
    assert take.share == pytest.approx((exp(-1) - exp(-2)) / (1 - exp(-2)))
    channel.taken()
    clock.now += 600
    assert channel.series()[2].value.share == pytest.approx(1, abs=1e-3)


@pytest.mark.scenario("ops-19")
def test_the_waits_of_streams_are_shared_out_among_them() -> None:
    clock = FakeClock()
    channel = DataChannel(clock.monotonic)
    for _ in range(4):
        channel.add_stream()
    channel.wait(1)
    clock.now += 30
    assert channel.series()[1].value.share == pytest.approx(0.25)
    for change in (1, 1, 1):
        channel.wait(change)
    clock.now += 600
    assert channel.series()[1].value.share == pytest.approx(1, abs=1e-3)
