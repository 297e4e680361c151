"""When work ahead of consumers is worth it, and which data is fresh: two periods with appends are,
after a pause only what comes then."""

from __future__ import annotations

from kafka08.log.tail import AHEAD_BYTES, FRESH_MS, Freshness, TailReaders


def test_a_log_that_nobody_reads_gets_one_helping() -> None:
    readers = TailReaders(100)
    assert readers.are_near
    readers.prepared(AHEAD_BYTES - 1)
    assert readers.are_near
    readers.prepared(1)
    assert not readers.are_near
    readers.read_at(99, 5000)  # from before what was prepared
    assert not readers.are_near


def test_a_consumer_that_has_come_to_where_it_began_brings_the_next() -> None:
    readers = TailReaders(100)
    readers.prepared(AHEAD_BYTES)
    readers.read_at(100, 5000)
    assert readers.are_near
    readers.prepared(AHEAD_BYTES)
    readers.read_at(4999, 9000)
    assert not readers.are_near
    readers.read_at(9000, 9000)
    assert readers.are_near


def test_after_a_truncation_consumers_need_not_pass_the_old_end() -> None:
    readers = TailReaders(100)
    readers.read_at(100, 5000)
    readers.prepared(AHEAD_BYTES)
    readers.cut_at(6000)
    readers.read_at(4999, 5000)
    assert not readers.are_near
    readers.cut_at(200)
    readers.read_at(200, 200)
    assert readers.are_near


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
