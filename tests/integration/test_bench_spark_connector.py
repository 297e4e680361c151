"""The benchmark beside Spark's connector: what its options choose, and how jobs become rows."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from integration.bench.spark_connector import Bench, arguments, some


def test_words_choose_by_their_first_letters() -> None:
    assert some(["batch", "stream", "sink"], "sink+ba") == ["batch", "sink"]
    assert some(["local[2]", "local-cluster[2,1,1024]"], "local-") == ["local-cluster[2,1,1024]"]
    with pytest.raises(argparse.ArgumentTypeError, match="rows is not among batch stream"):
        some(["batch", "stream"], "rows")


def test_a_short_run() -> None:
    args = arguments(["--cases", "peak", "--brokers", "ours", "--queries", "1,2", "--sizes", "100"])
    assert (args.cases, args.brokers, args.queries, args.sizes) == (
        ["peak"],
        ["ours"],
        [1, 2],
        [100],
    )


def test_rounds_of_all_pairs_are_one_row(capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench(arguments([]), Path("python"), Path("nowhere"))
    for kind, rates in [("kafka08", [3.0, 4.0]), ("connector", [2.0]), ("kafka08", [5.0])]:
        bench.note(kind, "100 B", [("batch", "k rows/s", True, rates)])
    (row,) = bench.rows.values()
    assert row.name == "batch, 100 B"
    assert row.values == {"kafka08": [3.0, 4.0, 5.0], "connector": [2.0]}
    assert "kafka08, batch, 100 B: [5.0] k rows/s" in capsys.readouterr().err
