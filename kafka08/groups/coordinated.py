"""Members of a group that a broker coordinates, as DescribeGroups of its coordinator shows them."""

from __future__ import annotations

import logging

from kafka08.common import TopicPartition
from kafka08.errors import ProtocolError
from kafka08.groups.consumer_protocol import CONSUMER, ZOOKEEPER, assigned_partitions
from kafka08.groups.members import GroupMembers
from kafka08.protocol.admin_schemas import DescribedGroup, GroupMember

logger = logging.getLogger("kafka.admin.ConsumerGroupCommand$")


def from_coordinator(described: DescribedGroup) -> GroupMembers | None:
    """None if the group has never had coordinated members.

    Each member has one thread. Its assignment is empty while the group rebalances, and if it is
    not one of a consumer.
    """
    if described.protocol_type in ("", ZOOKEEPER):
        return None
    owners: dict[TopicPartition, str] = {}
    threads: dict[str, list[str]] = {}
    partitions: dict[str, list[int]] = {}
    for member in described.members:
        thread = f"{member.member_id}-0"
        assigned = _assigned(described, member)
        for topic in dict.fromkeys(tp.topic for tp in assigned):
            threads.setdefault(topic, []).append(thread)
        for tp in assigned:
            partitions.setdefault(tp.topic, []).append(tp.partition)
            owners[tp] = thread
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


def _assigned(described: DescribedGroup, member: GroupMember) -> list[TopicPartition]:
    data = bytes(member.assignment)
    if described.protocol_type != CONSUMER or not data:
        return []
    try:
        return assigned_partitions(data)
    except ProtocolError as error:
        logger.warning("The assignment of %s cannot be read: %s", member.member_id, error)
        return []
