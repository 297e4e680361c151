"""The active controller's view of the cluster: plain data, owned by the controller's loop.

Mirrors kafka.controller.ControllerContext. It also holds the states that 0.8.2.2 keeps in its
two state machines and its TopicDeletionManager, so that all state is in one place. Does no I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from kafka08.common import Broker, TopicPartition, csv
from kafka08.controller.states import PartitionState, ReplicaState
from kafka08.metrics.meters import Meter, Timer
from zk.election import Epoch

INITIAL_LEADER_EPOCH = 0
INITIAL_ZK_VERSION = 0
NO_EPOCH = Epoch(0, -1)


class LeaderAndIsr(NamedTuple):
    """A partition's state node (kafka.controller.LeaderIsrAndControllerEpoch).

    ``controller_epoch`` is that of the controller that last wrote it. ``zk_version`` is the
    version of the node, for the next conditional write.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    zk_version: int

    def __str__(self) -> str:
        return (
            f"(Leader:{self.leader},ISR:{csv(self.isr)},LeaderEpoch:{self.leader_epoch},"
            f"ControllerEpoch:{self.controller_epoch})"
        )


class PartitionAndReplica(NamedTuple):
    """One replica of a partition."""

    topic: str
    partition: int
    replica: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"[Topic={self.topic},Partition={self.partition},Replica={self.replica}]"


class LiveBroker(NamedTuple):
    """A registered broker; ``incarnation`` (czxid of its node) differs after a bounce.

    ``formats``: the highest message format it knows; None if it does not say, as 0.8.2.2.
    """

    broker: Broker
    incarnation: int
    formats: int | None = None


class ControllerStats:
    """Counts over all terms of this broker (kafka.controller.ControllerStats). ``elections``:
    changes of the brokers, and how long it took to act on them. ``unclean``: leaders from outside
    the isr."""

    def __init__(self) -> None:
        self.elections = Timer()
        self.unclean = Meter()


class ControllerContext:
    """The view of the cluster on which elections and requests are based."""

    def __init__(self, stats: ControllerStats | None = None, epoch: Epoch = NO_EPOCH) -> None:
        self.stats = stats or ControllerStats()
        self.epoch, self.epoch_zk_version = epoch
        self.brokers: dict[int, LiveBroker] = {}
        self.shutting_down: set[int] = set()
        self.offline: set[PartitionAndReplica] = set()  # their disks have failed
        self.full: set[PartitionAndReplica] = set()  # their disks are full
        self.topics: set[str] = set()
        self.leadership: dict[TopicPartition, LeaderAndIsr] = {}
        self.partition_states: dict[TopicPartition, PartitionState] = {}
        self.reassigned: dict[TopicPartition, tuple[int, ...]] = {}
        self.left: set[PartitionAndReplica] = set()  # their brokers still have to delete them
        self.electing_preferred: set[TopicPartition] = set()
        self.topics_to_delete: set[str] = set()
        self.topics_ineligible_for_deletion: set[str] = set()
        self._replica_states: dict[TopicPartition, dict[int, ReplicaState]] = {}
        self._replicas: dict[TopicPartition, tuple[int, ...]] = {}
        self._partitions: dict[str, set[TopicPartition]] = {}

    @property
    def fence(self) -> Epoch:
        """The epoch that must still be stored when the controller writes."""
        return Epoch(self.epoch, self.epoch_zk_version)

    # Brokers

    @property
    def live(self) -> set[int]:
        """Ids that may lead: registered and not shutting down."""
        return self.brokers.keys() - self.shutting_down

    def live_for(self, partition: TopicPartition) -> set[int]:
        """Ids that may lead ``partition``: the live ones whose replica is not offline."""
        live = self.live
        if self.offline:
            return {i for i in live if PartitionAndReplica(*partition, i) not in self.offline}
        return live

    @property
    def live_or_shutting_down(self) -> list[int]:
        """Ids that get requests, ascending."""
        return sorted(self.brokers)

    def broker_list(self) -> list[Broker]:
        """Every registered broker, sorted by id, in the form that requests carry."""
        return [self.brokers[broker_id].broker for broker_id in sorted(self.brokers)]

    # Assignment

    @property
    def assignment(self) -> dict[TopicPartition, tuple[int, ...]]:
        """The replicas (AR) of each partition. Only ``assign`` and ``remove_topic`` change it."""
        return self._replicas

    def assign(self, partition: TopicPartition, replicas: Iterable[int]) -> None:
        self._replicas[partition] = tuple(replicas)
        self._partitions.setdefault(partition.topic, set()).add(partition)

    def replicas_of(self, partition: TopicPartition) -> tuple[int, ...]:
        return self._replicas.get(partition, ())

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        return sorted(self._partitions.get(topic, ()))

    def replicas_of_topic(self, topic: str) -> list[PartitionAndReplica]:
        return self.replicas_of_partitions(self.partitions_of(topic))

    def replicas_of_partitions(
        self, partitions: Iterable[TopicPartition]
    ) -> list[PartitionAndReplica]:
        return [
            PartitionAndReplica(partition.topic, partition.partition, replica)
            for partition in partitions
            for replica in self._replicas.get(partition, ())
        ]

    def partitions_on(self, broker_id: int) -> list[TopicPartition]:
        return [tp for tp, replicas in self._replicas.items() if broker_id in replicas]

    def replicas_on(self, broker_ids: Collection[int]) -> list[PartitionAndReplica]:
        return [
            PartitionAndReplica(partition.topic, partition.partition, replica)
            for partition, replicas in self._replicas.items()
            for replica in replicas
            if replica in broker_ids
        ]

    def remove_topic(self, topic: str) -> None:
        """Remove all state of a topic, whatever the reason for its removal."""
        for partition in self._partitions.pop(topic, ()):
            del self._replicas[partition]
            self._replica_states.pop(partition, None)
            self.leadership.pop(partition, None)
            self.partition_states.pop(partition, None)
            self.reassigned.pop(partition, None)
            self.electing_preferred.discard(partition)
        self.topics.discard(topic)
        self.topics_to_delete.discard(topic)
        self.topics_ineligible_for_deletion.discard(topic)

    # States

    def partition_state(self, partition: TopicPartition) -> PartitionState:
        return self.partition_states.get(partition, PartitionState.NON_EXISTENT)

    def set_partition_state(self, partition: TopicPartition, state: PartitionState) -> None:
        if state is PartitionState.NON_EXISTENT:
            self.partition_states.pop(partition, None)
        else:
            self.partition_states[partition] = state

    def replica_state(self, replica: PartitionAndReplica) -> ReplicaState:
        states = self._replica_states.get(replica.topic_partition, {})
        return states.get(replica.replica, ReplicaState.NON_EXISTENT)

    def set_replica_state(self, replica: PartitionAndReplica, state: ReplicaState) -> None:
        states = self._replica_states.setdefault(replica.topic_partition, {})
        if state is ReplicaState.NON_EXISTENT:
            states.pop(replica.replica, None)
        else:
            states[replica.replica] = state

    def replicas_in_state(self, topic: str, state: ReplicaState) -> list[PartitionAndReplica]:
        return [
            replica
            for replica in self.replicas_of_topic(topic)
            if self.replica_state(replica) is state
        ]

    # Deletion

    def is_being_deleted(self, partition: TopicPartition) -> bool:
        return partition.topic in self.topics_to_delete

    def partitions_being_deleted(self) -> list[TopicPartition]:
        return [
            partition
            for topic in sorted(self.topics_to_delete)
            for partition in self.partitions_of(topic)
        ]
