"""Counts and distributions that cost next to nothing where they are updated.

An update is a few additions; rates, quantiles and names are made when they are read. There is no
lock: what counts runs on the event loop.
"""

from __future__ import annotations

import time
from functools import lru_cache
from math import exp, sqrt

TICK_SECONDS = 5
# Quantiles are about the last one to two windows.
_WINDOW_SECONDS = 150
# Each power of two is divided into eight buckets, so that a quantile is right within 6 %.
_PARTS_BITS = 3
_PARTS = 1 << _PARTS_BITS
_MICROS = 1_000_000


@lru_cache(8)
def _weights(seconds: float) -> tuple[float, float, float]:
    """The weights of the last ``seconds`` in the rates of one, five and fifteen minutes. All meters
    of a process tick together, with the same number of seconds."""
    return 1 - exp(-seconds / 60), 1 - exp(-seconds / 300), 1 - exp(-seconds / 900)


class Meter:
    """A count, with its rates per second (one, five and fifteen minutes)."""

    __slots__ = ("_counted", "count", "rates")

    def __init__(self) -> None:
        self.count = 0
        self.rates: tuple[float, float, float] | None = None
        self._counted = 0

    def mark(self, count: int = 1) -> None:
        self.count += count

    def tick(self, seconds: float = TICK_SECONDS) -> None:
        """To be called every TICK_SECONDS or later; ``seconds`` have passed since the last call."""
        now = (self.count - self._counted) / seconds
        self._counted = self.count
        if self.rates is None:
            self.rates = (now, now, now)
        elif now or self.rates[2]:
            one, five, fifteen = self.rates
            by_one, by_five, by_fifteen = _weights(seconds)
            self.rates = (
                one + by_one * (now - one),
                five + by_five * (now - five),
                fifteen + by_fifteen * (now - fifteen),
            )

    @property
    def rate(self) -> float:
        """Per second in the last minute; 0 before the first tick."""
        return 0.0 if self.rates is None else self.rates[0]


class Histogram:
    """The distribution of whole numbers from 0 on. ``scale``: this many make one of the unit that
    is shown. Count, sum and extremes are those since the start, quantiles of the last minutes."""

    __slots__ = ("_age", "_before", "_buckets", "_total", "count", "most", "scale", "smallest")

    def __init__(self, scale: int = 1) -> None:
        self.scale = scale
        self.count = 0
        self.most = 0
        self.smallest = -1
        self._total = 0
        self._buckets: list[int] = []
        self._before: list[int] = []
        self._age = 0.0

    def update(self, value: int) -> None:
        self.count += 1
        self._total += value
        if value > self.most:
            self.most = value
        if value < self.smallest or self.smallest < 0:
            self.smallest = value
        if value < _PARTS:
            at = value
        else:
            shift = value.bit_length() - _PARTS_BITS - 1
            at = (shift << _PARTS_BITS) + (value >> shift)
        try:
            self._buckets[at] += 1
        except IndexError:
            self._buckets += [0] * (at + 1 - len(self._buckets))
            self._buckets[at] += 1

    def settle(self, count: int, total: int) -> None:
        """There were ``count`` values with this sum; ``update`` got some of them only."""
        self.count = count
        self._total = total

    def tick(self, seconds: float = TICK_SECONDS) -> None:
        self._age += seconds
        if self._age >= _WINDOW_SECONDS:
            recent = self._age < 2 * _WINDOW_SECONDS
            self._age %= _WINDOW_SECONDS
            empty = [0] * len(self._buckets)
            self._before, self._buckets = (self._buckets if recent else []), empty

    @property
    def sum(self) -> float:
        return self._total / self.scale

    @property
    def max(self) -> float:
        return self.most / self.scale

    @property
    def min(self) -> float:
        return max(self.smallest, 0) / self.scale

    @property
    def mean(self) -> float:
        return self.sum / self.count if self.count else 0.0

    @property
    def deviation(self) -> float:
        """The standard deviation of the last minutes, as exact as the buckets."""
        found = self._recent()
        count = sum(number for _, _, number in found)
        if count < 2:
            return 0.0
        middles = [((low + high) / 2, number) for low, high, number in found]
        mean = sum(middle * number for middle, number in middles) / count
        squares = sum((middle - mean) ** 2 * number for middle, number in middles)
        return sqrt(squares / (count - 1)) / self.scale

    def quantiles(self, shares: tuple[float, ...]) -> list[float]:
        """One value for each of the ascending ``shares``; 0 as long as nothing was counted."""
        found = self._recent()
        wanted = [share * sum(number for _, _, number in found) for share in shares]
        values: list[float] = []
        seen = 0
        for low, high, number in found:
            while len(values) < len(wanted) and wanted[len(values)] <= seen + number:
                within = (wanted[len(values)] - seen) / number
                value = low + (high - low) * within
                values.append(min(max(value, self.smallest), self.most) / self.scale)
            seen += number
        return values or [0.0] * len(wanted)

    def _recent(self) -> list[tuple[int, int, int]]:
        """The buckets of the last minutes that are not empty: from, to, how many."""
        longest = max(len(self._before), len(self._buckets))
        before = self._before + [0] * (longest - len(self._before))
        now = self._buckets + [0] * (longest - len(self._buckets))
        both = [old + new for old, new in zip(before, now, strict=True)]
        return [(*_bounds(at), number) for at, number in enumerate(both) if number]


def _bounds(at: int) -> tuple[int, int]:
    """The first value of a bucket, and that of the next one."""
    if at < _PARTS:
        return at, at + 1
    shift = (at >> _PARTS_BITS) - 1
    part = at - (shift << _PARTS_BITS)
    return part << shift, (part + 1) << shift


class Timer:
    """How often something was done, and how long it took."""

    __slots__ = ("meter", "times")

    def __init__(self) -> None:
        self.meter = Meter()
        self.times = Histogram(1000)  # microseconds, shown as milliseconds

    def record(self, seconds: float) -> None:
        self.meter.count += 1
        self.times.update(max(int(seconds * _MICROS), 0))

    def tick(self, seconds: float = TICK_SECONDS) -> None:
        self.meter.tick(seconds)
        self.times.tick(seconds)


class IdleShare:
    """The share of time in which a thread does nothing, as a meter of nanoseconds. It is that of
    the thread which ticks: the broker's event loop. A thread that waits for a processor is not
    idle: a broker may get less than one, and is busy although it runs for a part of the time only.

    ``waits``: the kernel's file with the time that the thread ran, and that it waited for a
    processor. Without the file such waits count as idle.
    """

    __slots__ = ("_busy", "_waits", "meter")

    def __init__(self, waits: str = "/proc/thread-self/schedstat") -> None:
        self.meter = Meter()
        self._waits = waits
        self._busy = self._busy_ns()

    def tick(self, seconds: float = TICK_SECONDS) -> None:
        busy = self._busy_ns()
        self.meter.count += max(int(seconds * 1e9) - (busy - self._busy), 0)
        self._busy = busy
        self.meter.tick(seconds)

    def _busy_ns(self) -> int:
        try:
            with open(self._waits, "rb") as file:
                waited = int(file.read().split()[1])
        except (OSError, IndexError, ValueError):
            waited = 0
        return time.thread_time_ns() + waited

    @property
    def share(self) -> float:
        """0 to 1, of the last minute; 1 before the first tick."""
        rates = self.meter.rates
        return 1.0 if rates is None else min(max(rates[0] / 1e9, 0.0), 1.0)
