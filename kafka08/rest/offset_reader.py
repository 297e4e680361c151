"""Reads messages of a partition from an offset on, without a group and without a position."""

from __future__ import annotations

from typing import Any

from kafka08.common import TopicPartition
from kafka08.consumer.simple import SimpleConsumer
from kafka08.errors import raise_for_code
from kafka08.message.consumed import Message, Source, consumed, timed
from kafka08.message.entry import BytesLike
from kafka08.message.sets import iter_runs, next_offset
from kafka08.rest.cluster import Cluster
from kafka08.rest.errors import KAFKA_ERROR, RestError
from kafka08.rest.formats import size_of

FETCH_BYTES = 1 << 20


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
        with self._cluster.consumer(self._cluster.leader(tp)) as consumer:
            while len(found) < count:
                messages, offset = self._fetch(consumer, tp, offset)
                for message in messages[: count - len(found)]:
                    left -= size_of(message)
                    if found and left < 0:
                        return found
                    found.append(message)
                if not messages:
                    break
        return found

    def _fetch(
        self, consumer: SimpleConsumer, tp: TopicPartition, offset: int
    ) -> tuple[list[Message], int]:
        """The messages of one fetch and the offset after them; none at the log's end."""
        size = min(FETCH_BYTES, self._max_bytes)
        while True:
            entry = consumer.fetch({tp: offset}, size)[tp]
            raise_for_code(entry.error)
            data: Any = entry.message_set
            if not len(data):
                return [], offset
            following = next_offset(data, offset)
            messages = _messages(tp, data, offset)
            if messages:
                return messages, following
            if following > offset:
                offset = following  # compaction left nothing of this piece
            elif size < self._max_bytes:
                size = min(2 * size, self._max_bytes)
            else:
                raise too_large(tp, offset, self._max_bytes)


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
