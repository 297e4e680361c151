"""Logs tell up to where they hold entries that 0.8.2.2 cannot read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.log.support import append, open_log, writable
from tests.message.batches import batch, simple, timed, timed_wrapper
from tests.message.sets import plain, wrapper

ONE = [(b"k", b"v")]


@pytest.mark.parametrize(
    ("data", "later"),
    [
        (plain(ONE), False),
        (wrapper(plain(ONE), 2), False),
        (timed(ONE), True),
        (timed_wrapper(timed(ONE), 1), True),
        (batch(simple(b"v")), True),
        (batch(simple(b"v"), codec=1), True),
    ],
)
def test_entries_of_later_formats_are_noticed(tmp_path: Path, data: bytes, later: bool) -> None:
    log = open_log(tmp_path)
    assert log.later_formats.until(log.segments) == 0
    append(log, "a", "b")
    log.append(writable(data))
    assert log.later_formats.until(log.segments) == (3 if later else 0)
    append(log, "c")
    assert log.later_formats.until(log.segments) == (3 if later else 0)
    log.flush()
    log.close()
    again = open_log(tmp_path, clean_shutdown=True)
    assert not again.later_formats.is_known
    # short stretches are not told apart
    assert again.later_formats.until(again.segments) == (4 if later else 0)
    assert again.later_formats.is_known


def test_the_newest_segment_that_has_some_counts(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for data in (plain(ONE), batch(simple(b"v")), plain(ONE), plain(ONE)):
        log.append(writable(data))
        log.roll()
    log.flush()
    log.close()
    again = open_log(tmp_path, clean_shutdown=True)
    assert again.later_formats.until(again.segments) == 2
    again.append(writable(batch(simple(b"v"))))
    assert again.later_formats.until(again.segments) == 5


def test_what_a_follower_copies_is_noticed(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(writable(batch(simple(b"v"), 4)), assign_offsets=False)
    assert log.later_formats.until(log.segments) == 5
