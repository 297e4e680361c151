from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kafka08.errors import ConfigError
from kafka08.producer import logging_handler
from kafka08.producer.errors import BufferExhaustedError, MetadataTimeoutError, WaitTimeoutError
from kafka08.producer.logging_handler import KafkaLoggingHandler


class Future:
    def __init__(self, error: Exception | None, done: bool = True) -> None:
        self._error = error
        self._done = done

    def done(self) -> bool:
        return self._done

    def exception(self, timeout: float | None = None) -> Exception | None:
        return self._error

    def result(self, timeout: float | None = None) -> None:
        if self._error is not None:
            raise self._error


class FakeProducer:
    """``refuse``: raised by send. ``fail``: what futures end with. ``later``: callbacks kept."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.sent: list[tuple[str, str]] = []
        self.refuse: Exception | None = None
        self.fail: Exception | None = None
        self.later: list[Any] = []
        self.while_sending: list[Any] = []
        self.closed: list[float] = []

    def send(self, topic: str, value: bytes, callback: Any = None) -> Future:
        for call in self.while_sending:
            call()
        if self.refuse is not None:
            raise self.refuse
        if self.fail is None:
            self.sent.append((topic, value.decode()))
        if callback is not None:
            self.later.append(callback)
        return Future(self.fail)

    def flush(self, timeout: float) -> None:
        raise WaitTimeoutError

    def close(self, timeout: float) -> None:
        self.closed.append(timeout)


class Bench:
    def __init__(self) -> None:
        self.producers: list[FakeProducer] = []
        self.now = 100.0
        self.log = logging.Logger("app")

    def make(self, settings: dict[str, Any]) -> FakeProducer:
        self.producers.append(FakeProducer(settings))
        return self.producers[-1]

    def handler(self, **options: Any) -> KafkaLoggingHandler:
        options = {"topic": "logs", "broker_list": "b0:9090", **options}
        handler = KafkaLoggingHandler(
            **options, make_producer=self.make, monotonic=lambda: self.now
        )
        self.log.addHandler(handler)
        return handler

    @property
    def texts(self) -> list[str]:
        return [text for producer in self.producers for _, text in producer.sent]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    bench = Bench()
    yield bench
    for handler in bench.log.handlers:
        handler.close()


def test_records_are_shipped_as_formatted(bench: Bench) -> None:
    handler = bench.handler(properties={"linger.ms": 5})
    assert bench.producers == []  # none before the first record
    bench.log.warning("größe %d", 1)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    bench.log.error("\udc80")
    assert bench.producers[0].sent == [("logs", "größe 1"), ("logs", "ERROR \\udc80")]
    assert bench.producers[0].settings["linger.ms"] == 5
    assert len(bench.producers) == 1
    handler.flush()
    handler.close()
    assert bench.producers[0].closed == [5.0]


def test_the_appenders_options(bench: Bench) -> None:
    options = {"brokerList": "a:1", "compressionType": "gzip", "requiredNumAcks": -1}
    bench.handler(broker_list=None, syncSend="true", **options)
    bench.log.warning("x")
    settings = bench.producers[0].settings
    assert settings["bootstrap.servers"] == "a:1"
    assert settings["compression.type"] == "gzip"
    assert settings["acks"] == -1
    assert bench.producers[0].later == []  # waited for, so no callback


@pytest.mark.parametrize(
    "bad",
    [
        {"topic": None},
        {"broker_list": None},
        {"compression_type": "zip"},
        {"brokers": "a:1"},
        {"properties": {"acks": "some"}},
    ],
)
def test_bad_options_are_refused_when_it_is_made(bench: Bench, bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        bench.handler(**bad)


@pytest.mark.parametrize("sync", [False, True])
def test_what_cannot_be_shipped_is_dropped_counted_and_told(bench: Bench, sync: bool) -> None:
    handler = bench.handler(sync_send=sync)
    bench.log.warning("one")
    producer = bench.producers[0]
    producer.refuse = BufferExhaustedError()
    bench.log.warning("lost")
    producer.refuse = None
    bench.log.warning("lost too: nobody waits again so soon")
    assert handler.dropped == 2
    bench.now += 10.1
    bench.log.warning("two")
    bench.log.warning("three")
    assert bench.texts == [
        "one",
        "2 log records were dropped: Kafka could not be reached in time",
        "two",
        "three",
    ]
    assert handler.dropped == 2


@pytest.mark.parametrize("sync", [False, True])
def test_a_future_that_failed_counts_once(bench: Bench, sync: bool) -> None:
    handler = bench.handler(sync_send=sync)
    bench.log.warning("one")
    bench.producers[0].fail = MetadataTimeoutError()
    bench.log.warning("lost")
    assert handler.dropped == 1


def test_failures_later_on_count_too(bench: Bench) -> None:
    handler = bench.handler()
    bench.log.warning("one")
    producer = bench.producers[0]
    with handler.lock:  # type: ignore[union-attr]  # another thread holds the lock
        thread = threading.Thread(target=producer.later[0], args=(None, MetadataTimeoutError()))
        thread.start()
        thread.join(10)
    assert handler.dropped == 1
    bench.log.warning("two")
    producer.later[1](None, MetadataTimeoutError())  # the report itself was lost
    bench.log.warning("three")
    told = "1 log records were dropped: Kafka could not be reached in time"
    assert bench.texts == ["one", told, "two", told, "three"]


def test_nothing_logged_while_shipping_is_shipped(bench: Bench) -> None:
    bench.handler()
    bench.log.warning("first")
    bench.producers[0].while_sending.append(lambda: bench.log.warning("within"))
    bench.log.warning("second")
    for name in ("kafka.producer.X", "org.apache.kafka.clients.producer.X", "kafka.client.X"):
        bench.log.handle(logging.LogRecord(name, logging.ERROR, "", 0, "own", (), None))
    thread = threading.Thread(
        name="kafka-producer-network-thread-0", target=bench.log.warning, args=("own task",)
    )
    thread.start()
    thread.join(10)
    assert bench.texts == ["first", "second"]


def test_a_forked_child_gets_a_producer_of_its_own(bench: Bench) -> None:
    handler = bench.handler()
    bench.log.warning("parent")
    handler._making.acquire()  # by a task that is not in the child
    handler._counting.acquire()
    logging_handler._forked()
    handler.flush()
    bench.log.warning("child")
    assert [producer.sent for producer in bench.producers] == [
        [("logs", "parent")],
        [("logs", "child")],
    ]


def test_nobody_waits_for_another(bench: Bench) -> None:
    """While one task waits for its record, the others ship theirs."""
    bench.handler()
    bench.log.warning("first")
    inside, go = threading.Event(), threading.Event()

    def wait() -> None:
        if threading.current_thread() is slow:
            inside.set()
            go.wait(10)

    slow = threading.Thread(target=bench.log.warning, args=("slow",))
    bench.producers[0].while_sending.append(wait)
    slow.start()
    assert inside.wait(10)
    bench.log.warning("quick")
    assert bench.texts == ["first", "quick"]
    go.set()
    slow.join(10)
    assert bench.texts == ["first", "quick", "slow"]


def test_filters_are_asked(bench: Bench) -> None:
    handler = bench.handler()
    handler.addFilter(lambda record: "secret" not in record.getMessage())
    bench.log.warning("a secret")
    bench.log.warning("fine")
    assert bench.texts == ["fine"]


def test_a_record_that_cannot_be_formatted_harms_nobody(bench: Bench) -> None:
    handler = bench.handler()
    bench.log.warning("%d", "no number")
    bench.log.warning("fine")
    assert bench.texts == ["fine"]
    assert handler.dropped == 0
