"""kafka08.lag.judgement."""

from __future__ import annotations

import pytest

from kafka08.lag.judgement import OK, REWIND, STALL, STOP, WARN, Commit, judge, worst

MINUTE = 60_000
NOW = 100 * MINUTE


def window(offsets: list[int], lags: list[int], last: int = NOW - 1000) -> list[Commit]:
    """Ten commits, one a minute, the last at ``last``."""
    first = last - (len(offsets) - 1) * MINUTE
    return [
        Commit(offset, first + n * MINUTE, offset + lag)
        for n, (offset, lag) in enumerate(zip(offsets, lags, strict=True))
    ]


RISING = list(range(0, 1000, 100))


@pytest.mark.scenario("ops-25")
@pytest.mark.parametrize(
    ("commits", "status"),
    [
        (window(RISING, [50, 40, 60, 50, 40, 30, 50, 60, 40, 50]), OK),
        (window(RISING, [50, 60, 60, 70, 80, 0, 90, 95, 99, 120]), OK),
        (window(RISING, [50, 60, 60, 70, 80, 90, 91, 95, 99, 120]), WARN),
        (window([500] * 10, [50, 60, 60, 70, 80, 90, 91, 95, 99, 120]), STALL),
        (window(RISING, [50] * 10, last=NOW - 10 * MINUTE), STOP),
        (window([*RISING[:8], 100, 200], [50] * 10), REWIND),
        (window([0, 500, 400, 500, 600, 700, 800, 900, 950, 990], [9] * 9 + [8]), OK),
    ],
)
def test_the_judgement_of_a_full_window(commits: list[Commit], status: str) -> None:
    assert judge(commits, 50, 50, NOW) == status


def test_without_lag_all_is_well() -> None:
    assert judge(window([500] * 10, [9] * 10, last=0), 0, 0, NOW) == OK


@pytest.mark.scenario("ops-25")
def test_a_consumer_of_a_log_that_was_quiet_has_not_stopped() -> None:
    commits = window([500] * 10, [0] * 10, last=0)
    assert judge(commits, 5, 0, NOW) == OK
    assert judge(commits, 5, 5, NOW) == STOP


def test_one_commit_is_judged_by_its_age_alone() -> None:
    commit = [Commit(5, NOW - 9 * MINUTE, 9)]
    assert judge(commit, 4, 4, NOW) == OK
    assert judge(commit, 4, 4, NOW + 2 * MINUTE) == STOP


def test_commits_before_the_log_was_seen_have_no_lag() -> None:
    commits = [Commit(n, NOW - (10 - n) * MINUTE) for n in range(10)]
    assert judge(commits, 5, 5, NOW) == WARN


def test_a_group_is_as_bad_as_its_worst_partition() -> None:
    assert worst([OK, STOP, WARN]) == STOP
    assert worst([]) == OK
