"""The series that config/grafana-dashboard.json and prometheus-alerts.yml ask for.

Not a whole parser: it knows the functions and words that these files use, and refuses others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

CONFIG = Path(__file__).parents[1] / "config"
_FUNCTIONS = {"sum", "max", "count", "rate", "increase", "label_values", "absent", "time", "vector"}
_GROUPINGS = {"by"}
_WORDS = {"or", "and"}
_MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"[^"]*"')


class Query(NamedTuple):
    """A metric, and the labels that must be its own."""

    metric: str
    labels: frozenset[str]


def dashboard() -> list[str]:
    """Every expression of the dashboard, those of its variables included."""
    board = json.loads((CONFIG / "grafana-dashboard.json").read_text(encoding="utf-8"))
    found = [
        variable["query"]["query"]
        for variable in board["templating"]["list"]
        if variable["type"] == "query"
    ]
    return found + [target["expr"] for panel in panels(board) for target in panel["targets"]]


def panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Those that show something."""
    yield from (panel for panel in board["panels"] if panel["type"] != "row")


def alerts() -> list[str]:
    rules = (CONFIG / "prometheus-alerts.yml").read_text(encoding="utf-8")
    return re.findall(r"^\s+expr: (.*)$", rules, re.MULTILINE)


def queries(expression: str) -> list[Query]:
    """The metrics of an expression with the labels in their braces, and all of them with the labels
    that it groups by. Raises ValueError for a word that is not known here."""
    grouped: set[str] = set()
    found: list[Query] = []
    text = re.sub(r"\[[^]]*\]", "", expression)
    variable = re.fullmatch(r"label_values\((\w+), (\w+)\)", text)
    if variable:
        return [Query(variable[1], frozenset({variable[2]}))]
    at = 0
    while word := re.compile(r"[A-Za-z_]\w*").search(text, at):
        at = word.end()
        after = text[at:].lstrip()
        if word[0] in _GROUPINGS:
            names = re.match(r"\s*\(([^)]*)\)", text[at:])
            assert names, expression
            grouped.update(name.strip() for name in names[1].split(","))
            at += names.end()
        elif word[0] in _WORDS:
            continue
        elif word[0] in _FUNCTIONS:
            if not after.startswith("(") and not after.startswith("by"):
                raise ValueError(f"{word[0]} in {expression}")
        elif after.startswith("{"):
            braces = text[at : text.index("}", at) + 1]
            at += len(braces)
            labels = _MATCHER.findall(braces)
            if not labels or _MATCHER.sub("", braces).strip("{}, "):
                raise ValueError(f"{braces} in {expression}")
            found.append(Query(word[0], frozenset(labels)))
        elif after.startswith("(") or "_" not in word[0]:
            raise ValueError(f"{word[0]} in {expression}")
        else:
            found.append(Query(word[0], frozenset()))
    return [query._replace(labels=query.labels | grouped) for query in found]
