"""The lag of every group of a cluster, collected in rounds.

A round asks each leader once for the ends of its logs, reads on in the offsets topic with one
request for each leader, and reads the groups' nodes in ZooKeeper. A group that commits to both
storages counts with the larger offset: a restarting consumer of 0.8 takes that one.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Container, Mapping
from functools import partial
from typing import NamedTuple

from kafka08.client import log_offsets
from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import flatten
from kafka08.client.routing import by_leader
from kafka08.common import EARLIEST_TIME, LATEST_TIME, OFFSETS_TOPIC, Broker, TopicPartition
from kafka08.errors import KafkaError
from kafka08.lag.commits import KafkaCommits, ZooKeeperCommits
from kafka08.lag.judgement import RECENT_MS, Commit, judge, worst
from kafka08.lag.log_ends import LogEnds
from kafka08.lag.message_times import MessageTimes
from kafka08.protocol.schemas import PartitionMetadata
from kafka08.runtime import Clock
from zk.client import ZkClient
from zk.errors import ZkError

logger = logging.getLogger("kafka.console.LagCollector")

ZOOKEEPER, KAFKA = "zookeeper", "kafka"
_STARTS_EVERY = 10
"""Rounds: logs' starts move with retention only."""


class LogState(NamedTuple):
    """A partition: what Metadata says, and its log. None: not known, or no leader is known."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    start: int | None
    end: int | None


class PartitionLag(NamedTuple):
    """Where a group is in a partition. ``lag`` in messages, never negative; ``seconds`` since the
    next message to be read was appended, None if unknown; ``at_least``: it may be older than that.
    ``beyond``: the offset is above the log's end, which is then a log that was created again."""

    offset: int
    end: int
    lag: int
    seconds: float | None
    at_least: bool
    status: str
    beyond: bool
    committed_ms: int


class GroupLag(NamedTuple):
    """``storages``: where it commits. ``partitions`` without those whose log end is ``unknown``,
    and without those of topics that do not exist. ``uncommitted``: the other partitions of the same
    topics, with the messages that they have. A consumer begins there by its auto.offset.reset."""

    storages: tuple[str, ...]
    members: int
    partitions: Mapping[TopicPartition, PartitionLag]
    unknown: int = 0
    uncommitted: Mapping[TopicPartition, int] = {}

    @property
    def total(self) -> int:
        return sum(each.lag for each in self.partitions.values())

    @property
    def seconds(self) -> float | None:
        """Of the partition that is furthest behind."""
        return max(
            (p.seconds for p in self.partitions.values() if p.seconds is not None), default=None
        )

    @property
    def status(self) -> str:
        return worst(each.status for each in self.partitions.values())

    @property
    def beyond(self) -> bool:
        return any(each.beyond for each in self.partitions.values())


class Lags(NamedTuple):
    """The result of a round. ``complete``: false until the offsets topic has been read once."""

    time_ms: int
    brokers: tuple[Broker, ...]
    logs: Mapping[TopicPartition, LogState]
    groups: Mapping[str, GroupLag]
    complete: bool


