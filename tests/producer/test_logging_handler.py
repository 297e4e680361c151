from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka08.errors import ConfigError, NotLeaderForPartitionError
from kafka08.producer import logging_handler
from kafka08.producer.errors import BufferExhaustedError, ProducerClosedError
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.producer.logging_handler import KafkaLoggingHandler
from tests.producer.fake_producer import ProducerDriver, failing


class Bench:
    """A logger, and a driver for each producer that its handlers make. ``during``: called within
    every send, which raises what these raise."""

    def __init__(self) -> None:
        self.drivers: list[ProducerDriver] = []
        self.during: list[Callable[[], Any]] = []
        self.now = 100.0
        self.log = logging.Logger("app")

    def make(self, settings: dict[str, Any]) -> KafkaProducer:
        driver = ProducerDriver(**settings, value_serializer=self.serialize)
        driver.cluster.create("logs", 1)
        driver.runtime.while_waiting = [driver.run] * 20
        self.drivers.append(driver)
        return driver.producer

    def serialize(self, value: bytes) -> bytes:
        for call in self.during:
            call()
        return value

    def handler(self, **options: Any) -> KafkaLoggingHandler:
        options = {"topic": "logs", "broker_list": "b0:9090", **options}
        handler = KafkaLoggingHandler(
            **options, make_producer=self.make, monotonic=lambda: self.now
        )
        self.log.addHandler(handler)
        return handler

    @property
    def texts(self) -> list[str]:
        """The texts that have arrived, once all is sent."""
        for driver in self.drivers:
            driver.pass_time(100)
            driver.run()
        return [text for driver in self.drivers for text in stored(driver)]


def refuse() -> None:
    raise BufferExhaustedError


def stored(driver: ProducerDriver) -> list[str]:
    return [(value or b"").decode() for value in driver.cluster.values("logs", 0)]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    bench = Bench()
    yield bench
    for handler in bench.log.handlers:
        handler.close()


def test_records_are_shipped_as_formatted(bench: Bench) -> None:
    handler = bench.handler(properties={"linger.ms": 5})
    assert bench.drivers == []  # none before the first record
    bench.log.warning("größe %d", 1)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    bench.log.error("\udc80")
    (driver,) = bench.drivers
    assert driver.producer.config.linger_ms == 5
    assert stored(driver) == []
    handler.flush()
    assert stored(driver) == ["größe 1", "ERROR \\udc80"]
    driver.silent = True
    bench.log.warning("too late")
    handler.close()
    assert driver.runtime.slept[-1] == 5.0
    with pytest.raises(ProducerClosedError):
        driver.producer.send("logs", b"x")


def test_the_appenders_options(bench: Bench) -> None:
    options = {"brokerList": "a:1", "compressionType": "gzip", "requiredNumAcks": -1}
    bench.handler(broker_list=None, syncSend="true", **options)
    bench.log.warning("x")
    (driver,) = bench.drivers
    assert stored(driver) == ["x"]  # waited for
    config = driver.producer.config
    assert config.bootstrap_servers == ("a:1",)
    assert config.compression_type == "gzip"
    assert [request.acks for request in driver.produced] == [-1]


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
    bench.during.append(refuse)
    bench.log.warning("lost")
    bench.during.clear()
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
    handler = bench.handler(sync_send=sync, properties={"max.request.size": 100})
    bench.log.warning("one")
    bench.log.warning("lost: larger than a request may be %s", "x" * 100)
    assert handler.dropped == 1
    assert bench.texts == ["one"]


def test_failures_later_on_count_too(bench: Bench) -> None:
    # A request has room for the report alone, so that it fails alone.
    handler = bench.handler(properties={"max.request.size": 110})
    bench.log.warning("one")
    (driver,) = bench.drivers
    driver.cluster.script = failing(NotLeaderForPartitionError.code)
    with handler.lock:  # type: ignore[union-attr]  # another thread holds the lock
        thread = threading.Thread(target=driver.run)
        thread.start()
        thread.join(10)
    assert handler.dropped == 1
    driver.cluster.script = failing(NotLeaderForPartitionError.code)
    bench.log.warning("two")
    assert bench.texts == ["two"]  # the report itself was lost
    bench.log.warning("three")
    told = "1 log records were dropped: Kafka could not be reached in time"
    assert bench.texts == ["two", told, "three"]


def test_nothing_logged_while_shipping_is_shipped(bench: Bench) -> None:
    bench.handler()
    bench.log.warning("first")
    bench.during.append(lambda: bench.log.warning("within"))
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
    logging_handler.after_fork()
    handler.flush()
    bench.log.warning("child")
    assert bench.texts == ["parent", "child"]
    assert [stored(driver) for driver in bench.drivers] == [["parent"], ["child"]]


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
    bench.during.append(wait)
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
