"""The bytes that consumers give the coordinator of their group, and the words of DescribeGroups.

The formats are those of the beginning of each version: what follows differs, and is not read.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kafka08.common import TopicPartition
from kafka08.protocol.codec import decode
from kafka08.protocol.types import Strict, int16, int32, strict_string

# The protocol types of groups that a broker coordinates, and of those that use ZooKeeper.
CONSUMER, ZOOKEEPER = "consumer", "zookeeper"
DEAD, EMPTY, STABLE, REBALANCING = "Dead", "Empty", "Stable", "PreparingRebalance"


class _Subscription(NamedTuple):
    version: int16
    topics: Annotated[list[strict_string], Strict()]


class _AssignedTopic(NamedTuple):
    topic: strict_string
    partitions: Annotated[list[int32], Strict()]


class _Assignment(NamedTuple):
    version: int16
    topics: Annotated[list[_AssignedTopic], Strict()]


def subscribed_topics(metadata: bytes | memoryview) -> list[str]:
    """The topics of a member's metadata. Raises ProtocolError."""
    topics: list[str] = decode(_Subscription, memoryview(metadata))[0].topics
    return topics


def assigned_partitions(assignment: bytes | memoryview) -> list[TopicPartition]:
    """The partitions of a member's assignment. Raises ProtocolError."""
    return [
        TopicPartition(each.topic, partition)
        for each in decode(_Assignment, memoryview(assignment))[0].topics
        for partition in each.partitions
    ]
