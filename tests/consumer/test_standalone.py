from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.errors import ConsumerTimeoutError
from kafka08.consumer.standalone import StandaloneConsumer
from kafka08.consumer.stream import KafkaStream
from kafka08.errors import KafkaError
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime

TP = TopicPartition("t", 0)


class StandaloneRig:
    def __init__(self, group: str | None = None) -> None:
        self.runtime = FakeRuntime()
        self.cluster = FakeCluster()
        self.cluster.create("t", 1)
        self.cluster.append("t", 0, b"a", b"b", b"c")
        self.group = group

    def consumer(self) -> StandaloneConsumer:
        config = ConsumerConfig(
            group_id="unused",
            zookeeper_connect="",
            consumer_timeout_ms=0,
            auto_offset_reset="smallest",
        )
        return StandaloneConsumer(
            [("b0", 9090)],
            config,
            group=self.group,
            runtime=self.runtime,
            channel=self.cluster.channel,
        )

    def started(self, consumer: StandaloneConsumer, offset: int = -1) -> KafkaStream:
        stream = consumer.stream("t", None, offset)
        for name in ("leader-finder", "FetcherThread", "FetcherThread"):
            self.runtime.step(name)
        return stream

    @property
    def stored(self) -> int | None:
        return self.cluster.committed.get(("g", TP))


def values(stream: KafkaStream) -> list[bytes]:
    found = []
    with pytest.raises(ConsumerTimeoutError):
        while True:
            found.append(next(stream).value)
    return found


def test_without_a_group_nothing_is_committed() -> None:
    rig = StandaloneRig()
    with rig.consumer() as consumer:
        assert values(rig.started(consumer)) == [b"a", b"b", b"c"]
        consumer.commit_offsets()
    assert rig.cluster.committed == {}


def test_a_group_goes_on_where_it_was() -> None:
    rig = StandaloneRig("g")
    with rig.consumer() as consumer:
        stream = rig.started(consumer)
        assert next(stream).value == b"a"
        assert next(stream).value == b"b"
    # Whether the last one was dealt with is not known.
    assert rig.stored == 1
    with rig.consumer() as consumer:
        assert next(rig.started(consumer)).value == b"b"
        consumer.commit_offsets()
    assert rig.stored == 2
    with rig.consumer() as consumer:
        assert values(rig.started(consumer)) == [b"c"]
    assert rig.stored == 3


def test_an_offset_that_is_named_counts_more() -> None:
    rig = StandaloneRig("g")
    rig.cluster.committed["g", TP] = 3
    with rig.consumer() as consumer:
        assert values(rig.started(consumer, 1)) == [b"b", b"c"]


def test_a_refused_commit() -> None:
    rig = StandaloneRig("g")
    consumer = rig.consumer()
    next(rig.started(consumer))
    rig.cluster.down.add(9090)
    with pytest.raises((OSError, KafkaError)):
        consumer.commit_offsets()
    consumer.close()
    assert rig.stored is None
