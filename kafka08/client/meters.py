"""Counts and times with their rates, as the JVM clients publish them over JMX.

Mirrors the numbers of com.yammer.metrics.core.Meter and Timer. There is no lock, to keep the hot
paths fast: when two tasks count at once, one count may be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import exp

from kafka08.metrics.clients import series
from kafka08.metrics.meters import TICK_SECONDS, WINDOW_TICKS, Histogram
from kafka08.metrics.registry import Metric, Series

_MINUTE_S = 60.0
_MICROS = 1_000_000
Now = Callable[[], float]
"""Gives monotonic seconds."""


class Meter:
    """A count and its rate per second."""

    __slots__ = ("_begin", "_last", "_now", "_rate", "count")

    def __init__(self, now: Now) -> None:
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

    @property
    def rate(self) -> float:
        """Per second, in the last minute."""
        return self._decayed(self._now())

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


class TopicMeters:
    """A meter of all topics together, and one for each."""

    def __init__(self, now: Now) -> None:
        self.all = Meter(now)
        self._now = now
        self._topics: dict[str, Meter] = {}

    def mark(self, topic: str, count: int = 1) -> None:
        meter = self._topics.get(topic)
        if meter is None:
            meter = self._topics[topic] = Meter(self._now)
        self.all.mark(count)
        meter.mark(count)

    def counts(self) -> dict[str, int]:
        """By topic."""
        return {topic: meter.count for topic, meter in list(self._topics.items())}

    def series(self, metric: Metric, client_id: str) -> Iterator[Series]:
        yield series(metric, self.all, client_id)
        for topic, meter in list(self._topics.items()):
            yield series(metric, meter, client_id, topic)


class Distribution:
    """A histogram that looks at the clock by itself: its quantiles are about the last minutes.

    It holds the histogram: a class that is compiled cannot be inherited from.
    """

    __slots__ = ("_now", "_ticked", "_values")

    def __init__(self, now: Now, scale: int = 1) -> None:
        self._values = Histogram(scale)
        self._now = now
        self._ticked = now()

    def update(self, value: int) -> None:
        self._pass()
        self._values.update(value)

    @property
    def count(self) -> int:
        return self._values.count

    @property
    def sum(self) -> float:
        return self._values.sum

    @property
    def mean(self) -> float:
        return self._values.mean

    @property
    def max(self) -> float:
        return self._values.max

    def quantiles(self, shares: tuple[float, ...]) -> list[float]:
        self._pass()
        return self._values.quantiles(shares)

    def _pass(self) -> None:
        passed = int((self._now() - self._ticked) / TICK_SECONDS)
        if passed:
            self._ticked += passed * TICK_SECONDS
            # After two windows nothing is left.
            for _ in range(min(passed, 2 * WINDOW_TICKS)):
                self._values.tick()


class Timer:
    """A count of calls, and their durations in ms (``times``)."""

    __slots__ = ("_meter", "times")

    def __init__(self, now: Now) -> None:
        self._meter = Meter(now)
        self.times = Distribution(now, 1000)  # microseconds

    def record(self, seconds: float) -> None:
        self._meter.mark()
        self.times.update(max(round(seconds * _MICROS), 0))

    @property
    def rate(self) -> float:
        """Calls per second, in the last minute."""
        return self._meter.rate

    def numbers(self, name: str) -> dict[str, float]:
        return {
            **self._meter.numbers(name),
            f"{name}.Mean": self.times.mean,
            f"{name}.Max": self.times.max,
        }


class Requests:
    """Times and sizes of requests: those to each broker, and all of them."""

    def __init__(self, now: Now) -> None:
        self._now = now
        self._all = self._new()
        self._brokers: dict[tuple[str, int], tuple[Timer, Distribution]] = {}

    def _new(self) -> tuple[Timer, Distribution]:
        return Timer(self._now), Distribution(self._now)

    def record(self, host: str, port: int, seconds: float, size: int) -> None:
        found = self._brokers.get((host, port))
        if found is None:
            found = self._brokers[host, port] = self._new()
        for times, sizes in (self._all, found):
            times.record(seconds)
            sizes.update(size)

    def by_broker(self) -> list[tuple[tuple[str, int], tuple[Timer, Distribution]]]:
        return list(self._brokers.items())

    def series(self, times: Metric, sizes: Metric, client_id: str) -> Iterator[Series]:
        for tags, found in [((), self._all), *self.by_broker()]:
            named = (client_id, *map(str, tags))
            yield series(times, found[0], *named)
            yield series(sizes, found[1], *named)
