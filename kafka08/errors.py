"""Every error of the protocol: one class per code, and the table between the two.

Mirrors kafka.common.ErrorMapping of 0.8.2.2. Callers use an error's attributes (``retriable``,
``stale_metadata``) instead of listing classes. Errors without a code of their own are subclasses of
KafkaError; on the wire they are -1.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar, Final, TypeVar

_CODES = range(1, 21)  # of 0.8.2.2


class KafkaError(Exception):
    """Base of all our errors. ``code`` is the wire code, -1 where 0.8.2.2 has none. Where it has
    one, ``java_class`` is named as the class here, if it does not say otherwise."""

    code: ClassVar[int] = -1
    retriable: ClassVar[bool] = False
    stale_metadata: ClassVar[bool] = False
    text: ClassVar[str] = "The server experienced an unexpected error"
    java_class: ClassVar[str] = "kafka.common.UnknownException"

    def __init_subclass__(cls) -> None:
        if vars(cls).get("code") in _CODES and "java_class" not in vars(cls):
            cls.java_class = f"kafka.common.{cls.__name__.removesuffix('Error')}Exception"

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else self.text


_E = TypeVar("_E", bound=KafkaError)


def caused(error: _E, cause: BaseException) -> _E:
    """``error`` with its cause. In a module compiled by mypyc, ``raise ... from`` sets none."""
    error.__cause__ = cause
    return error


class UnknownError(KafkaError):
    """-1: any error that 0.8.2.2 does not map."""


class OffsetOutOfRangeError(KafkaError):
    code = 1
    text = "The requested offset is outside the range of offsets this broker holds"


class InvalidMessageError(KafkaError):
    code = 2
    retriable = True
    text = "A message fails its crc or has an impossible size"
    java_class = "kafka.message.InvalidMessageException"


class UnknownTopicOrPartitionError(KafkaError):
    code = 3
    retriable = True
    stale_metadata = True
    text = "This broker does not host that topic or partition"


class InvalidFetchSizeError(KafkaError):
    code = 4
    text = "The fetch size is invalid"
    java_class = "kafka.common.InvalidMessageSizeException"


class LeaderNotAvailableError(KafkaError):
    code = 5
    retriable = True
    stale_metadata = True
    text = "There is no leader for that partition at the moment"


class NotLeaderForPartitionError(KafkaError):
    code = 6
    retriable = True
    stale_metadata = True
    text = "This broker does not lead that partition"


class RequestTimedOutError(KafkaError):
    code = 7
    retriable = True
    text = "The required acknowledgements did not arrive in time"


class BrokerNotAvailableError(KafkaError):
    code = 8
    text = "The broker is not available"


class ReplicaNotAvailableError(KafkaError):
    code = 9
    text = "A replica of that partition is not available"


class MessageSizeTooLargeError(KafkaError):
    code = 10
    text = "A message is larger than the broker accepts"


class StaleControllerEpochError(KafkaError):
    code = 11
    text = "The request comes from a controller that has been replaced"
    java_class = "kafka.common.ControllerMovedException"


class OffsetMetadataTooLargeError(KafkaError):
    code = 12
    text = "The metadata of an offset commit is too long"


class StaleLeaderEpochError(KafkaError):
    code = 13
    text = "The request carries a leader epoch that has passed"


class OffsetsLoadInProgressError(KafkaError):
    code = 14
    retriable = True
    text = "The coordinator is still loading the group's offsets"


class ConsumerCoordinatorNotAvailableError(KafkaError):
    code = 15
    retriable = True
    text = "There is no coordinator for that group at the moment"


class NotCoordinatorForConsumerError(KafkaError):
    code = 16
    retriable = True
    text = "This broker does not coordinate that group"


class InvalidTopicError(KafkaError):
    code = 17
    text = "The topic name is illegal, or the topic is not open to this request"


class MessageSetSizeTooLargeError(KafkaError):
    code = 18
    text = "The message set is larger than a segment"


class NotEnoughReplicasError(KafkaError):
    code = 19
    retriable = True
    text = "The isr is smaller than min.insync.replicas; nothing was written"


class NotEnoughReplicasAfterAppendError(KafkaError):
    code = 20
    retriable = True
    text = "The isr fell below min.insync.replicas; the messages are in the log"


class OutOfOrderSequenceError(KafkaError):
    """A later code: clients of 0.8 never send what it answers."""

    code = 45
    text = "A batch of an idempotent producer is not the next one"
    java_class = "org.apache.kafka.common.errors.OutOfOrderSequenceException"


class InvalidProducerEpochError(KafkaError):
    """A later code, as OutOfOrderSequenceError."""

    code = 47
    text = "A newer instance of the idempotent producer exists"
    java_class = "org.apache.kafka.common.errors.InvalidProducerEpochException"


class InvalidTxnStateError(KafkaError):
    """A later code, as OutOfOrderSequenceError."""

    code = 48
    text = "The transaction of the producer is in a state that does not allow this"
    java_class = "org.apache.kafka.common.errors.InvalidTxnStateException"


class TransactionCoordinatorFencedError(KafkaError):
    """A later code, between brokers."""

    code = 52
    text = "A marker comes from a coordinator that has been replaced"
    java_class = "org.apache.kafka.common.errors.TransactionCoordinatorFencedException"


class PolicyViolationError(KafkaError):
    code = 44
    text = "The settings of the topic do not allow this"


class UnsupportedForMessageFormatError(KafkaError):
    code = 43
    text = "The stored message format does not have what was requested"


class InvalidTimestampError(KafkaError):
    code = 32
    text = "The timestamp of a message is further from now than the topic allows"


class FencedLeaderEpochError(KafkaError):
    code = 74
    text = "The client knows an older leader epoch"


class UnknownLeaderEpochError(KafkaError):
    code = 75
    text = "The client knows a newer leader epoch than this broker"


class UnsupportedCompressionTypeError(KafkaError):
    code = 76
    text = "This version of the request does not know the compression"


class InvalidRecordError(InvalidMessageError):
    """A message that its format or its topic does not allow. Requests of 0.8 are answered with
    the code of InvalidMessageError."""

    code = 87
    retriable = False
    text = "A message does not conform to its format or its topic"
    java_class = "kafka.common.UnknownException"


class ProtocolError(KafkaError):
    """The peer violated the protocol: its connection must be closed."""

    text = "The peer sent bytes that break the protocol"


class ConfigError(KafkaError):
    """A setting is missing or has an invalid value; the text names key, value and range."""

    text = "The configuration is invalid"
    java_class = "kafka.common.InvalidConfigException"


class TopicExistsError(KafkaError):
    text = "The topic already exists"
    java_class = "kafka.common.TopicExistsException"


class AdminOperationError(KafkaError):
    """An administrative request that cannot be carried out."""

    text = "The operation cannot be carried out"
    java_class = "kafka.admin.AdminOperationException"


NO_ERROR: Final = 0

BY_CODE: dict[int, type[KafkaError]] = {UnknownError.code: UnknownError} | {
    error.code: error for error in KafkaError.__subclasses__() if error.code in _CODES
}
"""The errors of 0.8.2.2."""


class LaterCode(IntEnum):
    """Codes of later releases. Clients of 0.8 do not know them: they are not for the versions
    of 0.8.2.2, except for the administrative APIs."""

    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    SASL_AUTHENTICATION_FAILED = 58
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    TRANSACTIONAL_ID_NOT_FOUND = 105


_LATER_CODES = {int(code): code.name.title().replace("_", "") for code in LaterCode}


def later_name(code: int) -> str | None:
    """The name of a code of later releases; None for others."""
    return _LATER_CODES.get(code)


def code_name(code: int) -> str:
    """The name of a known wire code, as "InvalidTopic"."""
    return _LATER_CODES.get(code) or BY_CODE[code].__name__.removesuffix("Error")


def meaning_of(code: int) -> str:
    """The meaning of a wire code in words; the name of a later code."""
    return code_name(code) if code in _LATER_CODES else for_code(code).text


def for_code(code: int, message: str | None = None) -> KafkaError:
    """The error of a wire code; codes that 0.8.2.2 does not know become UnknownError."""
    error = BY_CODE.get(code, UnknownError)
    return error(message) if message else error()


def code_of(error: BaseException) -> int:
    """The wire code of any exception: -1 for those that are not ours."""
    return error.code if isinstance(error, KafkaError) else UnknownError.code


def raise_for_code(code: int, message: str | None = None) -> None:
    """Raise the error of a wire code; do nothing for 0."""
    if code != NO_ERROR:
        raise for_code(code, message)
