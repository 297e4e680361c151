"""Which of the oldest segments go. test_log.py has what becomes of them, by age and by size."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.log.log import Log
from kafka08.log.segments.retention import deletable
from tests.fakes.runtime import FakeClock
from tests.log.support import config, fill, open_log

KEEP = config(retention_ms=-1, retention_bytes=-1)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Segments at 0, 2, 4 and 6; the end is 7."""
    log = open_log(tmp_path, segment_bytes=200)
    fill(log, 7)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4, 6]
    return log


@pytest.mark.parametrize(
    ("until", "count"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (6, 3), (7, 4)]
)
def test_segments_whose_records_were_all_deleted(log: Log, until: int, count: int) -> None:
    assert deletable(log.segments, KEEP, now=0, deleted_until=until, end=7) == count


def test_an_empty_last_segment_stays(log: Log) -> None:
    log.roll()
    assert deletable(log.segments, KEEP, now=0, deleted_until=7, end=7) == 4
    old = config(retention_ms=0, retention_bytes=0)
    assert deletable(log.segments, old, now=1 << 60, deleted_until=0, end=7) == 4


@pytest.mark.parametrize(
    ("policy", "count"), [("delete", 4), ("compact,delete", 4), ("compact", 0)]
)
def test_age_and_size_count_if_the_policy_is_to_delete(log: Log, policy: str, count: int) -> None:
    for limits in ({"retention_ms": 0}, {"retention_ms": -1, "retention_bytes": 0}):
        given = config(cleanup_policy=policy, **limits)
        assert deletable(log.segments, given, now=1 << 60, deleted_until=0, end=7) == count
        hidden = deletable(log.segments, given, now=1 << 60, deleted_until=4, end=7)
        assert hidden == max(count, 2)  # deleted records go with any policy


def test_deleted_records_do_not_count_for_the_size(log: Log) -> None:
    size = log.segments[0].size
    two = config(retention_ms=-1, retention_bytes=2 * size)
    assert deletable(log.segments, two, now=0, deleted_until=0, end=7) == 1
    assert deletable(log.segments, two, now=0, deleted_until=2, end=7) == 1
    assert deletable(log.segments, two, now=0, deleted_until=4, end=7) == 2


def test_age_counts_after_deleted_records(log: Log) -> None:
    now = FakeClock().now_ms
    old = config(retention_ms=1000, retention_bytes=-1)
    until = max(segment.largest_timestamp for segment in log.segments) + 1001
    assert deletable(log.segments, old, now=until, deleted_until=2, end=7) == 4
    assert deletable(log.segments, old, now=min(now, until - 10_000), deleted_until=2, end=7) == 1
