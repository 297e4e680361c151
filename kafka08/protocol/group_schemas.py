"""Groups that brokers coordinate: membership, and what tools ask about such groups.

Layouts and keys are those of later releases. In 0.8.2.2 only keys 11 and 12 exist, as stubs; its
layout of JoinGroup is another one (``JoinGroupStubRequest``). Brokers do not read the metadata of
members and their assignments.
"""

from typing import Annotated, NamedTuple

from kafka08.protocol.types import (
    Doc,
    Since,
    Strict,
    Until,
    blob,
    int16,
    int32,
    nullable_string,
    strict_string,
    string,
)

# 11 JoinGroup


class JoinGroupStubRequest(NamedTuple):
    """JoinGroup of 0.8.2.2, which always answers -1. A null string closes."""

    group: strict_string
    session_timeout_ms: int32
    topics: Annotated[list[strict_string], Strict()]
    member_id: strict_string
    strategy: strict_string


class JoinGroupStubTopic(NamedTuple):
    topic: string
    partitions: list[int32]


class JoinGroupStubResponse(NamedTuple):
    error: int16
    generation: int32
    member_id: string
    topics: list[JoinGroupStubTopic]


class GroupProtocol(NamedTuple):
    name: strict_string
    metadata: blob


class JoinGroupRequest(NamedTuple):
    """Become or stay a member of a group: answered when all members have joined."""

    group: strict_string
    session_timeout_ms: int32
    member_id: Annotated[strict_string, Doc("empty = a new member")]
    protocol_type: Annotated[strict_string, Doc('"consumer" for consumers')]
    protocols: Annotated[list[GroupProtocol], Strict(), Doc("the preferred one first")]
    rebalance_timeout_ms: Annotated[
        int32, Since(1, before="member_id"), Doc("-1, as in version 0, = the session timeout")
    ] = -1
    group_instance_id: Annotated[
        nullable_string, Since(5, before="protocol_type"), Doc("of a static member")
    ] = None


class JoinedMember(NamedTuple):
    member_id: string
    metadata: blob
    group_instance_id: Annotated[nullable_string, Since(5, before="metadata")] = None


class JoinGroupResponse(NamedTuple):
    error: int16
    generation: Annotated[int32, Doc("-1 on error")]
    protocol: string
    leader: string
    member_id: string
    members: Annotated[list[JoinedMember], Doc("empty except to the leader")]
    throttle_time_ms: Annotated[int32, Since(2, before="error")] = 0


# 12 Heartbeat


class HeartbeatRequest(NamedTuple):
    """A member is alive. A stub in 0.8.2.2, which always answers -1."""

    group: strict_string
    generation: int32
    member_id: strict_string
    group_instance_id: Annotated[nullable_string, Since(3)] = None


class HeartbeatResponse(NamedTuple):
    error: int16
    throttle_time_ms: Annotated[int32, Since(1, before="error")] = 0


# 13 LeaveGroup


class LeavingMember(NamedTuple):
    member_id: strict_string
    group_instance_id: nullable_string


class LeaveGroupRequest(NamedTuple):
    """Members leave, or are removed."""

    group: strict_string
    member_id: Annotated[strict_string, Until(2)] = ""
    members: Annotated[list[LeavingMember], Strict(), Since(3)] = []


class LeftMember(NamedTuple):
    member_id: string
    group_instance_id: nullable_string
    error: int16


class LeaveGroupResponse(NamedTuple):
    error: int16
    throttle_time_ms: Annotated[int32, Since(1, before="error")] = 0
    members: Annotated[list[LeftMember], Since(3)] = []


# 14 SyncGroup


class MemberAssignment(NamedTuple):
    member_id: strict_string
    assignment: blob


class SyncGroupRequest(NamedTuple):
    """Get the member's assignment; the leader brings those of all members."""

    group: strict_string
    generation: int32
    member_id: strict_string
    assignments: Annotated[list[MemberAssignment], Strict()]
    group_instance_id: Annotated[nullable_string, Since(3, before="assignments")] = None


class SyncGroupResponse(NamedTuple):
    error: int16
    assignment: blob
    throttle_time_ms: Annotated[int32, Since(1, before="error")] = 0


# 16 ListGroups


class ListGroupsRequest(NamedTuple):
    """The groups that this broker coordinates."""


class ListedGroup(NamedTuple):
    group: string
    protocol_type: Annotated[string, Doc("empty if the group has offsets alone")]


class ListGroupsResponse(NamedTuple):
    error: int16
    groups: list[ListedGroup]
    throttle_time_ms: Annotated[int32, Since(1, before="error")] = 0


# 42 DeleteGroups


class DeleteGroupsRequest(NamedTuple):
    """Forget groups without members, and their offsets."""

    groups: Annotated[list[strict_string], Strict()]


class GroupError(NamedTuple):
    group: string
    error: int16


class DeleteGroupsResponse(NamedTuple):
    throttle_time_ms: int32
    groups: list[GroupError]


# 47 OffsetDelete


class OffsetDeletePartition(NamedTuple):
    partition: int32


class OffsetDeleteTopic(NamedTuple):
    topic: strict_string
    partitions: Annotated[list[OffsetDeletePartition], Strict()]


class OffsetDeleteRequest(NamedTuple):
    """Forget committed offsets of topics that no member subscribes to."""

    group: strict_string
    topics: Annotated[list[OffsetDeleteTopic], Strict()]


class OffsetDeletePartitionResponse(NamedTuple):
    partition: int32
    error: int16


class OffsetDeleteTopicResponse(NamedTuple):
    topic: string
    partitions: list[OffsetDeletePartitionResponse]


class OffsetDeleteResponse(NamedTuple):
    error: int16
    throttle_time_ms: int32
    topics: list[OffsetDeleteTopicResponse]
