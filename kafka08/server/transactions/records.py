"""A transactional id as coordinators know it, and as a record of ``__transaction_state``.

Keys and values have version 0; a value of null deletes. Mirrors
kafka.coordinator.transaction.TransactionMetadata and TransactionLog.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kafka08.common import TopicPartition
from kafka08.errors import ProtocolError
from kafka08.protocol.codec import decode, encode
from kafka08.protocol.types import (
    Nullable,
    int8,
    int16,
    int32,
    int64,
    strict_string,
)
from kafka08.server.transactions.states import (
    BY_NUMBER,
    EMPTY,
    NUMBERS,
    TransactionState,
)

_VERSION = 0
NO_EPOCH = -1
NO_TIME = -1
_LAST_EPOCH = 0x7FFE
"""A producer with this epoch gets another id: the next one is left for fencing it."""


class Transaction(NamedTuple):
    """``start_ms``: when the transaction began; -1 without one. ``last_epoch``: the epoch before
    the last change of it, if a client that knew it asked for that, and may ask again; with
    ``last_producer_id`` if that was another one. They are not stored."""

    id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    state: TransactionState = EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    update_ms: int = NO_TIME
    start_ms: int = NO_TIME
    last_producer_id: int = -1
    last_epoch: int = NO_EPOCH

    @property
    def is_exhausted(self) -> bool:
        return self.epoch >= _LAST_EPOCH


class _Key(NamedTuple):
    version: int16
    transactional_id: strict_string


class _Topic(NamedTuple):
    topic: strict_string
    partitions: list[int32]


class _Value(NamedTuple):
    version: int16
    producer_id: int64
    epoch: int16
    timeout_ms: int32
    state: int8
    topics: Annotated[list[_Topic] | None, Nullable()]
    update_ms: int64
    start_ms: int64


def encode_key(id_: str) -> bytes:
    return encode(_Key(_VERSION, id_))


def encode_value(found: Transaction) -> bytes:
    """An id that is new has no list of partitions, as Kafka writes it."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(found.partitions):
        topics.setdefault(topic, []).append(partition)
    listed = None if found.state is EMPTY else [_Topic(*item) for item in topics.items()]
    state = NUMBERS[found.state]
    head = _VERSION, found.producer_id, found.epoch, found.timeout_ms, state
    return encode(_Value(*head, listed, found.update_ms, found.start_ms))


def decode_key(data: bytes) -> str:
    """Raises ProtocolError for another version."""
    key, _ = decode(_Key, memoryview(data))
    if key.version != _VERSION:
        raise ProtocolError(f"a key of version {key.version}")
    found: str = key.transactional_id
    return found


def decode_value(id_: str, data: bytes) -> Transaction:
    """Raises ProtocolError for another version, and for states that are never stored."""
    value, _ = decode(_Value, memoryview(data))
    state = BY_NUMBER.get(value.state)
    if value.version != _VERSION or state is None:
        raise ProtocolError(f"a value of version {value.version} with state {value.state}")
    partitions = frozenset(
        TopicPartition(topic.topic, partition)
        for topic in value.topics or ()
        for partition in topic.partitions
    )
    head = id_, value.producer_id, value.epoch, value.timeout_ms, state
    return Transaction(*head, partitions, value.update_ms, value.start_ms)
