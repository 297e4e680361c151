"""Time on the loop, with real greenlets and a clock that only they move."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from greenlet import getcurrent, gettrace, greenlet

from kafka08.server.quotas.loop_time import LoopTime
from tests.fakes.runtime import FakeClock


class Loop:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.time = LoopTime(self.clock)
        self.hub = getcurrent()
        self.counted: list[float] = []

    def request(self, before: float, after: float) -> greenlet:
        """One that works, waits, and works again."""

        def run() -> None:
            self.time.begin()
            try:
                self.clock.advance(before)
                self.hub.switch()
                self.clock.advance(after)
                self.counted.append(self.time.seconds())
            finally:
                self.time.end()

        return greenlet(run, self.hub)


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    made.time.start()
    yield made
    made.time.stop()
    assert gettrace() is None


def test_waits_do_not_count(loop: Loop) -> None:
    waiting = loop.request(1, 2)
    waiting.switch()
    loop.clock.advance(100)
    waiting.switch()
    assert loop.counted == pytest.approx([3])


def test_each_greenlet_has_its_own_time(loop: Loop) -> None:
    first, second = loop.request(1, 2), loop.request(10, 20)
    for each in (first, second, second, first):
        each.switch()
    assert loop.counted == pytest.approx([30, 3])


def test_work_before_the_beginning_does_not_count(loop: Loop) -> None:
    loop.clock.advance(5)
    loop.time.begin()
    loop.clock.advance(1)
    assert loop.time.seconds() == pytest.approx(1)
    loop.time.begin()
    assert loop.time.seconds() == 0
    loop.time.end()


def test_those_who_did_not_begin_have_none(loop: Loop) -> None:
    waiting = loop.request(1, 2)
    waiting.switch()
    loop.clock.advance(100)
    assert loop.time.seconds() == 0
    loop.time.end()
    waiting.switch()
    assert loop.counted == pytest.approx([3])


def test_a_greenlet_that_failed_is_forgotten(loop: Loop) -> None:
    waiting = loop.request(1, 2)
    waiting.switch()
    with pytest.raises(ValueError, match="gone"):
        waiting.throw(ValueError("gone"))
    assert not loop.time.worked


def test_a_start_forgets_what_was_before(loop: Loop) -> None:
    waiting = loop.request(1, 2)
    waiting.switch()
    loop.time.stop()
    loop.time.start()
    waiting.switch()
    assert loop.counted == [0]
