"""The errors of the REST API: status, code and message, as in Confluent's proxy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial

from kafka08.client.admin import AdminNotServedError, RemoteError
from kafka08.errors import KafkaError, LaterCode, UnknownError, for_code
from zk.errors import ZkError


class RestError(Exception):
    """An answer with ``{"error_code", "message"}``. ``code``: status, or status * 100 + n.
    ``headers``: further ones."""

    def __init__(
        self, status: int, code: int, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers or {}

    @property
    def body(self) -> dict[str, object]:
        return {"error_code": self.code, "message": self.message}


KAFKA_ERROR = 50002
RETRIABLE_KAFKA_ERROR = 50003
BAD_REQUEST = 40002
_FORBIDDEN = 40301
_AUTHORIZATION_CODES = (
    LaterCode.TOPIC_AUTHORIZATION_FAILED,
    LaterCode.GROUP_AUTHORIZATION_FAILED,
    LaterCode.CLUSTER_AUTHORIZATION_FAILED,
)


topic_not_found = partial(RestError, 404, 40401, "Topic not found.")
partition_not_found = partial(RestError, 404, 40402, "Partition not found.")
instance_not_found = partial(RestError, 404, 40403, "Consumer instance not found.")
leader_not_available = partial(RestError, 404, 40404, "Leader not available.")
format_mismatch = partial(
    RestError,
    406,
    40601,
    "The requested embedded data format does not match the deserializer for this consumer instance",
)
already_subscribed = partial(  # the doubled word is the original's
    RestError,
    409,
    40901,
    "Consumer cannot subscribe the the specified target because it has already subscribed to other "
    "topics.",
)
instance_exists = partial(
    RestError,
    409,
    40902,
    "Consumer with specified consumer ID already exists in the specified consumer group.",
)


def illegal_state(reason: str) -> RestError:
    return RestError(409, 40903, f"Illegal state: {reason}")


def bad_entity(reason: str) -> RestError:
    """A body, or a part of a query, that is JSON but not valid."""
    return RestError(422, 422, reason)


def bad_consumer_config(reason: str) -> RestError:
    return RestError(422, 42204, f"Invalid consumer configuration: {reason}")


def config_out_of_bounds(reason: str) -> RestError:
    return RestError(422, 40001, f"Invalid consumer configuration: {reason}")


def plain(status: int, reason: str) -> RestError:
    """An error without a code of its own."""
    return RestError(status, status, reason)


def refusal(status: int, reason: str) -> tuple[str, bytes]:
    """The type and the body of an answer to a request that the server refuses by itself."""
    return "application/json", json.dumps(plain(status, reason).body).encode()


def kafka_error(error: BaseException) -> RestError:
    """The answer to an error of ZooKeeper, of a broker or of a connection to one."""
    if isinstance(error, ZkError):
        return RestError(500, 50001, f"Zookeeper error: {error}")
    if isinstance(error, AdminNotServedError):
        return RestError(400, BAD_REQUEST, str(error))
    if isinstance(error, RemoteError):
        return _remote_error(error)
    code = code_of(error)
    kind = "Retriable Kafka error" if code == RETRIABLE_KAFKA_ERROR else "Kafka error"
    return RestError(500, code, f"{kind}: {error}")


def _remote_error(error: RemoteError) -> RestError:
    """A refusal by a broker: of what the proxy may not do, of what was asked for, or a fault."""
    code = error.wire_code
    if code in _AUTHORIZATION_CODES:
        return RestError(403, _FORBIDDEN, str(error))
    if for_code(code).retriable:
        return RestError(500, RETRIABLE_KAFKA_ERROR, f"Retriable Kafka error: {error}")
    if code == UnknownError.code:
        return RestError(500, KAFKA_ERROR, f"Kafka error: {error}")
    return RestError(400, BAD_REQUEST, str(error))


def code_of(error: BaseException) -> int:
    """50003 for errors that may pass when the request is sent again, otherwise 50002."""
    retriable = isinstance(error, OSError) or (isinstance(error, KafkaError) and error.retriable)
    return RETRIABLE_KAFKA_ERROR if retriable else KAFKA_ERROR
