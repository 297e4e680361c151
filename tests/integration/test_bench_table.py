"""The benchmark's rows in documents and in the chart."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from integration.bench import __main__ as bench
from integration.bench import cells, chart
from integration.bench.table import Row, replaced

KINDS = ["ours", "original"]


def row(name: str, unit: str, ours: float, original: float) -> Row:
    return Row(name, unit, True, {"ours": [ours], "original": [original]})


ROWS = [
    row("start", "s", 0.5, 1.0),
    row("produce", "MB/s", 300, 100),
    row("produce: records", "k/s", 3000, 1000),
    row("produce: CPU per GB", "s", 1.0, 4.0),
]
BRIEF = """\
|  | ours | original | ratio | CPU ratio |
| - | - | - | - | - |
| start, s | 0.5 | 1 | 0.50 |  |
| produce, MB/s | 300 | 100 | 3.00 | 0.25 |
"""


@pytest.mark.parametrize("before", ["", "| old | table |\n| - | - |\n| 1 | 2 |\n"])
def test_only_the_table_between_the_markers_is_replaced(before: str) -> None:
    text = "# Page\n\n| other | table |\n\n<!-- BENCH TABLE BEGIN -->\nMeasured.\n\n{}{}\nEnd.\n"
    end = "<!-- BENCH TABLE END -->"
    assert replaced(text.format(before, end), ROWS, KINDS) == text.format(BRIEF, end)


def test_a_table_is_replaced_by_itself() -> None:
    text = "<!-- BENCH TABLE BEGIN -->\n<!-- BENCH TABLE END -->\n"
    once = replaced(text, ROWS, KINDS)
    assert BRIEF in once
    assert replaced(once, ROWS, KINDS) == once


def test_a_document_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="no markers"):
        replaced("# Page\n", ROWS, KINDS)


def test_the_chart_shows_rows_that_are_measured() -> None:
    shown = {name for bars in bench.PANELS.values() for name in bars.values()}
    assert shown <= set(cells.PRODUCE)


def test_the_chart_has_a_bar_for_each_number() -> None:
    panels = {"a": ["x", "y"], "b": ["z"]}
    values = {("a", "x", "ours"): 1.0, ("a", "x", "original"): 2.0, ("b", "z", "ours"): 3.0}
    image = ElementTree.fromstring(chart.svg("Title", "MB/s", panels, KINDS, values))
    bars = [r for r in image.findall("{*}rect") if r.get("height") not in ("100%", "10")]
    assert len(bars) == 3
    assert all(float(bar.get("x", 0)) < float(image.get("width", 0)) for bar in bars)


def test_a_page_that_is_not_there_is_told_before_the_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--table", str(tmp_path / "none.md")])
    with pytest.raises(SystemExit):
        bench.main()
    assert f"there is no {tmp_path / 'none.md'}" in capsys.readouterr().err
