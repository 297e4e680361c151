"""The nodes of consumer groups in ZooKeeper: registrations, owners and offsets.

Nodes that are read together are not of one instant. Missing ones are left out.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kafka08.common import TopicPartition
from zk import znodes
from zk.client import ZkClient
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.utils.ZkUtils$")

Owners = Mapping[str, Mapping[str, str]]
"""Topic -> name of the node, a partition -> thread id."""


class OffsetNode(NamedTuple):
    """A next offset, and when it was written: ms since the epoch."""

    offset: int
    time_ms: int


def list_groups(zk: ZkClient) -> list[str]:
    return sorted(zk.children_if_exists(znodes.CONSUMERS))


def member_ids(zk: ZkClient, group: str) -> list[str]:
    return sorted(zk.children_if_exists(znodes.consumer_ids_path(group)))


def registrations(zk: ZkClient, group: str) -> dict[str, bytes]:
    """Consumer id -> data, sorted."""
    ids = member_ids(zk, group)
    nodes = zk.get_all([znodes.consumer_id_path(group, each) for each in ids])
    return {each: node[0] for each, node in zip(ids, nodes, strict=True) if node is not None}


def owner_nodes(zk: ZkClient, group: str) -> Owners:
    topics = zk.children_if_exists(znodes.consumer_owners_path(group))
    paths = [znodes.consumer_topic_owners_path(group, topic) for topic in topics]
    owners = {}
    for topic, path, names in zip(topics, paths, zk.children_of_all(paths), strict=True):
        nodes = zk.get_all([f"{path}/{name}" for name in names])
        owners[topic] = {
            name: node[0].decode(errors="replace")
            for name, node in zip(names, nodes, strict=True)
            if node is not None
        }
    return owners


def by_partition(owners: Owners) -> dict[TopicPartition, str]:
    """Partition -> thread id."""
    return {
        TopicPartition(topic, int(name)): thread
        for topic, threads in owners.items()
        for name, thread in threads.items()
        if _is_number(name)
    }


def consumer_of(thread: str) -> str:
    """The consumer id in an owner's ``<consumer id>-<number>``."""
    return thread.rpartition("-")[0] or thread


def offsets(zk: ZkClient, groups: Sequence[str]) -> dict[str, dict[TopicPartition, OffsetNode]]:
    """The offsets that each group has stored. A node that cannot be decoded is logged."""
    topics = zk.children_of_all([znodes.consumer_offsets_path(group) for group in groups])
    of_group = [
        (group, each) for group, all_of in zip(groups, topics, strict=True) for each in all_of
    ]
    names = zk.children_of_all([znodes.consumer_topic_offsets_path(*each) for each in of_group])
    places = [
        (group, TopicPartition(topic, int(name)))
        for (group, topic), each in zip(of_group, names, strict=True)
        for name in each
        if _is_number(name)
    ]
    paths = [znodes.consumer_offset_path(group, *tp) for group, tp in places]
    stored: dict[str, dict[TopicPartition, OffsetNode]] = {group: {} for group in groups}
    for (group, tp), path, node in zip(places, paths, zk.get_all(paths), strict=True):
        if node is None:
            continue
        try:
            stored[group][tp] = OffsetNode(znodes.decode_offset(path, node[0]), node[1].mtime)
        except MalformedNodeError as error:
            logger.warning("%s; kafka-consumer-groups --reset-offsets writes a good one", error)
    return stored


def fetch_offset(zk: ZkClient, group: str, tp: TopicPartition) -> int | None:
    """The committed offset; None if there is none. Raises MalformedNodeError."""
    path = znodes.consumer_offset_path(group, *tp)
    node = zk.get_if_exists(path)
    return None if node is None else znodes.decode_offset(path, node[0])


def store_offset(zk: ZkClient, group: str, tp: TopicPartition, offset: int) -> None:
    zk.create_or_set(znodes.consumer_offset_path(group, *tp), znodes.encode_offset(offset))


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal()
