"""The commits of groups in ZooKeeper, and how many members they have there."""

from __future__ import annotations

import logging
from collections import deque

from kafka08.common import TopicPartition
from kafka08.lag.judgement import WINDOW, Commit
from zk import znodes
from zk.client import ZkClient
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.console.ZooKeeperGroups")


class ZooKeeperGroups:
    """Reads /consumers round by round, one node after the other. One task at a time.

    ``commits``: group to partition to its last commits, oldest first, as far as they were seen.
    ``members``: group to the number of its live members. ``read`` raises the client's errors and
    leaves both as they were.
    """

    def __init__(self, zk: ZkClient) -> None:
        self._zk = zk
        self.commits: dict[str, dict[TopicPartition, deque[Commit]]] = {}
        self.members: dict[str, int] = {}

    def read(self) -> None:
        commits, members = {}, {}
        for group in self._zk.children_if_exists(znodes.CONSUMERS):
            members[group] = len(self._zk.children_if_exists(znodes.consumer_ids_path(group)))
            commits[group] = self._read_offsets(group)
        self.commits, self.members = commits, members

    def _read_offsets(self, group: str) -> dict[TopicPartition, deque[Commit]]:
        known = self.commits.get(group, {})
        found: dict[TopicPartition, deque[Commit]] = {}
        for topic in self._zk.children_if_exists(znodes.consumer_offsets_path(group)):
            for name in self._zk.children_if_exists(
                znodes.consumer_topic_offsets_path(group, topic)
            ):
                if not (name.isascii() and name.isdecimal()):
                    continue
                tp = TopicPartition(topic, int(name))
                commit = self._read_commit(group, tp)
                if commit is not None:
                    window = known.get(tp, deque(maxlen=WINDOW))
                    if not window or window[-1] != commit:
                        window.append(commit)
                    found[tp] = window
        return found

    def _read_commit(self, group: str, tp: TopicPartition) -> Commit | None:
        path = znodes.consumer_offset_path(group, *tp)
        stored = self._zk.get_if_exists(path)
        if stored is None:
            return None
        try:
            offset = znodes.decode_offset(path, stored[0])
        except MalformedNodeError as error:
            logger.warning("%s", error)
            return None
        return Commit(offset, stored[1].mtime) if offset >= 0 else None
