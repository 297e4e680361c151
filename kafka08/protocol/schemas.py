"""Every API of 0.8.2.2, declared once; codecs, docs and names derive from these classes.

The order is that of the API keys; field order is wire order. Sources: kafka.api.* and
org.apache.kafka.common.protocol.Protocol of 0.8.2.2.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, Protocol

from kafka08.protocol.types import (
    Doc,
    Records,
    Strict,
    boolean,
    int16,
    int32,
    int64,
    nullable_string,
    strict_string,
    string,
)

CONSUMER_REPLICA_ID = -1
DEBUG_REPLICA_ID = -2
NO_LEADER = -1
LEADER_DURING_DELETE = -2


class Sized(Protocol):
    """Bytes, a memoryview or a file slice: something a message set can be made of."""

    def __len__(self) -> int: ...


record_bytes = Annotated[memoryview, Records("message set")]
sized_bytes = Annotated[Sized, Records("message set")]


class RequestHeader(NamedTuple):
    """Opens every request but ControlledShutdown."""

    api_key: int16
    api_version: Annotated[int16, Doc("not checked by 0.8.2.2, except on OffsetCommit")]
    correlation_id: Annotated[int32, Doc("echoed verbatim")]
    client_id: Annotated[nullable_string, Doc("for logs and metrics only")]


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


class ProducePartitionResponse(NamedTuple):
    partition: int32
    error: int16
    base_offset: Annotated[int64, Doc("offset of the first message; -1 on error or empty set")]


class ProduceTopicResponse(NamedTuple):
    topic: string
    partitions: list[ProducePartitionResponse]


class ProduceResponse(NamedTuple):
    topics: list[ProduceTopicResponse]


# 1 Fetch


class FetchPartition(NamedTuple):
    partition: int32
    offset: int64
    max_bytes: Annotated[int32, Doc("for this partition")]


class FetchTopic(NamedTuple):
    topic: string
    partitions: list[FetchPartition]


class FetchRequest(NamedTuple):
    """Read raw log bytes, waiting for them if asked to."""

    replica_id: Annotated[int32, Doc("-1 consumer, -2 debug, else the follower's id")]
    max_wait_ms: int32
    min_bytes: Annotated[int32, Doc("over all partitions together")]
    topics: list[FetchTopic]


class FetchPartitionResponse(NamedTuple):
    partition: int32
    error: int16
    high_watermark: Annotated[int64, Doc("offset after the last readable message; -1 on error")]
    message_set: Annotated[sized_bytes, Doc("may end inside an entry")]


class FetchTopicResponse(NamedTuple):
    topic: string
    partitions: list[FetchPartitionResponse]


class FetchResponse(NamedTuple):
    topics: list[FetchTopicResponse]


# 2 Offsets


class OffsetsPartition(NamedTuple):
    partition: int32
    time: Annotated[int64, Doc("-1 latest, -2 earliest, else segment file time in ms")]
    max_num_offsets: int32


class OffsetsTopic(NamedTuple):
    topic: string
    partitions: list[OffsetsPartition]


class OffsetsRequest(NamedTuple):
    """Offsets of segments older than a time (ListOffsets)."""

    replica_id: int32
    topics: list[OffsetsTopic]


class OffsetsPartitionResponse(NamedTuple):
    partition: int32
    error: int16
    offsets: Annotated[list[int64], Doc("descending")]


class OffsetsTopicResponse(NamedTuple):
    topic: string
    partitions: list[OffsetsPartitionResponse]


class OffsetsResponse(NamedTuple):
    topics: list[OffsetsTopicResponse]


# 3 Metadata


class MetadataRequest(NamedTuple):
    """Get brokers, topics and leaders. Creates the named topics if the broker allows it."""

    topics: Annotated[list[string], Strict(), Doc("empty = all topics")]


class BrokerEndpoint(NamedTuple):
    node_id: int32
    host: string
    port: int32


class PartitionMetadata(NamedTuple):
    error: int16
    partition: int32
    leader: Annotated[int32, Doc("-1 = none")]
    replicas: list[int32]
    isr: list[int32]


class TopicMetadata(NamedTuple):
    error: int16
    topic: string
    partitions: Annotated[list[PartitionMetadata], Doc("empty whenever error is not 0")]


class MetadataResponse(NamedTuple):
    brokers: list[BrokerEndpoint]
    topics: list[TopicMetadata]


class PaddedMetadataResponse(NamedTuple):
    """A MetadataResponse with bytes after its end, for clients known to ignore them."""

    brokers: list[BrokerEndpoint]
    topics: list[TopicMetadata]
    padding: Annotated[bytes, Records("bytes")]


# 4 LeaderAndIsr, 5 StopReplica, 6 UpdateMetadata, 7 ControlledShutdown: between brokers


class PartitionState(NamedTuple):
    """kafka.api.PartitionStateInfo, with topic and partition in front as on the wire."""

    topic: string
    partition: int32
    controller_epoch: Annotated[int32, Doc("of the controller that last wrote the state")]
    leader: Annotated[int32, Doc("-1 none, -2 topic being deleted")]
    leader_epoch: int32
    isr: list[int32]
    zk_version: Annotated[int32, Doc("for the next conditional write of the state node")]
    replicas: list[int32]


class LeaderAndIsrRequest(NamedTuple):
    """The controller tells a broker which partitions it leads and follows."""

    controller_id: int32
    controller_epoch: int32
    partitions: list[PartitionState]
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
    """The controller tells a broker to stop following, and perhaps to delete."""

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
    partitions: list[PartitionState]
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


class OffsetCommitPartitionV0(NamedTuple):
    partition: int32
    offset: int64
    metadata: nullable_string


class OffsetCommitTopicV0(NamedTuple):
    topic: string
    partitions: list[OffsetCommitPartitionV0]


class OffsetCommitRequestV0(NamedTuple):
    """Commit to ZooKeeper through any broker."""

    group: string
    topics: list[OffsetCommitTopicV0]


class OffsetCommitPartitionV1(NamedTuple):
    partition: int32
    offset: int64
    timestamp: Annotated[int64, Doc("ms; -1 = now; drives expiry")]
    metadata: nullable_string


class OffsetCommitTopicV1(NamedTuple):
    topic: string
    partitions: list[OffsetCommitPartitionV1]


class OffsetCommitRequestV1(NamedTuple):
    """Commit to ``__consumer_offsets`` through the group's coordinator."""

    group: string
    generation: Annotated[int32, Doc("not checked")]
    consumer_id: Annotated[string, Doc("not checked")]
    topics: list[OffsetCommitTopicV1]


