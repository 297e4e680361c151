"""Which store keeps a member's positions, and how often it is tried."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.offset_store import OffsetStore
from kafka08.errors import OffsetMetadataTooLargeError
from kafka08.metrics.meters import Meter
from kafka08.protocol import schemas
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class StoreRig:
    def __init__(self, storage: str = "kafka", dual: str = "false") -> None:
        config = ConsumerConfig.from_properties(
            {
                "group.id": "g",
                "zookeeper.connect": "z",
                "offsets.storage": storage,
                "dual.commit.enabled": dual,
                "offsets.channel.backoff.ms": "700",
                "offsets.channel.socket.timeout.ms": "2500",
                "client.id": "c",
            }
        )
        self.runtime = FakeRuntime()
        self.ensemble, self.cluster = FakeZooKeeper(), FakeCluster()
        self.answers: list[dict[TopicPartition, int] | Exception] = []
        self.cluster.script = self._answer
        self.stopping = self.runtime.event()
        self.meters = (Meter(), Meter())
        zk: Any = Session(self.ensemble)
        self.store = OffsetStore(
            config,
            zk,
            lambda: list(self.cluster.brokers.values()),
            stopping=self.stopping,
            runtime=self.runtime,
            channel=self.cluster.channel,
            meters=self.meters,
        )

    def _answer(self, port: int, request: Any) -> Any:
        """``answers`` are those of the next commits, first first: codes, or what fails them."""
        if not isinstance(request, schemas.OffsetCommitRequest) or not self.answers:
            return None
        codes = self.answers.pop(0)
        if isinstance(codes, Exception):
            raise codes
        (topic,) = request.topics
        entries = []
        for part in topic.partitions:
            tp = TopicPartition(topic.topic, part.partition)
            if not codes.get(tp):
                self.cluster.committed["g", tp] = part.offset
            entries.append(schemas.OffsetCommitPartitionResponse(*tp[1:], codes.get(tp, 0)))
        answered = schemas.OffsetCommitTopicResponse(topic.topic, entries)
        return schemas.OffsetCommitResponse([answered])

    @property
    def in_kafka(self) -> dict[TopicPartition, int]:
        return {tp: offset for (_, tp), offset in self.cluster.committed.items()}

    @property
    def in_zookeeper(self) -> dict[TopicPartition, int]:
        parent = "/consumers/g/offsets/t"
        return {
            TopicPartition("t", int(name)): int(self.ensemble.text(f"{parent}/{name}"))
            for name in self.ensemble.below(parent)
        }

    def put(self, **offsets: int) -> None:
        """Write offsets into ZooKeeper, as another member would."""
        for name, offset in offsets.items():
            self.ensemble.put(f"/consumers/g/offsets/t/{name[1:]}", b"%d" % offset)


def test_zookeeper_alone() -> None:
    rig = StoreRig("zookeeper")
    assert rig.store.commit({A: 5, B: -1})
    assert (rig.in_zookeeper, rig.in_kafka) == ({A: 5}, {})
    assert rig.store.fetch([A, B]) == {A: 5, B: -1}


def test_kafka_alone() -> None:
    rig = StoreRig()
    assert rig.store.commit({A: 5})
    assert (rig.in_zookeeper, rig.in_kafka) == ({}, {A: 5})
    rig.put(p0=9, p1=9)
    assert rig.store.fetch([A, B]) == {A: 5, B: -1}


def test_both_while_a_group_moves() -> None:
    """Offsets that the coordinator refused do not go to ZooKeeper; the larger offset counts."""
    rig = StoreRig(dual="true")
    rig.answers = [{B: 14}]
    assert not rig.store.commit({A: 5, B: 6})
    assert rig.in_zookeeper == rig.in_kafka == {A: 5}
    rig.put(p0=3, p1=9)
    assert rig.store.fetch([A, B]) == {A: 5, B: 9}
    written = len(rig.ensemble.writes)
    assert rig.store.commit({B: 9})
    assert len(rig.ensemble.writes) == written


@pytest.mark.parametrize("failure", [{A: 14}, ConnectionResetError("gone")])
def test_tries_are_a_backoff_apart(failure: Any) -> None:
    rig = StoreRig()
    rig.answers = [failure] * 2
    began = rig.runtime.clock.monotonic()
    assert rig.store.commit({A: 5}, tries=3)
    assert rig.runtime.clock.monotonic() - began == pytest.approx(1.4)
    rig.answers = [failure] * 3
    assert not rig.store.commit({A: 6}, tries=3)
    assert rig.in_kafka == {A: 5}


def test_too_large_metadata_is_not_tried_again() -> None:
    rig = StoreRig()
    rig.answers = [{A: OffsetMetadataTooLargeError.code}]
    assert rig.store.commit({A: 5}, tries=9)
    assert rig.in_kafka == {}


def test_nothing_asks_nobody() -> None:
    rig = StoreRig()
    rig.answers = [ConnectionResetError("asked")]
    assert rig.store.commit({A: -1}) and rig.store.commit({})
    assert rig.store.fetch([]) == {}
    assert len(rig.answers) == 1


def test_a_stopped_connector_knows_no_offsets() -> None:
    rig = StoreRig()
    rig.stopping.set()
    assert rig.store.fetch([A]) is None


def test_the_coordinator_is_searched_with_the_settings_of_the_consumer() -> None:
    rig = StoreRig()
    rig.cluster.down = {9090}
    rig.runtime.on_sleep = lambda seconds: rig.cluster.down.clear()
    rig.store.connect()
    assert rig.runtime.slept == [0.7]
    told = {(each["client_id"], each["timeout_ms"]) for each in rig.cluster.options}
    assert told == {("c", 2500)}
