"""ProducerPerformance of the new producer without servers: usage, statistics, throttle."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.admin import InvalidArgumentError
from kafka08.settings.settings import NumberFormatError
from tools.perf import end_to_end_latency, new_producer_performance
from tools.perf.new_producer_performance import SendStats, ThroughputThrottler


@pytest.mark.parametrize("module", [end_to_end_latency, new_producer_performance])
def test_positional_usage(module: Any, capsys: Any) -> None:
    assert module.main(["a"]) == 1
    assert capsys.readouterr().err.startswith("USAGE: java ")


@pytest.mark.parametrize("words", [["x"], ["1", "x"], ["1", "1", "x"]])
def test_numbers_that_are_none(words: list[str]) -> None:
    argv = ["t", *words, *["1"] * (3 - len(words))]
    with pytest.raises(NumberFormatError, match='For input string: "x"'):
        new_producer_performance.main(argv)


@pytest.mark.parametrize("word", ["acks", "acks=", "a=b=c"])
def test_properties_that_are_none(word: str) -> None:
    with pytest.raises(InvalidArgumentError, match="Invalid property"):
        new_producer_performance.main(["t", "1", "1", "-1", word])


def test_statistics_of_the_new_producer() -> None:
    stats = SendStats(4, 100.0)
    assert stats.record(1, 1 << 20, 101.0) is None
    assert stats.record(3, 1 << 20, 105.0) == (
        "2 records sent, 0.4 records/sec (0.40 MB/sec), 2.0 ms avg latency, 3.0 max latency."
    )
    stats.record(8, 1 << 20, 106.0)
    assert stats.total(106.0) == (
        "3 records sent, 0.500000 records/sec (0.50 MB/sec), 4.00 ms avg latency, "
        "8.00 ms max latency, 3 ms 50th, 8 ms 95th, 8 ms 99th, 8 ms 99.9th."
    )


def test_throttle(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(new_producer_performance.time, "sleep", slept.append)
    throttle = ThroughputThrottler(1000)
    for _ in range(10):
        throttle.turn()
    assert sum(slept) == pytest.approx(0.01)
    assert min(slept) >= 0.002
    unlimited = ThroughputThrottler(-1)
    slept.clear()
    unlimited.turn()
    assert not slept
