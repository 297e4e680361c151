"""Administrative requests that 0.8.2.2 does not know: six APIs of later releases.

Their keys, layouts and error codes are those of later Kafka releases (15 in 0.9, 19 and 20 in
0.10.1, 32 and 33 in 0.11, 37 in 1.0), in the versions below. Null arrays are read and written
as empty ones. An original broker closes the connection over any of these keys. A kafka08 broker
closes it over the keys by which clients probe versions (16, 18).
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kafka08.protocol.types import (
    Doc,
    Records,
    boolean,
    int8,
    int16,
    int32,
    nullable_string,
    string,
)

blob = Annotated[bytes | memoryview, Records("bytes")]

TOPIC_RESOURCE = 2
BROKER_DEFAULT = -1

TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_REPLICA_ASSIGNMENT = 39
INVALID_CONFIG = 40
INVALID_REQUEST = 42

ERROR_NAMES = {
    TOPIC_ALREADY_EXISTS: "TopicAlreadyExists",
    INVALID_PARTITIONS: "InvalidPartitions",
    INVALID_REPLICATION_FACTOR: "InvalidReplicationFactor",
    INVALID_REPLICA_ASSIGNMENT: "InvalidReplicaAssignment",
    INVALID_CONFIG: "InvalidConfig",
    INVALID_REQUEST: "InvalidRequest",
}
"""Codes that 0.8.2.2 does not have, for these APIs alone."""


# 15 DescribeGroups


class DescribeGroupsRequest(NamedTuple):
    """Describe consumer groups, as stored in their nodes in ZooKeeper."""

    groups: list[string]


class GroupMember(NamedTuple):
    member_id: Annotated[string, Doc("the consumer id")]
    client_id: Annotated[string, Doc("always empty")]
    client_host: Annotated[string, Doc("always empty")]
    metadata: Annotated[
        blob, Doc("its registration; empty if it owns partitions but is not a member")
    ]
    assignment: Annotated[blob, Doc('JSON, {"topic":{"0":"<thread id>"}}')]


class DescribedGroup(NamedTuple):
    error: int16
    group: string
    state: Annotated[string, Doc('"Stable"; "Empty" without members; "Dead" without any node')]
    protocol_type: Annotated[string, Doc('"zookeeper"')]
    protocol: Annotated[string, Doc("always empty: members do not publish their strategy")]
    members: list[GroupMember]


class DescribeGroupsResponse(NamedTuple):
    groups: list[DescribedGroup]


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


class CreateTopicsRequestV0(NamedTuple):
    """Create topics, and wait until they have leaders."""

    topics: list[NewTopic]
    timeout_ms: Annotated[int32, Doc("how long to wait for leaders; <= 0 not at all")]


class CreateTopicsRequest(NamedTuple):
    """Create topics, and wait until they have leaders."""

    topics: list[NewTopic]
    timeout_ms: Annotated[int32, Doc("how long to wait for leaders; <= 0 not at all")]
    validate_only: Annotated[boolean, Doc("check, change nothing")]


class TopicErrorCode(NamedTuple):
    topic: string
    error: int16


class TopicError(NamedTuple):
    topic: string
    error: int16
    message: nullable_string


class CreateTopicsResponseV0(NamedTuple):
    topics: list[TopicErrorCode]


class CreateTopicsResponse(NamedTuple):
    topics: list[TopicError]


# 20 DeleteTopics


class DeleteTopicsRequest(NamedTuple):
    """Mark topics for deletion, and wait until they are gone from metadata."""

    topics: list[string]
    timeout_ms: Annotated[int32, Doc("how long to wait; <= 0 not at all")]


class DeleteTopicsResponse(NamedTuple):
    topics: list[TopicErrorCode]


# 32 DescribeConfigs


class DescribedResource(NamedTuple):
    resource_type: Annotated[int8, Doc("2 = topic, the only one served")]
    resource_name: string
    config_names: Annotated[list[string], Doc("empty = all")]


class DescribeConfigsRequest(NamedTuple):
    """Read topics' settings. A request without topics tests whether these APIs are served."""

    resources: list[DescribedResource]


class ConfigEntry(NamedTuple):
    name: string
    value: nullable_string
    read_only: boolean
    is_default: Annotated[boolean, Doc("true: the broker's value; false: the topic's own")]
    is_sensitive: boolean


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
    resource_type: Annotated[int8, Doc("2 = topic, the only one served")]
    resource_name: string
    configs: list[TopicConfigEntry]


class AlterConfigsRequest(NamedTuple):
    """Replace all of a topic's own settings."""

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
    assignment: Annotated[list[list[int32]], Doc("replicas of each new one; empty = automatic")]


class CreatePartitionsRequest(NamedTuple):
    """Add partitions to topics, and wait until they have leaders."""

    topics: list[MorePartitions]
    timeout_ms: Annotated[int32, Doc("how long to wait for leaders; <= 0 not at all")]
    validate_only: Annotated[boolean, Doc("check, change nothing")]


class CreatePartitionsResponse(NamedTuple):
    throttle_time_ms: Annotated[int32, Doc("always 0")]
    topics: list[TopicError]
