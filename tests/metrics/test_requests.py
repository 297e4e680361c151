from __future__ import annotations

import pytest

from kafka08.metrics.requests import FETCH_CONSUMER, FETCH_FOLLOWER, NAMES, PARTS, RequestMetrics


def test_the_kinds_of_0_8_2_2_are_there_from_the_start() -> None:
    metrics = RequestMetrics()
    assert [name for name, _ in metrics.items()] == [*NAMES, FETCH_CONSUMER, FETCH_FOLLOWER]
    metrics.of(13, "LeaveGroup")
    assert metrics.items()[-1][0] == "LeaveGroup"


@pytest.mark.scenario("ops-10")
def test_the_parts_add_up() -> None:
    meter = RequestMetrics().of(0, "Produce")
    meter.record(0.001, 0.002, 0.2, 0.003, 0.004)
    meter.settle()
    sums = [getattr(meter, part).sum for part in PARTS]
    assert sums == pytest.approx([1, 2, 200, 3, 4, 210], abs=0.01)
    assert meter.requests.count == 1


@pytest.mark.scenario("ops-11")
def test_fetches_count_in_their_sum() -> None:
    metrics = RequestMetrics()
    metrics.fetch_consumer.record(0, 0, 0.5, 0, 0)
    metrics.fetch_follower.record(0, 0, 0, 0, 0)
    found = {name: meter.requests.count for name, meter in metrics.items() if meter.requests.count}
    assert found == {"Fetch": 2, FETCH_CONSUMER: 1, FETCH_FOLLOWER: 1}
    fetch = metrics.of(1, "Fetch")
    assert (fetch.remote_time.sum, fetch.remote_time.max) == (500, 500)
    assert fetch.remote_time.quantiles((0.75,))[0] > 0
    metrics.fetch_consumer.record(0, 0, 0.25, 0, 0)
    metrics.items()
    assert (fetch.requests.count, fetch.remote_time.sum) == (3, 750)


def test_counts_and_sums_have_all_and_quantiles_some() -> None:
    meter = RequestMetrics().of(0, "Produce")
    for _ in range(999):
        meter.record(0, 0.001, 0, 0, 0)
    meter.record(0, 0.5, 0, 0, 0)
    meter.settle()
    assert (meter.local_time.count, meter.requests.count) == (1000, 1000)
    assert meter.local_time.sum == pytest.approx(999 + 500, abs=0.01)
    assert meter.local_time.max == 500
    assert meter.local_time.quantiles((0.5,))[0] == pytest.approx(1, rel=0.07)
