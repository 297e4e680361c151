"""Counts and times of clients, as the JVM clients publish them over JMX.

The instruments are those of the broker. No task ticks them here: who counts or reads does. There is
no lock where they count, to keep the hot paths fast: when two tasks count at once, one count may be
lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from kafka08.metrics.meters import TICK_SECONDS, Histogram, Meter, Timer
from kafka08.metrics.registry import Metric, Series, series

Now = Callable[[], float]
"""Gives monotonic seconds."""
Instrument = TypeVar("Instrument", Meter, Histogram, Timer)


class Ticker:
    """Has the instruments of one client tick: to be called before they count and are read."""

    __slots__ = ("_began", "_instruments", "_lock", "_now", "_ticked")

    def __init__(self, now: Now) -> None:
        self._now = now
        self._began = self._ticked = now()
        self._instruments: list[Meter | Histogram | Timer] = []
        self._lock = threading.Lock()

    def add(self, instrument: Instrument) -> Instrument:
        self._instruments.append(instrument)
        return instrument

    def tick(self) -> None:
        if self._now() - self._ticked >= TICK_SECONDS:
            with self._lock:
                now = self._now()
                seconds, self._ticked = now - self._ticked, now
                if seconds > 0:  # else another thread was first
                    for instrument in self._instruments:
                        instrument.tick(seconds)

    def numbers(self, name: str, instrument: Meter | Timer) -> dict[str, float]:
        """``name`` with attributes of its bean: rates per second, times in ms."""
        self.tick()
        timer = instrument if isinstance(instrument, Timer) else None
        meter = instrument.meter if isinstance(instrument, Timer) else instrument
        age = self._now() - self._began
        return {
            f"{name}.Count": meter.count,
            f"{name}.MeanRate": meter.count / max(age, 1.0),
            f"{name}.OneMinuteRate": meter.rate,
            **({f"{name}.Mean": timer.times.mean, f"{name}.Max": timer.times.max} if timer else {}),
        }


class TopicMeters:
    """A meter of all topics together, and one for each."""

    def __init__(self, ticker: Ticker) -> None:
        self._ticker = ticker
        self.all = ticker.add(Meter())
        self._topics: dict[str, Meter] = {}

    def mark(self, topic: str, count: int = 1) -> None:
        self._ticker.tick()
        meter = self._topics.get(topic)
        if meter is None:
            meter = self._topics[topic] = self._ticker.add(Meter())
        self.all.mark(count)
        meter.mark(count)

    def counts(self) -> dict[str, int]:
        """By topic."""
        return {topic: meter.count for topic, meter in list(self._topics.items())}

    def numbers(self, name: str) -> dict[str, float]:
        """Those of all topics together."""
        return self._ticker.numbers(name, self.all)

    def series(self, metric: Metric, client_id: str) -> Iterator[Series]:
        self._ticker.tick()
        yield series(metric, self.all, client_id)
        for topic, meter in list(self._topics.items()):
            yield series(metric, meter, client_id, topic)


class Requests:
    """Times and sizes of requests: those to each broker, and all of them."""

    def __init__(self, ticker: Ticker) -> None:
        self._ticker = ticker
        self._all = self._new()
        self._brokers: dict[tuple[str, int], tuple[Timer, Histogram]] = {}

    def _new(self) -> tuple[Timer, Histogram]:
        return self._ticker.add(Timer()), self._ticker.add(Histogram())

    def record(self, host: str, port: int, seconds: float, size: int) -> None:
        self._ticker.tick()
        broker = self._brokers.get((host, port))
        if broker is None:
            broker = self._brokers[host, port] = self._new()
        for times, sizes in (self._all, broker):
            times.record(seconds)
            sizes.update(size)

    def by_broker(self) -> list[tuple[tuple[str, int], tuple[Timer, Histogram]]]:
        self._ticker.tick()
        return list(self._brokers.items())

    def series(self, times: Metric, sizes: Metric, client_id: str) -> Iterator[Series]:
        for tags, pair in [((), self._all), *self.by_broker()]:
            named = (client_id, *map(str, tags))
            yield series(times, pair[0], *named)
            yield series(sizes, pair[1], *named)
