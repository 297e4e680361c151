"""The commits of groups, read on round by round: in ``__consumer_offsets`` and in ZooKeeper.

Brokers of 0.8.2.2 list no groups and report no times of commits. The topic has both, for all groups
together, in one request for each leader.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Any, TypeAlias

from kafka08.client import log_offsets
from kafka08.client.cluster import ClusterClient
from kafka08.client.reading import Position, fetch
from kafka08.client.routing import by_leader
from kafka08.common import EARLIEST_TIME, Broker, TopicPartition
from kafka08.errors import KafkaError, OffsetOutOfRangeError, ProtocolError, raise_for_code
from kafka08.groups import nodes
from kafka08.groups.records import GroupPartition, decode_group, decode_key, decode_value
from kafka08.lag.judgement import WINDOW, Commit
from kafka08.message.entry import AnyMessage
from kafka08.message.sets import iter_messages
from zk import znodes
from zk.client import ZkClient

logger = logging.getLogger("kafka.console.OffsetsTopic")

_FETCH_BYTES = 256 << 10
_FETCHES = 500
"""For each leader in one round: the first reading of a large topic takes several rounds."""

Windows: TypeAlias = "dict[str, dict[TopicPartition, deque[Commit]]]"
"""Group to partition to its last commits, oldest first, as far as they were seen."""


class KafkaCommits:
    """Follows the topic. One task at a time. ``members``: the number of members of groups that
    brokers coordinate."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster
        self._positions: dict[TopicPartition, Position] = {}
        self._sources: dict[TopicPartition, set[GroupPartition | str]] = {}
        self.commits: Windows = {}
        self.members: dict[str, int] = {}

    def read(
        self, leaders: Mapping[TopicPartition, Broker], ends: Mapping[TopicPartition, int]
    ) -> bool:
        """Read the topic's partitions up to ``ends``; False if that is not done yet."""
        for tp in self._positions.keys() - leaders.keys():
            if tp not in ends:
                self._forget(tp)
        silent: set[Broker] = set()
        for _ in range(_FETCHES):
            positions = {tp: self._positions.get(tp) for tp in ends}
            behind = {tp: at for tp, at in positions.items() if not at or at.offset < ends[tp]}
            shards = by_leader(behind, leaders.get)
            for leader in silent:
                shards.pop(leader, None)
            if not shards:
                return not silent
            for leader, led in shards.items():
                try:
                    if not self._read_from(leader, led):
                        silent.add(leader)
                except (OSError, KafkaError) as error:
                    logger.warning("The offsets that broker %d keeps: %s", leader.id, error)
                    silent.add(leader)
        return False

    def _read_from(
        self, leader: Broker, positions: Mapping[TopicPartition, Position | None]
    ) -> bool:
        """Whether there is more to come."""
        call = partial(self._cluster.call, leader)
        unknown = [tp for tp, position in positions.items() if position is None]
        if unknown:
            beginnings = log_offsets.before(call, dict.fromkeys(unknown, EARLIEST_TIME))
            for tp, offset in beginnings.checked().items():
                self._positions[tp] = Position(offset, _FETCH_BYTES)
        asked = {tp: self._positions[tp] for tp in positions}
        size = max(position.size for position in asked.values())
        entries = fetch(call, {tp: position.offset for tp, position in asked.items()}, size)
        goes_on = False
        for tp, entry in entries.items():
            if entry.error == OffsetOutOfRangeError.code:
                self._forget(tp)  # the topic was created again
                goes_on = True
                continue
            raise_for_code(entry.error)
            goes_on |= self._take(tp, asked[tp], entry.message_set)
        return goes_on

    def _take(self, tp: TopicPartition, position: Position, data: Any) -> bool:
        """Whether there is more to come."""
        before = position.offset
        for message in iter_messages(data):
            if message.offset >= before:
                position.offset = message.offset + 1
                self._note(tp, message)
        if position.offset > before:
            position.size = _FETCH_BYTES
        elif not len(data):
            return False
        else:
            position.advance(None)  # its next set is larger than what was asked for
        return True

    def _note(self, tp: TopicPartition, message: AnyMessage) -> None:
        """Take over one record; a warning for one that is not understood."""
        try:
            key = decode_key(bytes(message.key or b""))
            if isinstance(key, str):
                self._note_group(tp, key, message.value)
            else:
                self._note_commit(tp, key, message.value)
        except ProtocolError as error:
            logger.warning("%s offset %d was skipped: %s", tp, message.offset, error)

    def _note_group(self, tp: TopicPartition, group: str, value: bytes | None) -> None:
        if value is None:
            self.members.pop(group, None)
        else:
            self.members[group] = len(decode_group(bytes(value)).members)
            self._sources.setdefault(tp, set()).add(group)

    def _note_commit(self, tp: TopicPartition, key: GroupPartition, value: bytes | None) -> None:
        stored = None if value is None else decode_value(bytes(value))
        if stored is None or stored.offset < 0:
            self._forget_commit(key)
            return
        of_group = self.commits.setdefault(key.group, {})
        window = of_group.setdefault(TopicPartition(*key[1:]), deque(maxlen=WINDOW))
        window.append(Commit(stored.offset, stored.timestamp))
        self._sources.setdefault(tp, set()).add(key)

    def _forget(self, tp: TopicPartition) -> None:
        """Forget a partition and what was read from it."""
        self._positions.pop(tp, None)
        for key in self._sources.pop(tp, set()):
            if isinstance(key, str):
                self.members.pop(key, None)
            else:
                self._forget_commit(key)

    def _forget_commit(self, key: GroupPartition) -> None:
        of_group = self.commits.get(key.group, {})
        of_group.pop(TopicPartition(*key[1:]), None)
        if not of_group:
            self.commits.pop(key.group, None)


class ZooKeeperCommits:
    """Reads /consumers, each level of its tree at once. One task at a time. ``members``: group to
    the number of its live members. ``read`` raises the client's errors and leaves both as they
    were."""

    def __init__(self, zk: ZkClient) -> None:
        self._zk = zk
        self.commits: Windows = {}
        self.members: dict[str, int] = {}

    def read(self) -> None:
        groups = nodes.list_groups(self._zk)
        ids = self._zk.children_of_all([znodes.consumer_ids_path(group) for group in groups])
        commits: Windows = {}
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
