"""How the load of transactions asks: again for codes of the moment, and never after others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.bench import transactions


def answers(*codes: int) -> Iterator[int]:
    return iter(codes)


def test_codes_of_the_moment_are_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(transactions.time, "sleep", waits.append)
    found = answers(3, 16, 51, 0, 0)
    assert transactions.until_done(lambda: next(found), lambda code: code) == 0
    assert len(waits) == 3 and list(found) == [0]


def test_other_codes_end_the_run() -> None:
    found = answers(48, 0)
    with pytest.raises(RuntimeError, match="code 48"):
        transactions.until_done(lambda: next(found), lambda code: code)
    assert list(found) == [0]


def test_a_shape_says_how_much_it_sends() -> None:
    assert {each.records for each in transactions.SHAPES.values()} == {100, 10_000}
    assert max(each.producers for each in transactions.SHAPES.values()) == 100
