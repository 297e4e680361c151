"""The metrics of a process: each declared with its names, and where its values come from.

The names of JMX are those of 0.8.2.2. Those of Prometheus are what the rules of jmx_exporter for
later releases make of them, where these rules are regular (``Beans``).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from kafka08.metrics.meters import TICK_SECONDS, Histogram, IdleShare, Meter, Timer
from kafka08.runtime import Loop, Runtime

logger = logging.getLogger("kafka.metrics.KafkaMetricsReporter")

GAUGE, METER, HISTOGRAM, TIMER = "gauge", "meter", "histogram", "timer"
PERCENT, TEXT = "percent", "text"
# A reader switches to other work after this many series.
AT_ONCE = 200
_SUMMED_AT_ONCE = 2000

T = TypeVar("T")


Labels = tuple[tuple[str, str], ...]


class Metric(NamedTuple):
    """A family of series. ``bean``: the name in JMX without tags; ``tags``: those that a series
    can have. ``unit``: what a meter counts, in JMX ``EventType``. ``labels``: where other than
    ``tags``, the labels in Prometheus with the format of each."""

    bean: str
    kind: str
    name: str
    help: str
    tags: tuple[str, ...] = ()
    unit: str = ""
    labels: Labels = ()

    @property
    def bean_name(self) -> str:
        """The name in Prometheus that follows from the bean alone: ``…_messagesinpersec``."""
        return re.sub(r"\W+", "_", re.sub(r"\b(type|name)=", "", self.bean)).lower()


class Beans:
    """Declares the metrics of one type of beans, such as ``kafka.log:type=Log``. They have the same
    tags and labels; ``name`` is that of the bean, from which the one in Prometheus follows."""

    def __init__(self, kind: str, *tags: str, labels: Labels = (), sign: str = ",name=") -> None:
        """``sign``: what stands between the type and a name."""
        self._prefix = kind + sign
        self._tags = tags
        self._labels = labels

    def _metric(self, name: str, kind: str, text: str, unit: str = "") -> Metric:
        made = Metric(self._prefix + name, kind, "", text, self._tags, unit, self._labels)
        shown = made.bean_name
        if kind == METER:
            shown = re.sub("persec(ond)?$", "", shown) + "_total"
        elif kind == PERCENT:
            shown = shown.removesuffix("percent") + "_percent"
        return made._replace(name=shown)

    def text(self, name: str, text: str) -> Metric:
        return self._metric(name, TEXT, text)

    def gauge(self, name: str, text: str) -> Metric:
        return self._metric(name, GAUGE, text)

    def meter(self, name: str, text: str, unit: str) -> Metric:
        return self._metric(name, METER, text, unit)

    def histogram(self, name: str, text: str) -> Metric:
        return self._metric(name, HISTOGRAM, text)

    def timer(self, name: str, text: str, unit: str) -> Metric:
        return self._metric(name, TIMER, text, unit)

    def percent(self, name: str, text: str, unit: str = "") -> Metric:
        return self._metric(name, PERCENT, text, unit)


Value = Any
"""A number, a text, a Meter, Histogram, Timer or IdleShare."""
Tags = tuple[str, ...]
"""The values of a series' tags; an empty one is left out."""
Source = Callable[[], Iterable[tuple[Tags, Value]]]


class Series(NamedTuple):
    metric: Metric
    tags: dict[str, str]
    value: Value

    @property
    def bean(self) -> str:
        """The name in JMX."""
        return ",".join([self.metric.bean, *(f"{tag}={text}" for tag, text in self.tags.items())])

    @property
    def labels(self) -> dict[str, str]:
        """Those in Prometheus."""
        if not self.metric.labels:
            return self.tags
        full = {tag: self.tags.get(tag, "") for tag in self.metric.tags}
        made = {label: form.format(**full) for label, form in self.metric.labels}
        return {label: text for label, text in made.items() if text.strip(":")}


class Registry:
    """The metrics with their sources, in the order in which they were added."""

    def __init__(self, runtime: Runtime) -> None:
        self.started = runtime.clock.monotonic()
        self._runtime = runtime
        self._clock = runtime.clock
        self._sources: dict[str, tuple[Metric, Source]] = {}
        self._failed: set[str] = set()
        self._ticked = self.started
        self._loop = Loop(runtime, "metrics", self._tick_later)

    def add(self, metric: Metric, source: Source) -> None:
        """``source`` gives the series as they are now; it is called by each reader."""
        assert metric.name not in self._sources, metric.name
        self._sources[metric.name] = metric, source

    def start(self) -> None:
        """Have rates computed from now on."""
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def total(self, items: Sequence[T], read: Callable[[T], int]) -> int:
        """The sum over ``items``; others run after every few thousand, so the caller gives those
        of a moment."""
        found = 0
        for at in range(0, len(items), _SUMMED_AT_ONCE):
            found += sum(map(read, items[at : at + _SUMMED_AT_ONCE]))
            if at + _SUMMED_AT_ONCE < len(items):
                self._runtime.sleep(0)
        return found

    @property
    def age(self) -> float:
        """Seconds since the start."""
        return max(self._clock.monotonic() - self.started, 1e-9)

    def pieces(
        self, is_wanted: Callable[[Metric], bool] = lambda metric: True
    ) -> Iterator[tuple[Metric, list[Series]]]:
        """All series, at most AT_ONCE at a time, those of a metric one after the other. A metric
        without a series is left out, and so is one whose source fails."""
        for metric, source in list(self._sources.values()):
            if not is_wanted(metric):
                continue
            try:
                found = iter(source())
                while piece := list(islice(found, AT_ONCE)):
                    yield metric, [series(metric, value, *tags) for tags, value in piece]
            except Exception:
                if metric.name not in self._failed:
                    self._failed.add(metric.name)
                    logger.exception("%s cannot be read", metric.name)

    def _tick_later(self) -> None:
        if not self._loop.stopping.wait(TICK_SECONDS):
            self.tick()

    def tick(self) -> None:
        """Compute rates; lets others run now and then."""
        now = self._clock.monotonic()
        seconds, self._ticked = max(now - self._ticked, 1e-3), now
        done: set[int] = set()  # one meter may be in several series
        for _, piece in self.pieces(lambda metric: metric.kind not in (GAUGE, TEXT)):
            for each in piece:
                if id(each.value) not in done:
                    done.add(id(each.value))
                    each.value.tick(seconds)
            self._runtime.sleep(0)


def series(metric: Metric, value: Value, *tags: str) -> Series:
    """``tags``: those of the metric, in its order; an empty one is left out."""
    named = zip(metric.tags, tags, strict=False)
    return Series(metric, {tag: text for tag, text in named if text}, value)


def one(read: Callable[[], Value]) -> Source:
    """A metric with a single series and no tags."""
    return lambda: [((), read())]


def same(value: Meter | Histogram | Timer | IdleShare) -> Source:
    """The same, of a counter that does not change its place."""
    return lambda: [((), value)]
