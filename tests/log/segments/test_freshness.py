"""Two periods with appends are fresh; after a pause only what comes then is."""

from __future__ import annotations

from kafka08.log.segments.freshness import FRESH_MS, Freshness


def test_the_last_two_periods_are_fresh() -> None:
    fresh = Freshness(5, 0)
    assert not fresh.holds(4, 0)
    for number in range(3):
        fresh.begin_period(10 * number, FRESH_MS * number)
    now = 2 * FRESH_MS
    assert [fresh.holds(offset, now) for offset in (9, 10, 25)] == [False, True, True]
    assert fresh.holds(10, now + 2 * FRESH_MS - 1)
    assert not fresh.holds(25, now + 2 * FRESH_MS)
    assert not fresh.holds(25, now - 1)  # the clock has been set back


def test_after_a_pause_nothing_old_is_fresh() -> None:
    fresh = Freshness(0, 0)
    fresh.begin_period(10, 5 * FRESH_MS)
    assert not fresh.holds(9, 5 * FRESH_MS) and fresh.holds(10, 5 * FRESH_MS)
