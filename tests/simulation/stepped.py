"""The simplest schedule: one task, and time that goes to the next call while the task waits."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from tests.fakes.runtime import FakeRuntime, WouldBlock


class ScheduledCall:
    """A call that may be cancelled."""

    def __init__(self, function: Callable[[], object]) -> None:
        self.function: Callable[[], object] | None = function

    def cancel(self) -> None:
        self.function = None


class SteppedSchedule:
    """The world of a ``runtime`` on one task: its waits run what is scheduled, and move its clock.
    Calls that are due at the same time run in their order."""

    def __init__(self, runtime: FakeRuntime) -> None:
        self._clock = runtime.clock
        self._numbers = count()
        self._calls: list[tuple[float, int, ScheduledCall]] = []
        runtime.world = self.run_until

    def now(self) -> float:
        return self._clock.now

    def call_later(self, seconds: float, function: Callable[[], object], /) -> ScheduledCall:
        call = ScheduledCall(function)
        due = self.now() + max(seconds, 0.0)
        heapq.heappush(self._calls, (due, next(self._numbers), call))
        return call

    def run_until(self, done: Callable[[], bool], seconds: float | None = None) -> bool:
        """Whether ``done()`` was true in time; time passes until then, ``seconds`` at most."""
        deadline = None if seconds is None else self.now() + seconds
        while not done():
            if not self._calls and deadline is None:
                raise WouldBlock("nothing is scheduled")
            if deadline is not None and (not self._calls or self._calls[0][0] > deadline):
                self._clock.now = max(self.now(), deadline)
                return done()
            due, _, call = heapq.heappop(self._calls)
            self._clock.now = max(self.now(), due)
            if call.function is not None:
                call.function()
        return True

    def run_for(self, seconds: float) -> None:
        self.run_until(lambda: False, seconds)
