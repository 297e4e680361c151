"""Deadlines by key, against the plain table they stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.server.groups.timers import Timers

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 4), st.integers(0, 20)),
        st.tuples(st.just("cancel"), st.integers(0, 4), st.just(0)),
        st.tuples(st.just("pass"), st.just(0), st.integers(0, 6)),
    )
)


@pytest.mark.parametrize("useless", [0, 100])
@given(steps=STEPS)
def test_every_deadline_comes_up_once_and_in_time(
    useless: int, steps: list[tuple[str, int, int]]
) -> None:
    timers: Timers[int] = Timers(useless)
    table: dict[int, int] = {}
    now = 0
    for step, key, amount in steps:
        if step == "set":
            timers.set(key, now + amount)
            table[key] = now + amount
        elif step == "cancel":
            timers.cancel(key)
            table.pop(key, None)
        else:
            now += amount
            due = set()
            while (found := timers.take_due(now)) is not None:
                assert found not in due
                due.add(found)
            assert due == {each for each, at in table.items() if at <= now}
            table = {each: at for each, at in table.items() if at > now}
        assert len(timers) == len(table) and all(each in timers for each in table)
        if table:
            assert timers.next is not None and timers.next <= min(table.values())


def test_a_deadline_that_moves_later_adds_nothing() -> None:
    timers: Timers[str] = Timers()
    for at in range(1000):
        timers.set("m", 10 + at)
    assert len(timers._heap) == 1
    assert timers.take_due(500) is None and timers.take_due(1009) == "m"
    assert timers.next is None


def test_cancelled_deadlines_leave_nothing() -> None:
    timers: Timers[int] = Timers()
    for key in range(10_000):
        timers.set(key, 1e9)
        timers.cancel(key)
        timers.set(-1, 1e9 - key)
    assert len(timers._heap) < 200 and len(timers._queued) < 200
    assert timers.take_due(1e9) == -1 and timers.take_due(1e9) is None
