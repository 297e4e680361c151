"""Gives leadership back to the first assigned replica, on request or by imbalance.

Mirrors KafkaController.onPreferredReplicaElection and checkAndTriggerPartitionRebalance.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from kafka08.common import TopicPartition, csv
from kafka08.controller.context import PartitionAndReplica
from kafka08.controller.deletion import TopicDeletionManager
from kafka08.controller.partitions import PartitionStateMachine
from kafka08.controller.states import PartitionState
from kafka08.controller.term import Term

logger = logging.getLogger("kafka.controller.KafkaController")


class PreferredReplicaElection:
    """Elections of preferred replicas; the context holds those under way."""

    def __init__(
        self, term: Term, partitions: PartitionStateMachine, deletion: TopicDeletionManager
    ) -> None:
        self._context = term.context
        self._store = term.store
        self._partitions = partitions
        self._deletion = deletion

    def load(self, listed: Iterable[TopicPartition]) -> None:
        """At failover: the requested elections that are neither done nor void."""
        context = self._context
        for partition in listed:
            replicas = context.replicas_of(partition)
            state = context.leadership.get(partition)
            if replicas and (state is None or state.leader != replicas[0]):
                context.electing_preferred.add(partition)
        logger.info(
            "Resuming preferred replica election for partitions: %s",
            csv(context.electing_preferred),
        )

    def resume(self) -> None:
        """At failover, after the state machines have started."""
        self._elect_requested(sorted(self._context.electing_preferred))

    def request(self, listed: Iterable[TopicPartition]) -> None:
        """The node was created: hold the elections, and delete it in any case."""
        context = self._context
        wanted = []
        for partition in listed:
            if context.is_being_deleted(partition):
                logger.error(
                    "Skipping preferred replica election for partition %s since the respective "
                    "topic is being deleted",
                    partition,
                )
            elif not context.replicas_of(partition):
                logger.error("Skipping preferred replica election of unknown %s", partition)
            else:
                wanted.append(partition)
        self._elect_requested(wanted)

    def _elect_requested(self, partitions: Collection[TopicPartition]) -> None:
        self._elect(partitions)
        self._store.delete_preferred_elections()

    def _elect(self, partitions: Collection[TopicPartition]) -> None:
        context = self._context
        topics = {partition.topic for partition in partitions}
        logger.info("Starting preferred replica leader election for partitions %s", csv(partitions))
        context.electing_preferred.update(partitions)
        self._deletion.mark_ineligible(topics)
        self._partitions.handle_state_changes(
            partitions, PartitionState.ONLINE, self._partitions.preferred_rule
        )
        for partition in partitions:
            state = context.leadership.get(partition)
            leader = None if state is None else state.leader
            if leader == context.replicas_of(partition)[0]:
                logger.info(
                    "Partition %s completed preferred replica leader election. New leader is %s",
                    *(partition, leader),
                )
            else:
                logger.warning(
                    "Partition %s failed to complete preferred replica leader election. "
                    "Leader is %s",
                    *(partition, leader),
                )
        context.electing_preferred.difference_update(partitions)
        self._deletion.resume(topics)

    def rebalance(self, percentage: int) -> None:
        """For each preferred broker: elect if others lead more than ``percentage`` of its share.

        Does nothing while a reassignment is under way.
        """
        context = self._context
        shares: dict[int, list[TopicPartition]] = {}
        for partition, replicas in context.assignment.items():
            if replicas and not context.is_being_deleted(partition):
                shares.setdefault(replicas[0], []).append(partition)
        for broker_id, share in sorted(shares.items()):
            elsewhere = [
                partition
                for partition in share
                if partition in context.leadership
                and context.leadership[partition].leader != broker_id
                and PartitionAndReplica(*partition, broker_id) not in context.offline
                and PartitionAndReplica(*partition, broker_id) not in context.full
            ]
            ratio = len(elsewhere) / len(share)
            logger.debug("leader imbalance ratio for broker %d is %f", broker_id, ratio)
            if (
                ratio > percentage / 100
                and broker_id in context.live
                and not context.reassigned
                and not context.electing_preferred
            ):
                self._elect(sorted(elsewhere))
