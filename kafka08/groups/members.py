"""The members of a consumer group: subscriptions, owners, state.

They are read from the group's nodes in ZooKeeper, or from what a broker answers to DescribeGroups:
about such a group, or about one that it coordinates. Anyone may have written the nodes: an
unreadable registration or owner is named in a warning and counts as a member without streams.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from typing import NamedTuple

from kafka08 import admin
from kafka08.common import TopicPartition
from kafka08.consumer.assignors import thread_ids
from kafka08.consumer.group import topics_of
from kafka08.errors import KafkaError, ProtocolError
from kafka08.groups import nodes
from kafka08.groups.consumer_protocol import (
    CONSUMER,
    DEAD,
    EMPTY,
    REBALANCING,
    STABLE,
    ZOOKEEPER,
    assigned_partitions,
)
from kafka08.groups.nodes import consumer_of
from kafka08.protocol.admin_schemas import DescribedGroup, GroupMember
from zk import znodes
from zk.client import ZkClient
from zk.znodes import ConsumerRegistration, MalformedNodeError

logger = logging.getLogger("kafka.admin.ConsumerGroupCommand$")

_GENERATED_ID = re.compile(r"(.+)-[0-9]+-[0-9a-f]{1,8}")


class Consumer(NamedTuple):
    """A member as tables show it. ZooKeeper does not have client ids."""

    id: str
    host: str
    client_id: str | None = None


class GroupMembers(NamedTuple):
    """``threads``: topic -> the thread ids subscribed to it; ``owners``: partition -> thread id;
    ``members``: consumer ids, sorted; ``partitions``: topic -> ids, of the topics subscribed to.
    A coordinator also reports the state of its groups, the strategy, and the hosts and client ids
    of their members.
    """

    exists: bool
    members: list[str]
    threads: dict[str, list[str]]
    owners: dict[TopicPartition, str]
    partitions: dict[str, list[int]]
    reported_state: str | None = None
    hosts: Mapping[str, str] = {}
    clients: Mapping[str, str] = {}
    strategy: str | None = None

    def row_of(self, group: str, consumer: str) -> Consumer:
        host = self.hosts.get(consumer) or host_of(group, consumer)
        return Consumer(consumer, host, self.clients.get(consumer))

    @property
    def state(self) -> str:
        """In the words of later releases."""
        if self.reported_state is not None:
            return self.reported_state
        if not self.members:
            return EMPTY if self.exists else DEAD
        return REBALANCING if self.misplaced() else STABLE

    def misplaced(self) -> list[TopicPartition]:
        """Partitions of the subscribed topics that no live subscriber owns."""
        return [
            tp
            for topic, threads in sorted(self.threads.items())
            for tp in (TopicPartition(topic, p) for p in self.partitions.get(topic, ()))
            if self.owners.get(tp) not in threads
        ]

    def owned(self) -> dict[str, list[TopicPartition]]:
        """Every member -> the partitions it owns, sorted; also owners that are not members."""
        shares: dict[str, list[TopicPartition]] = {member: [] for member in self.members}
        for tp, thread in sorted(self.owners.items()):
            shares.setdefault(consumer_of(thread), []).append(tp)
        return shares


def host_of(group: str, consumer: str) -> str:
    """The host in a generated consumer id, "-" when the id was chosen otherwise."""
    found = _GENERATED_ID.fullmatch(consumer.removeprefix(f"{group}_"))
    return found[1] if found else "-"


def read_group(client: ZkClient, group: str, *, exclude_internal: bool = True) -> GroupMembers:
    """All there is about a group, one node after the other: not of one instant."""
    registrations = nodes.registrations(client, group)
    threads = _threads(group, registrations, admin.list_topics(client), exclude_internal)
    exists = client.exists(znodes.group_path(group)) is not None
    partitions = {topic: topic_partitions(client, topic) for topic in threads}
    owners = nodes.by_partition(nodes.owner_nodes(client, group))
    return GroupMembers(exists, list(registrations), threads, owners, partitions)


def from_described(described: DescribedGroup, partitions: Mapping[str, list[int]]) -> GroupMembers:
    """The same out of a broker's answer; ``partitions`` of all topics. Raises ProtocolError."""
    registrations = {m.member_id: bytes(m.metadata) for m in described.members if len(m.metadata)}
    threads = _threads(described.group, registrations, list(partitions), True)
    owners: dict[TopicPartition, str] = {}
    try:
        for member in described.members:
            owned = nodes.by_partition(json.loads(bytes(member.assignment)))
            owners.update({tp: str(thread) for tp, thread in owned.items()})
    except (ValueError, AttributeError) as error:
        raise ProtocolError(f"Group {described.group} is described in other words") from error
    return GroupMembers(
        described.state != DEAD,
        list(registrations),
        threads,
        owners,
        {topic: partitions.get(topic, []) for topic in threads},
    )


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


def _threads(
    group: str, registrations: Mapping[str, bytes], topics: list[str], exclude_internal: bool
) -> dict[str, list[str]]:
    """Topic -> the thread ids subscribed to it."""
    threads: dict[str, list[str]] = {}
    for consumer, data in registrations.items():
        registration = _registration(group, consumer, data)
        if registration is None:
            continue
        subscribed = _topics(consumer, registration, topics, exclude_internal)
        for topic, streams in subscribed.items():
            threads.setdefault(topic, []).extend(thread_ids(consumer, streams))
    return threads


def _registration(group: str, consumer: str, data: bytes) -> ConsumerRegistration | None:
    path = znodes.consumer_id_path(group, consumer)
    try:
        return znodes.decode_consumer(path, data)
    except MalformedNodeError as error:
        logger.warning("%s; no member of the group can rebalance while it is there", error)
        return None


def _topics(
    consumer: str, registration: ConsumerRegistration, topics: list[str], exclude_internal: bool
) -> Mapping[str, int]:
    try:
        return topics_of(registration, topics, exclude_internal=exclude_internal)
    except KafkaError as error:
        logger.warning("The subscription of %s: %s", consumer, error)
        return {}


def topic_partitions(client: ZkClient, topic: str) -> list[int]:
    """Sorted; none when there is no such topic or its node cannot be read."""
    try:
        return sorted(admin.fetch_assignment(client, topic) or ())
    except MalformedNodeError as error:
        logger.warning("%s", error)
        return []
