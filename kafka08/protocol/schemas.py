"""Data, metadata, offsets and replication: these APIs, declared once for all their versions.

Codecs, docs and names derive from the classes. The order is that of the API keys. Version 0 (of
OffsetCommit and OffsetFetch also 1) is that of 0.8.2.2, from kafka.api.* and
org.apache.kafka.common.protocol.Protocol; what has a ``Since`` is of later releases.
"""

from typing import Annotated, Any, NamedTuple, Protocol, TypeAlias

from kafka08.protocol.types import (
    Compact,
    Doc,
    Nullable,
    Records,
    Since,
    Strict,
    Trailing,
    Until,
    boolean,
    int8,
    int16,
    int32,
    int64,
    nullable_string,
    strict_string,
    string,
    tagged_fields,
)

CONSUMER_REPLICA_ID = -1
DEBUG_REPLICA_ID = -2
NO_LEADER = -1
LEADER_DURING_DELETE = -2
NO_EPOCH = -1
NO_TIMESTAMP = -1
READ_COMMITTED = 1
"""The isolation level of readers who want no message of a transaction that is open or aborted."""
NOT_ASKED = -(2**31)
"""Authorized operations of a request that does not ask for them."""

Message: TypeAlias = Any
"""A request, an answer, or a part of either, of whatever API: each has a class of its own."""


class Sized(Protocol):
    """Bytes, a memoryview or a file slice: something a message set can be made of."""

    def __len__(self) -> int: ...


known_epoch = Annotated[int32, Doc("-1 = not known")]
operations = Annotated[int32, Doc("-2147483648 = not asked for")]
record_bytes = Annotated[bytes | bytearray | memoryview, Records("message set")]
sized_bytes = Annotated[Sized, Records("message set")]


class RequestHeader(NamedTuple):
    """Opens every request but ControlledShutdown and ApiVersions 3."""

    api_key: int16
    api_version: Annotated[int16, Doc("not checked by 0.8.2.2, except on OffsetCommit")]
    correlation_id: Annotated[int32, Doc("echoed verbatim")]
    client_id: Annotated[nullable_string, Doc("for logs and metrics only")]


class FlexibleHeader(NamedTuple):
    """Opens ApiVersions from version 3 on."""

    api_key: int16
    api_version: int16
    correlation_id: int32
    client_id: nullable_string
    tags: tagged_fields = None


class AnonymousHeader(NamedTuple):
    """Opens ControlledShutdown: the client id is missing."""

    api_key: int16
    api_version: int16
    correlation_id: int32


# 0 Produce


class ProducePartition(NamedTuple):
    partition: int32
    message_set: Annotated[record_bytes, Doc("offsets in it are ignored")]


class ProduceTopic(NamedTuple):
    topic: string
    partitions: list[ProducePartition]


class ProduceRequest(NamedTuple):
    """Append message sets. A request with acks 0 is not answered."""

    acks: Annotated[int16, Doc("0 none, 1 leader, -1 whole isr, N>1 deprecated")]
    timeout_ms: Annotated[int32, Doc("how long acks other than 0 and 1 may take")]
    topics: list[ProduceTopic]
    transactional_id: Annotated[nullable_string, Since(3, before="acks")] = None


class RecordError(NamedTuple):
    batch_index: Annotated[int32, Doc("of the record in its batch")]
    message: nullable_string


class ProducePartitionResponse(NamedTuple):
    partition: int32
    error: int16
    base_offset: Annotated[int64, Doc("offset of the first message; -1 on error or empty set")]
    log_append_time: Annotated[
        int64, Since(2), Doc("ms; -1 unless the topic has LogAppendTime")
    ] = NO_TIMESTAMP
    log_start_offset: Annotated[int64, Since(5)] = -1
    record_errors: Annotated[list[RecordError], Since(8)] = []
    error_message: Annotated[nullable_string, Since(8)] = None


class ProduceTopicResponse(NamedTuple):
    topic: string
    partitions: list[ProducePartitionResponse]


class ProduceResponse(NamedTuple):
    topics: list[ProduceTopicResponse]
    throttle_time_ms: Annotated[int32, Since(1)] = 0


# 1 Fetch


class FetchPartition(NamedTuple):
    partition: int32
    offset: int64
    max_bytes: Annotated[int32, Doc("for this partition")]
    current_leader_epoch: Annotated[known_epoch, Since(9, before="offset")] = NO_EPOCH
    log_start_offset: Annotated[
        int64,
        Since(5, before="max_bytes"),
        Doc("the first offset that a follower would serve; -1 from consumers"),
    ] = -1


