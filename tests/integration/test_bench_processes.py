"""Whose memory and CPU time the Spark benchmark counts, over directories that stand for /proc."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from integration.bench import processes
from integration.bench.processes import DRIVER, EXECUTOR, PLANNER, PYTHON, Peak, usage

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


def process(proc: Path, number: int, parent: int, command: str, pages: int, pss: int = 0) -> None:
    directory = proc / str(number)
    directory.mkdir(exist_ok=True)
    fields = ["S", str(parent), *["0"] * 9, *[str(TICKS)] * 4]
    (directory / "stat").write_text(f"{number} (a) b) {' '.join(fields)}\n")
    (directory / "statm").write_text(f"9999 {pages} 1 1 0 1 0\n")
    (directory / "cmdline").write_bytes(command.replace(" ", "\0").encode())
    (directory / "smaps_rollup").write_text(
        f"0-1 [rollup]\nRss: 7 kB\nPss: {pss} kB\nPss_Dirty: 9 kB\n"
    )


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "self").mkdir()
    process(tmp_path, 1, 0, "init", 5000)
    process(tmp_path, 10, 1, "python job.py", 10, 3)
    process(tmp_path, 11, 10, "java org.apache.spark.deploy.SparkSubmit", 100, 80)
    process(tmp_path, 12, 11, "python -m pyspark.daemon", 20, 4)
    process(tmp_path, 13, 11, "java x.CoarseGrainedExecutorBackend", 200)
    process(tmp_path, 14, 13, "python -m pyspark.sql.streaming.python_streaming_source_runner", 1)
    process(tmp_path, 20, 1, "python job.py", 4000)
    return tmp_path


def test_processes_by_what_they_are_for(proc: Path) -> None:
    found = usage(10, proc)
    pages = {kind: used.rss // PAGE for kind, used in found.items()}
    assert pages == {PYTHON: 30, DRIVER: 100, EXECUTOR: 200, PLANNER: 1}
    assert found[PYTHON].pss == 7 << 10
    assert found[DRIVER].cpu == 4.0
    assert found[PYTHON].cpu == 8.0


def test_processes_that_end_while_they_are_looked_at(proc: Path) -> None:
    for name in ("statm", "smaps_rollup", "cmdline"):
        (proc / "13" / name).unlink()
    (proc / "14" / "stat").unlink()
    assert EXECUTOR not in usage(10, proc)
    assert PLANNER not in usage(10, proc)


def test_the_peak_is_that_of_the_sum(proc: Path) -> None:
    peak = Peak(10, proc)
    peak.look()
    process(proc, 11, 10, "java org.apache.spark.deploy.SparkSubmit", 50, 90)
    process(proc, 12, 11, "python -m pyspark.daemon", 60, 1)
    peak.look()
    assert peak.rss[DRIVER] == 100 * PAGE
    assert peak.pss[DRIVER] == 90 << 10


def test_a_peak_looks_until_it_is_left(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "INTERVAL_S", 0)
    with Peak(10, proc) as peak:
        while not peak.rss:
            os.sched_yield()
    assert sum(peak.rss.values()) == 331 * PAGE
