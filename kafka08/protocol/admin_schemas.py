"""Administration of topics, settings and groups: APIs of later releases, for all their versions.

Keys, layouts and error codes are those of later Kafka releases. A broker that has
``api.versions.enable`` off serves APIs 15, 19, 20, 32, 33 and 37 in version 0 (19 also in 1), and
closes the connection over the others, as an original broker does over all of them.
"""

from typing import Annotated, NamedTuple

from kafka08.errors import NO_ERROR
from kafka08.protocol.schemas import NOT_ASKED, operations
from kafka08.protocol.types import (
    Compact,
    Doc,
    Nullable,
    Since,
    Strict,
    Until,
    blob,
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

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
BROKER_DEFAULT = -1
SET_CONFIG, DELETE_CONFIG, APPEND_CONFIG, SUBTRACT_CONFIG = range(4)
TOPIC_CONFIG, DYNAMIC_BROKER_CONFIG, DYNAMIC_DEFAULT_BROKER_CONFIG = 1, 2, 3
STATIC_BROKER_CONFIG, DEFAULT_CONFIG = 4, 5
SOURCES = {
    TOPIC_CONFIG: "DYNAMIC_TOPIC_CONFIG",
    DYNAMIC_BROKER_CONFIG: "DYNAMIC_BROKER_CONFIG",
    DYNAMIC_DEFAULT_BROKER_CONFIG: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    STATIC_BROKER_CONFIG: "STATIC_BROKER_CONFIG",
    DEFAULT_CONFIG: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
}
"""The names of the sources of a setting."""


# 15 DescribeGroups


class DescribeGroupsRequest(NamedTuple):
    """Describe consumer groups: those of this coordinator, else as in their nodes in ZooKeeper."""

    groups: list[string]
    include_authorized_operations: Annotated[boolean, Since(3)] = False


class GroupMember(NamedTuple):
    member_id: Annotated[string, Doc("in a ZooKeeper group the consumer id")]
    client_id: Annotated[string, Doc("empty in a ZooKeeper group")]
    client_host: Annotated[string, Doc("empty in a ZooKeeper group")]
    metadata: Annotated[
        blob,
        Doc(
            "in a ZooKeeper group its registration; empty if it owns partitions but is not a member"
        ),
    ]
    assignment: Annotated[blob, Doc('in a ZooKeeper group JSON, {"topic":{"0":"<thread id>"}}')]
    group_instance_id: Annotated[nullable_string, Since(4, before="client_id")] = None


class DescribedGroup(NamedTuple):
    error: int16
    group: string
    state: Annotated[string, Doc('"Stable"; "Empty" without members; "Dead" without any node')]
    protocol_type: Annotated[string, Doc('"zookeeper" for a ZooKeeper group')]
    protocol: Annotated[string, Doc("empty in a ZooKeeper group: members do not publish it")]
    members: list[GroupMember]
    authorized_operations: Annotated[operations, Since(3)] = NOT_ASKED


class DescribeGroupsResponse(NamedTuple):
    groups: list[DescribedGroup]
    throttle_time_ms: Annotated[int32, Since(1, before="groups")] = 0


# 19 CreateTopics


class ReplicaAssignment(NamedTuple):
    partition: int32
    replicas: Annotated[list[int32], Doc("the preferred leader first")]


class TopicConfigEntry(NamedTuple):
    name: string
    value: Annotated[nullable_string, Doc("null = the default")]


class NewTopic(NamedTuple):
    topic: string
    num_partitions: Annotated[int32, Doc("-1 = the broker's default, or see assignment")]
    replication_factor: Annotated[int16, Doc("-1 = the broker's default, or see assignment")]
    assignment: Annotated[list[ReplicaAssignment], Doc("empty = automatic")]
    configs: list[TopicConfigEntry]


class CreateTopicsRequest(NamedTuple):
    """Create topics, and wait until they have leaders."""

    topics: list[NewTopic]
    timeout_ms: Annotated[int32, Doc("how long to wait for leaders; <= 0 not at all")]
    validate_only: Annotated[boolean, Since(1), Doc("check, change nothing")] = False


class CreateTopicsRequestV0(CreateTopicsRequest):
    """The same in version 0."""

    __slots__ = ()


class CreatedTopic(NamedTuple):
    topic: string
    error: int16
    message: Annotated[nullable_string, Since(1)] = None


class CreateTopicsResponse(NamedTuple):
    topics: list[CreatedTopic]
    throttle_time_ms: Annotated[int32, Since(2, before="topics")] = 0


# 20 DeleteTopics


class DeleteTopicsRequest(NamedTuple):
    """Mark topics for deletion, and wait until they are gone from metadata."""

    topics: list[string]
    timeout_ms: Annotated[int32, Doc("how long to wait; <= 0 not at all")]


class TopicErrorCode(NamedTuple):
    topic: string
    error: int16


class DeleteTopicsResponse(NamedTuple):
    topics: list[TopicErrorCode]
    throttle_time_ms: Annotated[int32, Since(1, before="topics")] = 0


# 21 DeleteRecords


class DeleteRecordsPartition(NamedTuple):
    partition: int32
    offset: Annotated[int64, Doc("the first to keep; -1 = the high watermark")]


class DeleteRecordsTopic(NamedTuple):
    topic: strict_string
    partitions: Annotated[list[DeleteRecordsPartition], Strict()]


class DeleteRecordsRequest(NamedTuple):
    """Delete the messages before an offset."""

    topics: Annotated[list[DeleteRecordsTopic], Strict()]
    timeout_ms: int32


class DeleteRecordsPartitionResponse(NamedTuple):
    partition: int32
    low_watermark: Annotated[int64, Doc("the first offset there is; -1 on error")]
    error: int16


class DeleteRecordsTopicResponse(NamedTuple):
    topic: string
    partitions: list[DeleteRecordsPartitionResponse]


class DeleteRecordsResponse(NamedTuple):
    throttle_time_ms: int32
    topics: list[DeleteRecordsTopicResponse]


# 32 DescribeConfigs


class DescribedResource(NamedTuple):
    resource_type: Annotated[int8, Doc("2 = topic, 4 = broker")]
    resource_name: Annotated[string, Doc("of a broker its id")]
    config_names: Annotated[list[string] | None, Nullable(), Doc("empty or null = all")]


class DescribeConfigsRequest(NamedTuple):
    """Read settings. A request without resources tests whether these APIs are served."""

    resources: list[DescribedResource]
    include_synonyms: Annotated[boolean, Since(1)] = False
    include_documentation: Annotated[boolean, Since(3)] = False


class DescribeConfigsRequestV1(DescribeConfigsRequest):
    """The same in version 1, which says where values come from."""

    __slots__ = ()


class ConfigSynonym(NamedTuple):
    name: string
    value: nullable_string
    source: int8


class ConfigEntry(NamedTuple):
    name: string
    value: nullable_string
    read_only: boolean
    is_default: Annotated[
        boolean, Until(0), Doc("true: the broker's value; false: the topic's own")
    ] = False
    is_sensitive: boolean = False
    source: Annotated[
        int8,
        Since(1, before="is_sensitive"),
        Doc("1 topic, 2 broker, 3 all brokers, 4 its file, 5 default"),
    ] = DEFAULT_CONFIG
    synonyms: Annotated[list[ConfigSynonym], Since(1), Doc("where the value comes from")] = []
    config_type: Annotated[int8, Since(3), Doc("0 unknown, 1 boolean, 2 string, 3 int, ...")] = 0
    documentation: Annotated[nullable_string, Since(3)] = None


class ResourceConfig(NamedTuple):
    error: int16
    message: nullable_string
    resource_type: int8
    resource_name: string
    entries: list[ConfigEntry]


class DescribeConfigsResponse(NamedTuple):
    throttle_time_ms: Annotated[int32, Doc("always 0")]
    resources: list[ResourceConfig]


# 33 AlterConfigs


class AlteredResource(NamedTuple):
    resource_type: Annotated[int8, Doc("2 = topic, 4 = broker")]
    resource_name: string
    configs: list[TopicConfigEntry]


class AlterConfigsRequest(NamedTuple):
    """Replace all own settings of a topic or a broker."""

    resources: list[AlteredResource]
    validate_only: Annotated[boolean, Doc("check, change nothing")]


class ResourceError(NamedTuple):
    error: int16
    message: nullable_string
    resource_type: int8
    resource_name: string


class AlterConfigsResponse(NamedTuple):
    throttle_time_ms: Annotated[int32, Doc("always 0")]
    resources: list[ResourceError]


# 37 CreatePartitions


class MorePartitions(NamedTuple):
    topic: string
    total_count: Annotated[int32, Doc("new number of partitions, including the existing ones")]
    assignment: Annotated[
        list[list[int32]] | None,
        Nullable(),
        Doc("replicas of each new one; empty or null = automatic"),
    ]


class CreatePartitionsRequest(NamedTuple):
    """Add partitions to topics, and wait until they have leaders."""

    topics: list[MorePartitions]
    timeout_ms: Annotated[int32, Doc("how long to wait for leaders; <= 0 not at all")]
    validate_only: Annotated[boolean, Doc("check, change nothing")]


class TopicError(NamedTuple):
    topic: string
    error: int16
    message: nullable_string


class CreatePartitionsResponse(NamedTuple):
    throttle_time_ms: int32
    topics: list[TopicError]


# 43 ElectLeaders


class ElectTopic(NamedTuple):
    topic: strict_string
    partitions: Annotated[list[int32], Strict()]


class ElectLeadersRequest(NamedTuple):
    """Elect leaders of partitions, and wait until they lead."""

    topics: Annotated[list[ElectTopic] | None, Nullable(), Doc("null = all partitions")]
    timeout_ms: int32
    election_type: Annotated[
        int8, Since(1, before="topics"), Doc("0 the preferred replica, 1 unclean")
    ] = 0


class ElectedPartition(NamedTuple):
    partition: int32
    error: int16
    message: nullable_string


class ElectedTopic(NamedTuple):
    topic: string
    partitions: list[ElectedPartition]


class ElectLeadersResponse(NamedTuple):
    throttle_time_ms: int32
    topics: list[ElectedTopic]
    error: Annotated[int16, Since(1, before="topics")] = 0


# 44 IncrementalAlterConfigs


class ConfigChange(NamedTuple):
    name: strict_string
    operation: Annotated[int8, Doc("0 set, 1 delete, 2 append to a list, 3 subtract from one")]
    value: nullable_string


class ChangedResource(NamedTuple):
    resource_type: Annotated[int8, Doc("2 = topic, 4 = broker")]
    resource_name: strict_string
    configs: Annotated[list[ConfigChange], Strict()]


class IncrementalAlterConfigsRequest(NamedTuple):
    """Change some own settings of a topic or a broker."""

    resources: Annotated[list[ChangedResource], Strict()]
    validate_only: Annotated[boolean, Doc("check, change nothing")]


class IncrementalAlterConfigsResponse(NamedTuple):
    throttle_time_ms: int32
    resources: list[ResourceError]


# 35 DescribeLogDirs


class LogDirsTopic(NamedTuple):
    topic: Annotated[strict_string, Compact(2)]
    partitions: Annotated[list[int32], Compact(2), Strict()]
    tags: Annotated[tagged_fields, Since(2)] = None


class DescribeLogDirsRequest(NamedTuple):
    """The data directories of this broker, and the replicas in them."""

    topics: Annotated[list[LogDirsTopic] | None, Compact(2), Nullable(), Doc("null = all")]
    tags: Annotated[tagged_fields, Since(2)] = None


class LogDirPartition(NamedTuple):
    partition: int32
    size: Annotated[int64, Doc("bytes of the log's segments")]
    offset_lag: Annotated[int64, Doc("behind the high watermark of the leader")]
    is_future: Annotated[boolean, Doc("always false: replicas do not move between directories")]
    tags: Annotated[tagged_fields, Since(2)] = None


class LogDirTopic(NamedTuple):
    topic: Annotated[string, Compact(2)]
    partitions: Annotated[list[LogDirPartition], Compact(2)]
    tags: Annotated[tagged_fields, Since(2)] = None


class LogDir(NamedTuple):
    error: Annotated[int16, Doc("56 if the directory has failed")]
    path: Annotated[string, Compact(2)]
    topics: Annotated[list[LogDirTopic], Compact(2)]
    total_bytes: Annotated[int64, Since(4), Doc("of its disk; -1 if unknown")] = -1
    usable_bytes: Annotated[int64, Since(4), Doc("of those, the free ones; -1 if unknown")] = -1
    tags: Annotated[tagged_fields, Since(2)] = None


class DescribeLogDirsResponse(NamedTuple):
    throttle_time_ms: int32
    log_dirs: Annotated[list[LogDir], Compact(2)]
    error: Annotated[int16, Since(3, before="log_dirs")] = NO_ERROR
    tags: Annotated[tagged_fields, Since(2)] = None
