"""A rate that several throttlers share through one file."""

from __future__ import annotations

import pytest

from kafka08.log.cleaning.throttler import SharedTime, Throttler
from tests.fakes.runtime import FakeRuntime


def throttler(runtime: FakeRuntime, rate: float, shared: SharedTime) -> Throttler:
    return Throttler(rate, shared.fd, monotonic=runtime.clock.monotonic, sleep=runtime.sleep)


def test_work_is_paid_for_with_time() -> None:
    runtime, shared = FakeRuntime(), SharedTime()
    subject = throttler(runtime, 100, shared)
    for observed in (50, 25, 200):
        subject.maybe_throttle(observed)
    assert runtime.slept == pytest.approx([0.5, 0.25, 2.0])


def test_time_that_passed_is_not_saved_up() -> None:
    runtime, shared = FakeRuntime(), SharedTime()
    subject = throttler(runtime, 100, shared)
    subject.maybe_throttle(10)
    runtime.clock.now += 60
    subject.maybe_throttle(100)
    assert runtime.slept == pytest.approx([0.1, 1.0])


def test_two_share_one_rate() -> None:
    first, second, shared = FakeRuntime(), FakeRuntime(), SharedTime()
    throttler(first, 100, shared).maybe_throttle(100)
    throttler(second, 100, shared).maybe_throttle(100)  # its clock has not moved meanwhile
    assert first.slept == pytest.approx([1.0])
    assert second.slept == pytest.approx([2.0])


def test_the_default_rate_is_no_limit() -> None:
    runtime = FakeRuntime()
    Throttler(1.8e308, -1, sleep=runtime.sleep).maybe_throttle(1 << 40)
    assert runtime.slept == []
