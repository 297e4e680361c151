"""API 15, DescribeGroups of later releases: the members of groups, for those without ZooKeeper.

Not of 0.8.2.2. Groups of consumers live in ZooKeeper; any broker answers with each member's
registration as it is, and with the owner nodes, by consumer id. The client works out the rest, such
as the assignment, or whether the group is rebalancing. Groups of later releases are described by
their coordinator. Changes nothing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Sequence

from kafka08.errors import NO_ERROR, UnknownError
from kafka08.groups import nodes
from kafka08.groups.consumer_protocol import DEAD, EMPTY, STABLE, ZOOKEEPER
from kafka08.protocol import admin_schemas as a
from kafka08.protocol.schemas import RequestHeader
from kafka08.runtime import Runtime
from kafka08.server.groups.requests import GroupRequests
from kafka08.server.groups.states import GroupState
from kafka08.server.groups.zk_offsets import check_path
from kafka08.server.requests.long_work import in_turns
from zk import znodes
from zk.client import ZkClient
from zk.errors import ZkError

logger = logging.getLogger("kafka.server.KafkaApis")


class DescribeGroupsApi:
    """``members`` is None if this broker coordinates no groups."""

    key = 15
    last_version = 4

    def __init__(
        self, runtime: Runtime, zk: ZkClient, members: GroupRequests | None = None
    ) -> None:
        self._runtime = runtime
        self._zk = zk
        self._members = members

    def handle(
        self, header: RequestHeader, request: a.DescribeGroupsRequest
    ) -> a.DescribeGroupsResponse:
        listed = self._listed(request.groups)
        groups = in_turns(self._runtime, request.groups)
        return a.DescribeGroupsResponse([self._describe(header, each, listed) for each in groups])

    def failure(
        self, header: RequestHeader, request: a.DescribeGroupsRequest, code: int
    ) -> a.DescribeGroupsResponse:
        return a.DescribeGroupsResponse([_failed(group, code) for group in request.groups])

    def _listed(self, groups: Sequence[str]) -> Collection[str] | None:
        """The groups in ZooKeeper, where this is less than to ask for one after the other."""
        if len(groups) < 2:
            return None
        try:
            return frozenset(nodes.list_groups(self._zk))
        except ZkError:
            return None

    def _describe(
        self, header: RequestHeader, group: str, listed: Collection[str] | None
    ) -> a.DescribedGroup:
        """Members here come first, then those in ZooKeeper, then the rest of either."""
        if self._members is None:
            return self._in_zookeeper(group, listed)
        code = self._members.offsets.check_coordinator(group)
        here = None if code else self._coordinated(self._members, group)
        if here is not None and here.members:
            return here
        found = self._in_zookeeper(group, listed)
        if here is not None and found.state != STABLE:
            return here
        if code and header.api_version > 0 and found.state == DEAD:
            return _failed(group, code)
        return found

    @staticmethod
    def _coordinated(members: GroupRequests, group_id: str) -> a.DescribedGroup | None:
        group = members.coordinator.groups.get(group_id)
        if group is None:
            if members.offsets.offsets_of(group_id):
                return a.DescribedGroup(NO_ERROR, group_id, EMPTY, "", "", [])
            return None
        protocol = (group.protocol or "") if group.state is GroupState.STABLE else ""
        described = []
        for each in group.members.values():
            metadata, assignment = each.metadata_for(protocol), each.assignment if protocol else b""
            client = each.client_id, each.client_host
            described.append(
                a.GroupMember(each.id, *client, metadata, assignment, each.instance_id)
            )
        state = group.state.value
        return a.DescribedGroup(NO_ERROR, group_id, state, group.protocol_type, protocol, described)

    def _in_zookeeper(self, group: str, listed: Collection[str] | None) -> a.DescribedGroup:
        try:
            check_path(znodes.consumer_ids_path(group))
            if listed is None:
                exists = self._zk.exists(znodes.group_path(group)) is not None
            else:
                exists = group in listed
            members = self._registered(group) if exists else []
        except (ZkError, ValueError) as error:
            logger.warning("Could not describe group %r: %s", group, error)
            return _failed(group, UnknownError.code)
        alive = any(len(member.metadata) for member in members)
        state = STABLE if alive else EMPTY if exists else DEAD
        return a.DescribedGroup(NO_ERROR, group, state, ZOOKEEPER, "", members)

    def _registered(self, group: str) -> list[a.GroupMember]:
        registrations = nodes.registrations(self._zk, group)
        owned: dict[str, dict[str, dict[str, str]]] = {}
        for topic, threads in nodes.owner_nodes(self._zk, group).items():
            for partition, thread in threads.items():
                of_consumer = owned.setdefault(nodes.consumer_of(thread), {})
                of_consumer.setdefault(topic, {})[partition] = thread
        return [
            a.GroupMember(
                consumer,
                "",
                "",
                # An empty string would be decoded as null.
                registrations.get(consumer, b"") or (b" " if consumer in registrations else b""),
                json.dumps(owned.get(consumer, {})).encode(),
            )
            for consumer in sorted(registrations.keys() | owned.keys())
        ]


def _failed(group: str, code: int) -> a.DescribedGroup:
    return a.DescribedGroup(code, group, "", "", "", [])
