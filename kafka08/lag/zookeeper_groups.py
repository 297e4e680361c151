"""The commits of groups in ZooKeeper, and how many members they have there."""

from __future__ import annotations

from collections import deque

from kafka08.common import TopicPartition
from kafka08.groups import nodes
from kafka08.lag.judgement import WINDOW, Commit
from zk import znodes
from zk.client import ZkClient


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
        groups = nodes.list_groups(self._zk)
        ids = self._zk.children_of_all([znodes.consumer_ids_path(group) for group in groups])
        commits: dict[str, dict[TopicPartition, deque[Commit]]] = {}
        for group, offsets in nodes.offsets(self._zk, groups).items():
            before = self.commits.get(group, {})
            commits[group] = {}
            for tp, node in offsets.items():
                if node.offset < 0:
                    continue
                window = commits[group][tp] = before.get(tp, deque(maxlen=WINDOW))
                commit = Commit(*node)
                if not window or window[-1] != commit:
                    window.append(commit)
        self.commits = commits
        self.members = {group: len(each) for group, each in zip(groups, ids, strict=True)}
