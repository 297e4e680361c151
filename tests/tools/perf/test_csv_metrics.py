from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.metrics.meters import Meter
from tests.fakes.runtime import FakeRuntime
from tools.options import OptionParser
from tools.perf.csv_metrics import CSV_OPTIONS, csv_metrics

PARSER = OptionParser(None, CSV_OPTIONS)
HEADER = "# time,count,1 min rate,mean rate,5 min rate,15 min rate"


def test_files_are_those_of_the_original(tmp_path: Path) -> None:
    runtime = FakeRuntime()
    directory = tmp_path / "metrics"
    directory.mkdir()
    (directory / "old.csv").write_text("")
    meter = Meter()
    args = PARSER.parse(["--csv-reporter-enabled", "--metrics-dir", str(directory)])
    meters, gauges = {"BytesPerSec": lambda: meter}, {"in-flight": 2.5}
    with csv_metrics(args, 1, meters, lambda: gauges, runtime):
        runtime.step("metrics-csv-reporter")
        meter.mark(10)
        meter.mark()
        runtime.clock.advance(3)
        runtime.step("metrics-csv-reporter")
        runtime.clock.advance(1)
    assert sorted(path.name for path in directory.iterdir()) == ["BytesPerSec.csv", "in-flight.csv"]
    lines = (directory / "BytesPerSec.csv").read_text().splitlines()
    assert lines == [
        HEADER,
        "1,0,0.0,0.0,0.0,0.0",
        "5,11,0.0,2.2,0.0,0.0",
        "6,11,0.0,1.8333333333333333,0.0,0.0",
    ]
    text = (directory / "in-flight.csv").read_text()
    assert text == "# time,value\n1,2.5\n5,2.5\n6,2.5\n"


def test_nothing_is_written_without_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with csv_metrics(PARSER.parse([]), 1, {"M": Meter}):
        pass
    assert list(tmp_path.iterdir()) == []


def test_reports_until_the_block_ends(tmp_path: Path) -> None:
    args = PARSER.parse(["--csv-reporter-enabled", "--metrics-dir", str(tmp_path / "m")])
    with csv_metrics(args, 3600, {"M": Meter}):
        pass
    assert len((tmp_path / "m" / "M.csv").read_text().splitlines()) == 2
