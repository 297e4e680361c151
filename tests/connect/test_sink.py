"""In which order a sink's messages are put, flushed and committed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.client.offsets import CoordinatorOffsets
from kafka08.common import INTERNAL_TOPICS, Broker, TopicPartition
from kafka08.connect.config import SinkConfig
from kafka08.connect.converters import JsonConverter, StringConverter
from kafka08.connect.interface import (
    ConnectError,
    Context,
    DataError,
    RetriableError,
    SinkRecord,
    SinkTask,
)
from kafka08.connect.sink import SinkRunner, Supply, is_mine
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.errors import ConsumerTimeoutError
from kafka08.message.consumed import Message, MessageSource
from kafka08.message.entry import encode_entry
from kafka08.message.sets import iter_messages
from kafka08.protocol import schemas
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime

T = TopicPartition("t", 0)


class StartedFetchers:
    def __init__(self) -> None:
        self.started: dict[TopicPartition, int] = {}

    def start(self, positions: Any) -> None: ...

    def give_back(self, positions: Any) -> None:
        self.started |= {each.tp: each.fetched_offset for each in positions}

    def stop(self) -> None: ...


class Stream:
    def __init__(self) -> None:
        self.messages: list[Message] = []

    def __next__(self) -> Message:
        if not self.messages:
            raise ConsumerTimeoutError()
        return self.messages.pop(0)


class Recording(SinkTask):
    def __init__(self, events: list[Any]) -> None:
        self.events = events
        self.failures: list[Exception] = []
        self.better: dict[TopicPartition, int] = {}

    def open(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        return self.better

    def put(self, records: Sequence[SinkRecord]) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.events.append(("put", [record.value for record in records]))

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.events.append(("flush", dict(offsets)))


class SinkSetup:
    def __init__(self, *, json: bool = False, **config: str) -> None:
        self.events: list[Any] = []
        self.runtime = FakeRuntime()
        self.task = Recording(self.events)
        consumer = ConsumerConfig(group_id="connect-s", zookeeper_connect="")
        kind = JsonConverter if json else StringConverter
        options = {
            key.replace("_", "."): value for key, value in (config or {"topics": "t"}).items()
        }
        self.cluster = FakeCluster([Broker(0, "h", 1)])
        clients: Any = {"runtime": self.runtime, "channel": self.cluster.channel}
        supply = Supply(
            StringConverter({}, "key.converter"),
            kind({}, "value.converter"),
            [("h", 1)],
            ClusterClient([("h", 1)], **clients),
            SinkConfig.from_properties(options),
            consumer,
            (0, 1),
            10.0,
        )
        context = Context("s-0", self.runtime.event())
        self.runner = SinkRunner(supply, self.task, {}, context, self.runtime, self.runtime.event())
        it: Any = self.runner
        self.commit_answer: int | Exception = 0
        self.cluster.script = self._answer
        self.create("t", 2)
        parts = it._consumer
        parts.offsets = CoordinatorOffsets(
            "connect-s", lambda: list(self.cluster.brokers.values()), **clients
        )
        self.fetchers = parts.fetchers = StartedFetchers()
        self.stream = parts.stream = Stream()
        self.runner.begin()

    def send(self, *values: bytes, start: int = 5) -> None:
        source = MessageSource("t", 0)
        for offset, value in enumerate(values, start):
            (raw,) = iter_messages(memoryview(encode_entry(None, value, offset)))
            self.stream.messages.append(Message(source, raw.offset, raw.key, raw.value))

    def create(self, topic: str, partitions: int) -> None:
        """A topic for whose partitions offset 5 is committed."""
        self.cluster.create(topic, partitions)
        for number in range(partitions):
            self.cluster.committed["connect-s", TopicPartition(topic, number)] = 5

    def _answer(self, port: int, request: Any) -> Any:
        """Notes commits, which get ``commit_answer``: a code, or what fails them."""
        if not isinstance(request, schemas.OffsetCommitRequest):
            return None
        if isinstance(self.commit_answer, Exception):
            raise self.commit_answer
        [(topic, parts)] = request.topics
        committed = {TopicPartition(topic, part.partition): part.offset for part in parts}
        self.events.append(("commit", committed))
        entries = [
            schemas.OffsetCommitPartitionResponse(part.partition, self.commit_answer)
            for part in parts
        ]
        return schemas.OffsetCommitResponse([schemas.OffsetCommitTopicResponse(topic, entries)])

    def flush_time(self) -> None:
        self.runtime.clock.now += 11


def test_flushed_before_it_is_committed() -> None:
    it = SinkSetup()
    it.send(b"a", b"b")
    it.runner.step()
    assert it.events == [("put", ["a", "b"])]
    it.flush_time()
    it.runner.step()
    assert it.events[1:] == [("flush", {T: 7}), ("commit", {T: 7})]
    it.flush_time()
    it.runner.step()
    assert len(it.events) == 3  # nothing new


def test_starts_at_committed_offsets_or_where_the_task_knows_better() -> None:
    it = SinkSetup()
    it.task.better = {T: 9}
    it.runner.step()
    assert it.fetchers.started == {T: 9, TopicPartition("t", 1): 5}
    it.create("t", 3)
    it.flush_time()
    it.runner.step()
    assert it.fetchers.started[TopicPartition("t", 2)] == 5


def test_topics_by_regex_without_internal_ones() -> None:
    it = SinkSetup(topics_regex=".*t.*")
    for topic in ("other", *INTERNAL_TOPICS, "x"):
        it.create(topic, 1)
    it.runner.step()
    assert {tp.topic for tp in it.fetchers.started} == {"t", "other"}


def test_what_is_to_be_put_again_is_not_committed_yet() -> None:
    it = SinkSetup()
    it.task.failures = [RetriableError("busy"), RetriableError("busy")]
    it.send(b"a")
    it.runner.step()
    assert it.events == [("put", ["a"])]


def test_stopped_between_two_tries() -> None:
    it = SinkSetup()
    it.task.failures = [RetriableError("busy")] * 9
    it.send(b"a")
    it.runtime.while_waiting = [it.runner.ask_stop]
    it.runner.step()
    it.runner.finish()
    assert it.events == []


def test_a_commit_that_fails_is_repeated() -> None:
    it = SinkSetup()
    it.send(b"a")
    it.commit_answer = ConnectionRefusedError("away")
    it.runner.step()
    it.flush_time()
    it.runner.step()
    assert it.events == [("put", ["a"]), ("flush", {T: 6})]
    it.commit_answer = 16
    it.flush_time()
    it.runner.step()
    it.commit_answer = 0
    it.flush_time()
    it.runner.step()
    assert it.events[2:] == [("commit", {T: 6}), ("commit", {T: 6})]


def test_a_flush_that_fails_commits_nothing() -> None:
    it = SinkSetup()
    it.send(b"a")
    it.runner.step()
    it.task.failures = [ConnectError("disk full")]
    it.flush_time()
    with pytest.raises(ConnectError):
        it.runner.step()
    it.runner.error = ConnectError("disk full")
    it.runner.finish()
    assert it.events == [("put", ["a"])]


def test_the_end_flushes_and_commits() -> None:
    it = SinkSetup()
    it.send(b"a")
    it.runner.step()
    it.runner.finish()
    assert it.events[1:] == [("flush", {T: 6}), ("commit", {T: 6})]


def test_a_message_that_cannot_be_converted_is_named() -> None:
    it = SinkSetup(json=True)
    it.send(b"{", start=12)
    with pytest.raises(DataError, match="offset 12 of t-0"):
        it.runner.step()


def test_each_partition_has_one_task() -> None:
    for tasks in (1, 2, 3):
        for number in range(20):
            tp = TopicPartition("topic", number)
            assert sum(is_mine(tp, (task, tasks)) for task in range(tasks)) == 1
    shares = [sum(is_mine(TopicPartition("x", n), (task, 2)) for n in range(10)) for task in (0, 1)]
    assert shares == [5, 5]
