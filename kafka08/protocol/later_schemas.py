"""APIs of data and brokers that 0.8.2.2 does not have, declared once for all their versions."""

from typing import Annotated, NamedTuple

from kafka08.protocol.schemas import DEBUG_REPLICA_ID, NO_EPOCH
from kafka08.protocol.types import (
    Compact,
    Doc,
    Since,
    Strict,
    blob,
    int16,
    int32,
    int64,
    nullable_string,
    strict_string,
    string,
    tagged_fields,
)

# 17 SaslHandshake


class SaslHandshakeRequest(NamedTuple):
    """Begin a login with a mechanism. Its tokens follow: after version 0 as frames of their own,
    after version 1 in SaslAuthenticate."""

    mechanism: strict_string


class SaslHandshakeResponse(NamedTuple):
    error: int16
    mechanisms: Annotated[list[string], Doc("those of the listener")]


# 18 ApiVersions


class ApiVersionsRequest(NamedTuple):
    """Which APIs the broker serves, in which versions."""

    client_software_name: Annotated[strict_string, Compact(), Since(3)] = ""
    client_software_version: Annotated[strict_string, Compact(), Since(3)] = ""
    tags: Annotated[tagged_fields, Since(3)] = None


class UnsupportedApiVersionsRequest(NamedTuple):
    """An ApiVersionsRequest in a version that is not served: answered in version 0, code 35."""


class ServedVersions(NamedTuple):
    api_key: int16
    min_version: int16
    max_version: int16
    tags: Annotated[tagged_fields, Since(3)] = None


class ApiVersionsResponse(NamedTuple):
    error: int16
    api_keys: Annotated[list[ServedVersions], Compact(3)]
    throttle_time_ms: Annotated[int32, Since(1)] = 0
    tags: Annotated[tagged_fields, Since(3)] = None


# 36 SaslAuthenticate


class SaslAuthenticateRequest(NamedTuple):
    """A token of the login."""

    auth_bytes: blob


class SaslAuthenticateResponse(NamedTuple):
    error: int16
    error_message: nullable_string
    auth_bytes: blob
    session_lifetime_ms: Annotated[int64, Since(1), Doc("0: the login does not expire")] = 0


# 22 InitProducerId


class InitProducerIdRequest(NamedTuple):
    """Get an id for an idempotent producer, or begin to use a transactional id: what a former
    producer with it has begun is aborted, and that producer is fenced."""

    transactional_id: Annotated[nullable_string, Compact(2), Doc("null: idempotent alone")]
    transaction_timeout_ms: int32
    producer_id: Annotated[
        int64, Since(3), Doc("of the same producer, after an error; -1 = a new one")
    ] = -1
    producer_epoch: Annotated[int16, Since(3)] = -1
    tags: Annotated[tagged_fields, Since(2)] = None


class InitProducerIdResponse(NamedTuple):
    throttle_time_ms: int32
    error: int16
    producer_id: Annotated[int64, Doc("-1 on error")]
    producer_epoch: Annotated[int16, Doc("-1 on error")]
    tags: Annotated[tagged_fields, Since(2)] = None
    header_tags: Annotated[
        tagged_fields, Since(2, before="throttle_time_ms"), Doc("of the header")
    ] = None


# 23 OffsetForLeaderEpoch


class EpochPartition(NamedTuple):
    partition: int32
    leader_epoch: int32
    current_leader_epoch: Annotated[int32, Since(2, before="leader_epoch")] = NO_EPOCH


class EpochTopic(NamedTuple):
    topic: strict_string
    partitions: Annotated[list[EpochPartition], Strict()]


class OffsetForLeaderEpochRequest(NamedTuple):
    """The end offsets of leader epochs, by which a reader finds where its log differs."""

    topics: Annotated[list[EpochTopic], Strict()]
    replica_id: Annotated[int32, Since(3, before="topics")] = DEBUG_REPLICA_ID


class EpochPartitionResponse(NamedTuple):
    error: int16
    partition: int32
    end_offset: int64
    leader_epoch: Annotated[int32, Since(1, before="end_offset")] = NO_EPOCH


class EpochTopicResponse(NamedTuple):
    topic: string
    partitions: list[EpochPartitionResponse]


class OffsetForLeaderEpochResponse(NamedTuple):
    topics: list[EpochTopicResponse]
    throttle_time_ms: Annotated[int32, Since(2, before="topics")] = 0
