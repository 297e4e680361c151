"""The arithmetic of limits: against the examples of the original's own tests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.common import TopicPartition
from kafka08.spark.planner import Range, cap_each, lags, rate_limits, split_ranges, split_total

A, B, C = (TopicPartition("t", number) for number in range(3))
START = {A: 0, B: 0, C: 0}


def test_lag_is_never_negative() -> None:
    assert lags({A: 5, B: 7}, {A: 9, B: 3, C: 1}) == {A: 4, B: 0}


@pytest.mark.scenario("spark-7")
@pytest.mark.parametrize(
    ("max_rate", "estimate", "seconds", "latest", "ends"),
    [
        (100, None, 0.1, {A: 1000, B: 1000, C: 1000}, [10, 10, 10]),
        (0, None, 0.1, {A: 1000, B: 1000, C: 1000}, [1000, 1000, 1000]),
        (0, 500, 0.5, {A: 1000, B: 0, C: 0}, [250, 0, 0]),
        (300, 1000, 0.5, {A: 1000, B: 0, C: 0}, [150, 0, 0]),
        (0, 0.5, 0.5, {A: 1000, B: 3, C: 0}, [1, 1, 0]),
    ],
)
def test_rates(
    max_rate: float,
    estimate: float | None,
    seconds: float,
    latest: dict[TopicPartition, int],
    ends: list[int],
) -> None:
    limits = rate_limits(
        START,
        latest,
        batch_seconds=seconds,
        max_rate_per_partition=max_rate,
        estimated_rate=estimate,
    )
    assert list(cap_each(START, latest, limits).values()) == ends


def test_a_total_is_split_by_lag_and_starves_nobody() -> None:
    assert split_total(100, START, {A: 900, B: 99, C: 1}) == {A: 90, B: 9, C: 1}
    assert split_total(1000, START, {A: 900, B: 99, C: 1}) == {A: 900, B: 99, C: 1}
    assert split_total(2, START, {A: 10**6, B: 1, C: 0}) == {A: 1, B: 1, C: 0}


@pytest.mark.scenario("spark-8")
@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=8),
    st.integers(1, 5000),
)
def test_any_total_moves_every_lagging_partition_and_none_past_its_end(
    offsets: list[tuple[int, int]], total: int
) -> None:
    start = {TopicPartition("t", n): low for n, (low, _) in enumerate(offsets)}
    latest = {TopicPartition("t", n): low + more for n, (low, more) in enumerate(offsets)}
    ends = split_total(total, start, latest)
    for tp, end in ends.items():
        assert start[tp] <= end <= latest[tp]
        assert end > start[tp] or latest[tp] == start[tp]
    assert sum(ends.values()) - sum(start.values()) <= max(total, len(start)) + len(start)


@given(st.lists(st.integers(0, 500), max_size=5), st.integers(0, 20), st.integers(0, 100))
def test_split_ranges_cover_the_same(sizes: list[int], parts: int, most: int) -> None:
    ranges = [Range("t", number, 7, 7 + size) for number, size in enumerate(sizes)]
    found = split_ranges(ranges, min_partitions=parts, max_records=most)
    assert all(each.size > 0 and (not most or each.size <= most) for each in found)
    covered = [(each.partition, offset) for each in found for offset in range(*each[2:])]
    assert covered == [(each.partition, offset) for each in ranges for offset in range(*each[2:])]
