"""kafka08.consumer.assigned: partitions that are added, stopped and dropped."""

from __future__ import annotations

from contextlib import suppress

import pytest

from kafka08.common import Broker, TopicPartition
from kafka08.consumer.assigned import AssignedConsumer, raise_refused
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.errors import ConsumerTimeoutError
from kafka08.errors import OffsetMetadataTooLargeError
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class AssignedRig:
    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.cluster = FakeCluster()
        self.cluster.create("t", 2)
        for partition in (0, 1):
            self.cluster.append("t", partition, b"a", b"b", b"c")
        config = ConsumerConfig(group_id="g", zookeeper_connect="")
        self.consumer = AssignedConsumer(
            config,
            lambda: [Broker(0, "b0", 9090)],
            timeout_ms=0,
            runtime=self.runtime,
            channel=self.cluster.channel,
        )

    def read(self) -> list[tuple[int, int]]:
        """The partitions and offsets of what is there."""
        for name in ("leader-finder", "FetcherThread"):
            self.runtime.step(name)
        found: list[tuple[int, int]] = []
        with suppress(ConsumerTimeoutError):
            found.extend((message.partition, message.offset) for message in self.consumer.stream)
        return found


def test_partitions_are_read_from_their_offsets() -> None:
    rig = AssignedRig()
    rig.consumer.start({T0: 1})
    assert rig.read() == [(0, 1), (0, 2)]
    rig.consumer.add({T1: 2})
    assert rig.read() == [(1, 2)]
    assert rig.consumer.positions.keys() == {T0, T1}
    rig.consumer.stop()


def test_dropped_partitions_go_on_after_the_last_message_that_was_read() -> None:
    rig = AssignedRig()
    rig.consumer.start({T0: 0, T1: -1})
    rig.runtime.step("leader-finder")
    rig.runtime.step("FetcherThread")
    assert next(rig.consumer.stream).offset == 0
    dropped = rig.consumer.drop()
    assert dropped[T0] == 1
    assert rig.consumer.positions == {}
    with pytest.raises(ConsumerTimeoutError):
        next(rig.consumer.stream)
    rig.consumer.start({T0: dropped[T0]})
    assert rig.read() == [(0, 1), (0, 2)]
    rig.consumer.stop()


def test_offsets_are_those_of_the_group() -> None:
    rig = AssignedRig()
    raise_refused(rig.consumer.offsets.commit({T0: 2}))
    assert rig.consumer.offsets.fetch([T0, T1]) == {T0: 2, T1: -1}
    with pytest.raises(OffsetMetadataTooLargeError, match=r"\[t,1\] was not committed: code 12"):
        raise_refused({T0: 0, T1: 12})
