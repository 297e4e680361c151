"""Converts between dicts keyed by TopicPartition and the nested values of requests and responses.

On the wire partitions are nested under their topics; callers use flat dicts. Pure: does not use
sockets, does not retry, and does not interpret error codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

from kafka08.common import TopicPartition
from kafka08.message.entry import BytesLike
from kafka08.protocol import schemas

NO_OFFSET = -1
NOW = -1

T = TypeVar("T")
Topic = TypeVar("Topic")
Partition = TypeVar("Partition")
Response: TypeAlias = Any
"""The response to a request, or an entry of it: the class of the request says which."""
Call = Callable[[object], Response]
"""Sends a request to one broker and returns its response; what it raises is raised."""


class StoredOffset(NamedTuple):
    """The offset a group committed for a partition; -1 if nothing is stored."""

    offset: int
    metadata: str = ""
    error: int = 0


def nested(
    entries: Mapping[TopicPartition, T],
    topic_of: Callable[[str, list[Partition]], Topic],
    partition_of: Callable[[int, T], Partition],
) -> list[Topic]:
    """The topics of a request, in the order of their first entries."""
    topics: dict[str, list[Partition]] = {}
    for (topic, partition), value in entries.items():
        topics.setdefault(topic, []).append(partition_of(partition, value))
    return [topic_of(*item) for item in topics.items()]


def flatten(topics: Iterable[Response]) -> dict[TopicPartition, Response]:
    """The partition entries of a response's topics, by TopicPartition."""
    return {
        TopicPartition(topic.topic, entry.partition): entry
        for topic in topics
        for entry in topic.partitions
    }


def offsets_request(
    times: Mapping[TopicPartition, int],
    max_offsets: int = 1,
    *,
    replica_id: int = schemas.CONSUMER_REPLICA_ID,
) -> schemas.OffsetsRequest:
    """Ask for offsets before a time: ms since the epoch, LATEST_TIME or EARLIEST_TIME."""

    def partition(number: int, time: int) -> schemas.OffsetsPartition:
        return schemas.OffsetsPartition(number, time, max_offsets)

    return schemas.OffsetsRequest(replica_id, nested(times, schemas.OffsetsTopic, partition))


def produce_request(
    message_sets: Mapping[TopicPartition, BytesLike], acks: int, timeout_ms: int
) -> schemas.ProduceRequest:
    topics = nested(message_sets, schemas.ProduceTopic, schemas.ProducePartition)
    return schemas.ProduceRequest(acks, timeout_ms, topics)


def commit_request(
    group: str,
    offsets: Mapping[TopicPartition, int],
    metadata: str = "",
    *,
    version: int = 1,
    timestamp: int = NOW,
) -> schemas.OffsetCommitRequest:
    """Commit to ZooKeeper (version 0, which has no timestamp) or to the coordinator (1)."""

    def partition(number: int, offset: int) -> schemas.OffsetCommitPartition:
        return schemas.OffsetCommitPartition(number, offset, metadata, timestamp)

    request = schemas.OffsetCommitRequest if version else schemas.OffsetCommitRequestV0
    return request(group, nested(offsets, schemas.OffsetCommitTopic, partition))


def commit_results(response: schemas.OffsetCommitResponse) -> dict[TopicPartition, int]:
    """Error code by partition."""
    return {tp: entry.error for tp, entry in flatten(response.topics).items()}
