"""The state changes of replicas (kafka.controller.ReplicaStateMachine).

Like ``partitions``: in bulk, one batch per call; a failure affects only its replica.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

from kafka08.common import TopicPartition, csv
from kafka08.controller import elections
from kafka08.controller.context import LeaderAndIsr, PartitionAndReplica
from kafka08.controller.partitions import check_epoch
from kafka08.controller.state_machine import StateMachine
from kafka08.controller.states import (
    REPLICA_PREDECESSORS,
    PartitionState,
    ReplicaState,
    StateChangeFailedError,
)
from kafka08.controller.term import Term

logger = logging.getLogger("kafka.controller.ReplicaStateMachine")


class ReplicaStateMachine(StateMachine[PartitionAndReplica, ReplicaState]):
    """Transitions of replicas."""

    predecessors = REPLICA_PREDECESSORS

    def __init__(self, term: Term) -> None:
        super().__init__(term, term.context.replica_state, term.context.set_replica_state)

    def startup(self) -> None:
        """At failover: send the state of every partition that has one to its live replicas.

        Dead ones may have missed a deletion, so they start as ineligible for it.
        """
        context = self._context
        live = context.live
        replicas = context.replicas_of_partitions(context.assignment)
        alive = {r for r in replicas if r.replica in live and r not in context.offline}
        for replica in replicas:
            state = ReplicaState.ONLINE if replica in alive else ReplicaState.DELETION_INELIGIBLE
            context.set_replica_state(replica, state)
        self.handle_state_changes([r for r in replicas if r in alive], ReplicaState.ONLINE)

    def dead_leave_isrs(self) -> None:
        """At failover, after the elections: dead brokers leave isrs, so that writes do not wait.

        0.8.2.2 leaves that to the leaders, which wait for replica.lag.time.max.ms. A partition
        without a leader keeps its isr: only its members may lead when they are back.
        """
        context = self._context
        self.handle_state_changes(
            [
                PartitionAndReplica(*partition, member)
                for partition, state in context.leadership.items()
                if context.partition_state(partition) is PartitionState.ONLINE
                and not context.is_being_deleted(partition)
                for member in state.isr
                if member not in context.brokers
                or PartitionAndReplica(*partition, member) in context.offline
            ],
            ReplicaState.OFFLINE,
        )

    def handle_state_changes(
        self, replicas: Collection[PartitionAndReplica], target: ReplicaState
    ) -> None:
        """Move ``replicas`` to ``target`` and send the resulting requests."""
        if not replicas:
            return
        logger.info(
            "[Replica state machine on controller %d]: Invoking state change to %s for replicas %s",
            *(self._id, target, csv(replicas)),
        )
        legal = self._begin(replicas, target)
        act = {
            ReplicaState.NEW: self._start,
            ReplicaState.ONLINE: self._bring_online,
            ReplicaState.OFFLINE: self._take_offline,
            ReplicaState.DELETION_STARTED: self._start_deletion,
            ReplicaState.NON_EXISTENT: self._forget,
        }.get(target)
        if act is None:
            for replica in legal:
                self._mark(replica, target)
        else:
            act(legal)
        self._term.send_batch()

    def _title(self, replica: PartitionAndReplica) -> str:
        return f"Replica {replica}"

    def _changing(self, replica: PartitionAndReplica) -> tuple[str, str]:
        name = f"of replica {replica.replica} for partition {replica.topic_partition}"
        return f"state {name}", name

    def _tell(self, replica: PartitionAndReplica, state: LeaderAndIsr) -> None:
        partition = replica.topic_partition
        self._batch.add_leader_and_isr(
            [replica.replica], partition, state, self._context.replicas_of(partition)
        )

    def _start(self, replicas: Iterable[PartitionAndReplica]) -> None:
        """NonExistent -> New: follow the leader, if there is one."""
        replicas = list(replicas)
        partitions = list(dict.fromkeys(replica.topic_partition for replica in replicas))
        states = self._store.states(partitions)
        for replica in replicas:
            state = states.get(replica.topic_partition)
            if state is not None and state.leader == replica.replica:
                error = StateChangeFailedError("it is being requested to become leader")
                self._failed(replica, ReplicaState.NEW, error)
                continue
            if state is not None:
                self._tell(replica, state)
            self._mark(replica, ReplicaState.NEW)

    def _bring_online(self, replicas: Iterable[PartitionAndReplica]) -> None:
        context = self._context
        for replica in replicas:
            partition = replica.topic_partition
            if context.replica_state(replica) is ReplicaState.NEW:
                assigned = context.replicas_of(partition)
                if replica.replica not in assigned:
                    context.assign(partition, (*assigned, replica.replica))
            else:
                # A partition that never had a leader has no log, so there is no request to send.
                state = context.leadership.get(partition)
                if state is not None:
                    self._tell(replica, state)
            self._mark(replica, ReplicaState.ONLINE)

    def _take_offline(self, replicas: Iterable[PartitionAndReplica]) -> None:
        """Let the replicas stop fetching, and remove them from the isr at once."""
        context = self._context
        gone: dict[TopicPartition, set[int]] = {}
        for replica in replicas:
            self._batch.add_stop_replica(replica, delete=False)
            gone.setdefault(replica.topic_partition, set()).add(replica.replica)
            # Set the state even if the isr cannot be changed: otherwise a replica of a partition
            # that never had a leader could not be deleted (KafkaController leaves it stuck).
            self._mark(replica, ReplicaState.OFFLINE)
        led = {partition: ids for partition, ids in gone.items() if partition in context.leadership}
        for partition, state in self._leave_isr(led).items():
            if not context.is_being_deleted(partition):
                assigned = context.replicas_of(partition)
                recipients = [r for r in assigned if r not in gone[partition]]
                self._batch.add_leader_and_isr(recipients, partition, state, assigned)

    def _leave_isr(
        self, gone: Mapping[TopicPartition, Collection[int]]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """Write each isr without ``gone``; returns the states now valid (removeReplicaFromIsr).

        Begins with the cached states, as elections do. "Not in the isr" is accepted only from a
        state just read.
        """
        context = self._context
        settled: dict[TopicPartition, LeaderAndIsr] = {}
        pending = list(gone)
        remembered = {partition: context.leadership[partition] for partition in pending}
        states: dict[TopicPartition, LeaderAndIsr] = {}
        while pending:
            unknown = [p for p in pending if p not in remembered and p not in states]
            states.update(self._store.states(unknown))
            wanted: dict[TopicPartition, LeaderAndIsr] = {}
            again = []
            for partition in pending:
                current = remembered.get(partition) or states.get(partition)
                try:
                    if current is None:
                        raise StateChangeFailedError("leaderAndIsr is empty")
                    check_epoch(partition, current, context.epoch)
                except StateChangeFailedError as error:
                    self._cannot_leave(partition, gone[partition], error)
                    continue
                state = elections.without_replicas(current, gone[partition], context.epoch)
                if state is not None:
                    wanted[partition] = state
                elif partition in remembered:
                    again.append(partition)
                else:
                    settled[partition] = current
            written, states = self._store.write_states(wanted)
            settled.update(written)
            pending = [*again, *(p for p in wanted if p not in written)]
            remembered = {}
        for partition, state in settled.items():
            context.leadership[partition] = state
            logger.info("New leader and ISR for partition %s is %s", partition, state)
        return settled

    def _cannot_leave(
        self, partition: TopicPartition, ids: Collection[int], error: Exception
    ) -> None:
        logger.warning(
            "Cannot remove replicas %s from ISR of %s - %s",
            *(csv(sorted(ids)), partition, error),
        )

    def _start_deletion(self, replicas: Iterable[PartitionAndReplica]) -> None:
        for replica in replicas:
            self._mark(replica, ReplicaState.DELETION_STARTED)
            self._batch.add_stop_replica(replica, delete=True)

    def _forget(self, replicas: Iterable[PartitionAndReplica]) -> None:
        context = self._context
        for replica in replicas:
            partition = replica.topic_partition
            assigned = context.replicas_of(partition)
            context.assign(partition, [r for r in assigned if r != replica.replica])
            self._mark(replica, ReplicaState.NON_EXISTENT)
