"""Tables whose rows the reader sorts by a column: ``?sort=lag``, or ``?sort=-lag``.

Where a page has several tables, each has a parameter of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar
from urllib.parse import urlencode

from kafka08.console.site import Visit

T = TypeVar("T")
# Of a list that a filter can make shorter.
MOST_ROWS: Final = 500
_DOWN = "-"


class Column(NamedTuple):
    """``name``: of the column for programs, in ``?sort=`` and in JSON. ``key`` gives what rows are
    sorted by; None is less than all else. A number is first sorted from the largest down.
    ``hint``: what the title does not say. ``value`` gives what programs read, if not ``key``."""

    name: str
    title: str
    key: Callable[[Any], Any]
    is_number: bool = False
    hint: str = ""
    value: Callable[[Any], object] | None = None


class Head(NamedTuple):
    """A column's head. ``link`` sorts by it, or turns the order round. ``order``: ascending,
    descending, "" if the rows are not sorted by it."""

    title: str
    is_number: bool
    hint: str
    link: str
    order: str


@dataclass(frozen=True)
class Table(Generic[T]):
    """``more``: the rows behind ``rows`` that are left out."""

    heads: list[Head]
    rows: list[T]
    more: int = 0


def table(
    visit: Visit,
    rows: Iterable[T],
    columns: Sequence[Column],
    parameter: str = "sort",
    most: int | None = None,
) -> Table[T]:
    """``rows``: in the order that they have until one is chosen, and among equals; the first
    ``most`` of them then. Raises ValueError for an unknown column."""
    asked = visit.request.args.get(parameter, "")
    found = list(rows)
    if asked:
        name = asked.removeprefix(_DOWN)
        column = next((each for each in columns if each.name == name), None)
        if column is None:
            names = ", ".join(each.name for each in columns)
            raise ValueError(f"{parameter}: {name!r} is not one of {names}")
        key = column.key
        found.sort(key=lambda row: _rank(key(row)), reverse=asked != name)
    heads = [_head(visit, each, asked, parameter) for each in columns]
    shown = found[:most]
    return Table(heads, shown, len(found) - len(shown))


def fields(row: object, columns: Iterable[Column]) -> dict[str, object]:
    """A row for programs."""
    return {each.name: (each.value or each.key)(row) for each in columns}


def _rank(value: Any) -> tuple[bool, Any]:
    return (False, 0) if value is None else (True, value)


def _head(visit: Visit, column: Column, asked: str, parameter: str) -> Head:
    up, down = column.name, _DOWN + column.name
    then = {up: down, down: up}.get(asked, down if column.is_number else up)
    link = f"{visit.request.path}?{urlencode({**visit.request.args.to_dict(), parameter: then})}"
    order = {up: "ascending", down: "descending"}.get(asked, "")
    return Head(column.title, column.is_number, column.hint, link, order)
