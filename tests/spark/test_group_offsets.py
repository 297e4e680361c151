"""Offsets of batches stored as those of a group: where, when, and what becomes of failures."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

pytest.importorskip("pyspark")

from kafka08.common import Broker, TopicPartition
from kafka08.errors import ConfigError, KafkaError
from kafka08.spark.group_offsets import BrokerStore, ConsumerStore, GroupOffsets, opener
from kafka08.spark.values import OffsetRange, TopicAndPartition
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.spark.cluster import T

ONE = TopicPartition("t", 1)
PROPERTIES = {"zookeeper.connect": "nowhere:1", "group.id": "g"}


BROKER = Broker(0, "h", 9092)
RANGES = [OffsetRange("t", 0, 3, 8), OffsetRange("t", 1, 5, 5)]


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster([BROKER])


@pytest.fixture
def offsets(cluster: FakeCluster) -> GroupOffsets:
    def opened() -> BrokerStore:
        return BrokerStore("g", [BROKER], FakeRuntime(), cluster.channel)

    return GroupOffsets(PROPERTIES, opened=opened)


def test_the_ends_of_ranges_are_stored(cluster: FakeCluster, offsets: GroupOffsets) -> None:
    offsets.commit(RANGES)
    assert cluster.committed == {("g", T): 8, ("g", ONE): 5}
    offsets.commit([])
    asked = [TopicAndPartition("t", number) for number in range(3)]
    assert offsets.committed(asked) == {asked[0]: 8, asked[1]: 5}
    offsets.close()
    assert not any(channel.connected for channel in cluster.channels)
    offsets.commit(RANGES)


def test_a_coordinator_that_is_away_is_waited_for(
    cluster: FakeCluster, offsets: GroupOffsets
) -> None:
    cluster.failures = [ConnectionRefusedError("gone")] * 3
    offsets.commit(RANGES)
    assert cluster.committed == {("g", T): 8, ("g", ONE): 5}


def test_a_refusal_is_the_callers(cluster: FakeCluster, offsets: GroupOffsets) -> None:
    cluster.failures = [KafkaError("Group g has members")]
    with pytest.raises(KafkaError, match="has members"):
        offsets.commit(RANGES)
    assert cluster.committed == {}
    assert not any(channel.connected for channel in cluster.channels)
    offsets.commit(RANGES)
    assert cluster.committed == {("g", T): 8, ("g", ONE): 5}


def test_a_checkpoint_holds_settings_alone(offsets: GroupOffsets) -> None:
    offsets.commit(RANGES)
    assert pickle.loads(pickle.dumps(offsets)).__reduce__() == (GroupOffsets, (PROPERTIES,))


@pytest.mark.parametrize(
    ("properties", "store"),
    [
        (PROPERTIES, ConsumerStore),
        ({"metadata.broker.list": "h:9092", "group.id": "g"}, BrokerStore),
        ({"bootstrap.servers": "h:9092", "group.id": "g"}, BrokerStore),
        ({"bootstrap.servers": "h:9092", **PROPERTIES}, ConsumerStore),
    ],
)
def test_settings_say_where(properties: dict[str, str], store: type) -> None:
    opens: Any = opener(properties)
    assert opens.func is store


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"metadata.broker.list": "h:9092"}, r"group\.id has no value"),
        ({"group.id": "g"}, r"zookeeper\.connect"),
        ({"group.id": "g", "bootstrap.servers": "h"}, "h"),
        ({**PROPERTIES, "offsets.storage": "paper"}, r"offsets\.storage has value paper"),
    ],
)
def test_wrong_settings_are_named(properties: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        GroupOffsets(properties)
