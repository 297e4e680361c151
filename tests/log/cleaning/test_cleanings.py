"""The file of cleanings, and which of them are kept."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from kafka08.log.cleaning.cleanings import (
    CLEANING_TIMES_FILE,
    Cleaning,
    read,
    tombstones_below,
    with_one_more,
    write,
)

HOUR = 3_600_000


def test_what_is_written_is_read(tmp_path: Path) -> None:
    cleanings = [Cleaning(5, 10), Cleaning(9, 30)]
    write(str(tmp_path), cleanings)
    assert (tmp_path / CLEANING_TIMES_FILE).read_text() == "0\n2\n5 10\n9 30\n"
    assert [path.name for path in tmp_path.iterdir()] == [CLEANING_TIMES_FILE]
    assert read(str(tmp_path), 30, 100) == cleanings


@pytest.mark.parametrize("checkpoint", [None, 0, 10, 29, 31])
def test_they_hold_for_one_checkpoint_only(tmp_path: Path, checkpoint: int | None) -> None:
    write(str(tmp_path), [Cleaning(5, 10), Cleaning(9, 30)])
    assert read(str(tmp_path), checkpoint, 100) == []


def test_times_to_come_count_as_now(tmp_path: Path) -> None:
    write(str(tmp_path), [Cleaning(5, 10), Cleaning(90, 30)])
    assert read(str(tmp_path), 30, 20) == [Cleaning(5, 10), Cleaning(20, 30)]


@pytest.mark.parametrize(
    "text",
    ["", "0", "1\n1\n5 10\n", "0\n2\n5 10\n", "0\nx\n", "0\n1\n5\n", "0\n2\n5 11\n6 10\n", "\xe9"],
)
def test_a_damaged_file_counts_as_none(tmp_path: Path, caplog: Any, text: str) -> None:
    caplog.set_level(logging.WARNING)
    (tmp_path / CLEANING_TIMES_FILE).write_text(text, encoding="latin-1")
    assert read(str(tmp_path), 10, 100) == []
    assert CLEANING_TIMES_FILE in caplog.text


def test_no_file(tmp_path: Path) -> None:
    assert read(str(tmp_path), 10, 100) == []


def test_the_offset_of_the_newest_cleaning_that_is_old_enough() -> None:
    known = [Cleaning(0, 10), Cleaning(100, 20), Cleaning(300, 30)]
    found = [tombstones_below(known, 50, now) for now in (0, 49, 50, 149, 150, 349, 350)]
    assert found == [0, 0, 10, 10, 20, 20, 30]
    assert tombstones_below([], 0, 1 << 60) == 0


@pytest.mark.parametrize("every", [1, 1000, 15_000, HOUR // 16, HOUR // 2, HOUR, 3 * HOUR])
def test_few_are_kept_and_none_waits_much_longer(every: int) -> None:
    """However often a log is cleaned, a tombstone waits for at least an hour and, if the log is
    cleaned then, for at most an eighth more."""
    known: list[Cleaning] = []
    steps = max(3 * HOUR // every, 8)
    steps = min(steps, 3000)
    start, first = 10**12, {}
    for step in range(steps):
        now = start + step * every
        below = tombstones_below(known, HOUR, now)
        for offset in [o for o in first if o < below]:
            assert now - first.pop(offset) >= HOUR
        assert all(now - at <= HOUR + HOUR // 8 + every for at in first.values())
        first[step] = now
        known = with_one_more(known, Cleaning(now, step + 1), HOUR)
        assert known[-1] == Cleaning(now, step + 1) and len(known) <= 20


def test_a_retention_that_grows_makes_them_wait_longer() -> None:
    known = with_one_more([Cleaning(0, 10), Cleaning(100, 20)], Cleaning(500, 30), 50)
    assert known == [Cleaning(100, 20), Cleaning(500, 30)]
    assert tombstones_below(known, 450, 500) == 0
    assert tombstones_below(known, 450, 550) == 20
