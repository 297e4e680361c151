"""Writes metrics to CSV files at intervals (kafka.metrics.KafkaCSVMetricsReporter).

Each series has a file, named by its bean. 0.8.2.2 names files by the metric alone, so that the
series of two topics, or of two kinds of requests, are one file, and it fails to make the second.
"""

from __future__ import annotations

import csv
import logging
import os
import re
from collections.abc import Iterable

from kafka08.metrics import jmx
from kafka08.metrics.registry import METER, PERCENT, Metric, Registry, Series
from kafka08.runtime import Loop, Runtime

logger = logging.getLogger("kafka.metrics.KafkaCSVMetricsReporter")

_GAUGE = {"value": "Value"}
_RATES = {
    "count": "Count",
    "1 min rate": "OneMinuteRate",
    "mean rate": "MeanRate",
    "5 min rate": "FiveMinuteRate",
    "15 min rate": "FifteenMinuteRate",
}
_DISTRIBUTION = {
    "min": "Min",
    "max": "Max",
    "mean": "Mean",
    "median": "50thPercentile",
    "stddev": "StdDev",
    "95%": "95thPercentile",
    "99%": "99thPercentile",
    "99.9%": "999thPercentile",
}
_COLUMNS = {
    "gauge": _GAUGE,
    "text": _GAUGE,
    METER: _RATES,
    PERCENT: _RATES,
    "histogram": _DISTRIBUTION,
    "timer": _DISTRIBUTION,
}
_LONGEST_NAME = 240


class CsvReporter(Loop):
    """Appends a line to each file every ``seconds``. The directory is made if it is missing."""

    def __init__(self, runtime: Runtime, registry: Registry, directory: str, seconds: int) -> None:
        super().__init__(runtime, "metrics-csv-reporter", self._step)
        self._registry = registry
        self._directory = directory
        self._seconds = seconds

    def _step(self) -> None:
        if not self.stopping.wait(self._seconds):
            self.report()

    def report(self) -> None:
        """Append one line for every series. An error is logged, and the next report tries again."""
        at = int(self._registry.age)
        try:
            os.makedirs(self._directory, exist_ok=True)
            for metric, piece in self._registry.pieces():
                lines = [
                    (file_name(series), _row(at, metric, series, self._registry.age))
                    for series in piece
                ]
                self._runtime.blocking(_append, self._directory, _COLUMNS[metric.kind], lines)
        except OSError as error:
            logger.error("Metrics cannot be written below kafka.csv.metrics.dir: %s", error)


def file_name(series: Series) -> str:
    """The bean's type, name and tags, without what a file's name cannot have."""
    _, _, rest = series.bean.partition(":")
    parts = [each.partition("=")[2] for each in rest.split(",")]
    return re.sub(r"[^A-Za-z0-9._-]", "_", "-".join(filter(None, parts)))[:_LONGEST_NAME] + ".csv"


def _row(at: int, metric: Metric, series: Series, age: float) -> list[object]:
    found = jmx.attributes(series, age)
    return [at, *(found[attribute] for attribute in _COLUMNS[metric.kind].values())]


def _append(
    directory: str, columns: dict[str, str], lines: Iterable[tuple[str, list[object]]]
) -> None:
    for name, row in lines:
        with open(os.path.join(directory, name), "a", encoding="utf-8") as file:
            if not file.tell():
                file.write(f"# time,{','.join(columns)}\n")
            csv.writer(file, lineterminator="\n").writerow(row)
