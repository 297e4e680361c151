"""--csv-reporter-enabled: a file per metric that gains a line every few seconds.

Names, headers and columns are those of kafka.metrics.KafkaCSVMetricsReporter, which stops at the
first name that two of the original's metrics share; here each name is written. Knows no client.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from kafka08.metrics.csv_reporter import CsvReporter
from kafka08.metrics.meters import Meter
from kafka08.metrics.registry import GAUGE, METER, Metric, Registry, Tags, one
from kafka08.runtime import Runtime, ThreadRuntime
from tools.options import Arguments
from tools.shutdown import at_end

DIRECTORY = "kafka_metrics"
CSV_OPTIONS = f"""
--csv-reporter-enabled  Write metrics as CSV files.
--metrics-dir <metrics dictory>  Where the CSV files go, instead of {DIRECTORY}; it is emptied
    first.
"""
Gauges = Callable[[], Mapping[str, float]]


@contextmanager
def csv_metrics(
    args: Arguments,
    period_s: int,
    meters: Mapping[str, Callable[[], Meter]],
    gauges: Gauges = dict,
    runtime: Runtime | None = None,
) -> Iterator[None]:
    """While the block runs and once more at its end, write metrics, if the options say so.

    ``meters`` and ``gauges`` are read at each line, by name.
    """
    if not args.has("csv-reporter-enabled"):
        yield
        return
    directory = str(args.value("metrics-dir") or DIRECTORY)
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    runtime = runtime or ThreadRuntime()
    registry = _registry(runtime, meters, gauges)
    reporter = CsvReporter(runtime, registry, directory, period_s)

    def close() -> None:
        registry.stop()
        reporter.stop()
        reporter.report()

    registry.start()
    reporter.start()
    with at_end(close):
        yield


def _registry(
    runtime: Runtime, meters: Mapping[str, Callable[[], Meter]], gauges: Gauges
) -> Registry:
    def values() -> Iterable[tuple[Tags, float]]:
        return [((name,), value) for name, value in gauges().items()]

    registry = Registry(runtime)
    for name, read in meters.items():
        registry.add(Metric(f"kafka.tools:name={name}", METER, name, ""), one(read))
    registry.add(Metric("kafka.tools:type=", GAUGE, "gauges", "", ("name",)), values)
    return registry
