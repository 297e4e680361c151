"""How long the loop worked for a greenlet, without the time that the greenlet waited.

The clock is read each time that one greenlet follows another, but only between ``start`` and
``stop``. The work of other threads is not counted. Does not know requests.
"""

from __future__ import annotations

import greenlet

from kafka08.runtime import Clock


class LoopTime:
    """All methods are for the loop's thread. A thread has at most one started LoopTime."""

    def __init__(self, clock: Clock) -> None:
        self._now = clock.monotonic
        self.worked: dict[
            greenlet.greenlet, float
        ] = {}  # seconds until the last change, by greenlet
        self._since = 0.0  # the last change to another greenlet

    def start(self) -> None:
        """Notice changes from one greenlet to another from now on."""
        self.worked.clear()
        self._since = self._now()
        greenlet.settrace(self._changed)

    def stop(self) -> None:
        greenlet.settrace(None)

    def _changed(self, event: str, greenlets: tuple[greenlet.greenlet, greenlet.greenlet]) -> None:
        now = self._now()
        origin = greenlets[0]
        if origin in self.worked:
            self.worked[origin] += now - self._since
        self._since = now

    def begin(self) -> None:
        """Count for the present greenlet from 0. ``end`` has to follow."""
        self.worked[greenlet.getcurrent()] = self._since - self._now()

    def seconds(self) -> float:
        """Those worked for the present greenlet since ``begin``; 0 without it."""
        worked = self.worked.get(greenlet.getcurrent())
        return 0.0 if worked is None else worked + self._now() - self._since

    def end(self) -> None:
        """Forget the present greenlet."""
        self.worked.pop(greenlet.getcurrent(), None)
