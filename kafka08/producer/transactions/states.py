"""The states of a transactional producer, every legal transition, and which errors end what.

Mirrors org.apache.kafka.clients.producer.internals.TransactionManager of later releases. Pure.
"""

from __future__ import annotations

from enum import Enum

from kafka08.errors import KafkaError
from kafka08.producer import errors as e


class ProducerState(Enum):
    """The value is the name that errors show."""

    UNINITIALIZED = "UNINITIALIZED"
    INITIALIZING = "INITIALIZING"
    READY = "READY"
    IN_TRANSACTION = "IN_TRANSACTION"
    COMMITTING = "COMMITTING_TRANSACTION"
    ABORTING = "ABORTING_TRANSACTION"
    ABORTABLE_ERROR = "ABORTABLE_ERROR"
    FATAL_ERROR = "FATAL_ERROR"


(
    UNINITIALIZED,
    INITIALIZING,
    READY,
    IN_TRANSACTION,
    COMMITTING,
    ABORTING,
    ABORTABLE_ERROR,
    FATAL_ERROR,
) = ProducerState

# A call whose wait timed out is made again: so three states follow themselves.
PREDECESSORS: dict[ProducerState, tuple[ProducerState, ...]] = {
    UNINITIALIZED: (),
    INITIALIZING: (UNINITIALIZED, INITIALIZING),
    READY: (INITIALIZING, COMMITTING, ABORTING),
    IN_TRANSACTION: (READY,),
    COMMITTING: (IN_TRANSACTION, COMMITTING),
    ABORTING: (IN_TRANSACTION, ABORTABLE_ERROR, ABORTING),
    ABORTABLE_ERROR: (IN_TRANSACTION, COMMITTING),
    FATAL_ERROR: tuple(ProducerState),
}

# A transaction may be aborted after any error of a record, unless the producer itself is refused.
_FATAL_FOR_RECORDS = (
    e.ClusterAuthorizationError,
    e.ProducerFencedError,
    e.TransactionalIdAuthorizationError,
    e.UnsupportedVersionError,
)
# After any other error that a coordinator answers it is not known what the coordinator would do.
_ABORTABLE_FOR_COORDINATORS = (
    e.FencedInstanceIdError,
    e.GroupAuthorizationError,
    e.IllegalGenerationError,
    e.InvalidProducerIdMappingError,
    e.TopicAuthorizationError,
    e.TransactionAbortableError,
    e.UnknownMemberIdError,
    e.UnknownProducerIdError,
    e.WaitTimeoutError,
)


def after_record(error: KafkaError) -> ProducerState:
    """The state after a record of the transaction has failed."""
    return FATAL_ERROR if isinstance(error, _FATAL_FOR_RECORDS) else ABORTABLE_ERROR


def after_answer(error: KafkaError) -> ProducerState:
    """The state after a coordinator has refused a request of the open transaction."""
    return ABORTABLE_ERROR if isinstance(error, _ABORTABLE_FOR_COORDINATORS) else FATAL_ERROR
