"""Counts and times with their rates, as the JVM clients publish them over JMX.

Mirrors the numbers of com.yammer.metrics.core.Meter and Timer. There is no lock, to keep the hot
paths fast: when two tasks count at once, one count may be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp

_MINUTE_S = 60.0


class Meter:
    """A count and its rate per second; ``now`` gives monotonic seconds."""

    __slots__ = ("_begin", "_last", "_now", "_rate", "count")

    def __init__(self, now: Callable[[], float]) -> None:
        self.count = 0
        self._now = now
        self._begin = self._last = now()
        self._rate = 0.0

    def mark(self, count: int = 1) -> None:
        if count:
            now = self._now()
            self._rate = self._decayed(now) + count / _MINUTE_S
            self._last = now
            self.count += count

    def _decayed(self, now: float) -> float:
        return self._rate * exp((self._last - now) / _MINUTE_S)

    def numbers(self, name: str) -> dict[str, float]:
        """``name`` with the attributes of its bean."""
        now = self._now()
        return {
            f"{name}.Count": self.count,
            f"{name}.MeanRate": self.count / max(now - self._begin, 1.0),
            f"{name}.OneMinuteRate": self._decayed(now),
        }


class Timer:
    """A count of calls, and their durations in ms."""

    __slots__ = ("_largest", "_meter", "_sum")

    def __init__(self, now: Callable[[], float]) -> None:
        self._meter = Meter(now)
        self._sum = 0.0
        self._largest = 0.0

    def record(self, seconds: float) -> None:
        self._meter.mark()
        self._sum += seconds * 1000
        self._largest = max(self._largest, seconds * 1000)

    def numbers(self, name: str) -> dict[str, float]:
        return {
            **self._meter.numbers(name),
            f"{name}.Mean": self._sum / max(self._meter.count, 1),
            f"{name}.Max": self._largest,
        }
