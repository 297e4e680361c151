"""A produce under way: appends its sets, and collects the answers and what is to be acknowledged.

The counterpart of ``reads``. Does not know versions of requests, and does not wait for acks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafka08.common import INTERNAL_TOPICS, TopicPartition
from kafka08.errors import (
    NO_ERROR,
    InvalidMessageError,
    InvalidTopicError,
    InvalidTxnStateError,
    KafkaError,
    LaterCode,
    MessageSetSizeTooLargeError,
    MessageSizeTooLargeError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    UnknownTopicOrPartitionError,
)
from kafka08.log.log import Log
from kafka08.message.batch import (
    BATCH_CODEC_AT,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    header_of,
    producer_of,
)
from kafka08.message.sets import require_batch
from kafka08.named import named
from kafka08.protocol.schemas import ProducePartitionResponse, ProduceRequest
from kafka08.server.apis.failures import RequestFailures
from kafka08.server.rebuild.view import ConsumerView
from kafka08.server.storage.appends import Appends, InflateBudget
from kafka08.server.storage.replica_manager import ReplicaManager

# These do not count as failures of this broker.
_REFUSED = (
    InvalidTopicError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    UnknownTopicOrPartitionError,
)
_NO_RECORD_ERRORS: Final = ProducePartitionResponse(0, 0, 0).record_errors


class ProducerVersions:
    """Producers of some versions. ``one_batch``: they send a batch of format 2 for a partition, and
    nothing else; ``zstd``: which may have that codec. ``reads_start``: they are sent the first
    offset of the log. ``unknown``: errors that they do not know, and get as InvalidMessageError."""

    __slots__ = ("one_batch", "reads_start", "unknown", "zstd")

    def __init__(
        self,
        unknown: tuple[type[Exception], ...] = (),
        *,
        one_batch: bool = False,
        zstd: bool = False,
        reads_start: bool = True,
    ) -> None:
        self.unknown = unknown
        self.one_batch = one_batch
        self.zstd = zstd
        self.reads_start = reads_start


class TransactionGate:
    """The check that the first batch of a transaction in a partition has to pass. ``verify`` is
    called with the partition's log, the transactional id, the producer's id and epoch, and the
    batch's first sequence; it may wait, and raises KafkaError. Without a coordinator no batch
    passes."""

    def __init__(self) -> None:
        self.verify: Callable[[Log, str, tuple[int, int], int], None] = _refuse

    def admit(self, log: Log, id_: str | None, data: memoryview) -> None:
        """Raises KafkaError if a batch of a transaction must not be appended."""
        if id_ is None:
            raise NoTransactionalIdError("A batch of a transaction came without a transactional.id")
        if producer_of(data) in log.producers.states.open:
            return  # most batches: only the first one needs to ask
        header = header_of(data)
        producer = header.producer_id, header.producer_epoch
        self.verify(log, id_, producer, header.base_sequence)


class NoTransactionalIdError(KafkaError):
    code = LaterCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def _refuse(log: Log, id_: str, producer: tuple[int, int], sequence: int) -> None:
    raise InvalidTxnStateError(f"{log.topic_partition} takes no transactions")


class Produce:
    """One request. ``required``: by partition the offset that acks are to reach."""

    __slots__ = (
        "_acks", "_appends", "_gate", "_id", "_replicas", "_room", "_sender", "_view", "failures",
        "required",
    )  # fmt: skip

    def __init__(
        self,
        replicas: ReplicaManager,
        appends: Appends,
        view: ConsumerView,
        sender: ProducerVersions,
        gate: TransactionGate,
        sets: dict[TopicPartition, memoryview],
        request: ProduceRequest,
    ) -> None:
        self._replicas = replicas
        self._appends = appends
        self._view = view
        self._sender = sender
        self._room = InflateBudget(sets)
        self._gate = gate
        self._acks = request.acks
        self._id = request.transactional_id
        self.required: dict[TopicPartition, int] = {}
        self.failures = RequestFailures()

    def append(self, key: TopicPartition, data: memoryview) -> ProducePartitionResponse:
        """Append one set; may wait if it is long. The answer may have an error."""
        code, base_offset, append_time = NO_ERROR, -1, NO_TIMESTAMP
        try:
            if key.topic in INTERNAL_TOPICS:
                raise InvalidTopicError(f"Cannot append to internal topic {key.topic}")
            if self._sender.one_batch:
                require_batch(data, zstd=self._sender.zstd)
                if data[BATCH_CODEC_AT] & TRANSACTIONAL:
                    written = self._replicas.writable(key, self._acks).leader_log()
                    self._gate.admit(written, self._id, data)
            appended = self._appends.append(key, data, self._acks, self._room)
            if appended.count:
                meters = self._replicas.counts.topics.of(key.topic)
                meters.messages_in.count += appended.count
                meters.bytes_in.count += len(data)
                meters.total_produce_requests.count += 1
                base_offset, append_time = appended.first_offset, appended.append_time
                if self._acks != 1:
                    self.required[key] = appended.last_offset + 1
            if appended.rebuilt is not None:
                self._view.remember(appended.rebuilt)
        except Exception as error:
            code = self._failed(key, error, len(data))
        start = -1
        if code != NO_ERROR:
            append_time = NO_TIMESTAMP
        elif self._sender.reads_start:
            log = self._replicas.partition(key).log
            start = -1 if log is None else log.first_offset
        fields = key.partition, code, base_offset, append_time, start, _NO_RECORD_ERRORS, None
        return named(ProducePartitionResponse, fields)

    def _failed(self, key: TopicPartition, error: Exception, size: int) -> int:
        """Count a failure of a set of ``size`` bytes; returns its code for the sender."""
        code = self.failures.add(key, error)
        if not isinstance(error, _REFUSED):
            meters = self._replicas.counts.topics.of(key.topic)
            meters.total_produce_requests.mark()
            meters.failed_produce_requests.mark()
            if isinstance(error, (MessageSizeTooLargeError, MessageSetSizeTooLargeError)):
                meters.bytes_rejected.mark(size)
        return InvalidMessageError.code if isinstance(error, self._sender.unknown) else code
