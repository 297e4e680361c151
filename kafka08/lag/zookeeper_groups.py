"""The commits of groups in ZooKeeper, and how many members they have there."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence

from kafka08.common import TopicPartition
from kafka08.lag.judgement import WINDOW, Commit
from zk import znodes
from zk.client import Stat, ZkClient
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.console.ZooKeeperGroups")


class ZooKeeperGroups:
    """Reads /consumers round by round, each level of its tree at once. One task at a time.

    ``commits``: group to partition to its last commits, oldest first, as far as they were seen.
    ``members``: group to the number of its live members. ``read`` raises the client's errors and
    leaves both as they were.
    """

    def __init__(self, zk: ZkClient) -> None:
        self._zk = zk
        self.commits: dict[str, dict[TopicPartition, deque[Commit]]] = {}
        self.members: dict[str, int] = {}

    def read(self) -> None:
        groups = self._zk.children_if_exists(znodes.CONSUMERS)
        ids = self._zk.children_of_all([znodes.consumer_ids_path(group) for group in groups])
        commits: dict[str, dict[TopicPartition, deque[Commit]]] = {group: {} for group in groups}
        named = self._partitions(groups)
        paths = [znodes.consumer_offset_path(group, *tp) for group, tp in named]
        for (group, tp), path, stored in zip(named, paths, self._zk.get_all(paths), strict=True):
            commit = None if stored is None else _commit(path, *stored)
            if commit is not None:
                window = self.commits.get(group, {}).get(tp, deque(maxlen=WINDOW))
                if not window or window[-1] != commit:
                    window.append(commit)
                commits[group][tp] = window
        self.commits = commits
        self.members = {group: len(each) for group, each in zip(groups, ids, strict=True)}

    def _partitions(self, groups: Sequence[str]) -> list[tuple[str, TopicPartition]]:
        """The partitions in which each group has committed."""
        topics = self._zk.children_of_all([znodes.consumer_offsets_path(each) for each in groups])
        of_group = [
            (group, topic) for group, each in zip(groups, topics, strict=True) for topic in each
        ]
        numbers = self._zk.children_of_all(
            [znodes.consumer_topic_offsets_path(*each) for each in of_group]
        )
        return [
            (group, TopicPartition(topic, int(name)))
            for (group, topic), each in zip(of_group, numbers, strict=True)
            for name in each
            if name.isascii() and name.isdecimal()
        ]


def _commit(path: str, data: bytes, stat: Stat) -> Commit | None:
    try:
        offset = znodes.decode_offset(path, data)
    except MalformedNodeError as error:
        logger.warning("%s", error)
        return None
    return Commit(offset, stat.mtime) if offset >= 0 else None
