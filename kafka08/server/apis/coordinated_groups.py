"""APIs 11 to 14, 16, 42 and 47 of later releases: the groups that this broker coordinates.

JoinGroup and SyncGroup wait until their group has got that far; the others are answered at once.
"""

from __future__ import annotations

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import TopicPartition
from kafka08.errors import NO_ERROR, LaterCode, UnknownTopicOrPartitionError
from kafka08.groups.consumer_protocol import CONSUMER
from kafka08.groups.records import GroupPartition
from kafka08.network.peer import current_peer
from kafka08.protocol import group_schemas as g
from kafka08.protocol.schemas import Message, RequestHeader
from kafka08.server.groups.coordinator import MemberId
from kafka08.server.groups.group import JoinRequest, Strategy
from kafka08.server.groups.requests import GroupRequests
from kafka08.server.groups.subscriptions import subscribed_topics
from kafka08.server.groups.zk_offsets import check_path
from kafka08.server.requests.dispatch import Handler
from kafka08.server.requests.long_work import by_topic
from zk import znodes
from zk.client import ZkClient
from zk.errors import ZkError


def handlers(members: GroupRequests, zk: ZkClient, cache: MetadataCache) -> list[Handler]:
    """The handlers of all APIs in this module."""
    return [
        JoinGroupApi(members),
        HeartbeatApi(members),
        LeaveGroupApi(members),
        SyncGroupApi(members),
        ListGroupsApi(members),
        DeleteGroupsApi(members, zk),
        OffsetDeleteApi(members, cache),
    ]


# From this version on a new member gets its id first and joins with it.
_MEMBER_ID_FIRST = 4
_SEVERAL_MEMBERS = 3


class _GroupApi:
    """A failure is answered with ``refusal``, in which the code takes its place."""

    refusal: Message

    def __init__(self, members: GroupRequests) -> None:
        self._members = members

    def failure(self, header: RequestHeader, request: Message, code: int) -> Message:
        return self.refusal._replace(error=code)


class JoinGroupApi(_GroupApi):
    key = 11
    last_version = 5

    def handle(self, header: RequestHeader, request: g.JoinGroupRequest) -> g.JoinGroupResponse:
        rebalance_ms = request.rebalance_timeout_ms
        answer = self._members.join(
            JoinRequest(
                request.group,
                request.member_id,
                request.group_instance_id,
                header.client_id or "",
                _client_host(),
                request.session_timeout_ms,
                request.session_timeout_ms if rebalance_ms < 0 else rebalance_ms,
                request.protocol_type,
                # The request is a part of the frame, whose memory is used again.
                tuple(Strategy(each.name, bytes(each.metadata)) for each in request.protocols),
                requires_id=header.api_version >= _MEMBER_ID_FIRST,
            )
        )
        members = [g.JoinedMember(m.member_id, m.metadata, m.instance_id) for m in answer.members]
        return g.JoinGroupResponse(
            answer.error,
            answer.generation,
            answer.protocol,
            answer.leader,
            answer.member_id,
            members,
        )

    def failure(
        self, header: RequestHeader, request: g.JoinGroupRequest, code: int
    ) -> g.JoinGroupResponse:
        return g.JoinGroupResponse(code, -1, "", "", request.member_id, [])


def _client_host() -> str:
    """The sender's address, written as Java does."""
    peer = current_peer.get()
    return "/" + ("" if peer is None else peer.address.rpartition(":")[0])


class SyncGroupApi(_GroupApi):
    key = 14
    last_version = 3
    refusal = g.SyncGroupResponse(NO_ERROR, b"")

    def handle(self, header: RequestHeader, request: g.SyncGroupRequest) -> g.SyncGroupResponse:
        assignments = {each.member_id: bytes(each.assignment) for each in request.assignments}
        named = MemberId(request.member_id, request.group_instance_id)
        answer = self._members.sync(request.group, request.generation, named, assignments)
        return g.SyncGroupResponse(*answer)


class HeartbeatApi(_GroupApi):
    key = 12
    last_version = 3
    refusal = g.HeartbeatResponse(NO_ERROR)

    def handle(self, header: RequestHeader, request: g.HeartbeatRequest) -> g.HeartbeatResponse:
        named = MemberId(request.member_id, request.group_instance_id)
        return g.HeartbeatResponse(
            self._members.heartbeat(request.group, request.generation, named)
        )


