"""Deletes topics, step by step as brokers answer (kafka.controller.TopicDeletionManager).

Not a thread: an event that may let a deletion continue sets ``due``, and the controller's loop
calls ``work`` after the event. If delete.topic.enable is false, no topic is queued.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from kafka08.common import TopicPartition, csv
from kafka08.controller.context import PartitionAndReplica
from kafka08.controller.partitions import PartitionStateMachine
from kafka08.controller.replicas import ReplicaStateMachine
from kafka08.controller.states import PartitionState, ReplicaState
from kafka08.controller.term import Term

logger = logging.getLogger("kafka.controller.TopicDeletionManager")


class TopicDeletionManager:
    """The queue of topics to delete, kept in the context."""

    def __init__(
        self, term: Term, partitions: PartitionStateMachine, replicas: ReplicaStateMachine
    ) -> None:
        self.due = False
        # By topic: the replicas whose brokers have not answered yet. The topic waits for the last.
        self._awaited: dict[str, set[PartitionAndReplica]] = {}
        self._term = term
        self._context = term.context
        self._store = term.store
        self._partitions = partitions
        self._replicas = replicas

    def startup(self, topics: Iterable[str]) -> None:
        """At failover: queue topics, and mark those that wait for a broker or another operation."""
        context = self._context
        context.topics_to_delete = set(topics)
        live = context.live
        for topic in context.topics_to_delete:
            replicas = context.replicas_of_topic(topic)
            if any(r.replica not in live or r in context.offline for r in replicas):
                context.topics_ineligible_for_deletion.add(topic)
        self._hold_back_busy(context.topics_to_delete)
        self.due = bool(context.topics_to_delete)

    def enqueue(self, topics: Collection[str]) -> None:
        """Queue existing topics. A topic with another operation pending waits for it."""
        self._context.topics_to_delete.update(topics)
        self._hold_back_busy(topics)
        self.due = True

    def _hold_back_busy(self, topics: Collection[str]) -> None:
        busy = {tp.topic for tp in self._context.reassigned}
        busy |= {tp.topic for tp in self._context.electing_preferred}
        self.mark_ineligible(busy.intersection(topics))

    def mark_ineligible(self, topics: Iterable[str]) -> None:
        """Halt the deletion of the queued ones of ``topics``."""
        halted = self._context.topics_to_delete.intersection(topics)
        if halted:
            self._context.topics_ineligible_for_deletion |= halted
            logger.info("Halted deletion of topics %s", csv(sorted(halted)))

    def resume(self, topics: Iterable[str]) -> None:
        """Continue with ``topics``: the reason for their wait is over."""
        resumed = self._context.topics_to_delete.intersection(topics)
        if resumed:
            self._context.topics_ineligible_for_deletion -= resumed
            self.due = True

    def fail(self, replicas: Iterable[PartitionAndReplica]) -> None:
        """A broker failed or answered with an error: try again when something changes."""
        failed = [r for r in replicas if r.topic in self._context.topics_to_delete]
        if failed:
            self._replicas.handle_state_changes(
                self._started(failed), ReplicaState.DELETION_INELIGIBLE
            )
            self.mark_ineligible({replica.topic for replica in failed})
            self._no_longer_awaited(failed)

    def complete(self, replicas: Iterable[PartitionAndReplica]) -> None:
        """Record that brokers deleted their replicas."""
        done = self._started(r for r in replicas if r.topic in self._context.topics_to_delete)
        if done:
            self._replicas.handle_state_changes(done, ReplicaState.DELETION_SUCCESSFUL)
            self._no_longer_awaited(done)

    def _no_longer_awaited(self, replicas: Iterable[PartitionAndReplica]) -> None:
        for replica in replicas:
            awaited = self._awaited.get(replica.topic, set())
            awaited.discard(replica)
            self.due = self.due or not awaited

    def _started(self, replicas: Iterable[PartitionAndReplica]) -> list[PartitionAndReplica]:
        """Those that await an answer. Late and repeated answers are ignored."""
        started = ReplicaState.DELETION_STARTED
        return [r for r in replicas if self._context.replica_state(r) is started]

    def work(self) -> None:
        """Advance every queued topic as far as possible now (DeleteTopicsThread.doWork)."""
        self.due = False
        for topic in sorted(self._context.topics_to_delete):
            logger.info("Handling deletion for topics %s", topic)
            self._work(topic)

    def _work(self, topic: str) -> None:
        context = self._context
        replicas = context.replicas_of_topic(topic)
        states = {context.replica_state(replica) for replica in replicas}
        if states <= {ReplicaState.DELETION_SUCCESSFUL}:
            self._complete_topic(topic)
            return
        if ReplicaState.DELETION_STARTED in states:
            logger.info("Deletion for topic %s in progress", topic)
            return
        if ReplicaState.DELETION_INELIGIBLE in states:
            failed = context.replicas_in_state(topic, ReplicaState.DELETION_INELIGIBLE)
            logger.info(
                "Retrying delete topic for topic %s since replicas %s were not successfully "
                "deleted",
                *(topic, csv(failed)),
            )
            self._replicas.handle_state_changes(failed, ReplicaState.OFFLINE)
        if topic in context.topics_ineligible_for_deletion:
            logger.info(
                "Not retrying deletion of topic %s at this time since it is marked ineligible "
                "for deletion",
                topic,
            )
        else:
            logger.info("Deletion of topic %s (re)started", topic)
            self._start(topic, replicas)

    def _start(self, topic: str, replicas: Iterable[PartitionAndReplica]) -> None:
        """Remove the topic from the brokers' metadata, then delete every live replica."""
        context = self._context
        # Without partitions of its own: every request lists those being deleted.
        self._term.send_metadata(context.live_or_shutting_down, ())
        live = context.live
        missing = [
            replica
            for replica in replicas
            if context.replica_state(replica) is not ReplicaState.DELETION_SUCCESSFUL
        ]
        alive = [r for r in missing if r.replica in live and r not in context.offline]
        self._replicas.handle_state_changes(alive, ReplicaState.OFFLINE)
        self._replicas.handle_state_changes(alive, ReplicaState.DELETION_STARTED)
        self._awaited[topic] = set(self._started(alive))
        if len(alive) != len(missing):
            self.mark_ineligible([topic])

    def _complete_topic(self, topic: str) -> None:
        context = self._context
        # Remove the watch first: auto-creation may create the name again at any time.
        self._store.forget_topic(topic)
        partitions: list[TopicPartition] = context.partitions_of(topic)
        self._replicas.handle_state_changes(
            context.replicas_of_topic(topic), ReplicaState.NON_EXISTENT
        )
        self._partitions.handle_state_changes(partitions, PartitionState.OFFLINE)
        self._partitions.handle_state_changes(partitions, PartitionState.NON_EXISTENT)
        self._awaited.pop(topic, None)
        self._store.delete_topic(topic)
        context.remove_topic(topic)
        logger.info("Deletion of topic %s successfully completed", topic)
