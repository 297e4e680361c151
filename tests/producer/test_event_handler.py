from __future__ import annotations

import random
from typing import Any

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.common import Broker, TopicPartition
from kafka08.message.scan import iter_entries
from kafka08.message.sets import iter_messages
from kafka08.producer.config import ProducerConfig
from kafka08.producer.errors import FailedToSendMessageError
from kafka08.producer.event_handler import EventHandler, KeyedMessage
from kafka08.producer.partitioners import Partitioner, byte_array_partitioner
from kafka08.producer.serializers import identity
from kafka08.protocol import schemas
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime

BROKERS = [Broker(0, "b0", 9090), Broker(1, "b1", 9091)]


class HandlerRig:
    def __init__(self, partitioner: Partitioner = byte_array_partitioner, **settings: Any) -> None:
        self.runtime = FakeRuntime()
        self.cluster = FakeCluster(BROKERS)
        self.cluster.create("t", 2)
        self.cluster.leaders[TopicPartition("t", 1)] = 1
        settings.setdefault("request_required_acks", 1)
        config = ProducerConfig(metadata_broker_list=("b0:9090",), **settings)
        client = ClusterClient([("b0", 9090)], runtime=self.runtime, channel=self.cluster.channel)
        self.handler = EventHandler(
            config, client, partitioner, identity, identity, self.runtime, random.Random(1)
        )

    def send(self, *messages: KeyedMessage) -> None:
        self.handler.handle(messages)

    def counts(self) -> list[int]:
        return [len(self.cluster.values("t", partition)) for partition in (0, 1)]

    def metadata_requests(self) -> int:
        return len(self.cluster.sent(schemas.MetadataRequest))


def plain(*values: bytes) -> list[KeyedMessage]:
    return [KeyedMessage("t", value) for value in values]


def test_one_request_per_leader_and_order_kept() -> None:
    rig = HandlerRig(partitioner=lambda key, n: int(key))
    rig.send(*[KeyedMessage("t", b"%d" % i, b"%d" % (i % 2)) for i in range(6)])
    assert rig.cluster.values("t", 0) == [b"0", b"2", b"4"]
    assert rig.cluster.values("t", 1) == [b"1", b"3", b"5"]
    assert len(rig.cluster.sent(schemas.ProduceRequest)) == 2


def test_partition_key_chooses_and_is_not_stored() -> None:
    rig = HandlerRig(partitioner=lambda key, n: int(key))
    rig.send(KeyedMessage("t", b"a", part_key=1), KeyedMessage("t", b"b", b"0", part_key=1))
    data = b"".join(entry for _, entry in rig.cluster.logs[TopicPartition("t", 1)])
    assert [message.key for message in iter_messages(data)] == [None, b"0"]


def test_null_value_is_kept() -> None:
    rig = HandlerRig()
    rig.send(KeyedMessage("t", None))
    assert rig.cluster.values("t", 0) + rig.cluster.values("t", 1) == [None]


@pytest.mark.scenario("client-28")
def test_unkeyed_messages_stick_until_the_refresh() -> None:
    rig = HandlerRig(topic_metadata_refresh_interval_ms=600000)
    for n in range(20):
        rig.send(*plain(b"%d" % n))
    assert sorted(rig.counts()) == [0, 20]
    assert rig.metadata_requests() == 1
    partitions = set()
    for n in range(20):
        rig.runtime.clock.now_ms += 600001
        before = rig.counts()
        rig.send(*plain(b"%d" % n))
        partitions.add(rig.counts()[0] > before[0])
    assert partitions == {True, False}
    assert rig.metadata_requests() == 21


def test_unkeyed_messages_avoid_partitions_without_leader() -> None:
    rig = HandlerRig()
    rig.cluster.leaders[TopicPartition("t", 0)] = -1
    rig.send(*plain(b"a"))
    assert rig.counts() == [0, 1]


def test_refresh_interval_below_zero_means_after_failures_only() -> None:
    rig = HandlerRig(topic_metadata_refresh_interval_ms=-1)
    rig.send(*plain(b"a"))
    rig.runtime.clock.now_ms += 10**9
    rig.send(*plain(b"b"))
    assert rig.metadata_requests() == 1  # what was not known at all


@pytest.mark.scenario("client-31")
def test_only_what_failed_is_retried() -> None:
    rig = HandlerRig(partitioner=lambda key, n: int(key))
    rig.cluster.leaders[TopicPartition("t", 1)] = -1
    rig.runtime.on_sleep = lambda seconds: rig.cluster.leaders.update({TopicPartition("t", 1): 1})
    rig.send(*[KeyedMessage("t", b"%d" % i, b"%d" % (i % 2)) for i in range(4)])
    assert rig.counts() == [2, 2]
    assert rig.runtime.slept == [0.1]


