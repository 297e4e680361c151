"""Metadata replies as 0.8 clients need them."""

import threading

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import Broker, TopicPartition
from kafka08.protocol.schemas import PartitionMetadata, PartitionStateInfo

ONE, TWO = Broker(1, "h1", 9092), Broker(2, "h2", 9093)


def partition(topic: str, number: int, leader: int, *, isr: list[int]) -> PartitionStateInfo:
    return PartitionStateInfo(topic, number, 1, leader, 0, isr, 0, [1, 2, 3])


def test_partitions_merge_and_brokers_replace() -> None:
    cache = MetadataCache(threading.Event())
    cache.update([partition("t", 0, 1, isr=[1])], [ONE, TWO])
    cache.update([partition("t", 1, 2, isr=[2])], [TWO])
    assert cache.brokers == {2: TWO}
    assert cache.partition_count("t") == 2
    assert cache.leader_of(TopicPartition("t", 1)) == TWO
    assert cache.leader_of(TopicPartition("t", 0)) is None
    assert cache.leader_of(TopicPartition("nope", 0)) is None


def test_dead_replicas_are_left_out_and_flagged() -> None:
    cache = MetadataCache(threading.Event())
    cache.update([partition("t", 0, 1, isr=[1, 3])], [ONE, TWO])
    assert cache.topic_metadata("t").partitions == [PartitionMetadata(9, 0, 1, [1, 2], [1])]


def test_without_a_live_leader_the_isr_is_empty() -> None:
    cache = MetadataCache(threading.Event())
    cache.update([partition("t", 0, 3, isr=[3]), partition("t", 1, -1, isr=[1])], [ONE, TWO])
    assert cache.topic_metadata("t").partitions == [
        PartitionMetadata(5, 0, -1, [1, 2], []),
        PartitionMetadata(5, 1, -1, [1, 2], []),
    ]


def test_leader_minus_two_removes() -> None:
    cache = MetadataCache(threading.Event())
    cache.update([partition("t", 0, 1, isr=[1]), partition("t", 1, 1, isr=[1])], [ONE])
    cache.update([partition("t", 0, -2, isr=[])], [ONE])
    assert "t" in cache and not cache.has_partition("t", 0)
    cache.update([partition("t", 1, -2, isr=[]), partition("u", 0, -2, isr=[])], [ONE])
    assert "t" not in cache and cache.topics() == []
