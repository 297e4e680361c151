"""Converts between dicts keyed by TopicPartition and the nested values of requests and responses.

On the wire partitions are nested under their topics; callers use flat dicts. Pure: does not use
sockets, does not retry, and does not interpret error codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from kafka08.common import TopicPartition
from kafka08.protocol import schemas

NO_OFFSET = -1
NOW = -1

T = TypeVar("T")


class StoredOffset(NamedTuple):
    """The offset a group committed for a partition; -1 if nothing is stored."""

    offset: int
    metadata: str = ""
    error: int = 0


def by_topic(entries: Mapping[TopicPartition, T]) -> dict[str, list[tuple[int, T]]]:
    """Topic -> (partition, value) pairs, in the order given."""
    topics: dict[str, list[tuple[int, T]]] = {}
    for (topic, partition), value in entries.items():
        topics.setdefault(topic, []).append((partition, value))
    return topics


def flatten(topics: Iterable[Any]) -> dict[TopicPartition, Any]:
    """The partition entries of a response's topics, by TopicPartition."""
    return {
        TopicPartition(topic.topic, entry.partition): entry
        for topic in topics
        for entry in topic.partitions
    }


def fetch_request(
    positions: Mapping[TopicPartition, int],
    max_bytes: int,
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    replica_id: int = schemas.CONSUMER_REPLICA_ID,
) -> schemas.FetchRequest:
    """Fetch from each position, up to ``max_bytes`` per partition."""
    topics = [
        schemas.FetchTopic(
            topic, [schemas.FetchPartition(partition, offset, max_bytes) for partition, offset in p]
        )
        for topic, p in by_topic(positions).items()
    ]
    return schemas.FetchRequest(replica_id, max_wait_ms, min_bytes, topics)


def offsets_request(
    times: Mapping[TopicPartition, int],
    max_offsets: int = 1,
    *,
    replica_id: int = schemas.CONSUMER_REPLICA_ID,
) -> schemas.OffsetsRequest:
    """Ask for offsets before a time: ms since the epoch, LATEST_TIME or EARLIEST_TIME."""
    topics = [
        schemas.OffsetsTopic(
            topic, [schemas.OffsetsPartition(partition, time, max_offsets) for partition, time in p]
        )
        for topic, p in by_topic(times).items()
    ]
    return schemas.OffsetsRequest(replica_id, topics)


def times_request(times: Mapping[TopicPartition, int]) -> schemas.ListOffsetsRequest:
    """Ask for the first message since a time, ms since the epoch, by the messages' timestamps.

    The broker must serve later versions: only a channel with ``api_versions`` knows.
    """
    return schemas.ListOffsetsRequest(*offsets_request(times))


def produce_request(
    message_sets: Mapping[TopicPartition, Any], acks: int, timeout_ms: int
) -> schemas.ProduceRequest:
    topics = [
        schemas.ProduceTopic(
            topic, [schemas.ProducePartition(partition, data) for partition, data in p]
        )
        for topic, p in by_topic(message_sets).items()
    ]
    return schemas.ProduceRequest(acks, timeout_ms, topics)


def commit_request_v0(
    group: str, offsets: Mapping[TopicPartition, int], metadata: str = ""
) -> schemas.OffsetCommitRequestV0:
    topics = [
        schemas.OffsetCommitTopic(
            topic,
            [schemas.OffsetCommitPartition(number, offset, metadata) for number, offset in p],
        )
        for topic, p in by_topic(offsets).items()
    ]
    return schemas.OffsetCommitRequestV0(group, topics)


def commit_request_v1(
    group: str, offsets: Mapping[TopicPartition, int], metadata: str = ""
) -> schemas.OffsetCommitRequest:
    topics = [
        schemas.OffsetCommitTopic(
            topic,
            [
                schemas.OffsetCommitPartition(number, offset, metadata, timestamp=NOW)
                for number, offset in p
            ],
        )
        for topic, p in by_topic(offsets).items()
    ]
    return schemas.OffsetCommitRequest(group, topics)


def commit_results(response: schemas.OffsetCommitResponse) -> dict[TopicPartition, int]:
    """Error code by partition."""
    return {tp: entry.error for tp, entry in flatten(response.topics).items()}


def offset_fetch_request(
    group: str, partitions: Iterable[TopicPartition], *, version: int = 1
) -> schemas.OffsetFetchRequest:
    topics = [
        schemas.OffsetFetchTopic(topic, [partition for partition, _ in p])
        for topic, p in by_topic(dict.fromkeys(partitions)).items()
    ]
    if version == 0:
        return schemas.OffsetFetchRequestV0(group, topics)
    return schemas.OffsetFetchRequest(group, topics)


def offset_fetch_results(
    response: schemas.OffsetFetchResponse,
) -> dict[TopicPartition, StoredOffset]:
    return {
        tp: StoredOffset(entry.offset, entry.metadata, entry.error)
        for tp, entry in flatten(response.topics).items()
    }
