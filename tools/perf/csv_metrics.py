"""--csv-reporter-enabled: a file per metric that gains a line every few seconds.

Names, headers and columns are those of kafka.metrics.KafkaCSVMetricsReporter, which stops at the
first name that two of the original's metrics share; here each name is written. Knows no client.
"""

from __future__ import annotations

import math
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tools.options import Arguments

DIRECTORY = "kafka_metrics"
TICK_S = 5.0
METER_HEADER = "# time,count,1 min rate,mean rate,5 min rate,15 min rate\n"
GAUGE_HEADER = "# time,value\n"


CSV_OPTIONS = f"""
--csv-reporter-enabled  Write metrics as CSV files.
--metrics-dir <metrics dictory>  Where the CSV files go, instead of {DIRECTORY}; it is emptied
    first.
"""


class Meter:
    """Counts events; rates a second, the moving ones in steps of five (com.yammer.metrics)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.count = 0
        self._clock = clock
        self._begin = self._ticked = clock()
        self._counted = 0
        self._rates: dict[int, float] | None = None

    def mark(self, events: int = 1) -> None:
        """One thread's, or with a lock."""
        self.count += events

    def _tick(self) -> None:
        while self._clock() - self._ticked >= TICK_S:
            self._ticked += TICK_S
            now = (self.count - self._counted) / TICK_S
            self._counted = self.count
            if self._rates is None:
                self._rates = dict.fromkeys((1, 5, 15), now)
            for minutes, value in self._rates.items():
                alpha = 1 - math.exp(-TICK_S / 60 / minutes)
                self._rates[minutes] = value + alpha * (now - value)

    def line(self) -> str:
        """The columns behind the time."""
        self._tick()
        rates = self._rates or dict.fromkeys((1, 5, 15), 0.0)
        elapsed = self._clock() - self._begin
        mean = self.count / elapsed if self.count else 0.0
        return f"{self.count},{rates[1]},{mean},{rates[5]},{rates[15]}\n"


class CsvReporter:
    """Writes until it is closed, and once more then. The directory is emptied first.

    ``gauges`` are asked at each line for all their values by name.
    """

    def __init__(
        self,
        directory: str,
        period_s: float,
        *,
        meters: dict[str, Meter] | None = None,
        gauges: Callable[[], dict[str, float]] = dict,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = Path(directory)
        shutil.rmtree(self._directory, ignore_errors=True)
        self._directory.mkdir(parents=True)
        self._meters = meters or {}
        self._gauges = gauges
        self._clock = clock
        self._begin = clock()
        self._period_s = period_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="csv-reporter", daemon=True)

    def start(self) -> CsvReporter:
        self._thread.start()
        return self

    def _run(self) -> None:
        while not self._stopping.wait(self._period_s):
            self.report()

    def report(self) -> None:
        """A line to each file."""
        for name, meter in self._meters.items():
            self._append(name, METER_HEADER, meter.line())
        for name, value in self._gauges().items():
            self._append(name, GAUGE_HEADER, f"{value}\n")

    def _append(self, name: str, header: str, line: str) -> None:
        path = self._directory / f"{name}.csv"
        new = not path.exists()
        with path.open("a") as file:
            file.write(f"{header if new else ''}{int(self._clock() - self._begin)},{line}")

    def close(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        self.report()


def csv_directory(args: Arguments) -> str | None:
    """Where metrics are wanted, None if they are not."""
    if not args.has("csv-reporter-enabled"):
        return None
    return str(args.value("metrics-dir") or DIRECTORY)