class OffsetCommitPartitionResponse(NamedTuple):
    partition: int32
    error: int16


class OffsetCommitTopicResponse(NamedTuple):
    topic: string
    partitions: list[OffsetCommitPartitionResponse]


class OffsetCommitResponse(NamedTuple):
    topics: list[OffsetCommitTopicResponse]


class OffsetFetchTopic(NamedTuple):
    topic: string
    partitions: list[int32]


class OffsetFetchRequest(NamedTuple):
    """Offsets committed with version 1, from the group's coordinator. Not version 0 is 1."""

    group: string
    topics: list[OffsetFetchTopic]


class OffsetFetchRequestV0(OffsetFetchRequest):
    """Offsets committed with version 0, from ZooKeeper, through any broker. Same bytes."""

    __slots__ = ()


class OffsetFetchPartitionResponse(NamedTuple):
    partition: int32
    offset: int64
    metadata: string
    error: int16


class OffsetFetchTopicResponse(NamedTuple):
    topic: string
    partitions: list[OffsetFetchPartitionResponse]


class OffsetFetchResponse(NamedTuple):
    topics: list[OffsetFetchTopicResponse]


class ConsumerMetadataRequest(NamedTuple):
    """Find the broker that coordinates a group."""

    group: string


class ConsumerMetadataResponse(NamedTuple):
    error: int16
    coordinator_id: Annotated[int32, Doc("-1 on error")]
    host: string
    port: Annotated[int32, Doc("-1 on error")]


# 11 JoinGroup, 12 Heartbeat: stubs that always answer -1


class JoinGroupRequest(NamedTuple):
    """Not the layout of 0.9. A null string closes."""

    group: strict_string
    session_timeout_ms: int32
    topics: Annotated[list[strict_string], Strict()]
    consumer_id: strict_string
    strategy: strict_string


class JoinGroupTopic(NamedTuple):
    topic: string
    partitions: list[int32]


class JoinGroupResponse(NamedTuple):
    error: int16
    generation: int32
    consumer_id: string
    topics: list[JoinGroupTopic]


class HeartbeatRequest(NamedTuple):
    """Never used by a client of that time."""

    group: strict_string
    generation: int32
    consumer_id: strict_string


class HeartbeatResponse(NamedTuple):
    error: int16


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
