"""Reads messages of a partition from an offset on, without a group and without a position."""

from __future__ import annotations

from typing import Any

from kafka08.client.reading import FETCH_BYTES, FetchTooSmallError, PartitionReader, Position
from kafka08.common import TopicPartition
from kafka08.message.consumed import Message, Source, consumed, timed
from kafka08.message.entry import BytesLike
from kafka08.message.sets import iter_runs
from kafka08.rest.cluster import Cluster
from kafka08.rest.errors import KAFKA_ERROR, RestError
from kafka08.rest.formats import size_of


class OffsetReader:
    """Reads up to ``max_bytes`` at a time, and one message at least."""

    def __init__(self, cluster: Cluster, max_bytes: int) -> None:
        self._cluster = cluster
        self._max_bytes = max_bytes

    def read(self, tp: TopicPartition, offset: int, count: int) -> list[Message]:
        """Up to ``count`` messages at ``offset`` and after it; fewer at the end of the log.

        Raises RestError, OffsetOutOfRangeError beyond the log, and the errors of the leader.
        """
        found: list[Message] = []
        left = self._max_bytes
        position = Position(offset, min(FETCH_BYTES, self._max_bytes), self._max_bytes)
        with self._cluster.consumer(self._cluster.leader(tp)) as consumer:
            reader = PartitionReader(consumer.call, tp, position)
            while len(found) < count:
                begin = reader.offset
                try:
                    data = reader.read()
                except FetchTooSmallError as error:
                    raise too_large(tp, error.offset, error.size) from None
                if not len(data):
                    break
                for message in _messages(tp, data, begin)[: count - len(found)]:
                    left -= size_of(message)
                    if found and left < 0:
                        return found
                    found.append(message)
        return found


def _messages(tp: TopicPartition, data: BytesLike, offset: int) -> list[Message]:
    """The messages from ``offset`` on; a compressed set begins before it."""
    source = Source(*tp)
    runs = iter_runs(data, _plain(source), lambda message: timed(source, message))
    return [message for run in runs for message in run if message.offset >= offset]


def _plain(source: Source) -> Any:
    return lambda *where: consumed(source, *where)


def too_large(tp: TopicPartition, offset: int, limit: int) -> RestError:
    return RestError(
        500,
        KAFKA_ERROR,
        f"Kafka error: the message at offset {offset} of topic {tp.topic} partition "
        f"{tp.partition} is larger than the {limit} bytes of consumer.request.max.bytes",
    )
