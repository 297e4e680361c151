"""Which store keeps a member's positions, and how often it is tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from kafka08.client.meters import Meter
from kafka08.common import TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.offset_store import OffsetStore
from kafka08.errors import OffsetMetadataTooLargeError
from tests.fakes.runtime import FakeRuntime

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Store:
    """Offsets in memory. ``answers`` are those of the next commits, first first."""

    def __init__(self, **offsets: int) -> None:
        self.offsets = {TopicPartition("t", int(key[1:])): o for key, o in offsets.items()}
        self.answers: list[Any] = []
        self.adopted: dict[TopicPartition, int] = {}
        self.stopped = False


class Coordinator(Store):
    def commit(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        codes = self.answers.pop(0) if self.answers else {}
        if isinstance(codes, Exception):
            raise codes
        found = {tp: codes.get(tp, 0) for tp in offsets}
        self.offsets.update({tp: o for tp, o in offsets.items() if not found[tp]})
        return found

    def fetch(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int] | None:
        return None if self.stopped else dict(self.offsets)


class ZooKeeper(Store):
    def commit(self, offsets: Mapping[TopicPartition, int]) -> int:
        self.offsets.update(offsets)
        return len(offsets)

    def fetch(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {tp: self.offsets.get(tp, -1) for tp in partitions}

    def adopt(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.adopted.update(offsets)


class Rig:
    def __init__(self, storage: str = "kafka", dual: str = "false") -> None:
        config = ConsumerConfig.from_properties(
            {
                "group.id": "g",
                "zookeeper.connect": "z",
                "offsets.storage": storage,
                "dual.commit.enabled": dual,
                "offsets.channel.backoff.ms": "700",
            }
        )
        self.runtime = FakeRuntime()
        self.zookeeper, self.coordinator = ZooKeeper(), Coordinator()
        self.meters = [Meter(self.runtime.clock.monotonic) for _ in range(2)]
        self.store = OffsetStore(
            config,
            self.zookeeper,  # type: ignore[arg-type]
            self.coordinator,  # type: ignore[arg-type]
            self.runtime,
            *self.meters,
        )


def test_zookeeper_alone() -> None:
    rig = Rig("zookeeper")
    assert rig.store.commit({A: 5, B: -1})
    assert (rig.zookeeper.offsets, rig.coordinator.offsets) == ({A: 5}, {})
    assert rig.store.fetch([A, B]) == {A: 5, B: -1}


def test_kafka_alone() -> None:
    rig = Rig()
    assert rig.store.commit({A: 5})
    assert (rig.zookeeper.offsets, rig.coordinator.offsets) == ({}, {A: 5})
    rig.zookeeper.offsets = {A: 9, B: 9}
    assert rig.store.fetch([A, B]) == {A: 5, B: -1}
    assert rig.zookeeper.adopted == {A: 5, B: -1}


def test_both_while_a_group_moves() -> None:
    """Offsets that the coordinator refused do not go to ZooKeeper; the larger offset counts."""
    rig = Rig(dual="true")
    rig.coordinator.answers = [{B: 14}]
    assert not rig.store.commit({A: 5, B: 6})
    assert rig.zookeeper.offsets == rig.coordinator.offsets == {A: 5}
    rig.zookeeper.offsets = {A: 3, B: 9}
    assert rig.store.fetch([A, B]) == {A: 5, B: 9}


@pytest.mark.parametrize("failure", [{A: 14}, ConnectionResetError("gone")])
def test_tries_are_a_backoff_apart(failure: Any) -> None:
    rig = Rig()
    rig.coordinator.answers = [failure] * 2
    began = rig.runtime.clock.monotonic()
    assert rig.store.commit({A: 5}, tries=3)
    assert rig.runtime.clock.monotonic() - began == pytest.approx(1.4)
    rig.coordinator.answers = [failure] * 3
    assert not rig.store.commit({A: 6}, tries=3)
    assert rig.coordinator.offsets == {A: 5}


def test_too_large_metadata_is_not_tried_again() -> None:
    rig = Rig()
    rig.coordinator.answers = [{A: OffsetMetadataTooLargeError.code}]
    assert rig.store.commit({A: 5}, tries=9)
    assert rig.coordinator.offsets == {}


def test_nothing_asks_nobody() -> None:
    rig = Rig()
    rig.coordinator.answers = [ConnectionResetError("asked")]
    assert rig.store.commit({A: -1}) and rig.store.commit({})
    assert rig.store.fetch([]) == {}
    assert len(rig.coordinator.answers) == 1


def test_a_stopped_connector_knows_no_offsets() -> None:
    rig = Rig()
    rig.coordinator.stopped = True
    assert rig.store.fetch([A]) is None
    assert rig.zookeeper.adopted == {}
