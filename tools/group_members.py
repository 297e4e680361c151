"""A consumer group as its nodes in ZooKeeper show it: members, subscriptions, owners.

Reads what anyone may have written there: a registration or owner nobody could read is named in a
warning and counts as a member without streams. Knows no offsets.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import NamedTuple

from kafka08 import admin
from kafka08.common import TopicPartition
from kafka08.consumer.assignors import thread_ids
from kafka08.consumer.group import topics_of
from kafka08.errors import KafkaError
from zk import znodes
from zk.client import ZkClient
from zk.znodes import ConsumerRegistration, MalformedNodeError

logger = logging.getLogger("kafka.admin.ConsumerGroupCommand$")

DEAD, EMPTY, STABLE, REBALANCING = "Dead", "Empty", "Stable", "PreparingRebalance"
_GENERATED_ID = re.compile(r"(.+)-[0-9]+-[0-9a-f]{1,8}")


class GroupMembers(NamedTuple):
    """``threads``: topic -> the thread ids subscribed to it; ``owners``: partition -> thread id;
    ``members``: consumer ids, sorted; ``partitions``: topic -> ids, of the topics subscribed to.
    """

    exists: bool
    members: list[str]
    threads: dict[str, list[str]]
    owners: dict[TopicPartition, str]
    partitions: dict[str, list[int]]

    @property
    def state(self) -> str:
        """In the words of later releases."""
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
        """Every member -> the partitions it owns, sorted; also owners that are no members."""
        shares: dict[str, list[TopicPartition]] = {member: [] for member in self.members}
        for tp, thread in sorted(self.owners.items()):
            shares.setdefault(consumer_of(thread), []).append(tp)
        return shares


def consumer_of(thread: str) -> str:
    """The consumer id in an owner's ``<consumer id>-<number>``."""
    return thread.rpartition("-")[0] or thread


def host_of(group: str, consumer: str) -> str:
    """The host in a generated consumer id, "-" when the id was chosen otherwise."""
    found = _GENERATED_ID.fullmatch(consumer.removeprefix(f"{group}_"))
    return found[1] if found else "-"


def list_groups(client: ZkClient) -> list[str]:
    return sorted(client.children_if_exists(znodes.CONSUMERS))


def read_group(client: ZkClient, group: str, *, exclude_internal: bool = True) -> GroupMembers:
    """All there is about a group, one node after the other: not of one instant."""
    names = sorted(client.children_if_exists(znodes.consumer_ids_path(group)))
    registrations = {name: _registration(client, group, name) for name in names}
    topics = admin.list_topics(client)
    threads: dict[str, list[str]] = {}
    for consumer, registration in registrations.items():
        if registration is None:
            continue
        subscribed = _topics(consumer, registration, topics, exclude_internal)
        for topic, streams in subscribed.items():
            threads.setdefault(topic, []).extend(thread_ids(consumer, streams))
    exists = client.exists(znodes.group_path(group)) is not None
    partitions = {topic: topic_partitions(client, topic) for topic in threads}
    return GroupMembers(exists, names, threads, _owners(client, group), partitions)


def _registration(client: ZkClient, group: str, consumer: str) -> ConsumerRegistration | None:
    path = znodes.consumer_id_path(group, consumer)
    found = client.get_if_exists(path)
    if found is None:
        return None
    try:
        return znodes.decode_consumer(path, found[0])
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


def _owners(client: ZkClient, group: str) -> dict[TopicPartition, str]:
    owners = {}
    for topic in client.children_if_exists(znodes.consumer_owners_path(group)):
        for name in client.children_if_exists(znodes.consumer_topic_owners_path(group, topic)):
            if not (name.isascii() and name.isdecimal()):
                continue
            path = znodes.consumer_owner_path(group, topic, int(name))
            found = client.get_if_exists(path)
            if found is not None:
                owners[TopicPartition(topic, int(name))] = found[0].decode(errors="replace")
    return owners


def topic_partitions(client: ZkClient, topic: str) -> list[int]:
    """Sorted; none when there is no such topic or its node cannot be read."""
    try:
        return sorted(admin.fetch_assignment(client, topic) or ())
    except MalformedNodeError as error:
        logger.warning("%s", error)
        return []


def topics_with_offsets(client: ZkClient, group: str) -> set[str]:
    """Those a group has offset nodes for."""
    return set(client.children_if_exists(znodes.consumer_offsets_path(group)))
