"""The topics and live brokers that the controller last announced, for Metadata replies.

Filled only by UpdateMetadata requests (kafka.server.KafkaApis.MetadataCache); answers only from
memory. It does not know which topics are being created.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from kafka08.common import INTERNAL_TOPICS, Broker, TopicPartition
from kafka08.errors import LeaderNotAvailableError, ReplicaNotAvailableError
from kafka08.protocol.schemas import (
    LEADER_DURING_DELETE,
    NO_LEADER,
    PartitionMetadata,
    PartitionStateInfo,
    TopicMetadata,
)


class Signal(Protocol):
    """An event of a runtime."""

    def set(self) -> None: ...
    def is_set(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool: ...


class MetadataCache:
    """Partition states by topic, live brokers by id, and those of them that have a host and port
    for clients of 0.8. Questions about leaders take the brokers that can be reached, by default
    the live ones. ``announced`` is set by the first update."""

    def __init__(self, announced: Signal) -> None:
        self.announced = announced
        self.brokers: Mapping[int, Broker] = {}
        self.plain_brokers: Mapping[int, Broker] = {}
        self._topics: dict[str, dict[int, PartitionStateInfo]] = {}

    def update(
        self, partitions: Iterable[PartitionStateInfo], brokers: Iterable[Broker]
    ) -> set[TopicPartition]:
        """Replace the brokers, merge the partitions; leader -2 removes a partition. Returns the
        partitions that are being deleted."""
        self.brokers = {broker.id: broker for broker in brokers}
        self.plain_brokers = {each.id: each for each in self.brokers.values() if each.port >= 0}
        deleted = set()
        for state in partitions:
            if state.leader == LEADER_DURING_DELETE:
                deleted.add(TopicPartition(state.topic, state.partition))
                known = self._topics.get(state.topic)
                if known is not None:
                    known.pop(state.partition, None)
                    if not known:
                        del self._topics[state.topic]
            else:
                self._topics.setdefault(state.topic, {})[state.partition] = state
        self.announced.set()
        return deleted

    def topics(self) -> list[str]:
        return list(self._topics)

    def __contains__(self, topic: str) -> bool:
        return topic in self._topics

    def has_partition(self, topic: str, partition: int) -> bool:
        return partition in self._topics.get(topic, ())

    def partition_count(self, topic: str) -> int:
        return len(self._topics.get(topic, ()))

    def leader_of(
        self, topic_partition: TopicPartition, brokers: Mapping[int, Broker] | None = None
    ) -> Broker | None:
        """The live leader of a partition, None where there is none."""
        state = self._topics.get(topic_partition.topic, {}).get(topic_partition.partition)
        if state is None:
            return None
        return (self.brokers if brokers is None else brokers).get(state.leader)

    def replicas_of(self, topic: str, partition: int) -> list[int]:
        """The ids of the brokers that store a partition; empty if it is not known."""
        state = self._topics.get(topic, {}).get(partition)
        return [] if state is None else state.replicas

    def isr_of(self, topic: str, partition: int) -> list[int]:
        """Those of them that were in sync when the controller last announced it."""
        state = self._topics.get(topic, {}).get(partition)
        return [] if state is None else state.isr

    def topic_metadata(
        self, topic: str, brokers: Mapping[int, Broker] | None = None, *, later: bool = False
    ) -> TopicMetadata:
        """The wire form of a cached topic. In version 0 dead replicas are left out as clients
        expect; ``later``, from 1 on, all are named, and those that are not live once more as
        offline."""
        brokers = self.brokers if brokers is None else brokers
        made = _later_partition_metadata if later else _partition_metadata
        partitions = [made(state, brokers) for _, state in sorted(self._topics[topic].items())]
        return TopicMetadata(0, topic, partitions, later and topic in INTERNAL_TOPICS)


def _later_partition_metadata(
    state: PartitionStateInfo, brokers: Mapping[int, Broker]
) -> PartitionMetadata:
    has_leader = state.leader in brokers
    return PartitionMetadata(
        0 if has_leader else LeaderNotAvailableError.code,
        state.partition,
        state.leader if has_leader else NO_LEADER,
        state.replicas,
        state.isr,
        state.leader_epoch,
        [replica for replica in state.replicas if replica not in brokers],
    )


def _partition_metadata(
    state: PartitionStateInfo, brokers: Mapping[int, Broker]
) -> PartitionMetadata:
    replicas = [replica for replica in state.replicas if replica in brokers]
    if state.leader not in brokers:
        return PartitionMetadata(
            LeaderNotAvailableError.code, state.partition, NO_LEADER, replicas, []
        )
    isr = [replica for replica in state.isr if replica in brokers]
    whole = len(replicas) == len(state.replicas) and len(isr) == len(state.isr)
    error = 0 if whole else ReplicaNotAvailableError.code
    return PartitionMetadata(error, state.partition, state.leader, replicas, isr)