class FetchTopic(NamedTuple):
    topic: string
    partitions: list[FetchPartition]


class ForgottenTopic(NamedTuple):
    topic: string
    partitions: list[int32]


class FetchRequest(NamedTuple):
    """Read raw log bytes, waiting for them if asked to."""

    replica_id: Annotated[int32, Doc("-1 consumer, -2 debug, else the follower's id")]
    max_wait_ms: int32
    min_bytes: Annotated[int32, Doc("over all partitions together")]
    topics: list[FetchTopic]
    max_bytes: Annotated[
        int32, Since(3, before="topics"), Doc("over all partitions; one batch is always whole")
    ] = 0x7FFFFFFF
    isolation_level: Annotated[
        int8, Since(4, before="topics"), Doc("0 all, 1 committed transactions only")
    ] = 0
    session_id: Annotated[int32, Since(7, before="topics")] = 0
    session_epoch: Annotated[int32, Since(7, before="topics"), Doc("-1 = no session")] = -1
    forgotten_topics: Annotated[list[ForgottenTopic], Since(7), Doc("leave the session")] = []
    rack: Annotated[string, Since(11)] = ""


class AbortedTransaction(NamedTuple):
    producer_id: int64
    first_offset: int64


class FetchPartitionResponse(NamedTuple):
    partition: int32
    error: int16
    high_watermark: Annotated[int64, Doc("offset after the last readable message; -1 on error")]
    message_set: Annotated[sized_bytes, Nullable(1), Doc("may end inside an entry")]
    last_stable_offset: Annotated[int64, Since(4, before="message_set")] = -1
    log_start_offset: Annotated[
        int64,
        Since(5, before="message_set"),
        Doc("to followers: up to where records were deleted"),
    ] = -1
    aborted_transactions: Annotated[
        list[AbortedTransaction] | None, Nullable(), Since(4, before="message_set")
    ] = None
    preferred_read_replica: Annotated[
        int32, Since(11, before="message_set"), Doc("-1 = this broker")
    ] = -1


class FetchTopicResponse(NamedTuple):
    topic: string
    partitions: list[FetchPartitionResponse]


class FetchResponse(NamedTuple):
    topics: list[FetchTopicResponse]
    throttle_time_ms: Annotated[int32, Since(1, before="topics")] = 0
    error: Annotated[int16, Since(7, before="topics")] = 0
    session_id: Annotated[int32, Since(7, before="topics"), Doc("0 = there is none")] = 0


# 2 Offsets


class OffsetsPartition(NamedTuple):
    partition: int32
    time: Annotated[
        int64, Doc("-1 latest, -2 earliest, else ms: of segment files (v0), of messages (v1 on)")
    ]
    max_num_offsets: Annotated[int32, Until(0)] = 1
    current_leader_epoch: Annotated[known_epoch, Since(4, before="time")] = NO_EPOCH


class OffsetsTopic(NamedTuple):
    topic: string
    partitions: list[OffsetsPartition]


class OffsetsRequest(NamedTuple):
    """Offsets by time (ListOffsets): of segments in version 0, of messages from 1 on."""

    replica_id: int32
    topics: list[OffsetsTopic]
    isolation_level: Annotated[int8, Since(2, before="topics")] = 0


class ListOffsetsRequest(OffsetsRequest):
    """The same from version 1 on: each answer is one offset, by the times of messages."""

    __slots__ = ()


class OffsetsPartitionResponse(NamedTuple):
    partition: int32
    error: int16
    offsets: Annotated[list[int64], Until(0), Doc("descending")] = []
    timestamp: Annotated[int64, Since(1), Doc("ms, of the message; -1 = none")] = NO_TIMESTAMP
    offset: Annotated[int64, Since(1), Doc("-1 = there is none")] = -1
    leader_epoch: Annotated[int32, Since(4)] = NO_EPOCH


class OffsetsTopicResponse(NamedTuple):
    topic: string
    partitions: list[OffsetsPartitionResponse]


class OffsetsResponse(NamedTuple):
    topics: list[OffsetsTopicResponse]
    throttle_time_ms: Annotated[int32, Since(2, before="topics")] = 0


# 3 Metadata


class MetadataRequest(NamedTuple):
    """Get brokers, topics and leaders. Creates the named topics if the broker allows it."""

    topics: Annotated[
        list[string] | None,
        Strict(),
        Nullable(1),
        Doc("all topics: an empty array in version 0, null from 1 on"),
    ]
    allow_auto_topic_creation: Annotated[boolean, Since(4)] = True
    include_cluster_authorized_operations: Annotated[boolean, Since(8)] = False
    include_topic_authorized_operations: Annotated[boolean, Since(8)] = False


