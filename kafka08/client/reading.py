"""Reading a partition from an offset on, fetch by fetch.

Two things are the same for every reader: a message that does not fit in a fetch is asked for with
more bytes, and an offset that compaction removed is passed over. ``call`` asks the leader.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from kafka08.client import requests
from kafka08.client.committed import without_aborted
from kafka08.client.requests import Call, Response
from kafka08.common import TopicPartition
from kafka08.errors import KafkaError, raise_for_code
from kafka08.message.entry import BytesLike
from kafka08.message.sets import next_offset
from kafka08.protocol import schemas

FETCH_BYTES = 1 << 20
LARGEST_FETCH_BYTES = 64 << 20


class FetchTooSmallError(KafkaError):
    """The message at ``offset`` is larger than ``size``, the most that may be fetched."""

    def __init__(self, offset: int, size: int) -> None:
        super().__init__(f"The message at offset {offset} is larger than {size} bytes")
        self.offset = offset
        self.size = size


def fetch(
    call: Call,
    positions: Mapping[TopicPartition, int],
    max_bytes: int,
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    replica_id: int = schemas.CONSUMER_REPLICA_ID,
    committed: bool = False,
) -> dict[TopicPartition, schemas.FetchPartitionResponse]:
    """Stored bytes by partition, up to ``max_bytes`` of each, each with its own error code.
    ``committed``: up to the first transaction that is open."""

    def partition(number: int, offset: int) -> schemas.FetchPartition:
        return schemas.FetchPartition(number, offset, max_bytes)

    topics = requests.nested(positions, schemas.FetchTopic, partition)
    isolation = schemas.READ_COMMITTED if committed else 0
    request = schemas.FetchRequest(
        replica_id, max_wait_ms, min_bytes, topics, isolation_level=isolation
    )
    return requests.flatten(call(request).topics)


def message_set(entry: schemas.FetchPartitionResponse) -> BytesLike:
    """The stored bytes of an answer; empty if there are none."""
    data: Response = entry.message_set  # brokers send other things as well, such as parts of files
    stored: BytesLike = data or b""
    return stored


def shown(entry: schemas.FetchPartitionResponse) -> BytesLike:
    """The same without the messages of transactions that the answer names as aborted."""
    data = message_set(entry)
    return without_aborted(data, entry.aborted_transactions) if entry.aborted_transactions else data


class Position:
    """The offset to fetch next, and the bytes to ask for, which grow up to ``largest``."""

    def __init__(
        self, offset: int, size: int = FETCH_BYTES, largest: int = LARGEST_FETCH_BYTES
    ) -> None:
        self.offset = offset
        self.size = size
        self._largest = max(size, largest)

    def advance(self, following: int | None) -> None:
        """Go on at ``following``, the offset after the last whole message that was fetched. If
        there was none (None, or an offset that is not larger), the next fetch asks for twice as
        much. Raises FetchTooSmallError."""
        if following is not None and following > self.offset:
            self.offset = following
        elif self.size >= self._largest:
            raise FetchTooSmallError(self.offset, self.size)
        else:
            self.size = min(2 * self.size, self._largest)


class PartitionReader:
    """Reads ``tp`` through ``call``, a connection to its leader, or to another replica with a
    ``replica_id`` that may. At its end a fetch waits up to ``max_wait_ms`` for more. ``committed``:
    reads committed transactions only."""

    def __init__(
        self,
        call: Call,
        tp: TopicPartition,
        position: Position,
        *,
        max_wait_ms: int = 0,
        replica_id: int = schemas.CONSUMER_REPLICA_ID,
        committed: bool = False,
    ) -> None:
        self._fetch = partial(
            fetch,
            call,
            max_wait_ms=max_wait_ms,
            min_bytes=1 if max_wait_ms else 0,
            replica_id=replica_id,
            committed=committed,
        )
        self._tp = tp
        self._position = position

    @property
    def offset(self) -> int:
        """The offset to be read next."""
        return self._position.offset

    def read(self) -> BytesLike:
        """Stored bytes with at least one whole entry; empty at the end of the log. The first entry
        may begin before the offset that was next, if it is compressed.

        Raises FetchTooSmallError and the errors of the leader.
        """
        position = self._position
        while True:
            begin = position.offset
            entry = self._fetch({self._tp: begin}, position.size)[self._tp]
            raise_for_code(entry.error)
            data = message_set(entry)
            if not data:
                return data
            position.advance(next_offset(data, begin))
            if position.offset > begin and (visible := shown(entry)):
                return visible
