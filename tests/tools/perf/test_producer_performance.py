"""kafka-producer-perf-test without servers: payloads, keys, errors."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from tools.options import UsageError
from tools.perf import producer_performance
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