class BrokerEndpoint(NamedTuple):
    node_id: int32
    host: string
    port: int32
    rack: Annotated[nullable_string, Since(1)] = None


class PartitionMetadata(NamedTuple):
    error: int16
    partition: int32
    leader: Annotated[int32, Doc("-1 = none")]
    replicas: list[int32]
    isr: list[int32]
    leader_epoch: Annotated[int32, Since(7, before="replicas")] = NO_EPOCH
    offline_replicas: Annotated[
        list[int32], Since(5), Doc("those on brokers that are not live")
    ] = []


class TopicMetadata(NamedTuple):
    error: int16
    topic: string
    partitions: Annotated[list[PartitionMetadata], Doc("empty whenever error is not 0")]
    is_internal: Annotated[boolean, Since(1, before="partitions")] = False
    authorized_operations: Annotated[operations, Since(8)] = NOT_ASKED


class MetadataResponse(NamedTuple):
    brokers: list[BrokerEndpoint]
    topics: list[TopicMetadata]
    throttle_time_ms: Annotated[int32, Since(3, before="brokers")] = 0
    cluster_id: Annotated[nullable_string, Since(2, before="topics")] = None
    controller_id: Annotated[
        int32, Since(1, before="topics"), Doc("a broker that serves administrative requests")
    ] = -1
    authorized_operations: Annotated[operations, Since(8)] = NOT_ASKED


class PaddedMetadataResponse(NamedTuple):
    """A MetadataResponse with bytes after its end, for clients known to ignore them."""

    brokers: list[BrokerEndpoint]
    topics: list[TopicMetadata]
    padding: Annotated[bytes, Records("bytes")]
    throttle_time_ms: Annotated[int32, Since(3, before="brokers")] = 0
    cluster_id: Annotated[nullable_string, Since(2, before="topics")] = None
    controller_id: Annotated[int32, Since(1, before="topics")] = -1
    authorized_operations: Annotated[int32, Since(8, before="padding")] = NOT_ASKED


# 4 LeaderAndIsr, 5 StopReplica, 6 UpdateMetadata, 7 ControlledShutdown: between brokers


class PartitionStateInfo(NamedTuple):
    """As in kafka.api, with topic and partition in front as on the wire."""

    topic: string
    partition: int32
    controller_epoch: Annotated[int32, Doc("of the controller that last wrote the state")]
    leader: Annotated[int32, Doc("-1 none, -2 topic being deleted")]
    leader_epoch: int32
    isr: list[int32]
    zk_version: Annotated[int32, Doc("for the next conditional write of the state node")]
    replicas: list[int32]


class LeaderAndIsrRequest(NamedTuple):
    """The controller sends a broker the partitions that it leads and follows."""

    controller_id: int32
    controller_epoch: int32
    partitions: list[PartitionStateInfo]
    leaders: Annotated[list[BrokerEndpoint], Doc("the live brokers that lead one of them")]


class PartitionError(NamedTuple):
    topic: string
    partition: int32
    error: int16


class LeaderAndIsrResponse(NamedTuple):
    error: int16
    partitions: list[PartitionError]


class StopReplicaPartition(NamedTuple):
    topic: string
    partition: int32


class StopReplicaRequest(NamedTuple):
    """The controller orders a broker to stop following, and perhaps to delete."""

    controller_id: int32
    controller_epoch: int32
    delete_partitions: Annotated[boolean, Doc("0 or 1; other values close")]
    partitions: list[StopReplicaPartition]


class StopReplicaResponse(NamedTuple):
    error: int16
    partitions: list[PartitionError]


class UpdateMetadataRequest(NamedTuple):
    """The controller's view of partitions and live brokers, for Metadata replies."""

    controller_id: int32
    controller_epoch: int32
    partitions: list[PartitionStateInfo]
    live_brokers: Annotated[list[BrokerEndpoint], Doc("replaces the list known before")]


class UpdateMetadataResponse(NamedTuple):
    error: int16


class ControlledShutdownRequest(NamedTuple):
    """A broker about to stop asks the controller to move its leaderships."""

    broker_id: int32


class ControlledShutdownResponse(NamedTuple):
    error: int16
    partitions_remaining: Annotated[
        list[StopReplicaPartition], Doc("still led by the sender, with replication above 1")
    ]


# 8 OffsetCommit, 9 OffsetFetch, 10 ConsumerMetadata


class OffsetCommitPartition(NamedTuple):
    partition: int32
    offset: int64
    metadata: nullable_string
    timestamp: Annotated[
        int64, Since(1, before="metadata"), Until(1), Doc("ms; -1 = now; drives expiry")
    ] = NO_TIMESTAMP
    leader_epoch: Annotated[int32, Since(6, before="metadata")] = NO_EPOCH


