from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.metrics.meters import Histogram, IdleShare, Meter, Timer


def test_the_rates_of_a_meter_begin_with_those_of_the_first_tick() -> None:
    meter = Meter()
    assert meter.rates is None
    meter.mark(50)
    meter.tick()
    assert meter.rates == (10.0, 10.0, 10.0)
    meter.tick()
    assert meter.rates == pytest.approx((9.2004, 9.8347, 9.9446), abs=1e-4)
    assert meter.count == 50


def test_rates_move_to_what_is_counted() -> None:
    meter = Meter()
    meter.tick()
    for _ in range(12 * 60):
        meter.mark(500)
        meter.tick()
    assert meter.rates == pytest.approx((100, 100, 98.17), abs=0.1)


def test_a_late_tick_does_not_make_a_higher_rate() -> None:
    meter = Meter()
    meter.mark(100)
    meter.tick(10.0)
    assert meter.rates == (10.0, 10.0, 10.0)


@pytest.mark.parametrize("ticks", [12, 1])
def test_rates_after_a_minute_without_events(ticks: int) -> None:
    """One late tick does what all of the minute would have done."""
    meter = Meter()
    meter.mark(11)
    meter.tick()
    assert meter.rates == (2.2, 2.2, 2.2) and meter.rate == 2.2
    for _ in range(ticks):
        meter.tick(60 / ticks)
    # e to the power of -1, of -1/5, of -1/15.
    assert meter.rates == pytest.approx((0.809, 1.801, 2.058), abs=0.001)


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=300))
def test_quantiles_are_near_the_values(values: list[int]) -> None:
    histogram = Histogram()
    for value in values:
        histogram.update(value)
    values.sort()
    shares = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
    for share, found in zip(shares, histogram.quantiles(shares), strict=True):
        at = min(int(share * len(values)), len(values) - 1)
        below = values[max(at - 1, 0)]
        assert below * 0.875 - 1 <= found <= values[at] * 1.125 + 1
        assert values[0] <= found <= values[-1]
    assert (histogram.min, histogram.max) == (values[0], values[-1])
    assert (histogram.count, histogram.sum) == (len(values), sum(values))


def test_an_empty_histogram_is_all_zeros() -> None:
    empty = Histogram(1000)
    assert empty.quantiles((0.5, 0.99)) == [0.0, 0.0]
    assert (empty.count, empty.sum, empty.min, empty.max) == (0, 0.0, 0.0, 0.0)
    assert (empty.mean, empty.deviation) == (0.0, 0.0)


@pytest.mark.scenario("ops-10")
def test_values_are_shown_in_their_unit() -> None:
    histogram = Histogram(1000)
    for _ in range(3):
        histogram.update(200_500)
    assert histogram.quantiles((0.5,)) == [200.5]
    assert (histogram.mean, histogram.min, histogram.max) == (200.5, 200.5, 200.5)
    assert histogram.deviation == 0.0


def test_the_deviation_is_as_exact_as_the_buckets() -> None:
    histogram = Histogram()
    for value in (100, 200, 300, 400):
        histogram.update(value)
    assert histogram.deviation == pytest.approx(129.1, rel=0.1)


def test_quantiles_forget_and_counts_do_not() -> None:
    histogram = Histogram()
    histogram.update(1000)
    for _ in range(30):
        histogram.tick()
    histogram.update(10)
    assert histogram.quantiles((0.999,))[0] > 900
    for _ in range(30):
        histogram.tick()
    assert histogram.quantiles((0.999,))[0] <= 11
    assert (histogram.count, histogram.max, histogram.sum) == (2, 1000, 1010)


def test_nothing_is_left_after_a_tick_of_two_windows() -> None:
    histogram = Histogram()
    histogram.update(1000)
    histogram.tick(299)
    assert histogram.quantiles((0.5,)) == [1000.0]
    histogram.update(10)
    histogram.tick(301)
    assert histogram.quantiles((0.5,)) == [0.0]
    assert (histogram.count, histogram.max) == (2, 1000)


def test_a_timer_counts_and_keeps_milliseconds() -> None:
    timer = Timer()
    timer.record(0.25)
    timer.record(-1.0)  # the clock was set back
    timer.tick()
    assert timer.meter.count == timer.times.count == 2
    assert timer.times.max == 250.0


@pytest.mark.scenario("ops-9")
def test_a_thread_that_works_is_not_idle() -> None:
    idle = IdleShare()
    assert idle.share == 1.0
    sum(range(1_000_000))
    idle.tick(1e-3)
    assert idle.share == 0.0
    idle.tick(1000.0)
    assert 0.0 < idle.share <= 1.0


@pytest.mark.scenario("ops-9")
def test_a_thread_that_waits_for_a_processor_is_not_idle(tmp_path: Path) -> None:
    waits = tmp_path / "schedstat"
    waits.write_text("0 1000000000 5\n")
    idle = IdleShare(str(waits))
    waits.write_text("0 5000000000 9\n")
    idle.tick(5.0)
    assert idle.share == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("text", [None, "", "0\n", "0 x 1\n"])
def test_without_the_kernel_s_figures_waits_are_idle(tmp_path: Path, text: str | None) -> None:
    waits = tmp_path / "schedstat"
    if text is not None:
        waits.write_text(text)
    idle = IdleShare(str(waits))
    idle.tick(5.0)
    assert idle.share > 0.9


@pytest.mark.scenario("ops-9")
@given(st.lists(st.tuples(st.floats(1e-3, 100), st.integers(0, 1 << 40)), max_size=30))
def test_an_idle_share_never_leaves_0_to_1(ticks: list[tuple[float, int]]) -> None:
    """Also where a tick came late, or the clocks disagree."""
    busy = [0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "thread_time_ns", lambda: busy[0])
        idle = IdleShare()
        for seconds, worked in ticks:
            busy[0] += worked
            idle.tick(seconds)
            assert 0 <= idle.share <= 1


@pytest.mark.scenario("ops-9")
def test_an_idle_thread_is_near_1() -> None:
    idle = IdleShare()
    for _ in range(20):
        idle.tick(1000.0)
    assert idle.share > 0.9
