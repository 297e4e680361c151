"""TestEndToEndLatency without servers."""

from __future__ import annotations

from tools.perf.end_to_end_latency import summary


def test_latency_summary() -> None:
    assert summary([1.9, 2.1, 8.0]) == (
        "Avg latency: 4.0000 ms\n\nPercentiles: 50th = 2, 99th = 8, 99.9th = 8"
    )
    assert "NaN" in summary([])
