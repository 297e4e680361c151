"""The results for each planted fault: a table in Markdown, written as a search goes on.

A row without a finding says how many faults were drawn in vain, and with which seed the search goes
on, so that it can be cut at any time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

_ROW = re.compile(r"\| `([^`]+)` \| (not in )?(\d+) \| (\d+) \| (.*) \|")
_HEAD = ("| Planted | Found after faults | Seed | As |", "| --- | ---: | ---: | --- |")
_SHOWN = 80


class Row(NamedTuple):
    """``spent``: faults until it was found, or until now. ``seed``: the one that found it, or the
    next. ``said``: what the check said, empty if it was not found."""

    name: str
    spent: int
    seed: int
    said: str = ""

    @property
    def is_found(self) -> bool:
        return bool(self.said)

    def __str__(self) -> str:
        spent = str(self.spent) if self.is_found else f"not in {self.spent}"
        return f"| `{self.name}` | {spent} | {self.seed} | {self.said} |"


def row_of(line: str) -> Row | None:
    """A row in a line, None if it is another line."""
    found = _ROW.fullmatch(line.strip())
    return found and Row(found[1], int(found[3]), int(found[4]), found[5].strip())


def said(reason: str) -> str:
    """The beginning of what a check said, without the names of the errors around it."""
    text = re.sub(r"""^.*?(?:AssertionError|Stalled)\(["'\\]*""", "", reason).rstrip("\"')")
    text = text.replace("\\", "").replace("|", "/").strip()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


class MutationTable:
    """The rows of these planted faults; in ``path``, if there is one."""

    def __init__(self, names: Sequence[str], path: Path | None = None) -> None:
        self.rows: dict[str, Row] = {}
        self._names = names
        self._path = path
        if path is not None and path.exists():
            for line in path.read_text("utf-8").splitlines():
                row = row_of(line)
                if row is not None:
                    self.rows[row.name] = row

    def put(self, row: Row) -> None:
        """The file has it on return."""
        self.rows[row.name] = row
        if self._path is not None:
            made = self._path.with_suffix(".new")
            made.write_text(f"{self}\n", "utf-8")
            made.replace(self._path)

    def least_searched(self, names: Iterable[str], faults: int) -> str | None:
        """Of these the one with the fewest faults in vain; None if all were found, or had so many
        ``faults``."""
        spent = {
            name: row.spent if (row := self.rows.get(name)) else 0
            for name in names
            if name not in self.rows or not self.rows[name].is_found
        }
        left = [name for name, count in spent.items() if count < faults]
        return min(left, key=spent.__getitem__, default=None)

    def __str__(self) -> str:
        rows = [str(self.rows[name]) for name in self._names if name in self.rows]
        return "\n".join([*_HEAD, *rows])
