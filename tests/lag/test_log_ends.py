"""kafka08.lag.log_ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.common import TopicPartition
from kafka08.lag.log_ends import LogEnds

TP = TopicPartition("t", 0)


def seen(*points: tuple[int, int]) -> LogEnds:
    ends = LogEnds()
    for time_ms, end in points:
        ends.note(TP, time_ms, end)
    return ends


@pytest.mark.scenario("ops-24")
def test_an_offset_was_appended_between_two_looks() -> None:
    ends = seen((1000, 0), (2000, 10), (3000, 30))
    assert ends.passed_at(TP, 5) == 1500
    assert ends.passed_at(TP, 20) == 2500
    assert ends.passed_at(TP, 30) is None


def test_what_was_there_before_the_first_look_has_no_time() -> None:
    ends = seen((1000, 100), (2000, 110))
    assert ends.passed_at(TP, 99) is None
    assert ends.since(TP) == 1000


def test_a_log_at_rest_does_not_make_messages_older() -> None:
    ends = seen((1000, 10), (2000, 10), (3000, 10), (9000, 10), (10000, 20))
    assert ends.passed_at(TP, 10) == 9000


def test_the_end_at_a_time() -> None:
    ends = seen((1000, 10), (2000, 20))
    assert [ends.end_at(TP, ms) for ms in (999, 1000, 1500, 2000, 5000)] == [None, 10, 15, 20, 20]


def test_a_log_created_again_has_no_past() -> None:
    ends = seen((1000, 0), (2000, 100), (3000, 5))
    assert ends.since(TP) == 3000


def test_partitions_that_are_gone_are_forgotten() -> None:
    ends = seen((1000, 0))
    ends.keep(set())
    assert (ends.since(TP), ends.end_at(TP, 1000)) == (None, None)


@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 50)), max_size=400))
def test_points_are_bounded_and_times_keep_their_order(steps: list[tuple[int, int]]) -> None:
    ends, time_ms, end = LogEnds(points=16), 1000, 0
    for pause, came in steps:
        time_ms, end = time_ms + pause, end + came
        ends.note(TP, time_ms, end)
    found = [ends.passed_at(TP, offset) for offset in range(end)]
    known = [each for each in found if each is not None]
    assert known == sorted(known)
    assert all(1000 <= each <= time_ms for each in known)
    assert len(ends._seen.get(TP, [])) <= 16


def test_the_first_end_since_a_time() -> None:
    ends = seen((1000, 10), (2000, 20))
    assert [ends.end_since(TP, ms) for ms in (0, 999, 1000, 1500, 5000)] == [10, 10, 10, 15, 20]
    assert LogEnds().end_since(TP, 0) is None
