from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kafka08.common import Broker, TopicPartition
from kafka08.errors import ConfigError
from kafka08.producer.config import ProducerConfig
from kafka08.producer.errors import (
    FailedToSendMessageError,
    ForkedProducerError,
    ProducerClosedError,
    QueueFullError,
)
from kafka08.producer.event_handler import KeyedMessage
from kafka08.producer.producer import Batcher, Producer
from kafka08.producer.serializers import encoder_named, partitioner_named
from kafka08.runtime import ThreadRuntime
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime, WouldBlock


class Handler:
    def __init__(self) -> None:
        self.batches: list[list[Any]] = []

    def handle(self, messages: list[KeyedMessage]) -> None:
        self.batches.append([message.value for message in messages])
        if b"bad" in self.batches[-1]:
            raise RuntimeError("refused")


def config(**settings: Any) -> ProducerConfig:
    return ProducerConfig(metadata_broker_list=("b0:9090",), **settings)


def messages(*values: Any) -> list[KeyedMessage]:
    return [KeyedMessage("t", value) for value in values]


def test_batcher() -> None:
    batcher = Batcher(2, 100, 1000)
    assert batcher.patience_ms(1000) == 100
    assert batcher.patience_ms(1099) == 1
    assert batcher.patience_ms(5000) == 0
    assert not batcher.add(messages(1)[0])
    assert batcher.add(messages(2)[0])
    assert [message.value for message in batcher.take()] == [1, 2]
    assert batcher.take() == []
    batcher.sent(2000)
    assert batcher.patience_ms(2000) == 100


def drained(producer: Producer, runtime: FakeRuntime) -> None:
    """Run the sending task to its end: the end marker is queued behind what was sent."""
    producer.close()
    (task,) = runtime.tasks
    task.run()


@pytest.mark.scenario("client-34")
def test_async_sends_full_batches_and_the_rest_at_close() -> None:
    handler, runtime = Handler(), FakeRuntime()
    producer = Producer(
        config(producer_type="async", batch_num_messages=5), runtime=runtime, handler=handler
    )
    producer.send(*messages(*range(12)))
    assert handler.batches == []
    drained(producer, runtime)
    assert handler.batches == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]


@pytest.mark.scenario("client-34")
def test_async_sends_what_it_has_when_the_time_is_up() -> None:
    handler, runtime = Handler(), FakeRuntime()
    producer = Producer(
        config(producer_type="async", queue_buffering_max_ms=200), runtime=runtime, handler=handler
    )
    producer.send(*messages(1, 2))

    def end(seconds: float) -> None:
        runtime.on_sleep = lambda seconds: producer.close()

    runtime.on_sleep = end
    (task,) = runtime.tasks
    task.run()
    assert handler.batches == [[1, 2]]
    assert runtime.slept[0] == 0.2


def test_async_drops_a_failed_batch_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    handler, runtime = Handler(), FakeRuntime()
    producer = Producer(
        config(producer_type="async", batch_num_messages=1), runtime=runtime, handler=handler
    )
    producer.send(*messages(b"bad", b"good"))
    drained(producer, runtime)
    assert handler.batches == [[b"bad"], [b"good"]]
    assert "Error in handling batch of 1 events" in caplog.text


@pytest.mark.scenario("client-33")
@pytest.mark.parametrize(("timeout_ms", "slept"), [(0, []), (300, [0.3])])
def test_full_queue(timeout_ms: int, slept: list[float]) -> None:
    runtime = FakeRuntime()
    producer = Producer(
        config(
            producer_type="async",
            queue_buffering_max_messages=2,
            batch_num_messages=2,
            queue_enqueue_timeout_ms=timeout_ms,
        ),
        runtime=runtime,
        handler=Handler(),
    )
    with pytest.raises(QueueFullError):
        producer.send(*messages(1, 2, 3, 4))
    assert runtime.slept == slept


@pytest.mark.scenario("client-33")
def test_full_queue_blocks_without_timeout() -> None:
    runtime = FakeRuntime()
    producer = Producer(
        config(producer_type="async", queue_buffering_max_messages=1, batch_num_messages=1),
        runtime=runtime,
        handler=Handler(),
    )
    with pytest.raises(WouldBlock, match="a full queue"):
        producer.send(*messages(1, 2))


def test_threads_drain_before_close_returns() -> None:
    handler = Handler()
    with Producer(
        config(producer_type="async"), runtime=ThreadRuntime(), handler=handler
    ) as producer:
        producer.send(*messages(1, 2))
    assert [value for batch in handler.batches for value in batch] == [1, 2]


