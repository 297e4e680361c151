"""A restart of all brokers, one after the other, each cleanly."""

from __future__ import annotations

from collections.abc import Iterable

from tests.simulation.broker import SimulatedBroker
from tests.simulation.scheduler import SECOND, Scheduler

_LOOKS_EVERY = SECOND // 4


class RollingRestart:
    """``begin`` does nothing while one is under way. A broker that dies meanwhile is started, as by
    an operator; one that does not stop is waited for."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._left: list[SimulatedBroker] = []
        self._has_stopped = False

    def begin(self, brokers: Iterable[SimulatedBroker]) -> None:
        if not self._left:
            self._left = list(brokers)
            self._has_stopped = False
            self._go_on()

    def end(self) -> None:
        """No other broker is stopped; one that has stopped is not started."""
        self._left.clear()

    def _go_on(self) -> None:
        if self._left:
            self._advance(self._left[0])
            self._scheduler.after(_LOOKS_EVERY, self._go_on)

    def _advance(self, broker: SimulatedBroker) -> None:
        if broker.is_gone:
            self._left.pop(0)
        elif not broker.is_running:
            self._has_stopped = True
            broker.start()
        elif broker.is_ending or not broker.has_started:
            return
        elif self._has_stopped:
            self._has_stopped = False
            self._left.pop(0)
        else:
            broker.stop()