class LeaveGroupApi(_GroupApi):
    key = 13
    last_version = 3
    refusal = g.LeaveGroupResponse(NO_ERROR)

    def handle(self, header: RequestHeader, request: g.LeaveGroupRequest) -> Message:
        several = header.api_version >= _SEVERAL_MEMBERS
        leaving = (
            [MemberId(*each) for each in request.members]
            if several
            else [MemberId(request.member_id)]
        )
        codes = self._members.leave(request.group, leaving)
        if isinstance(codes, int):
            return self.failure(header, request, codes)
        if not several:
            return g.LeaveGroupResponse(codes[0])
        left = [g.LeftMember(*each, code) for each, code in zip(leaving, codes, strict=True)]
        return g.LeaveGroupResponse(NO_ERROR, members=left)


class ListGroupsApi(_GroupApi):
    """Groups with members here, and groups with offsets here."""

    key = 16
    last_version = 2
    refusal = g.ListGroupsResponse(NO_ERROR, [])

    def handle(self, header: RequestHeader, request: g.ListGroupsRequest) -> Message:
        code = self._members.check_loaded()
        if code:
            return self.failure(header, request, code)
        groups = dict.fromkeys(self._members.offsets.groups_with_offsets(), "")
        for group in self._members.coordinator.groups.values():
            groups[group.id] = group.protocol_type
        return g.ListGroupsResponse(NO_ERROR, [g.ListedGroup(*each) for each in groups.items()])


class DeleteGroupsApi:
    """Groups with live members are kept, also those whose members are in ZooKeeper."""

    key = 42
    last_version = 1

    def __init__(self, members: GroupRequests, zk: ZkClient) -> None:
        self._members = members
        self._zk = zk

    def handle(
        self, header: RequestHeader, request: g.DeleteGroupsRequest
    ) -> g.DeleteGroupsResponse:
        # A group that is named twice is deleted once.
        names = dict.fromkeys(request.groups)
        return g.DeleteGroupsResponse(0, [g.GroupError(each, self._delete(each)) for each in names])

    def failure(
        self, header: RequestHeader, request: g.DeleteGroupsRequest, code: int
    ) -> g.DeleteGroupsResponse:
        return g.DeleteGroupsResponse(0, [g.GroupError(each, code) for each in request.groups])

    def _delete(self, group: str) -> int:
        if self._has_members_in_zookeeper(group):
            return LaterCode.NON_EMPTY_GROUP
        return self._members.delete(group)

    def _has_members_in_zookeeper(self, group: str) -> bool:
        path = znodes.consumer_ids_path(group)
        try:
            check_path(path)
        except ZkError:
            return False  # a name that no group in ZooKeeper can have
        return bool(self._zk.children_if_exists(path))


class OffsetDeleteApi(_GroupApi):
    key = 47
    last_version = 0
    refusal = g.OffsetDeleteResponse(NO_ERROR, 0, [])

    def __init__(self, members: GroupRequests, cache: MetadataCache) -> None:
        super().__init__(members)
        self._cache = cache

    def handle(self, header: RequestHeader, request: g.OffsetDeleteRequest) -> Message:
        offsets = self._members.offsets
        code = offsets.check_coordinator(request.group)
        known = set(offsets.offsets_of(request.group))
        group = self._members.coordinator.groups.get(request.group)
        if not code and not known and group is None:
            code = LaterCode.GROUP_ID_NOT_FOUND
        if not code and group is not None and group.members and group.protocol_type != CONSUMER:
            code = LaterCode.NON_EMPTY_GROUP
        if code:
            return self.failure(header, request, code)
        subscribed = set() if group is None else subscribed_topics(group)
        codes = {
            key: self._check(key, key in known, subscribed)
            for topic in request.topics
            for key in (
                GroupPartition(request.group, topic.topic, each.partition)
                for each in topic.partitions
            )
        }
        gone = [key for key, code in codes.items() if not code]
        code = self._members.forget(request.group, gone)
        codes.update(dict.fromkeys(gone, code))
        answers = (
            (TopicPartition(*key[1:]), g.OffsetDeletePartitionResponse(key.partition, code))
            for key, code in codes.items()
        )
        topics = [g.OffsetDeleteTopicResponse(*item) for item in by_topic(answers)]
        return g.OffsetDeleteResponse(NO_ERROR, 0, topics)

    def _check(self, key: GroupPartition, is_known: bool, subscribed: set[str] | None) -> int:
        if subscribed is None or key.topic in subscribed:
            return LaterCode.GROUP_SUBSCRIBED_TO_TOPIC
        if not is_known and not self._cache.has_partition(key.topic, key.partition):
            return UnknownTopicOrPartitionError.code
        return NO_ERROR
