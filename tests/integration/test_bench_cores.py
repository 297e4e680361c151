"""The figures of the benchmark of units, from counts."""

from __future__ import annotations

import pytest

from integration.bench.cores import Loaded, report


def test_capacity_is_the_sum_of_what_each_core_serves() -> None:
    one = Loaded(1000, 160_000, 2.0, (0.1,), 0.0)
    two = Loaded(1000, 160_000, 1.0, (0.05, 0.04), 0.01)
    assert one.capacity == pytest.approx(10_000)
    assert two.capacity == pytest.approx(10_000 + 12_500)
    assert one.cpu_for_a_million == pytest.approx(0.625)
    assert two.cpu_for_a_million == pytest.approx(0.625)


def test_least_and_median_of_the_rounds(capsys: pytest.CaptureFixture[str]) -> None:
    report(
        {
            "one broker": [Loaded(100, 16_000, 1.0, (s,), 0.0) for s in (0.02, 0.01, 0.01)],
            "a unit of two": [Loaded(100, 16_000, 1.0, (s, s), 0.0) for s in (0.01, 0.005, 0.01)],
        }
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:6] == [
        "| one broker, least CPU time | 100.0 | 0.62 | 10,000 | 100 | 0.01 |",
        "| one broker, median CPU time | 100.0 | 0.62 | 10,000 | 100 | 0.01 |",
        "| a unit of two, least CPU time | 100.0 | 0.62 | 20,000 | 100 | 0.01 |",
        "| a unit of two, median CPU time | 200.0 | 1.25 | 10,000 | 100 | 0.02 |",
    ]
    assert lines[7] == (
        "a unit of two serves, with a core each, so many times as much as one broker: by the least "
        "CPU time 2.00, by the medians 1.00, in pairs 2.00 (half of them 1.00 to 2.00)."
    )