class LagCollector:
    """One task calls ``collect``. Connections are ``cluster``'s."""

    def __init__(self, cluster: ClusterClient, zk: ZkClient, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._times = MessageTimes(cluster)
        self._topic = KafkaCommits(cluster)
        self._nodes = ZooKeeperCommits(zk)
        self._log_ends = LogEnds()
        self._starts: dict[TopicPartition, int] = {}
        self._rounds = 0

    def note_starts(self, starts: Mapping[TopicPartition, int]) -> None:
        """Starts of logs that are newer than those of the last round."""
        self._starts = {**self._starts, **starts}

    def collect(self) -> Lags:
        """One round. Raises NoBrokerError and ZkError."""
        metadata = self._cluster.refresh()
        brokers = {each.node_id: Broker(*each[:3]) for each in metadata.brokers}
        known: dict[TopicPartition, PartitionMetadata] = flatten(metadata.topics)
        leaders = {tp: brokers[p.leader] for tp, p in known.items() if p.leader in brokers}
        if self._rounds % _STARTS_EVERY == 0:
            self._starts = self._ask(leaders, EARLIEST_TIME)
        self._rounds += 1
        now_ms = self._clock.millis()
        ends = self._ask(leaders, LATEST_TIME)
        # Of new topics. A leader that did not answer is not waited for again.
        if new := {tp: leaders[tp] for tp in ends if tp not in self._starts}:
            self._starts |= self._ask(new, EARLIEST_TIME)
        for tp, end in ends.items():
            self._log_ends.note(tp, now_ms, end)
        self._log_ends.keep(set(known))
        commits = {tp: end for tp, end in ends.items() if tp.topic == OFFSETS_TOPIC}
        complete = self._topic.read(leaders, commits)
        try:
            self._nodes.read()
        except ZkError as error:
            logger.warning("The groups in ZooKeeper are those of an earlier round: %s", error)
        logs = {
            tp: LogState(
                p.leader, tuple(p.replicas), tuple(p.isr), self._starts.get(tp), ends.get(tp)
            )
            for tp, p in known.items()
        }
        groups = self._groups(ends, known, now_ms)
        if self._times.read(leaders):
            groups = self._groups(ends, known, now_ms)
        return Lags(now_ms, tuple(brokers.values()), logs, groups, complete)

    def _ask(
        self, leaders: Mapping[TopicPartition, Broker], time: int
    ) -> dict[TopicPartition, int]:
        """The offset of each partition at a time. Leaders that do not answer are left out."""
        found: dict[TopicPartition, int] = {}
        for leader, times in by_leader(dict.fromkeys(leaders, time), leaders.get).items():
            try:
                found.update(log_offsets.before(partial(self._cluster.call, leader), times).values)
            except (OSError, KafkaError) as error:
                logger.warning(
                    "Broker %d did not return the offsets of its logs: %s", leader.id, error
                )
        return found

    def _groups(
        self, ends: Mapping[TopicPartition, int], known: Container[TopicPartition], now_ms: int
    ) -> dict[str, GroupLag]:
        groups = {}
        of_topic: dict[str, list[TopicPartition]] = {}
        for tp in ends:
            of_topic.setdefault(tp.topic, []).append(tp)
        names = self._topic.commits.keys() | self._topic.members | self._nodes.commits.keys()
        for group in sorted(names):
            in_kafka = self._topic.commits.get(group, {})
            in_nodes = self._nodes.commits.get(group, {})
            storages = [ZOOKEEPER] if group in self._nodes.commits else []
            if in_kafka or group in self._topic.members:
                storages.append(KAFKA)
            committed = {*in_kafka, *in_nodes}
            partitions = {
                tp: self._lag(tp, _larger(in_kafka.get(tp), in_nodes.get(tp)), ends[tp], now_ms)
                for tp in sorted(committed & ends.keys())
            }
            unknown = sum(tp in known for tp in committed - ends.keys())
            members = max(self._topic.members.get(group, 0), self._nodes.members.get(group, 0))
            uncommitted = {
                tp: ends[tp] - self._starts.get(tp, 0)
                for topic in {tp.topic for tp in partitions}
                for tp in of_topic[topic]
                if tp not in committed
            }
            groups[group] = GroupLag(tuple(storages), members, partitions, unknown, uncommitted)
        return groups

    def _lag(
        self, tp: TopicPartition, commits: deque[Commit], end: int, now_ms: int
    ) -> PartitionLag:
        last = commits[-1]
        lag = max(end - last.offset, 0)
        seconds, at_least = self._seconds(tp, last.offset, lag, now_ms)
        window = [
            commit._replace(end=self._log_ends.end_at(tp, commit.time_ms)) for commit in commits
        ]
        recent = self._log_ends.end_since(tp, now_ms - RECENT_MS)
        lag_before = lag if recent is None else max(recent - last.offset, 0)
        status = judge(window, lag, lag_before, now_ms)
        return PartitionLag(
            last.offset, end, lag, seconds, at_least, status, last.offset > end, last.time_ms
        )

    def _seconds(
        self, tp: TopicPartition, offset: int, lag: int, now_ms: int
    ) -> tuple[float | None, bool]:
        if lag == 0:
            return 0.0, False
        appended = self._log_ends.passed_at(tp, offset)
        if appended is None:
            appended = self._times.of(tp, offset)
        if appended is not None:
            return max(now_ms - appended, 0) / 1000, False
        since = self._log_ends.since(tp)
        return (None, False) if since is None else ((now_ms - since) / 1000, True)


def _larger(one: deque[Commit] | None, other: deque[Commit] | None) -> deque[Commit]:
    """The commits of the storage whose last offset is the larger one."""
    there = [commits for commits in (one, other) if commits]
    return max(there, key=lambda commits: commits[-1].offset)
