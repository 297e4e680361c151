"""The end at a later release, around a stand-in for confluent-kafka."""

from __future__ import annotations

import sys
import types
from typing import Any, NamedTuple

import pytest

from kafka08.consumer.filters import Blacklist, Whitelist
from tests.fakes.runtime import FakeClock
from tools.mirror.modern import ModernError, ModernReader, ModernTarget, Taken
from tools.mirror.pipeline import Window


class Error:
    def __init__(self, text: str, fatal: bool = False) -> None:
        self._text = text
        self._fatal = fatal

    def str(self) -> Any:
        return self._text

    def fatal(self) -> bool:
        return self._fatal


class ForeignMessage:
    def __init__(self, topic: str, partition: int, offset: int, error: Error | None = None) -> None:
        self._values = (topic, partition, offset, error)

    def topic(self) -> str:
        return self._values[0]

    def partition(self) -> int:
        return self._values[1]

    def offset(self) -> int:
        return self._values[2]

    def error(self) -> Error | None:
        return self._values[3]

    def key(self) -> bytes:
        return b"k"

    def timestamp(self) -> tuple[int, int]:
        return 1, 1234

    def headers(self) -> list[tuple[str, bytes]] | None:
        return [("a", b"1")] if self.offset() % 2 else None

    def value(self) -> bytes:
        return b"v"


class Place(NamedTuple):
    topic: str
    partition: int
    offset: int = -1


class Consumer:
    made: list[Consumer] = []

    def __init__(self, settings: dict[str, Any], logger: Any) -> None:
        self.settings = settings
        self.polled: list[Any] = []
        self.committed: list[list[Place]] = []
        self.subscribed: list[list[str]] = []
        self.closed = False
        self.made.append(self)

    def list_topics(self, timeout: float) -> Any:
        names = dict.fromkeys(("a", "b", "__consumer_offsets"))
        return types.SimpleNamespace(topics=names)

    def subscribe(self, topics: list[str], **callbacks: Any) -> None:
        self.subscribed.append(topics)
        self.callbacks = callbacks
        callbacks["on_assign"](self, [Place("a", 0), Place("a", 1)])

    def poll(self, timeout: float) -> Any:
        step = self.polled.pop(0)
        return step() if callable(step) else step

    def commit(self, offsets: list[Place], asynchronous: bool) -> None:
        self.committed.append(offsets)

    def close(self) -> None:
        self.closed = True


class KafkaException(Exception):
    pass


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("confluent_kafka")
    vars(module).update(
        Consumer=Consumer, Producer=Producer, KafkaException=KafkaException, TopicPartition=Place
    )
    monkeypatch.setitem(sys.modules, "confluent_kafka", module)
    return module


def reader(topics: Any = None) -> tuple[ModernReader, Window, Consumer, FakeClock]:
    window, clock = Window(10, lambda error: None), FakeClock(0.0)
    made = ModernReader(
        {"group.id": "g"},
        topics or Whitelist("a"),
        window,
        commit_interval_ms=1000,
        clock=clock.monotonic,
    )
    return made, window, Consumer.made[-1], clock


def test_reads_and_commits_what_was_acknowledged() -> None:
    made, window, consumer, clock = reader()
    assert consumer.settings["enable.auto.commit"] == "false"
    consumer.polled = [None, ForeignMessage("a", 0, 5)]
    assert made.has_next()
    taken = window.take(made)
    assert taken is not None
    assert (taken[0].offset, taken[0].key, taken[0].value) == (5, b"k", b"v")
    clock.now = 2.0
    consumer.polled = [ForeignMessage("a", 1, 7)]
    assert made.has_next()
    assert consumer.committed == []
    taken[1](None)
    clock.now = 4.0
    consumer.polled = [ForeignMessage("a", 1, 8)]
    assert made.has_next()
    assert consumer.committed == [[Place("a", 0, 6)]]


