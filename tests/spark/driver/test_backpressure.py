"""The estimator against the cases of the original's own tests."""

from __future__ import annotations

import pytest

from kafka08.spark.driver.backpressure import PidRateEstimator


def estimator(**kwargs: float) -> PidRateEstimator:
    return PidRateEstimator(20, **{"proportional": 1, "integral": 1, "min_rate": 10, **kwargs})


def test_the_first_batch_says_nothing() -> None:
    made = estimator()
    assert made.compute(0, 10, 10, 0) is None
    assert made.compute(1000, 10, 10, 0) is not None


@pytest.mark.parametrize(("time", "count", "processing"), [(0, 10, 10), (1, 0, 10), (1, 10, 0)])
def test_nothing_new(time: int, count: int, processing: int) -> None:
    made = estimator()
    made.compute(0, 10, 10, 0)
    assert made.compute(time, count, processing, 0) is None


def test_the_rate_of_processing_is_kept_to() -> None:
    made = estimator(integral=0)
    rates = [made.compute(100 * i, 10, 20 * i or 1, 0) for i in range(1, 5)]
    assert rates == [None, *(pytest.approx(10 / (20 * i) * 1000) for i in range(2, 5))]


@pytest.mark.scenario("spark-8")
def test_a_backlog_slows_down_to_the_least_rate() -> None:
    made = estimator(min_rate=5)
    rates = [made.compute(20 * i, 4, 20, 20 * i) for i in range(50)][1:]
    assert rates[0] is not None
    assert rates == sorted(rates, reverse=True)  # type: ignore[type-var]
    assert rates[-1] == 5


def test_senseless_settings() -> None:
    with pytest.raises(ValueError):
        PidRateEstimator(0)
    with pytest.raises(ValueError):
        PidRateEstimator(20, proportional=-1)
