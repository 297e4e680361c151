from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    """docs/examples/event_sourcing.py, imported from its own directory."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    for name in ("charts", "topics", "event_sourcing"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return pytest.importorskip("event_sourcing")


PLACED, PAID = {"event": "placed"}, {"event": "paid"}
ADDED, SHIPPED = {"event": "added", "amount": 7}, {"event": "shipped"}
CANCELLED = {"event": "cancelled"}


@pytest.mark.parametrize(
    ("events", "state", "amount", "refused"),
    [
        ([PLACED], "open", 0, 0),
        ([PLACED, ADDED, ADDED, PAID, SHIPPED], "shipped", 14, 0),
        ([PLACED, PAID, ADDED], "paid", 0, 1),
        ([PLACED, SHIPPED, CANCELLED, PAID, ADDED], "cancelled", 0, 3),
        ([PLACED, PLACED], "open", 0, 1),
    ],
)
def test_what_events_amount_to(
    example: Any, events: list[dict[str, Any]], state: str, amount: int, refused: int
) -> None:
    orders: dict[str, dict[str, Any]] = {}
    for offset, event in enumerate(events):
        example.apply(orders, "o", event, offset)
    last = len(events) - 1
    expected = {"state": state, "amount": amount, "refused": refused, "offset": last}
    assert orders == {"o": expected}
    # An event that a snapshot contains already is read once more, and changes nothing.
    for offset, event in enumerate(events):
        example.apply(orders, "o", event, offset)
    assert orders == {"o": expected}


def test_the_events_are_the_same_at_each_run(example: Any) -> None:
    events = list(example.happens(10, 1))
    assert events == list(example.happens(10, 1))
    assert len(events) == 60
    assert {name for name, _ in events} == {f"order-1-{number:04d}" for number in range(10)}
