"""Charts and tables of the examples, as text."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"


def example(name: str) -> Any:
    """A module of docs/examples, which is not a package."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


charts = example("charts")


def test_bars_are_as_long_as_their_values() -> None:
    text = charts.bars("Views", [("/", 40), ("/cart", 10), ("/gone", 0), ("/x", 0.1)], 20)
    assert text.split("\n") == [
        "Views",
        "  /       40  ####################",
        "  /cart   10  #####",
        "  /gone    0",
        "  /x     0.1  #",
    ]


def test_bars_have_units() -> None:
    assert charts.bars("t", [("a", 1.5), ("b", -1)], 4, "ms").split("\n")[1:] == [
        "  a  1.5 ms ####",
        "  b   -1 ms",
    ]


def test_columns_go_from_left_to_right() -> None:
    series = [("10:00", 4), ("10:01", 0), ("10:02", 2), ("10:03", 0.1), ("10:04", 3), ("10:05", 1)]
    assert charts.columns("Rate", series, 4).split("\n") == [
        "Rate",
        "  4 |##",
        "    |##      ##",
        "    |##  ##  ##",
        "    |##  ########",
        "  0 +------------",
        "     10:00  10:05",
    ]


def test_tables_have_numbers_on_the_right() -> None:
    text = charts.table(["name", "count"], [["a", 5], ["long name", 1234.567], ["c", None]])
    assert text.split("\n") == [
        "name         count",
        "---------  -------",
        "a                5",
        "long name  1234.57",
        "c",
    ]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (charts.bars("nothing", []), ["nothing"]),
        (charts.columns("nothing", [], 1), ["nothing", "  0 |", "  0 +"]),
        (charts.table(["a", "b"], []), ["a  b", "-  -"]),
    ],
)
def test_without_values_there_is_a_frame(text: str, lines: list[str]) -> None:
    assert text.split("\n") == lines


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises((ValueError, IndexError)):
        charts.table(["a", "b"], [["only one"]])