def test_moved_leader_is_found() -> None:
    rig = HandlerRig(partitioner=lambda key, n: 0)
    rig.send(KeyedMessage("t", b"a", b"k"))
    rig.cluster.leaders[TopicPartition("t", 0)] = 1
    rig.send(KeyedMessage("t", b"b", b"k"))
    assert rig.cluster.values("t", 0) == [b"a", b"b"]
    assert rig.runtime.slept == [0.1]


def test_exhausted_retries_raise(caplog: pytest.LogCaptureFixture) -> None:
    rig = HandlerRig(message_send_max_retries=2)
    rig.cluster.down = {9090, 9091}
    with pytest.raises(FailedToSendMessageError, match="after 2 tries"):
        rig.send(*plain(b"a"))
    # Backoff and refresh follow the last round, too.
    assert rig.runtime.slept == [0.1] * 3
    assert "Failed to send requests for topics t with correlation ids in [0," in caplog.text


@pytest.mark.scenario("client-32")
@pytest.mark.parametrize("answer", [-1, 2])
def test_partition_outside_the_range_fails_the_batch(answer: int) -> None:
    rig = HandlerRig(partitioner=lambda key, n: answer, message_send_max_retries=0)
    with pytest.raises(FailedToSendMessageError):
        rig.send(KeyedMessage("t", b"a", b"k"), *plain(b"b"))
    assert rig.counts() == [0, 0]


def test_new_topic_is_retried_until_it_has_a_leader() -> None:
    rig = HandlerRig()
    rig.cluster.topic_errors["n"] = 5

    def create(seconds: float) -> None:
        rig.cluster.topic_errors.clear()
        rig.cluster.create("n", 1)
        rig.runtime.on_sleep = None

    rig.runtime.on_sleep = create
    rig.send(KeyedMessage("n", b"a"))
    assert rig.cluster.values("n", 0) == [b"a"]


@pytest.mark.scenario("client-36")
def test_without_acks_errors_are_not_seen() -> None:
    rig = HandlerRig(request_required_acks=0, partitioner=lambda key, n: 0)
    rig.send(KeyedMessage("t", b"a", b"k"))
    rig.cluster.leaders[TopicPartition("t", 0)] = 1
    rig.send(KeyedMessage("t", b"b", b"k"))
    assert rig.counts() == [1, 0]
    assert rig.runtime.slept == []


@pytest.mark.scenario("client-35")
@pytest.mark.parametrize("codec", [1, 2, 3])
def test_compression_of_chosen_topics(codec: int) -> None:
    rig = HandlerRig(compression_codec=codec, compressed_topics=("t",))
    rig.cluster.create("u", 1)
    rig.send(*plain(b"a", b"b"), KeyedMessage("u", b"c"))
    entries = {
        topic.topic: list(iter_entries(bytes(topic.partitions[0].message_set)))
        for request in rig.cluster.sent(schemas.ProduceRequest)
        for topic in request.topics
    }
    assert [(entry.codec, entry.offset) for entry in entries["t"]] == [(codec, 1)]
    assert [entry.codec for entry in entries["u"]] == [0]


def test_serialisation_errors() -> None:
    with pytest.raises(TypeError):
        HandlerRig().send(KeyedMessage("t", "text"))
    rig = HandlerRig(producer_type="async")
    rig.send(KeyedMessage("t", "text"), KeyedMessage("t", b"bytes"))
    assert sum(rig.counts()) == 1


def test_a_broker_that_has_just_started_costs_no_try() -> None:
    """The controller has told it of no topic yet: the other listed broker is asked."""
    for seed in range(4):
        random.seed(seed)  # the order in which brokers are asked
        rig = HandlerRig(message_send_max_retries=0)
        endpoints = [(broker.host, broker.port) for broker in BROKERS]
        client = ClusterClient(
            endpoints,
            runtime=rig.runtime,
            channel=rig.cluster.channel,
        )
        config = ProducerConfig(metadata_broker_list=("b0:9090",), message_send_max_retries=0)
        handler = EventHandler(
            config, client, byte_array_partitioner, identity, identity, rig.runtime
        )
        untold = schemas.MetadataResponse([], [schemas.TopicMetadata(3, "t", [])])
        rig.cluster.script = lambda port, request, untold=untold: (
            untold if port == 9090 and isinstance(request, schemas.MetadataRequest) else None
        )
        handler.handle(plain(b"a"))
        assert sum(rig.counts()) == 1