class StuckHandler:
    """Begins a batch, and ends it when it is told to."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go = threading.Event()
        self.batches: list[Any] = []

    def handle(self, messages: list[KeyedMessage]) -> None:
        self.begun.set()
        assert self.go.wait(10)
        self.batches.append([message.value for message in messages])


@pytest.fixture
def stuck() -> Iterator[tuple[StuckHandler, Producer]]:
    """Message 1 is being sent, and the queue, which has room for one, is empty."""
    handler = StuckHandler()
    settings = config(producer_type="async", queue_buffering_max_messages=1, batch_num_messages=1)
    producer = Producer(settings, handler=handler)
    producer.send(*messages(1))
    assert handler.begun.wait(10)
    yield handler, producer
    handler.go.set()


def test_close_with_a_timeout_drops_what_is_left(
    stuck: tuple[StuckHandler, Producer], caplog: pytest.LogCaptureFixture
) -> None:
    handler, producer = stuck
    producer.send(*messages(2))
    producer.close(0.05)
    assert "Closed with 1 messages unsent" in caplog.text
    assert producer.metrics()["DroppedMessagesPerSec.Count"] == 1
    handler.go.set()
    assert producer._task is not None and producer._task.join(10)
    assert handler.batches == [[1]]


def test_close_with_a_timeout_that_suffices(stuck: tuple[StuckHandler, Producer]) -> None:
    handler, producer = stuck
    producer.send(*messages(2))
    handler.go.set()
    producer.close(10)
    assert handler.batches == [[1], [2]]


def test_close_with_a_timeout_wakes_who_waits_for_room(
    stuck: tuple[StuckHandler, Producer],
) -> None:
    _, producer = stuck
    raised: list[Exception] = []

    def send() -> None:
        try:
            producer.send(*messages(2, 3, 4, 5))
        except ProducerClosedError as error:
            raised.append(error)

    sender = threading.Thread(target=send)
    sender.start()
    while producer.metrics()["ProducerQueueSize"] == 0:
        sender.join(0.01)
    producer.close(0.05)
    sender.join(10)
    assert len(raised) == 1


def test_a_forked_child_is_told_to_make_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = Producer(config(), runtime=FakeRuntime(), handler=Handler())
    with monkeypatch.context() as child:
        child.setattr("os.getpid", lambda: -1)
        with pytest.raises(ForkedProducerError):
            producer.send(*messages(1))
        producer.close()
    producer.send(*messages(1))


def test_closed_producer_refuses() -> None:
    producer = Producer(config(), runtime=FakeRuntime(), handler=Handler())
    producer.close()
    producer.close()
    with pytest.raises(ProducerClosedError):
        producer.send(*messages(1))


def test_null_topic_is_refused() -> None:
    handler = Handler()
    producer = Producer(config(), runtime=FakeRuntime(), handler=handler)
    nothing: Any = None
    with pytest.raises(TypeError, match="Topic cannot be null"):
        producer.send(KeyedMessage("t", 1), KeyedMessage(nothing, 2))
    assert handler.batches == []


def test_sync_send_with_the_encoders_and_partitioner_of_the_settings() -> None:
    cluster = FakeCluster()
    cluster.create("t", 12)
    settings = config(serializer_class="kafka.serializer.StringEncoder", request_required_acks=-1)
    with Producer(settings, runtime=FakeRuntime(), channel=cluster.channel) as producer:
        producer.send(KeyedMessage("t", "välue", "key"))
    assert cluster.values("t", 11) == ["välue".encode()]


def test_classes_by_name() -> None:
    assert encoder_named("kafka.serializer.NullEncoder")(b"x") is None
    assert encoder_named("kafka.serializer.StringEncoder", "ISO-8859-1")("ü") == b"\xfc"
    assert encoder_named("kafka.serializer.StringEncoder")(None) is None
    assert encoder_named("kafka08.producer.serializers.identity")(b"x") == b"x"
    assert partitioner_named("kafka.producer.ByteArrayPartitioner")(b"key", 12) == 6
    for name in ("com.example.Nope", "nope", "json.nope"):
        with pytest.raises(ConfigError, match="ClassNotFoundException"):
            partitioner_named(name)
    with pytest.raises(ConfigError, match="charset"):
        encoder_named("kafka.serializer.StringEncoder", "nope")


@pytest.mark.scenario("ops-19")
def test_metrics() -> None:
    cluster = FakeCluster([Broker(0, "b0", 9090)])
    cluster.create("t", 1)
    producer = Producer(
        config(request_required_acks=1, message_send_max_retries=1),
        encoder=lambda value: value.encode(),
        runtime=FakeRuntime(),
        channel=cluster.channel,
    )
    producer.send(KeyedMessage("t", "ab"), KeyedMessage("t", "cde"))
    with pytest.raises(AttributeError):
        producer.send(KeyedMessage("t", 1))
    cluster.leaders[TopicPartition("t", 0)] = -1
    with pytest.raises(FailedToSendMessageError, match=r"1 of 1 .* \[t,0\]|leader"):
        producer.send(KeyedMessage("t", "f", part_key="k"))
    numbers = producer.metrics()
    found = {
        name.removesuffix("PerSec.Count"): n for name, n in numbers.items() if ".Count" in name
    }
    assert found == {
        "Messages": 3,
        "Bytes": 6,
        "DroppedMessages": 0,
        "Resends": 2,
        "FailedSends": 1,
        "SerializationErrors": 1,
    }
    assert numbers["ProducerQueueSize"] == 0
    found_series = {
        (each.metric.name.removeprefix("kafka_producer_"), *each.tags.values()): each.value
        for each in producer.series()
    }
    topics, requests = "producertopicmetrics", "producerrequestmetrics"
    for tags in ((), ("t",)):
        assert found_series[(f"{topics}_messages_total", *tags)].count == 3
        assert found_series[(f"{topics}_bytes_total", *tags)].count == 6
    for tags in ((), ("b0", "9090")):
        assert found_series[(f"{requests}_producerrequestsize", *tags)].sum == 3 * 26 + 6
    assert found_series[("producerstats_resends_total",)].count == 2
    assert ("async_producersendthread_producerqueuesize",) not in found_series
