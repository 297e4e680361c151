"""A rate in the mean: a burst is free, and what was too much is owed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.security.rates import Bucket


def test_a_burst_is_free_and_the_rest_is_owed() -> None:
    bucket = Bucket(1000, 10, 0)
    assert bucket.use(10_000, 1000, 10, 0) == 0
    assert bucket.use(20_000, 1000, 10, 0) == 20
    assert bucket.use(0, 1000, 10, 15) == 5
    assert bucket.use(0, 1000, 10, 20) == 0
    assert bucket.use(1, 1000, 10, 20) == pytest.approx(0.001)


def test_no_more_than_the_burst_is_saved() -> None:
    bucket = Bucket(1000, 10, 0)
    assert bucket.use(10_001, 1000, 10, 10_000) == pytest.approx(0.001)


def test_another_rate_holds_from_then_on() -> None:
    bucket = Bucket(1000, 10, 0)
    assert bucket.use(20_000, 1000, 10, 0) == 10
    assert bucket.use(0, 10_000, 10, 0) == 1
    assert bucket.use(0, 10_000, 10, 1) == 0
    assert bucket.use(10_000, 1000, 10, 2) == 0


def test_it_is_as_new_once_all_is_saved_or_after_an_hour() -> None:
    bucket = Bucket(1000, 10, 0)
    bucket.use(15_000, 1000, 10, 0)
    assert not bucket.is_as_new(14.9)
    assert bucket.is_as_new(15)
    bucket.use(1e9, 1000, 10, 15)
    assert not bucket.is_as_new(3600)
    assert bucket.is_as_new(3615)


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=50))
def test_who_waits_keeps_the_rate_whatever_the_sizes(sizes: list[int]) -> None:
    bucket, now, used = Bucket(1000, 10, 0), 0.0, 0
    for size in sizes:
        now += bucket.use(size, 1000, 10, now)
        used += size
        assert used <= 1000 * (now + 10) + 1e-6
    assert used >= 1000 * now