def test_partitions_that_are_given_to_others() -> None:
    made, window, consumer, _ = reader()
    consumer.polled = [ForeignMessage("a", 0, 5)]
    made.has_next()
    taken = window.take(made)
    assert taken is not None
    taken[1](None)
    consumer.polled = [ForeignMessage("a", 0, 6)]
    made.has_next()
    consumer.callbacks["on_revoke"](consumer, [Place("a", 0)])
    assert consumer.committed == [[Place("a", 0, 6)]]
    assert window.take(made) is None


def test_partitions_that_are_lost_are_not_committed() -> None:
    made, window, consumer, _ = reader()
    consumer.polled = [ForeignMessage("a", 0, 5)]
    made.has_next()
    taken = window.take(made)
    assert taken is not None
    taken[1](None)
    consumer.callbacks["on_lost"](consumer, [Place("a", 0)])
    window.stop()
    assert not made.has_next()
    made.close()
    assert consumer.committed == []
    assert consumer.closed


def test_filters_pass_over_internal_topics() -> None:
    made, _, consumer, _ = reader(Blacklist("a"))
    consumer.polled = [ForeignMessage("b", 0, 0)]
    made.has_next()
    assert consumer.subscribed == [["b"]]


def test_errors(caplog: pytest.LogCaptureFixture) -> None:
    made, _, consumer, _ = reader()
    passing = ForeignMessage("a", 0, 0, Error("broker down"))
    consumer.polled = [passing, ForeignMessage("a", 0, 0, Error("fenced", fatal=True))]
    with pytest.raises(ModernError, match="fenced"):
        made.has_next()
    assert "broker down" in caplog.text


class Producer:
    made: list[Producer] = []

    def __init__(self, settings: dict[str, Any], logger: Any) -> None:
        self.settings = settings
        self.full = 1
        self.produced: list[tuple[Any, ...]] = []
        self.made.append(self)

    def poll(self, timeout: float) -> None: ...

    def produce(self, topic: str, value: Any, key: Any, on_delivery: Any, **extra: Any) -> None:
        if self.full:
            self.full -= 1
            raise BufferError
        self.produced.append((topic, value, key, on_delivery, extra))

    def flush(self, timeout: float) -> None: ...


def test_target() -> None:
    target = ModernTarget({"bootstrap.servers": "h:1", "key.serializer": "x"})
    producer = Producer.made[-1]
    assert producer.settings["enable.idempotence"] == "true"
    assert "key.serializer" not in producer.settings
    ended: list[Any] = []
    target.send(Taken("t", 0, b"k", b"v", -1, ()), b"k", ended.append)
    [(topic, value, key, delivered, extra)] = producer.produced
    assert (topic, value, key, extra) == ("t", b"v", b"k", {})
    delivered(None, None)
    delivered(Error("too large"), None)
    assert ended[0] is None
    assert str(ended[1]) == "t: too large"
    target.close(0)
    with pytest.raises(ModernError):
        target.send(Taken("t", 0, None, None, -1, ()), None, ended.append)


def test_target_keeps_timestamps_and_headers() -> None:
    target = ModernTarget({"bootstrap.servers": "h:1"})
    headers = (("a", b"1"), ("a", None))
    target.send(Taken("t", 0, None, b"v", 1234, headers), None, lambda error: None)
    [(*_, extra)] = Producer.made[-1].produced
    assert extra == {"timestamp": 1234, "headers": list(headers)}
    target.close(0)


def test_target_with_fewer_acks() -> None:
    target = ModernTarget({"acks": "1"})
    assert "enable.idempotence" not in Producer.made[-1].settings
    target.close(0)


def test_all_messages_are_read_unless_the_file_says_otherwise() -> None:
    _, window, consumer, _ = reader()
    assert consumer.settings["isolation.level"] == "read_uncommitted"
    given = {"group.id": "g", "isolation.level": "read_committed"}
    ModernReader(given, Whitelist("a"), window, commit_interval_ms=1000)
    assert Consumer.made[-1].settings["isolation.level"] == "read_committed"
