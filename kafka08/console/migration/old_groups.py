"""Groups as ZooKeeper has them: the members that consumers of 0.8 register, and their topics."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

from kafka08.groups import nodes
from kafka08.groups.members import host_of
from zk import znodes
from zk.client import ZkClient
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.console.Migration")


class OldGroup(NamedTuple):
    """``members``: ids. ``hosts``: those that the ids say. ``topics``: names and patterns that the
    members subscribe to."""

    members: tuple[str, ...]
    hosts: tuple[str, ...]
    topics: tuple[str, ...]


def read(zk: ZkClient) -> Mapping[str, OldGroup]:
    """The groups that have members, by name. Raises the errors of ZkClient."""
    groups = nodes.list_groups(zk)
    ids = zk.children_of_all([znodes.consumer_ids_path(each) for each in groups])
    places = [(group, each) for group, all_of in zip(groups, ids, strict=True) for each in all_of]
    paths = [znodes.consumer_id_path(*each) for each in places]
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for (group, member), path, node in zip(places, paths, zk.get_all(paths), strict=True):
        if node is not None:
            found.setdefault(group, {})[member] = _topics(path, node[0])
    return {group: _group(group, members) for group, members in sorted(found.items())}


def _group(group: str, members: Mapping[str, tuple[str, ...]]) -> OldGroup:
    hosts = {host_of(group, each) for each in members} - {"-"}
    topics = {topic for topics in members.values() for topic in topics}
    return OldGroup(tuple(sorted(members)), tuple(sorted(hosts)), tuple(sorted(topics)))


def _topics(path: str, data: bytes) -> tuple[str, ...]:
    try:
        return tuple(znodes.decode_consumer(path, data).subscription)
    except MalformedNodeError as error:
        logger.warning("%s", error)
        return ()
