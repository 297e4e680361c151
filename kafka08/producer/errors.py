"""The errors that only producers raise."""

from __future__ import annotations

from kafka08.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceError,
    RequestTimedOutError,
    UnsupportedForMessageFormatError,
    for_code,
    later_name,
)

_JAVA = "org.apache.kafka.common.errors"
DUPLICATE_SEQUENCE = 46
"""The broker has stored the batch before, and does not remember where."""


class FailedToSendMessageError(KafkaError):
    """Some messages were not accepted within all tries. It is not known which ones."""

    java_class = "kafka.common.FailedToSendMessageException"


class QueueFullError(KafkaError):
    """The async queue was full for too long. The rest of the call's messages was not queued."""

    java_class = "kafka.common.QueueFullException"


class ProducerClosedError(KafkaError):
    text = "producer already closed"
    java_class = "kafka.producer.ProducerClosedException"


class ForkedProducerError(ProducerClosedError):
    text = (
        "this producer was made before the process forked, and its connections belong to the "
        "parent: make a new one in the child"
    )


class SerializationError(KafkaError):
    """The serializer rejected a key or value. The record was not queued."""

    java_class = "org.apache.kafka.common.errors.SerializationException"


class RecordTooLargeError(MessageSizeTooLargeError):
    """A record is larger than max.request.size or buffer.memory. It was not queued."""

    java_class = "org.apache.kafka.common.errors.RecordTooLargeException"


class BufferExhaustedError(KafkaError):
    """buffer.memory is full, and the producer may not wait (any longer)."""

    java_class = "org.apache.kafka.clients.producer.BufferExhaustedException"


class MetadataTimeoutError(RequestTimedOutError):
    """No metadata of a topic arrived within metadata.fetch.timeout.ms."""

    java_class = "org.apache.kafka.common.errors.TimeoutException"


class DeliveryTimeoutError(RequestTimedOutError):
    """A record was not acknowledged in time. It may have been stored nevertheless."""

    java_class = "org.apache.kafka.common.errors.TimeoutException"


class WaitTimeoutError(KafkaError, TimeoutError):
    """The wait for a result timed out. The record may still be sent."""

    java_class = "java.util.concurrent.TimeoutException"


class DisconnectedError(KafkaError):
    """The connection ended before the broker answered. The records may or may not be stored."""

    retriable = True
    stale_metadata = True
    java_class = "org.apache.kafka.common.errors.NetworkException"


# --- of idempotent and transactional producers


class IllegalStateError(KafkaError):
    """A call that the state of the producer's transaction does not allow. Nothing has changed."""

    java_class = "java.lang.IllegalStateException"


class TransactionFailedError(KafkaError):
    """The transaction cannot be committed, because of the error that is the cause (``__cause__``).
    ``abort_transaction`` must be called; then another one may begin."""

    java_class = "org.apache.kafka.common.KafkaException"


class FatalTransactionError(TransactionFailedError):
    """The producer cannot go on, and must be closed."""


class TransactionAbortedError(KafkaError):
    """The transaction was aborted before this record was sent."""

    text = "The transaction was aborted before this record was sent"
    java_class = f"{_JAVA}.TransactionAbortedException"


class ProducerFencedError(FatalTransactionError):
    """A newer producer uses the same transactional id. This one must be closed."""

    code = 90
    text = "A newer producer with the same transactional.id has taken over"
    java_class = f"{_JAVA}.ProducerFencedException"


class UnsupportedVersionError(KafkaError):
    """The brokers do not have what the settings of the producer need."""

    code = 35
    text = "The brokers do not serve this"
    java_class = f"{_JAVA}.UnsupportedVersionException"


class ConcurrentTransactionsError(KafkaError):
    code = 51
    retriable = True
    text = "The last transaction of this transactional.id has not ended everywhere yet"
    java_class = f"{_JAVA}.ConcurrentTransactionsException"


class InvalidProducerIdMappingError(KafkaError):
    code = 49
    text = "The coordinator does not know the producer: its transactional.id has expired"
    java_class = f"{_JAVA}.InvalidPidMappingException"


class UnknownProducerIdError(KafkaError):
    code = 59
    text = "The broker does not know the producer any more"
    java_class = f"{_JAVA}.UnknownProducerIdException"


class InvalidTransactionTimeoutError(KafkaError):
    code = 50
    text = "transaction.timeout.ms is above the broker's transaction.max.timeout.ms"
    java_class = f"{_JAVA}.InvalidTxnTimeoutException"


class TransactionAbortableError(KafkaError):
    code = 120
    text = "The broker asks for the transaction to be aborted"
    java_class = f"{_JAVA}.TransactionAbortableException"


class IllegalGenerationError(KafkaError):
    code = 22
    text = "The consumer has been replaced in its group: its partitions may belong to another one"
    java_class = f"{_JAVA}.IllegalGenerationException"


class UnknownMemberIdError(KafkaError):
    code = 25
    text = "The consumer is not a member of its group any more"
    java_class = f"{_JAVA}.UnknownMemberIdException"


class FencedInstanceIdError(KafkaError):
    code = 82
    text = "Another consumer has the same group.instance.id"
    java_class = f"{_JAVA}.FencedInstanceIdException"


class TopicAuthorizationError(KafkaError):
    code = 29
    text = "The user may not write to the topic"
    java_class = f"{_JAVA}.TopicAuthorizationException"


class GroupAuthorizationError(KafkaError):
    code = 30
    text = "The user may not commit offsets of the group"
    java_class = f"{_JAVA}.GroupAuthorizationException"


class ClusterAuthorizationError(KafkaError):
    code = 31
    text = "The user may not write with an idempotent producer"
    java_class = f"{_JAVA}.ClusterAuthorizationException"


class TransactionalIdAuthorizationError(KafkaError):
    code = 53
    text = "The user may not use the transactional.id"
    java_class = f"{_JAVA}.TransactionalIdAuthorizationException"


_LATER = {
    error.code: error
    for error in (
        ClusterAuthorizationError,
        ConcurrentTransactionsError,
        FencedInstanceIdError,
        GroupAuthorizationError,
        IllegalGenerationError,
        InvalidProducerEpochError,
        InvalidProducerIdMappingError,
        InvalidTransactionTimeoutError,
        InvalidTxnStateError,
        OutOfOrderSequenceError,
        ProducerFencedError,
        TopicAuthorizationError,
        TransactionAbortableError,
        TransactionalIdAuthorizationError,
        UnknownMemberIdError,
        UnknownProducerIdError,
        UnsupportedForMessageFormatError,
        UnsupportedVersionError,
    )
}


def answered(code: int, where: object) -> KafkaError:
    """The error of a code that a broker answered to an idempotent or transactional producer, for a
    partition or something else that the text names."""
    kind = _LATER.get(code)
    if kind is not None:
        return kind(f"{where}: {kind.text}")
    found = for_code(code)
    return type(found)(f"{where}: {later_name(code) or found}")
