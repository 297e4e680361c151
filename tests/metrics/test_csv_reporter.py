from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.metrics.csv_reporter import CsvReporter
from kafka08.metrics.meters import Meter, Timer
from kafka08.metrics.registry import GAUGE, METER, TIMER, Metric, Registry, same
from tests.fakes.runtime import FakeRuntime

BYTES = Metric("k:type=Topics,name=Bytes", METER, "b_total", "x", ("topic",), unit="bytes")
SIZE = Metric("k:type=Log,name=Size", GAUGE, "size", "x", ("topic", "partition"))
TIME = Metric("k:type=Stats,name=Time", TIMER, "t", "x")


@pytest.fixture
def runtime() -> FakeRuntime:
    return FakeRuntime()


@pytest.mark.scenario("ops-17")
def test_each_series_has_a_file_with_the_columns_of_its_kind(
    tmp_path: Path, runtime: FakeRuntime
) -> None:
    registry = Registry(runtime)
    meter, timer = Meter(), Timer()
    registry.add(BYTES, lambda: [(("",), meter), (("a/b",), meter)])
    registry.add(SIZE, lambda: [(("t", "0"), 5)])
    registry.add(TIME, same(timer))
    reporter = CsvReporter(runtime, registry, str(tmp_path / "made" / "here"), 10)
    meter.mark(100)
    for _ in range(2):
        runtime.clock.advance(10)
        reporter.report()
    files = {path.name: path.read_text() for path in (tmp_path / "made" / "here").iterdir()}
    rates = "# time,count,1 min rate,mean rate,5 min rate,15 min rate\n"
    assert files == {
        "Topics-Bytes.csv": f"{rates}10,100,0.0,10.0,0.0,0.0\n20,100,0.0,5.0,0.0,0.0\n",
        "Topics-Bytes-a_b.csv": f"{rates}10,100,0.0,10.0,0.0,0.0\n20,100,0.0,5.0,0.0,0.0\n",
        "Log-Size-t-0.csv": "# time,value\n10,5\n20,5\n",
        "Stats-Time.csv": "# time,min,max,mean,median,stddev,95%,99%,99.9%\n"
        + "10,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0\n20,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0\n",
    }


@pytest.mark.scenario("ops-17")
def test_a_directory_that_cannot_be_written_is_named(
    tmp_path: Path, runtime: FakeRuntime, caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry(runtime)
    registry.add(BYTES, same(Meter()))
    (tmp_path / "file").write_text("")
    CsvReporter(runtime, registry, str(tmp_path / "file" / "x"), 10).report()
    [message] = caplog.messages
    assert message.startswith("Metrics cannot be written below kafka.csv.metrics.dir: ")


@pytest.mark.scenario("ops-17")
def test_it_reports_each_interval(tmp_path: Path, runtime: FakeRuntime) -> None:
    registry = Registry(runtime)
    registry.add(SIZE, lambda: [(("t", "0"), 5)])
    CsvReporter(runtime, registry, str(tmp_path), 10).start()
    runtime.step("csv")
    assert (tmp_path / "Log-Size-t-0.csv").read_text() == "# time,value\n10,5\n"
