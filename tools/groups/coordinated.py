"""Members of a group that a broker coordinates, as DescribeGroups of its coordinator shows them."""

from __future__ import annotations

import logging
from typing import Annotated, Any, NamedTuple

from kafka08.common import TopicPartition
from kafka08.errors import ProtocolError
from kafka08.protocol.admin_schemas import DescribedGroup, GroupMember
from kafka08.protocol.codec import decode
from kafka08.protocol.types import Strict, int16, int32, strict_string
from kafka08.server.apis.group_members import PROTOCOL_TYPE as IN_ZOOKEEPER
from kafka08.server.groups.subscriptions import CONSUMER
from tools.groups.members import GroupMembers

logger = logging.getLogger("kafka.admin.ConsumerGroupCommand$")


class _OwnedTopic(NamedTuple):
    topic: strict_string
    partitions: Annotated[list[int32], Strict()]


class _Assignment(NamedTuple):
    """The beginning of a consumer's assignment, in all its versions."""

    version: int16
    topics: Annotated[list[_OwnedTopic], Strict()]


def from_coordinator(described: DescribedGroup) -> GroupMembers | None:
    """None if the group has never had coordinated members.

    Each member has one thread. Its assignment is empty while the group rebalances, and if it is
    not one of a consumer.
    """
    if described.protocol_type in ("", IN_ZOOKEEPER):
        return None
    owners: dict[TopicPartition, str] = {}
    threads: dict[str, list[str]] = {}
    partitions: dict[str, list[int]] = {}
    for member in described.members:
        thread = f"{member.member_id}-0"
        for topic, numbers in _owned(described, member):
            threads.setdefault(topic, []).append(thread)
            partitions.setdefault(topic, []).extend(numbers)
            owners.update({TopicPartition(topic, number): thread for number in numbers})
    return GroupMembers(
        True,
        [member.member_id for member in described.members],
        threads,
        owners,
        partitions,
        described.state,
        {member.member_id: member.client_host for member in described.members},
        {member.member_id: member.client_id for member in described.members},
        described.protocol or None,
    )


def _owned(described: DescribedGroup, member: GroupMember) -> list[Any]:
    data = bytes(member.assignment)
    if described.protocol_type != CONSUMER or not data:
        return []
    try:
        return decode(_Assignment, memoryview(data))[0].topics
    except ProtocolError as error:
        logger.warning("The assignment of %s cannot be read: %s", member.member_id, error)
        return []
