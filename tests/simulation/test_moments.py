"""Calls that are planned for the nth time that something happens."""

from __future__ import annotations

from functools import partial

from tests.simulation.moments import Moments


def test_what_is_planned_is_done_at_its_moment() -> None:
    moments = Moments()
    done: list[str] = []
    moments.happened()
    moments.after(2, partial(done.append, "second"))
    moments.after(1, partial(done.append, "first"))
    moments.after(2, partial(done.append, "second too"))
    moments.happened()
    assert done == ["first"]
    moments.happened()
    moments.happened()
    assert done == ["first", "second", "second too"]


def test_nothing_is_done_once_it_is_cleared() -> None:
    moments = Moments()
    done: list[str] = []
    moments.after(1, partial(done.append, "first"))
    moments.clear()
    moments.happened()
    assert not done
