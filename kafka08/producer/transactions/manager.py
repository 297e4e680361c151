"""The transactions of a producer: its state, and what it tells coordinators.

Mirrors org.apache.kafka.clients.producer.internals.TransactionManager. A partition is added to the
transaction before its first batch is sent, by the task that sends it. The end of a transaction
comes after the end of all batches, which the caller awaits. After an error the transaction can only
be aborted, and the producer then goes on with another epoch: nothing that was sent before counts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from kafka08.client.cluster import GROUP, TRANSACTION
from kafka08.client.requests import Response, nested
from kafka08.common import TopicPartition
from kafka08.errors import InvalidTxnStateError, KafkaError, caused
from kafka08.message.batch import TRANSACTIONAL
from kafka08.producer.accumulator import Accumulator, PartitionBatches
from kafka08.producer.batch import ProducerBatch
from kafka08.producer.errors import (
    FatalTransactionError,
    IllegalStateError,
    InvalidProducerIdMappingError,
    ProducerClosedError,
    ProducerFencedError,
    TransactionAbortedError,
    TransactionFailedError,
    WaitTimeoutError,
)
from kafka08.producer.kafka_config import KafkaProducerConfig
from kafka08.producer.transactions.coordinators import Coordinators, Key
from kafka08.producer.transactions.idempotence import IdempotentRequests
from kafka08.producer.transactions.sequences import NO_ID, ProducerId, Sequences
from kafka08.producer.transactions.states import (
    ABORTABLE_ERROR,
    ABORTING,
    COMMITTING,
    FATAL_ERROR,
    IN_TRANSACTION,
    INITIALIZING,
    PREDECESSORS,
    READY,
    UNINITIALIZED,
    ProducerState,
    after_answer,
    after_record,
)
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.later_schemas import InitProducerIdRequest
from kafka08.protocol.schemas import ProduceRequest

logger = logging.getLogger("org.apache.kafka.clients.producer.internals.TransactionManager")

Refusal = Callable[[], KafkaError]
"""Makes the error with which ``send`` refuses records."""

# Answers of coordinators to an abort where the request that failed was the first one, or where
# they have forgotten the transactional id.
_NOTHING_TO_ABORT = (InvalidTxnStateError, InvalidProducerIdMappingError)
_OPEN = (IN_TRANSACTION, COMMITTING, ABORTING, ABORTABLE_ERROR)
# The call to make first, where a record or a call is refused in a state.
_ADVICE = {
    UNINITIALIZED: "call init_transactions first",
    INITIALIZING: "call init_transactions until it succeeds",
    READY: "call begin_transaction first",
    IN_TRANSACTION: "commit or abort the transaction first",
    COMMITTING: "call commit_transaction until it succeeds",
    ABORTING: "call abort_transaction until it succeeds",
}


class OffsetAndMetadata(NamedTuple):
    """The offset of the next record to read, and what the group may store with it."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class ConsumerGroupMetadata(NamedTuple):
    """A member of a group at the time when it read (KIP-447). Its offsets are refused when it is
    not a member any more."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


Offsets = Mapping[TopicPartition, "int | OffsetAndMetadata"]


class TransactionManager(IdempotentRequests):
    """``refuse`` is given what ``send`` answers from now on, or None if it takes records.

    The methods for users change the state, and raise IllegalStateError, FatalTransactionError or
    TransactionFailedError. ``patience``: seconds; WaitTimeoutError after that, and then the same
    method is to be called again.
    """

    def __init__(
        self,
        config: KafkaProducerConfig,
        accumulator: Accumulator,
        coordinators: Coordinators,
        refuse: Callable[[Refusal | None], None],
    ) -> None:
        super().__init__(config, coordinators)
        self.id = config.transactional_id or ""
        self.sequences = Sequences(TRANSACTIONAL)
        self.state = UNINITIALIZED
        self._key = (TRANSACTION, self.id)
        self._timeout_ms = config.transaction_timeout_ms
        self._accumulator = accumulator
        self._lock = accumulator.lock
        self._refuse = refuse
        self._error: KafkaError | None = None
        self._partitions: set[TopicPartition] = set()
        self._is_begun = False  # whether the coordinator may know the transaction
        self._refuse(self._refusal)

    # --- for users

    def init(self, patience: float) -> None:
        """Get an id; fences former producers with the transactional id, and aborts what they have
        begun."""
        self._move(INITIALIZING, "init_transactions")
        self._get_id(NO_ID, patience)
        self._move(READY, "init_transactions")

    def begin(self) -> None:
        self._move(IN_TRANSACTION, "begin_transaction")

    def send_offsets(self, offsets: Offsets, group: ConsumerGroupMetadata, patience: float) -> None:
        """Commit offsets of a group in the transaction. After a timeout it must be aborted.
        ValueError for a negative offset, and for a generation without a member."""
        if group.generation_id > 0 and not group.member_id:
            raise ValueError(f"Generation {group.generation_id} without a member of the group")
        call = "send_offsets_to_transaction"
        topics = nested(offsets, t.TxnOffsetCommitTopic, _committed)
        with self._lock:
            self._raise_failure()
            if self.state is not IN_TRANSACTION:
                raise self._illegal(call)
            self._is_begun = self._is_begun or bool(topics)
        if not topics:
            return
        producer = self.sequences.producer
        added = t.AddOffsetsToTxnRequest(self.id, *producer, group.group_id)
        commit = t.TxnOffsetCommitRequest(
            self.id,
            group.group_id,
            *producer,
            topics,
            group.generation_id,
            group.member_id,
            group.group_instance_id,
        )
        self._ask(self._key, added, patience)
        self._ask((GROUP, group.group_id), commit, patience)

    def begin_commit(self) -> None:
        """Take no more records. The caller awaits the end of those that were sent."""
        self._move(COMMITTING, "commit_transaction")

    def commit(self, patience: float) -> None:
        """After the end of all records."""
        with self._lock:
            self._raise_failure()
        self._end(True, patience)

    def begin_abort(self) -> list[ProducerBatch]:
        """Take no more records. The caller finishes the batches that this ends, and awaits the end
        of the others."""
        with self._lock:
            self._move(ABORTING, "abort_transaction")
            return self._accumulator.give_up_unsent(TransactionAbortedError())

    def abort(self, patience: float) -> None:
        """After the end of all records."""
        self._end(False, patience)

    @property
    def must_end(self) -> bool:
        """Whether a transaction is open that nobody has begun to end."""
        return self.state in (IN_TRANSACTION, ABORTABLE_ERROR)

    def failure(self) -> KafkaError:
        """The error that calls raise after an error."""
        error = self._error
        if isinstance(error, ProducerFencedError):
            return ProducerFencedError(str(error))
        if self.state is FATAL_ERROR:
            failed: KafkaError = FatalTransactionError(
                f"The producer with transactional.id {self.id} must be closed: {error}"
            )
        else:
            failed = TransactionFailedError(
                f"The transaction of {self.id} must be aborted: {error}"
            )
        return failed if error is None else caused(failed, error)

    # --- the state

    def _move(self, to: ProducerState, call: str) -> None:
        with self._lock:
            if to is not ABORTING or self.state is FATAL_ERROR:
                self._raise_failure()
            if self.state not in PREDECESSORS[to]:
                raise self._illegal(call)
            self._set(to)

    def _set(self, state: ProducerState) -> None:
        self.state = state
        self._refuse(None if state is IN_TRANSACTION else self._refusal)

    def _refusal(self) -> KafkaError:
        return self._illegal("send") if self._error is None else self.failure()

    def _raise_failure(self) -> None:
        if self._error is not None:
            raise self.failure()

    def _illegal(self, call: str) -> IllegalStateError:
        return IllegalStateError(
            f"{call} is not allowed in state {self.state.value} of transactional.id {self.id}: "
            f"{_ADVICE[self.state]}"
        )

    def _fail(self, error: KafkaError, state: ProducerState) -> None:
        """Remember the first error of the transaction, or one that is worse."""
        with self._lock:
            if self.state is FATAL_ERROR:
                return
            if state is ABORTABLE_ERROR and self.state not in _OPEN:
                return  # a record that was refused after the end of the transaction
            if self._error is None or state is FATAL_ERROR:
                self._error = error
                logger.info("transactional.id %s: %s after %s", self.id, state.value, error)
            if self.state in PREDECESSORS[state]:
                self._set(state)

    # --- for the tasks that send

    def build(self, parts: Sequence[PartitionBatches]) -> ProduceRequest:
        return super().build(parts)._replace(transactional_id=self.id)

    def _admit(self, parts: Sequence[PartitionBatches]) -> None:
        """Add partitions to the transaction. Raises the error with which the records fail."""
        tps = [part.queue.tp for part in parts]
        if self._partitions.issuperset(tps) and self._error is None:
            return
        with self._asking:
            with self._lock:
                if self._error is not None:
                    raise self.failure()
                new = dict.fromkeys(tp for tp in tps if tp not in self._partitions)
                self._is_begun = True
            if new:
                self._add(new)

    def _add(self, partitions: Mapping[TopicPartition, None]) -> None:
        topics = nested(partitions, t.TxnTopic, lambda number, _: number)
        request = t.AddPartitionsToTxnRequest(self.id, *self.sequences.producer, topics)
        try:
            self._coordinators.call(self._key, request, self._patience)
        except KafkaError as error:
            self._fail(error, after_answer(error))
            raise
        with self._lock:
            self._partitions.update(partitions)

    def failed(self, batches: Iterable[ProducerBatch]) -> list[ProducerBatch]:
        """A record that fails fails the transaction, and all records that were not sent yet."""
        for batch in batches:
            if isinstance(batch.error, KafkaError):
                self._fail(batch.error, after_record(batch.error))
        return self._accumulator.give_up_unsent(self.failure())

    # --- requests

    def _ask(
        self,
        key: Key,
        request: object,
        patience: float,
        tolerated: tuple[type[KafkaError], ...] = (),
    ) -> Response:
        """An answer, for a method for users; None after a ``tolerated`` error."""
        try:
            return self._coordinators.call(key, request, patience)
        except ProducerClosedError:
            raise
        except tolerated:
            return None
        except KafkaError as error:
            if isinstance(error, WaitTimeoutError) and self.state is not IN_TRANSACTION:
                raise  # the same method is called again
            is_open = self.state in PREDECESSORS[ABORTABLE_ERROR]
            self._fail(error, after_answer(error) if is_open else FATAL_ERROR)
            raise self.failure() from error

    def _get_id(self, known: ProducerId, patience: float) -> None:
        request = InitProducerIdRequest(self.id, self._timeout_ms, *known)
        answer = self._ask(self._key, request, patience)
        self.sequences.producer = ProducerId(answer.producer_id, answer.producer_epoch)

    def _end(self, is_committed: bool, patience: float) -> None:
        if self._is_begun:
            request = t.EndTxnRequest(self.id, *self.sequences.producer, is_committed)
            has_failed = self._error is not None
            self._ask(self._key, request, patience, _NOTHING_TO_ABORT if has_failed else ())
            self._is_begun = False
        if self._error is not None:
            self._get_id(self.sequences.producer, patience)
        with self._lock:
            self._partitions.clear()
            self._error = None
            self._set(READY)


def _committed(partition: int, offset: int | OffsetAndMetadata) -> t.TxnOffsetCommitPartition:
    if not isinstance(offset, OffsetAndMetadata):
        offset = OffsetAndMetadata(offset)
    if offset.offset < 0:
        raise ValueError(f"Invalid negative offset {offset.offset}")
    return t.TxnOffsetCommitPartition(
        partition, offset.offset, offset.metadata, offset.leader_epoch
    )
