"""Limits the average rate: an unused part is saved for a while, excess is paid back by waiting.

Does not know a clock: each call gets the time, in monotonic seconds.
"""

from __future__ import annotations

# A debt that has not grown for this long is forgotten.
_FORGET_SECONDS = 3600


class Bucket:
    """The rest of ``rate`` (units a second), at most that of ``seconds``; below 0 it is owed.

    A new one is full. The rate may be another one at each call.
    """

    __slots__ = ("_at", "_full", "_left", "_rate")

    def __init__(self, rate: float, seconds: float, now: float) -> None:
        self._rate = rate
        self._full = self._left = rate * seconds
        self._at = now

    def use(self, amount: float, rate: float, seconds: float, now: float) -> float:
        """Take ``amount`` units; the seconds until nothing is owed."""
        full = rate * seconds
        left = min(self._left + (now - self._at) * self._rate, full) - amount
        self._rate, self._full, self._left, self._at = rate, full, left, now
        return -left / rate if left < 0 else 0.0

    def is_as_new(self, now: float) -> bool:
        """Whether nothing is lost without it."""
        idle = now - self._at
        return self._left + idle * self._rate >= self._full or idle >= _FORGET_SECONDS
