"""Moves partitions to other brokers (KafkaController.onPartitionReassignment and its callers).

AR is the current list of replicas, RAR the requested list. Phase A: AR becomes the union of both,
and the new replicas start to follow. Phase B, when all of RAR are in the isr: RAR takes over, and
the other replicas are stopped and deleted. AR in ZooKeeper becomes RAR last, so any controller can
continue where this one ended. The same write notes each replica that is left behind; the note stays
until its broker has answered that the replica is deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

from kafka08.common import Broker, TopicPartition, csv
from kafka08.controller import elections
from kafka08.controller.context import LeaderAndIsr, PartitionAndReplica
from kafka08.controller.deletion import TopicDeletionManager
from kafka08.controller.events import IsrChanged
from kafka08.controller.log_ends import ReplicaLogEnds
from kafka08.controller.partitions import PartitionStateMachine, check_epoch
from kafka08.controller.replicas import ReplicaStateMachine
from kafka08.controller.states import PartitionState, ReplicaState, StateChangeFailedError
from kafka08.controller.term import Term
from zk.errors import NoNodeError
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.controller.KafkaController")


class Reassignment:
    """Partitions under reassignment, kept in the context as partition -> RAR.

    ``leaders`` asks leaders up to where their logs hold what 0.8.2.2 cannot read.
    """

    def __init__(
        self,
        term: Term,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
        deletion: TopicDeletionManager,
        leaders: ReplicaLogEnds,
    ) -> None:
        self._term = term
        self._context = term.context
        self._store = term.store
        self._batch = term.batch
        self._partitions = partitions
        self._replicas = replicas
        self._deletion = deletion
        self._leaders = leaders
        # Waiting for reports of their leaders.
        self._asked: dict[TopicPartition, tuple[int, ...]] = {}

    def load(self, listed: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """At failover: adopt the listed partitions, drop those that are finished or deleted."""
        self._context.left = self._store.replicas_to_delete()
        assignment = self._context.assignment
        over = [tp for tp, new in listed.items() if assignment.get(tp) in (None, new)]
        if over or not listed:
            self._store.finish_reassignments(over)
        self._context.reassigned = {tp: new for tp, new in listed.items() if tp not in over}
        logger.info("Resuming reassignment of partitions: %s", self._context.reassigned)

    def resume(self) -> None:
        """At failover, after the state machines have started: continue where others stopped."""
        for partition, new in list(self._context.reassigned.items()):
            # If AR contains RAR, phase A is done: a dead new replica only delays phase B.
            if set(new) <= set(self._context.replicas_of(partition)):
                self._initiate(partition, new, resumed=True)
            else:
                del self._context.reassigned[partition]
                self._begin(partition, new)
        self._delete_left(self._context.brokers)

    def request(self, listed: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """The node changed: begin new reassignments. An empty node is deleted, since no tool
        writes another while it exists."""
        if not listed:
            self._store.finish_reassignments(())
        for partition, new in listed.items():
            if partition not in self._context.reassigned and partition not in self._asked:
                self._begin(partition, new)

    def _begin(self, partition: TopicPartition, new: tuple[int, ...]) -> None:
        """Begin a reassignment; one that names a new broker of 0.8.2.2 once the leader has reported
        that this broker can read the log."""
        if self._context.is_being_deleted(partition):
            logger.error(
                "Skipping reassignment of partition %s since its topic is being deleted", partition
            )
            self.drop([partition])
            return
        leader = self._later_leader(partition)
        if leader is not None and self._new_originals(partition, new):
            self._asked[partition] = new
            self._leaders.ask({partition: [leader]})
        else:
            self._initiate(partition, new)

    def _later_leader(self, partition: TopicPartition) -> Broker | None:
        """The live leader, if it may hold what 0.8.2.2 cannot read."""
        led = self._context.leadership.get(partition)
        live = None if led is None else self._context.brokers.get(led.leader)
        return None if live is None or live.formats is None else live.broker

    def _new_originals(self, partition: TopicPartition, new: tuple[int, ...]) -> list[int]:
        """The brokers of 0.8.2.2 that would get a replica."""
        added = set(new).difference(self._context.replicas_of(partition))
        brokers = self._context.brokers
        return sorted(each for each in added & brokers.keys() if brokers[each].formats is None)

    def later_formats_told(self, partition: TopicPartition, until: int) -> None:
        """The leader's log holds entries below ``until`` that 0.8.2.2 cannot read. 0: none; UNKNOWN
        if the leader did not answer."""
        new = self._asked.pop(partition, None)
        if new is None:
            return
        originals = self._new_originals(partition, new)
        if not until or not originals:
            self._initiate(partition, new)
            return
        why = (
            f"has messages of later formats below offset {until}"
            if until > 0
            else "may have messages of later formats: its leader has not reported yet"
        )
        logger.error(
            "Error completing reassignment of partition %s: brokers %s of 0.8.2.2 cannot read its "
            "log, which %s. Failing partition reassignment",
            *(partition, csv(originals), why),
        )
        self.drop([partition])

    def isr_changed(self, partition: TopicPartition) -> None:
        """The state of a partition under reassignment changed: check whether all have caught up."""
        new = self._context.reassigned.get(partition)
        if new is None:
            return
        state = self._watched_state(partition)
        if state is None:
            logger.error("Error handling reassignment of %s as it was never created", partition)
            return
        caught_up = set(new) & set(state.isr)
        logger.info(
            "%d/%d replicas have caught up with the leader for partition %s being reassigned.",
            *(len(caught_up), len(new), partition),
        )
        if caught_up == set(new):
            self._advance(partition)

    def _watched_state(self, partition: TopicPartition) -> LeaderAndIsr | None:
        return self._store.watched_state(partition, IsrChanged(self._term.number, partition))

    def brokers_started(self, broker_ids: Iterable[int]) -> None:
        """Brokers are back: retry the reassignments that name them."""
        back = set(broker_ids)
        for partition, new in list(self._context.reassigned.items()):
            if back.intersection(new):
                self._advance(partition)
        self._delete_left(back)

    def _delete_left(self, broker_ids: Collection[int]) -> None:
        """Let brokers delete their replicas of partitions that have moved to others meanwhile.

        Decides by the assignment as stored now: a replica that is assigned again stays, and so
        does one whose assignment cannot be read.
        """
        noted = sorted(each for each in self._context.left if each.replica in broker_ids)
        if not noted:
            return
        assigned = self._store.still_assigned(noted)
        self.left_deleted(replica for replica in noted if assigned.get(replica))
        self._batch.clear()
        for replica in noted:
            if assigned.get(replica) is False:
                logger.info("Replica %s was left behind by a reassignment; deleting it", replica)
                self._batch.add_stop_replica(replica, delete=True)
        self._term.send_batch()

    def left_deleted(self, replicas: Iterable[PartitionAndReplica]) -> None:
        """Remove the notes of ``replicas``: they are deleted, or must stay."""
        done = self._context.left.intersection(replicas)
        self._store.forget_replicas_to_delete(done)
        self._context.left -= done

    def _initiate(
        self, partition: TopicPartition, new: tuple[int, ...], *, resumed: bool = False
    ) -> None:
        context = self._context
        try:
            self._check_request(partition, new, resumed=resumed)
        except StateChangeFailedError as error:
            logger.error("Error completing reassignment of partition %s: %s", partition, error)
            self.drop([partition])
            return
        logger.info("Handling reassignment of partition %s to new replicas %s", partition, csv(new))
        context.reassigned[partition] = new
        # Arm the watch before the first read of the isr, so that no change is missed.
        self._watched_state(partition)
        self._deletion.mark_ineligible([partition.topic])
        self._advance(partition)

    def _check_request(
        self, partition: TopicPartition, new: tuple[int, ...], *, resumed: bool
    ) -> None:
        assigned = self._context.replicas_of(partition)
        alive = [replica for replica in new if replica in self._context.live_for(partition)]
        if not assigned:
            raise StateChangeFailedError(
                f"Attempt to reassign partition {partition} that doesn't exist"
            )
        if partition not in self._context.leadership:
            raise StateChangeFailedError(f"Partition {partition} has never had a leader")
        if not new or len(set(new)) != len(new):
            raise StateChangeFailedError(f"{csv(new)} is not a list of distinct replicas")
        if assigned == new:
            raise StateChangeFailedError(
                f"Partition {partition} to be reassigned is already assigned to replicas "
                f"{csv(new)}. Ignoring request for partition reassignment"
            )
        if len(alive) != len(new) and not resumed:
            raise StateChangeFailedError(
                f"Only {csv(alive)} replicas out of the new set of replicas {csv(new)} for "
                f"partition {partition} to be reassigned are alive. "
                "Failing partition reassignment"
            )

    def _advance(self, partition: TopicPartition) -> None:
        """Run phase A or B, depending on the current isr. After a failure it stays pending."""
        new = self._context.reassigned[partition]
        try:
            state = self._store.states([partition]).get(partition)
            if state is not None and set(new) <= set(state.isr):
                self._take_over(partition, new)
            else:
                self._start_new(partition, new)
        except (StateChangeFailedError, NoNodeError, MalformedNodeError) as error:
            logger.error("Error while handling reassignment of %s: %s", partition, error)

    def _start_new(self, partition: TopicPartition, new: tuple[int, ...]) -> None:
        """Phase A."""
        logger.info(
            "New replicas %s for partition %s being reassigned not yet caught up with the leader",
            *(csv(new), partition),
        )
        old = self._context.replicas_of(partition)
        both = (*new, *(replica for replica in old if replica not in new))
        self._write_assignment(partition, both)
        self._renew_epoch(partition, both, both)
        starting = [replica for replica in new if replica not in old]
        self._replicas.handle_state_changes(_replicas(partition, starting), ReplicaState.NEW)
        logger.info(
            "Waiting for new replicas %s for partition %s being reassigned to catch up with the "
            "leader",
            *(csv(new), partition),
        )

    def _take_over(self, partition: TopicPartition, new: tuple[int, ...]) -> None:
        """Phase B."""
        context = self._context
        self._replicas.handle_state_changes(_replicas(partition, new), ReplicaState.ONLINE)
        before = context.replicas_of(partition)
        # From here on requests carry RAR, so that the leader adds no other replica to the isr.
        context.assign(partition, new)
        try:
            self._move_leader(partition, before, new)
        except StateChangeFailedError:
            context.assign(partition, before)
            raise
        leaving = _replicas(partition, [replica for replica in before if replica not in new])
        for state in (
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_STARTED,
            ReplicaState.DELETION_SUCCESSFUL,
            ReplicaState.NON_EXISTENT,
        ):
            self._replicas.handle_state_changes(leaving, state)
        self._write_assignment(partition, new)
        self.drop([partition])
        logger.info(
            "Removed partition %s from the list of reassigned partitions in zookeeper", partition
        )
        self._term.send_metadata(context.live_or_shutting_down, [partition])
        self._deletion.resume([partition.topic])

    def _move_leader(
        self, partition: TopicPartition, before: tuple[int, ...], new: tuple[int, ...]
    ) -> None:
        """Let a live member of RAR lead. Raises StateChangeFailedError if none can."""
        context = self._context
        leader = context.leadership[partition].leader
        if leader in new and leader in context.live_for(partition):
            self._renew_epoch(partition, before, new)
            return
        logger.info(
            "Leader %s for partition %s being reassigned, is not in the new list of replicas %s "
            "or is dead. Re-electing leader",
            *(leader, partition, csv(new)),
        )
        self._partitions.handle_state_changes(
            [partition], PartitionState.ONLINE, self._partitions.reassigned_rule
        )
        leader = context.leadership[partition].leader
        if leader not in new or leader not in context.live_for(partition):
            # 0.8.2.2 continues and deletes the old replicas, including the leader.
            raise StateChangeFailedError(f"No replica of {csv(new)} can lead {partition} for now")

    def _renew_epoch(
        self, partition: TopicPartition, recipients: Iterable[int], assigned: tuple[int, ...]
    ) -> None:
        """Increment only the leader epoch, so that ``recipients`` accept ``assigned`` as AR."""
        context = self._context
        written: LeaderAndIsr | None = None
        while written is None:
            current = self._store.states([partition]).get(partition)
            if current is None:
                raise StateChangeFailedError(
                    f"Cannot update leader epoch for partition {partition} as leaderAndIsr path "
                    "is empty. This could mean we somehow tried to reassign a partition that "
                    "doesn't exist"
                )
            check_epoch(partition, current, context.epoch)
            wanted = elections.same_leader(current, context.epoch)
            written = self._store.write_states({partition: wanted})[0].get(partition)
        logger.info("Updated leader epoch for partition %s to %d", partition, written.leader_epoch)
        context.leadership[partition] = written
        self._batch.clear()
        self._batch.add_leader_and_isr(recipients, partition, written, assigned)
        self._term.send_batch()

    def _write_assignment(self, partition: TopicPartition, replicas: tuple[int, ...]) -> None:
        """Replace one partition's replicas in the topic's node, then in the context."""
        before = self._store.write_assignment(partition, replicas)
        self._context.left.update(_replicas(partition, set(before).difference(replicas)))
        self._context.left.difference_update(_replicas(partition, replicas))
        logger.info(
            "Updated assigned replicas for partition %s being reassigned to %s",
            *(partition, csv(replicas)),
        )
        self._context.assign(partition, replicas)

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Remove a finished or refused partition from the node and the context."""
        for partition in partitions:
            if self._context.reassigned.pop(partition, None) is not None:
                self._store.forget_state(partition)
        self._store.finish_reassignments(partitions)


def _replicas(partition: TopicPartition, ids: Iterable[int]) -> list[PartitionAndReplica]:
    return [PartitionAndReplica(*partition, replica) for replica in ids]
