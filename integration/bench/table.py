"""Measured rows as a markdown table. Knows nothing of how they were measured."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable
from typing import NamedTuple

# Only the table's own lines are replaced: text and pictures may stand between the markers too.
MARKED = re.compile(r"(<!-- BENCH TABLE BEGIN -->\n)(.*?)(<!-- BENCH TABLE END -->)", re.DOTALL)
TABLE_LINES = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


class Row(NamedTuple):
    """`values`: per kind of broker, one number per round."""

    name: str
    unit: str
    more_is_better: bool
    values: dict[str, list[float]]

    def median(self, kind: str) -> float | None:
        numbers = self.values.get(kind)
        return statistics.median(numbers) if numbers else None


def markdown(rows: list[Row], kinds: list[str], *, cpu: str = "the broker's") -> str:
    """One line per cell; what belongs to a cell (after `: `) stands in columns of its own. ``cpu``
    says whose CPU time is in the table."""
    parts: dict[str, dict[str, Row]] = {}
    for row in rows:
        name, _, part = row.name.partition(": ")
        parts.setdefault(name, {})[part] = row
    plain = [group for group in parts.values() if set(group) == {""}]
    rich = [group for group in parts.values() if set(group) != {""}]
    head = [*kinds, *(["ratio"] if len(kinds) > 1 else [])]
    out = _table(["case", "unit", *head, "better"], [_plain(group[""], kinds) for group in plain])
    if rich:
        out += "\n\n" + _rich(rich, kinds)
    if len(kinds) > 1:
        out += f"\n\nRatio: {kinds[0]} / {kinds[1]}. CPU: {cpu} user and system seconds."
    return out


def replaced(text: str, rows: list[Row], kinds: list[str]) -> str:
    """A document with these rows in its table.

    Raises ValueError if it has no markers.
    """
    if not MARKED.search(text):
        raise ValueError("the document has no markers for a table of the benchmark")
    new = brief(rows, kinds) + "\n"

    def fill(marked: re.Match[str]) -> str:
        begin, inside, end = marked.groups()
        inside, count = TABLE_LINES.subn(lambda _: new, inside, count=1)
        return begin + (inside if count else inside + new) + end

    return MARKED.sub(fill, text)


def brief(rows: list[Row], kinds: list[str]) -> str:
    """One line per cell: its first number, and the ratio of the broker's CPU."""
    costs = {row.name: row for row in rows}
    head = ["", *kinds, *(["ratio", "CPU ratio"] if len(kinds) > 1 else [])]
    lines = []
    for row in rows:
        if ": " in row.name:
            continue
        line = [f"{row.name}, {row.unit}", *(_number(row.median(kind)) for kind in kinds)]
        cost = costs.get(f"{row.name}: CPU per GB")
        line += _ratio(row, kinds)
        if len(kinds) > 1:
            line += _ratio(cost, kinds) if cost else [""]
        lines.append(line)
    return _table(head, lines)


def _plain(row: Row, kinds: list[str]) -> list[str]:
    numbers = [_number(row.median(kind)) for kind in kinds]
    better = "more" if row.more_is_better else "less"
    return [row.name, row.unit, *numbers, *_ratio(row, kinds), better]


def _rich(groups: list[dict[str, Row]], kinds: list[str]) -> str:
    titles = {"": "MB/s", "records": "k records/s", "CPU per M records": "CPU s/M records"}
    titles |= {"CPU per GB": "CPU s/GB", "generator busy": "generator busy %"}
    head = ["case"]
    for title in titles.values():
        head += [f"{title} {kind}" for kind in kinds]
        if len(kinds) > 1 and "generator" not in title:
            head.append("ratio")
    lines = []
    for group in groups:
        line = [group[""].name]
        for part in titles:
            line += [_number(group[part].median(kind)) for kind in kinds]
            if "generator" not in part:
                line += _ratio(group[part], kinds)
        lines.append(line)
    return _table(head, lines)


def _ratio(row: Row, kinds: list[str]) -> list[str]:
    if len(kinds) < 2:
        return []
    ours, theirs = row.median(kinds[0]), row.median(kinds[1])
    return [f"{ours / theirs:.2f}" if ours is not None and theirs else "-"]


def _number(value: float | None) -> str:
    return "-" if value is None else number(value)


def number(value: float) -> str:
    """Three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _table(head: list[str], lines: list[list[str]]) -> str:
    return text([head, ["-"] * len(head), *lines])


def text(rows: Iterable[Iterable[str]]) -> str:
    """The rows of a markdown table, the head and the rule below it among them."""
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def figures(head: list[str], lines: Iterable[list[str]]) -> str:
    """A table with names in its first column and numbers in all others."""
    return text([head, ["-", *["-:"] * (len(head) - 1)], *lines])


def figure(value: float | None) -> str:
    """Blank where there is none."""
    return "" if value is None else number(value)


def quotient(ours: float | None, theirs: float | None) -> str:
    """Blank where one is missing."""
    return "" if ours is None or not theirs else f"{ours / theirs:.2f}"
