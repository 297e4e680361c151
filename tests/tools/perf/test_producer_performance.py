"""kafka-producer-perf-test without servers: payloads, keys, errors."""

from __future__ import annotations

import importlib

import pytest

from kafka08.errors import NotLeaderForPartitionError
from kafka08.producer.errors import ProducerClosedError
from tests.producer.fake_producer import ProducerDriver, failing
from tools.options import UsageError
from tools.perf import producer_performance
from tools.perf.perf_options import perf_options
from tools.perf.producer_performance import NewSender, Payloads, Sending


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


def test_sending_goes_on_after_errors(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    driver = ProducerDriver(retries=0)
    driver.cluster.create("a", 1)
    driver.cluster.create("b", 1)
    driver.cluster.script = failing(0, 0, 0, NotLeaderForPartitionError.code)
    driver.runtime.while_waiting = [driver.run] * 700
    monkeypatch.setattr(
        producer_performance, "KafkaProducer", lambda given, **settings: driver.producer
    )
    parser = producer_performance.PARSER
    args = parser.parse(["--broker-list", "b0:9090", "--sync"])
    sender = NewSender(args, perf_options(parser, args))
    sending = Sending(sender, ["a", "b"], 300, lambda topic, number: b"xy", 0)
    sending.run()
    assert (sending.messages.count, sending.bytes.count) == (599, 1198)
    keys = [message.key for message in driver.cluster.messages("a", 0)]
    assert keys[127:129] == [b"\x7f", b"\0\x80"]
    assert "Error when sending message" in caplog.text
    with pytest.raises(ProducerClosedError):
        sender.send("a", b"k", b"v")
