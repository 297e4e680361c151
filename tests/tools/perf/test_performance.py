"""The performance tools without servers: usage, payloads, statistics."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest

from tools.options import UsageError
from tools.perf import end_to_end_latency, new_producer_performance, producer_performance
from tools.perf.end_to_end_latency import summary
from tools.perf.new_producer_performance import Stats, Throttle
from tools.perf.perf_options import perf_options
from tools.perf.producer_performance import Payloads, Sending


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("perf.producer_performance", "topics"),
        ("perf.consumer_performance", "topic"),
        ("perf.simple_consumer_performance", "topic"),
        ("mirror.replay_log_producer", "broker-list"),
    ],
)
def test_required(name: str, missing: str) -> None:
    with pytest.raises(UsageError, match=rf'Missing required argument "\[{missing}\]"'):
        importlib.import_module(f"tools.{name}").main([])


@pytest.mark.parametrize("module", [end_to_end_latency, new_producer_performance])
def test_positional_usage(module: Any, capsys: Any) -> None:
    assert module.main(["a"]) == 1
    assert capsys.readouterr().err.startswith("USAGE: java ")


@pytest.mark.parametrize("words", [["x"], ["1", "x"], ["1", "1", "x"]])
def test_numbers_that_are_none(words: list[str]) -> None:
    argv = ["t", *words, *["1"] * (3 - len(words))]
    with pytest.raises(new_producer_performance.NumberError, match='For input string: "x"'):
        new_producer_performance.main(argv)


@pytest.mark.parametrize("word", ["acks", "acks=", "a=b=c"])
def test_properties_that_are_none(word: str) -> None:
    with pytest.raises(new_producer_performance.ArgumentError, match="Invalid property"):
        new_producer_performance.main(["t", "1", "1", "-1", word])


def payloads(*argv: str, thread: int = 0, first: int = 0) -> Payloads:
    parser = producer_performance.PARSER
    args = parser.parse(list(argv))
    return Payloads(args, perf_options(parser, args), thread, first)


def test_payloads() -> None:
    assert payloads("--message-size", "3")("t", 5) == b"\0\0\0"
    tagged = payloads("--initial-message-id", "7", "--message-size", "60", thread=2, first=100)
    text = b"Topic:t:ThreadID:2:MessageID:0000000108:"
    assert tagged("t", 1) == text + b"x" * (60 - len(text))
    sizes = {len(payloads("--vary-message-size", "--message-size", "4")("t", 0)) for _ in range(99)}
    assert sizes == {1, 2, 3, 4}


class Sender:
    def __init__(self, fails_at: int) -> None:
        self.sent: list[tuple[str, bytes, bytes]] = []
        self.closed = False
        self._fails_at = fails_at

    def send(self, topic: str, key: bytes, value: bytes) -> None:
        if len(self.sent) == self._fails_at:
            self._fails_at = -1
            raise OSError("away")
        self.sent.append((topic, key, value))

    def metrics(self) -> dict[str, float]:
        return {}

    def close(self) -> None:
        self.closed = True


def test_sending_goes_on_after_errors(caplog: pytest.LogCaptureFixture) -> None:
    sender: Any = Sender(fails_at=3)
    sending = Sending(sender, ["a", "b"], 300, lambda topic, number: b"xy", 0)
    sending.run()
    assert sender.closed
    assert (sending.messages.count, sending.bytes.count) == (599, 1198)
    assert [key for topic, key, _ in sender.sent if topic == "a"][127:129] == [b"\x7f", b"\0\x80"]
    assert "Error when sending message" in caplog.text


def test_statistics_of_the_new_producer() -> None:
    stats = Stats(4, 100.0)
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
    throttle = Throttle(1000)
    for _ in range(10):
        throttle.turn()
    assert sum(slept) == pytest.approx(0.01)
    assert min(slept) >= 0.002
    unlimited = Throttle(-1)
    slept.clear()
    unlimited.turn()
    assert not slept


def test_latency_summary() -> None:
    assert summary([1.9, 2.1, 8.0]) == (
        "Avg latency: 4.0000 ms\n\nPercentiles: 50th = 2, 99th = 8, 99.9th = 8"
    )
    assert "NaN" in summary([])


def test_no_progress_bar_without_a_terminal(capsys: Any) -> None:
    from tools.perf.perf_options import run_threads

    assert not sys.stderr.isatty()
    begin, end = run_threads([lambda: None], lambda: 1, 1, "t")
    assert begin <= end
    assert capsys.readouterr().err == ""
