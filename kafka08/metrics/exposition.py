"""Writes metrics as text for Prometheus, in the format 0.0.4 and as OpenMetrics.

prometheus-client renders; it is given few series at a time, and between two pieces the event loop
goes on. It is imported on first use, because most processes show no metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from kafka08.metrics.registry import (
    GAUGE,
    HISTOGRAM,
    METER,
    PERCENT,
    TEXT,
    TIMER,
    Metric,
    Registry,
    Series,
)
from kafka08.runtime import Runtime

if TYPE_CHECKING:
    from prometheus_client import metrics_core
    from prometheus_client.registry import Collector

    Family: TypeAlias = metrics_core.Metric

# Kinds whose names differ from those of the beans.
_RENAMED = (METER, PERCENT)
SHARES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
_NAMES = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
TYPES = {
    GAUGE: "gauge",
    TEXT: "gauge",
    PERCENT: "gauge",
    METER: "counter",
    HISTOGRAM: "summary",
    TIMER: "summary",
}
PLAIN, OPEN = "0.0.4", "openmetrics"
CONTENT_TYPES = {
    PLAIN: "text/plain; version=0.0.4; charset=utf-8",
    OPEN: "application/openmetrics-text; version=1.0.0; charset=utf-8",
}
_END = b"# EOF\n"
_FRESH_SECONDS = 1.0


class _One:
    """A single family in the place of a registry, as generate_latest takes it."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def collect(self) -> list[Family]:
        return [self._family]


def texts(families: Iterable[Family], encode: Callable[[Collector], bytes]) -> Iterator[bytes]:
    """The text of ``families``, family by family; the pieces of one follow one another and get one
    head. ``encode`` is a generate_latest of prometheus-client."""
    last, ending = "", b""
    for each in families:
        text = encode(_One(each))
        ending = _END if text.endswith(_END) else b""
        yield text[_head_end(text) if each.name == last else 0 :].removesuffix(_END)
        last = each.name
    yield ending


class Exposition:
    """The text of a registry's metrics and of the process. One is made at a time, and serves all
    who ask within a second.

    ``bean_names``: what has another name than its bean is there under that name, too.
    ``partitions``: the series of partitions are there.
    """

    def __init__(
        self,
        runtime: Runtime,
        registry: Registry,
        *,
        bean_names: bool = False,
        partitions: bool = True,
    ) -> None:
        from prometheus_client import REGISTRY
        from prometheus_client.exposition import generate_latest
        from prometheus_client.openmetrics import exposition as openmetrics

        self._process = REGISTRY
        self._generate: dict[str, Callable[[Collector], bytes]] = {
            PLAIN: generate_latest,
            OPEN: openmetrics.generate_latest,
        }
        self._runtime = runtime
        self._registry = registry
        self._bean_names = bean_names
        self._partitions = partitions
        self._lock = runtime.lock()
        self._made: dict[str, tuple[float, bytes]] = {}

    def text(self, form: str) -> bytes:
        """``form`` is PLAIN or OPEN. May take long, and lets others run."""
        with self._lock:
            at, body = self._made.get(form, (0.0, b""))
            if not body or self._runtime.clock.monotonic() - at >= _FRESH_SECONDS:
                body = self._render(form)
                self._made[form] = self._runtime.clock.monotonic(), body
            return body

    def _render(self, form: str) -> bytes:
        parts = []
        families = chain(self._families(), self._of_beans(), self._process.collect())
        for part in texts(families, self._generate[form]):
            parts.append(part)
            self._runtime.sleep(0)
        return b"".join(parts)

    def _families(self) -> Iterator[Family]:
        pieces = self._registry.pieces(self._is_shown)
        return (family(metric, piece) for metric, piece in pieces)

    def _of_beans(self) -> Iterator[Family]:
        if not self._bean_names:
            return iter(())
        pieces = self._registry.pieces(
            lambda metric: metric.kind in _RENAMED and self._is_shown(metric)
        )
        return (_bean_family(metric, piece) for metric, piece in pieces)

    def _is_shown(self, metric: Metric) -> bool:
        return self._partitions or "partition" not in metric.tags


def _head_end(text: bytes) -> int:
    """Where the lines begin that are not comments."""
    at = 0
    while text.startswith(b"# ", at) and not text.startswith(_END, at):
        at = text.index(b"\n", at) + 1
    return at


def _bean_family(metric: Metric, piece: Iterable[Series]) -> Family:
    """Counts and shares as the value of the bean. In Prometheus the name of a counter has to end
    with _total, so it has no type."""
    from prometheus_client.metrics_core import Metric as Family

    kind = "unknown" if metric.kind == METER else TYPES[metric.kind]
    found = Family(metric.bean_name, metric.help, kind)
    for series in piece:
        value = series.value.count if metric.kind == METER else series.value.share
        found.add_sample(metric.bean_name, series.labels, value)
    return found


def family(metric: Metric, piece: Iterable[Series]) -> Family:
    """The series in prometheus-client's form."""
    from prometheus_client.metrics_core import Metric as Family

    name = metric.name.removesuffix("_total")
    found = Family(name, metric.help, TYPES[metric.kind])
    for series in piece:
        labels, value = series.labels, series.value
        if metric.kind == METER:
            found.add_sample(f"{name}_total", labels, value.count)
        elif metric.kind in (HISTOGRAM, TIMER):
            times = value.times if metric.kind == TIMER else value
            for share, number in zip(_NAMES, times.quantiles(SHARES), strict=True):
                found.add_sample(name, {**labels, "quantile": share}, number)
            found.add_sample(f"{name}_count", labels, times.count)
            found.add_sample(f"{name}_sum", labels, times.sum)
        elif metric.kind == TEXT:
            found.add_sample(name, {**labels, "version": value}, 1)
        else:
            found.add_sample(name, labels, value.share if metric.kind == PERCENT else value)
    return found
