"""A table of planted faults is read again as it was written, and searches take turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.mutation_table import MutationTable, Row, row_of, said

NAMES = ("first", "second", "third")
FOUND = Row("first", 78, 2, "t-0: lost")
VAIN = Row("second", 240, 5)


@pytest.mark.parametrize("row", [FOUND, VAIN])
def test_a_row_is_read_as_it_was_written(row: Row) -> None:
    assert row_of(str(row)) == row


def test_other_lines_are_not_rows() -> None:
    assert row_of("| Planted | Found after faults | Seed | As |") is None


def test_a_search_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "table.md"
    table = MutationTable(NAMES, path)
    table.put(VAIN)
    table.put(FOUND)
    assert path.read_text().splitlines()[2:] == [str(FOUND), str(VAIN)]
    assert MutationTable(NAMES, path).rows == {"first": FOUND, "second": VAIN}


def test_the_least_searched_is_next() -> None:
    table = MutationTable(NAMES)
    assert table.least_searched(NAMES, 300) == "first"
    table.put(FOUND)
    table.put(VAIN)
    assert table.least_searched(NAMES, 300) == "third"
    table.put(Row("third", 300, 6))
    assert table.least_searched(NAMES, 300) == "second"
    assert table.least_searched(NAMES, 240) is None


def test_what_a_check_said_is_short_and_one_cell() -> None:
    assert said("""TaskFailed("t#1 failed: AssertionError('a | b')")""") == "a / b"
    assert said("x" * 100).endswith("x...")