class OffsetCommitTopic(NamedTuple):
    topic: string
    partitions: list[OffsetCommitPartition]


class OffsetCommitRequest(NamedTuple):
    """Commit to ``__consumer_offsets`` through the group's coordinator (version 1 on)."""

    group: string
    topics: list[OffsetCommitTopic]
    generation: Annotated[int32, Since(1, before="topics"), Doc("not checked in version 1")] = -1
    member_id: Annotated[string, Since(1, before="topics"), Doc("not checked in version 1")] = ""
    group_instance_id: Annotated[nullable_string, Since(7, before="topics")] = None
    retention_time_ms: Annotated[
        int64, Since(2, before="topics"), Until(4), Doc("0 and -1 = the broker's default")
    ] = -1


class OffsetCommitRequestV0(OffsetCommitRequest):
    """The same in version 0: commit to ZooKeeper through any broker."""

    __slots__ = ()


class OffsetCommitPartitionResponse(NamedTuple):
    partition: int32
    error: int16


class OffsetCommitTopicResponse(NamedTuple):
    topic: string
    partitions: list[OffsetCommitPartitionResponse]


class OffsetCommitResponse(NamedTuple):
    topics: list[OffsetCommitTopicResponse]
    throttle_time_ms: Annotated[int32, Since(3, before="topics")] = 0


class OffsetFetchTopic(NamedTuple):
    topic: Annotated[string, Compact(6)]
    partitions: Annotated[list[int32], Compact(6)]
    tags: Annotated[tagged_fields, Since(6)] = None


class OffsetFetchRequest(NamedTuple):
    """Offsets committed with version 1 or later, from the group's coordinator (version 1 on)."""

    group: Annotated[string, Compact(6)]
    topics: Annotated[
        list[OffsetFetchTopic] | None, Compact(6), Nullable(2), Doc("null = all of the group")
    ]
    require_stable: Annotated[
        boolean, Since(7), Doc("not while a transaction that is to commit them is open")
    ] = False
    tags: Annotated[tagged_fields, Since(6)] = None


class OffsetFetchRequestV0(OffsetFetchRequest):
    """The same in version 0: offsets committed with version 0, from ZooKeeper, by any broker."""

    __slots__ = ()


class OffsetFetchPartitionResponse(NamedTuple):
    partition: int32
    offset: int64
    metadata: Annotated[string, Compact(6), Nullable(2)]
    error: int16
    leader_epoch: Annotated[int32, Since(5, before="metadata")] = NO_EPOCH
    tags: Annotated[tagged_fields, Since(6)] = None


class OffsetFetchTopicResponse(NamedTuple):
    topic: Annotated[string, Compact(6)]
    partitions: Annotated[list[OffsetFetchPartitionResponse], Compact(6)]
    tags: Annotated[tagged_fields, Since(6)] = None


class OffsetFetchResponse(NamedTuple):
    topics: Annotated[list[OffsetFetchTopicResponse], Compact(6)]
    throttle_time_ms: Annotated[int32, Since(3, before="topics")] = 0
    error: Annotated[int16, Since(2)] = 0
    tags: Annotated[tagged_fields, Since(6)] = None
    header_tags: Annotated[
        tagged_fields, Since(6, before="throttle_time_ms"), Doc("of the header")
    ] = None


class ConsumerMetadataRequest(NamedTuple):
    """Find the broker that coordinates a group (FindCoordinator)."""

    group: string
    key_type: Annotated[
        int8, Since(1), Trailing(), Doc("0 group, 1 transaction; 0 if left out")
    ] = 0


class ConsumerMetadataResponse(NamedTuple):
    error: int16
    coordinator_id: Annotated[int32, Doc("-1 on error")]
    host: string
    port: Annotated[int32, Doc("-1 on error")]
    throttle_time_ms: Annotated[int32, Since(1, before="error")] = 0
    error_message: Annotated[nullable_string, Since(1, before="coordinator_id")] = None


# Records of __consumer_offsets, which these classes describe too


class OffsetKey(NamedTuple):
    """Key of a stored offset (OffsetManager.offsetCommitKey)."""

    version: Annotated[int16, Doc("0")]
    group: strict_string
    topic: strict_string
    partition: int32


class OffsetValue(NamedTuple):
    """Value of a stored offset (OffsetManager.offsetCommitValue); none at all once expired."""

    version: Annotated[int16, Doc("0")]
    offset: int64
    metadata: strict_string
    timestamp: Annotated[int64, Doc("ms")]
