"""When messages are compacted at the earliest and at the latest (``min.`` and
``max.compaction.lag.ms``)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka08.log.log import Log
from tests.fakes.runtime import FakeClock
from tests.log.cleaning.support import (
    clean_once,
    cleaner_of,
    compacted_log,
    keys,
    no_bound,
    put_keys,
    up_to,
)
from tests.log.support import writable
from tests.message.batches import batch

HOUR = 3_600_000


def written(log: Log, clock: FakeClock, text: str, date: int | None = None) -> None:
    """Messages written now in a closed segment, with dates (ms) or without."""
    segment = log.segments[-1]
    if date is None:
        put_keys(log, text)
    else:
        for letter in text:
            log.append(writable(batch([(letter.encode(), b"v" * 40, 0, [])], time=date)))
    log.roll()
    os.utime(segment.path, ns=(clock.now_ms * 10**6,) * 2)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def log_with(tmp_path: Path, clock: FakeClock, **changes: Any) -> Log:
    return compacted_log(tmp_path, clock, **{"segment_bytes": 10**6, **changes})


@pytest.mark.parametrize("date", [None, 1, -10 * HOUR, 10 * HOUR])
def test_nothing_younger_than_the_least_lag_is_compacted(
    tmp_path: Path, clock: FakeClock, date: int | None
) -> None:
    """Whatever the dates that messages claim, of 1970 or of tomorrow."""
    log = log_with(tmp_path, clock, min_compaction_lag_ms=HOUR)
    cleaner = cleaner_of(log, clock)
    date = date if date in (None, 1) else clock.now_ms + (date or 0)
    written(log, clock, "aab", date)
    assert not clean_once(cleaner)
    clock.now_ms += HOUR - 1
    assert not clean_once(cleaner) and keys(log) == "aab"
    clock.now_ms += 1
    assert clean_once(cleaner) and keys(log) == "ab"


def test_the_older_segments_are_compacted_first(tmp_path: Path, clock: FakeClock) -> None:
    log = log_with(tmp_path, clock, min_compaction_lag_ms=HOUR)
    cleaner = cleaner_of(log, clock)
    written(log, clock, "aab")
    clock.now_ms += HOUR
    written(log, clock, "bbc")
    found = cleaner.grab_filthiest_log(no_bound)
    assert found is not None and (found.first_dirty_offset, found.end_offset) == (0, 3)
    assert found.dirty_bytes == log.segments[0].size


def test_an_old_file_behind_a_young_one_waits_with_it(tmp_path: Path, clock: FakeClock) -> None:
    log = log_with(tmp_path, clock, min_compaction_lag_ms=HOUR)
    written(log, clock, "aab")
    clock.now_ms -= 2 * HOUR
    written(log, clock, "bbc")
    clock.now_ms += 2 * HOUR
    assert not clean_once(cleaner_of(log, clock))


def test_without_a_least_lag_the_times_of_files_do_not_count(
    tmp_path: Path, clock: FakeClock
) -> None:
    log = log_with(tmp_path, clock)
    written(log, clock, "aab")
    os.utime(log.segments[0].path, (2**33, 2**33))
    assert clean_once(cleaner_of(log, clock))


@pytest.mark.parametrize("date", [None, 0, -10 * HOUR, 10 * HOUR])
def test_beyond_the_most_lag_the_share_does_not_count(
    tmp_path: Path, clock: FakeClock, date: int | None
) -> None:
    """A date in the past may hasten it, and a date to come does not delay it."""
    log = log_with(tmp_path, clock, max_compaction_lag_ms=HOUR, min_cleanable_dirty_ratio=1.0)
    cleaner = cleaner_of(log, clock)
    written(log, clock, "aab", None if date is None else clock.now_ms + date)
    assert clean_once(cleaner) is (date == -10 * HOUR)
    clock.now_ms += HOUR
    clean_once(cleaner)
    clock.now_ms += 1
    clean_once(cleaner)
    assert keys(log) == "ab"
    assert not clean_once(cleaner)  # nothing is left that could be overdue


def test_an_overdue_log_comes_first(tmp_path: Path, clock: FakeClock) -> None:
    log = log_with(tmp_path, clock, max_compaction_lag_ms=HOUR)
    cleaner = cleaner_of(log, clock)
    written(log, clock, "aab")
    assert not cleaner.to_clean(log, up_to(100)).is_overdue
    clock.now_ms += HOUR + 1
    assert cleaner.to_clean(log, up_to(100)).is_overdue
    assert not cleaner.to_clean(log, up_to(0)).is_overdue  # nothing of it may be cleaned yet


@pytest.mark.parametrize(
    ("policy", "rolls"), [("compact", True), ("compact,delete", True), ("delete", False)]
)
@pytest.mark.parametrize("is_dated", [False, True])
def test_the_active_segment_is_closed_by_the_most_lag(
    tmp_path: Path, clock: FakeClock, policy: str, rolls: bool, is_dated: bool
) -> None:
    """Also where the dates of messages stand still."""
    log = log_with(tmp_path, clock, max_compaction_lag_ms=HOUR, cleanup_policy=policy)

    def put() -> None:
        if is_dated:
            log.append(writable(batch([(b"a", b"v", 0, [])], time=10**12)))
        else:
            put_keys(log, "a")

    put()
    clock.now_ms += HOUR
    put()
    assert len(log.segments) == 1
    clock.now_ms += 1
    put()
    assert len(log.segments) == 1 + rolls


@pytest.mark.parametrize("lag", ["min_compaction_lag_ms", "max_compaction_lag_ms"])
def test_a_disk_that_has_died_ends_no_cleaner(tmp_path: Path, clock: FakeClock, lag: str) -> None:
    log = log_with(tmp_path, clock, **{lag: 1})
    written(log, clock, "aab")
    clock.now_ms += HOUR
    cleaner = cleaner_of(log, clock)
    shutil.rmtree(log.directory)
    assert cleaner.grab_filthiest_log(no_bound) is None
