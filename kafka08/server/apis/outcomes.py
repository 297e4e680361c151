"""The result of one administrative change: a wire code and a text."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from kafka08 import admin, placement
from kafka08.errors import (
    NO_ERROR,
    AdminOperationError,
    ConfigError,
    KafkaError,
    LaterCode,
    TopicExistsError,
    UnknownTopicOrPartitionError,
    code_of,
)
from zk.errors import DataTooLargeError

logger = logging.getLogger("kafka.server.KafkaApis")

_MAX_MESSAGE = 1000  # characters; an error may repeat what it was given


class InvalidRequestError(AdminOperationError):
    """A request that contradicts itself or that this broker is set up not to serve."""


class TopicDeletionDisabledError(InvalidRequestError):
    """A topic cannot be deleted while delete.topic.enable is false."""


class RefusedError(AdminOperationError):
    """A refusal with a code of its own."""

    def __init__(self, wire_code: int, message: str) -> None:
        super().__init__(message)
        self.wire_code = wire_code


# The first class an error is an instance of counts.
_CODES: tuple[tuple[type[KafkaError], int], ...] = (
    (TopicExistsError, LaterCode.TOPIC_ALREADY_EXISTS),
    (admin.UnknownTopicError, UnknownTopicOrPartitionError.code),
    (placement.InvalidPartitionsError, LaterCode.INVALID_PARTITIONS),
    (placement.InvalidReplicationFactorError, LaterCode.INVALID_REPLICATION_FACTOR),
    (admin.InvalidAssignmentError, LaterCode.INVALID_REPLICA_ASSIGNMENT),
    (ConfigError, LaterCode.INVALID_CONFIG),
    (TopicDeletionDisabledError, LaterCode.TOPIC_DELETION_DISABLED),
    (DataTooLargeError, LaterCode.INVALID_REQUEST),
    (AdminOperationError, LaterCode.INVALID_REQUEST),
)


class AdminOutcome(NamedTuple):
    """The result for one topic or other thing."""

    code: int = NO_ERROR
    message: str | None = None


def tried(name: str, act: Callable[[], object]) -> AdminOutcome:
    """Call ``act``; errors become outcomes. ``name`` is for the log."""
    try:
        act()
    except Exception as error:
        code = error.wire_code if isinstance(error, RefusedError) else _code_of(error)
        if not isinstance(error, KafkaError):
            logger.exception("Administrative request for %s failed", name)
        return AdminOutcome(code, str(error)[:_MAX_MESSAGE])
    return AdminOutcome()


def _code_of(error: Exception) -> int:
    return next((code for kind, code in _CODES if isinstance(error, kind)), code_of(error))
