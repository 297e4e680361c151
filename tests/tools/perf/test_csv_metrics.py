from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.runtime import FakeClock
from tools.perf.csv_metrics import CsvReporter, Meter


def test_meter() -> None:
    clock = FakeClock(100.0)
    meter = Meter(clock.monotonic)
    assert meter.line() == "0,0.0,0.0,0.0,0.0\n"
    meter.mark(10)
    meter.mark()
    clock.now += 5
    count, one, mean, five, fifteen = map(float, meter.line().split(","))
    assert (count, mean) == (11, 2.2)
    assert one == five == fifteen == 2.2
    clock.now += 60
    count, one, mean, five, fifteen = map(float, meter.line().split(","))
    assert (count, mean) == (11, 11 / 65)
    # A minute without events: e to the power of -1, of -1/5, of -1/15.
    assert (one, five, fifteen) == pytest.approx((0.809, 1.801, 2.058), abs=0.001)


def test_files_are_those_of_the_original(tmp_path: Path) -> None:
    clock = FakeClock(100.0)
    directory = tmp_path / "metrics"
    directory.mkdir()
    (directory / "old.csv").write_text("")
    meters = {"BytesPerSec": Meter(clock.monotonic)}
    reporter = CsvReporter(
        str(directory), 1.0, meters=meters, gauges=lambda: {"in-flight": 2.5}, clock=clock.monotonic
    )
    for seconds in (1.5, 1.0):
        clock.now += seconds
        reporter.report()
    clock.now += 1
    reporter.close()
    assert sorted(path.name for path in directory.iterdir()) == ["BytesPerSec.csv", "in-flight.csv"]
    lines = (directory / "BytesPerSec.csv").read_text().splitlines()
    assert lines == [
        "# time,count,1 min rate,mean rate,5 min rate,15 min rate",
        "1,0,0.0,0.0,0.0,0.0",
        "2,0,0.0,0.0,0.0,0.0",
        "3,0,0.0,0.0,0.0,0.0",
    ]
    text = (directory / "in-flight.csv").read_text()
    assert text == "# time,value\n1,2.5\n2,2.5\n3,2.5\n"


def test_reports_until_it_is_closed(tmp_path: Path) -> None:
    reporter = CsvReporter(str(tmp_path / "m"), 3600, meters={"M": Meter()}).start()
    reporter.close()
    assert len((tmp_path / "m" / "M.csv").read_text().splitlines()) == 2
