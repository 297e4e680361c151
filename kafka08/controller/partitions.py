"""The state changes of partitions (kafka.controller.PartitionStateMachine).

Handles many partitions at a time: states are read and written in bulk, and the resulting requests
are collected in one batch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

from kafka08.common import TRACE, TopicPartition, csv
from kafka08.controller import elections
from kafka08.controller.context import LeaderAndIsr, PartitionAndReplica
from kafka08.controller.elections import Election, Vote
from kafka08.controller.log_ends import Ends, ReplicaLogEnds
from kafka08.controller.state_machine import StateMachine, state_change_logger
from kafka08.controller.states import PARTITION_PREDECESSORS, PartitionState, StateChangeFailedError
from kafka08.controller.term import Term

logger = logging.getLogger("kafka.controller.PartitionStateMachine")

# Elects for a partition, given the state just read. Raises StateChangeFailedError.
Rule = Callable[[TopicPartition, LeaderAndIsr], Election]


class PartitionStateMachine(StateMachine[TopicPartition, PartitionState]):
    """Transitions of partitions.

    ``unclean_allowed(topic)`` reads the configuration. ``log_ends`` asks the replicas of partitions
    that need an unclean election: the caller elects again, with ``rule_by_log_ends``, when they
    have answered.
    """

    predecessors = PARTITION_PREDECESSORS

    def __init__(
        self, term: Term, unclean_allowed: Callable[[str], bool], log_ends: ReplicaLogEnds
    ) -> None:
        super().__init__(term, term.context.partition_state, term.context.set_partition_state)
        self._unclean_allowed = unclean_allowed
        self._log_ends = log_ends

    def bounced_leave_isrs(self, written: Mapping[TopicPartition, int]) -> None:
        """At failover, before any state is sent: handle bounces that no controller saw.

        A broker may have lost the end of its log with its power. If it led on, or was elected, its
        followers would truncate to it. So another live member of the isr leads, if there is one.
        ``written``: the zxid at which each state of the context was written.
        """
        context = self._context
        incarnations = {i: live.incarnation for i, live in context.brokers.items()}
        pending = {
            partition: bounced
            for partition, state in context.leadership.items()
            if (bounced := elections.bounced(state.isr, incarnations, written[partition]))
            and not context.is_being_deleted(partition)
        }
        while pending:
            wanted = {}
            for partition, bounced in pending.items():
                vote = self._vote(partition, context.leadership[partition])
                state = elections.without_bounced(vote, bounced)
                if state is not None:
                    wanted[partition] = state
                    logger.info(
                        "[Partition state machine on Controller %d]: Bounced brokers %s leave the "
                        "ISR of partition %s: %s",
                        *(self._id, csv(sorted(bounced)), partition, state),
                    )
            stored, changed = self._store.write_states(wanted)
            context.leadership |= {**stored, **changed}
            pending = {partition: pending[partition] for partition in changed}

    def startup(self) -> None:
        """At failover: set the state of every partition, then try to bring all online."""
        context = self._context
        for partition in context.assignment:
            state = context.leadership.get(partition)
            if state is None:
                context.partition_states[partition] = PartitionState.NEW
            elif state.leader in context.live_for(partition):
                context.partition_states[partition] = PartitionState.ONLINE
            else:
                context.partition_states[partition] = PartitionState.OFFLINE
        self.trigger_online()

    def trigger_online(self) -> None:
        """Try to bring every new or offline partition online, but not those being deleted."""
        waiting = [
            partition
            for partition, state in self._context.partition_states.items()
            if state in (PartitionState.NEW, PartitionState.OFFLINE)
            and not self._context.is_being_deleted(partition)
        ]
        self.handle_state_changes(waiting, PartitionState.ONLINE)

    def isrs_changed(self, partitions: Collection[TopicPartition]) -> None:
        """Leaders changed isrs: send them to every broker (0.8.2.2 waits for the next election)."""
        context = self._context
        led = sorted(tp for tp in partitions if tp in context.leadership)
        for partition, state in self._store.states(led).items():
            if state.controller_epoch <= context.epoch:
                context.leadership[partition] = state
        if led:
            self._term.send_metadata(context.live_or_shutting_down, led)

    def handle_state_changes(
        self,
        partitions: Collection[TopicPartition],
        target: PartitionState,
        rule: Rule | None = None,
    ) -> None:
        """Move ``partitions`` to ``target``; ``rule`` elects for those that had a leader."""
        if not partitions:
            return
        logger.info(
            "[Partition state machine on Controller %d]: Invoking state change to %s for "
            "partitions %s",
            self._id,
            target,
            csv(partitions),
        )
        legal = self._begin(partitions, target)
        if target is PartitionState.ONLINE:
            states = self._context.partition_states
            new = [p for p in legal if states[p] is PartitionState.NEW]
            self._initialize(new)
            self._elect([p for p in legal if p not in set(new)], rule or self.offline_rule)
        else:
            for partition in legal:
                self._mark(partition, target)
        self._term.send_batch()

    def _title(self, partition: TopicPartition) -> str:
        return f"Partition {partition}"

    def _changing(self, partition: TopicPartition) -> tuple[str, str]:
        return f"partition {partition}", f"for partition {partition}"

    def _possible(self, partition: TopicPartition, target: PartitionState) -> None:
        brought_up = target in (PartitionState.NEW, PartitionState.ONLINE)
        if brought_up and not self._context.replicas_of(partition):
            raise StateChangeFailedError(
                f"Partition {partition} doesn't have replicas assigned to it"
            )

    # New -> Online

    def _initialize(self, partitions: Iterable[TopicPartition]) -> None:
        """Elect first leaders: write new nodes and send the states to the live replicas."""
        context = self._context
        wanted = {}
        for partition in partitions:
            try:
                wanted[partition] = elections.first_leader(
                    context.replicas_of(partition), context.live_for(partition), context.epoch
                )
            except StateChangeFailedError as error:
                self._failed(partition, PartitionState.ONLINE, error)
        created = self._store.create_states(wanted)
        for partition, state in wanted.items():
            if partition not in created:
                refused = StateChangeFailedError(
                    "LeaderAndIsr path already exists, or the topic is gone"
                )
                self._failed(partition, PartitionState.ONLINE, refused)
                continue
            context.leadership[partition] = state
            self._batch.add_leader_and_isr(
                state.isr, partition, state, context.replicas_of(partition)
            )
            self._mark(partition, PartitionState.ONLINE)

    # Online, Offline -> Online

    def _elect(self, partitions: Iterable[TopicPartition], rule: Rule) -> None:
        """Elect and write; repeat for partitions whose node was changed meanwhile.

        The first election uses the cached states. They are mostly valid, as the conditional
        write proves, and then no node needs to be read. Only its successes count.
        """
        pending = list(partitions)
        remembered = self._remembered(pending)
        states: dict[TopicPartition, LeaderAndIsr] = {}
        undecided: list[TopicPartition] = []
        while pending:
            unknown = [p for p in pending if p not in remembered and p not in states]
            states.update(self._store.states(unknown))
            outcomes = {}
            again = []
            for partition in pending:
                try:
                    current = remembered.get(partition) or self._current(partition, states)
                    outcomes[partition] = rule(partition, current)
                except StateChangeFailedError as error:
                    if partition in remembered:
                        again.append(partition)
                    elif isinstance(error, elections.LeaderElectionNotNeededError):
                        self._context.leadership[partition] = states[partition]
                        self._mark(partition, PartitionState.ONLINE)
                    elif isinstance(error, elections.LogEndsUnknownError):
                        undecided.append(partition)
                    else:
                        self._failed(partition, PartitionState.ONLINE, error)
            written, states = self._store.write_states(
                {partition: outcome.state for partition, outcome in outcomes.items()}
            )
            for partition, state in written.items():
                self._elected(partition, state, outcomes[partition])
            pending = [*again, *(p for p in outcomes if p not in written)]
            remembered = {}
        if undecided:
            self._ask_for_log_ends(undecided)

    def _ask_for_log_ends(self, partitions: Iterable[TopicPartition]) -> None:
        context = self._context
        hosts = {
            partition: [
                context.brokers[replica].broker
                for replica in context.replicas_of(partition)
                if replica in context.live_for(partition)
            ]
            for partition in partitions
        }
        logger.info("No broker in ISR is alive for %s: asking replicas for log ends", csv(hosts))
        self._log_ends.ask(hosts)

    def _remembered(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """The cached states that allow a clean election."""
        context = self._context
        return {
            partition: context.leadership[partition]
            for partition in partitions
            if partition in context.leadership
            and not context.live_for(partition).isdisjoint(context.leadership[partition].isr)
        }

    def _elected(self, partition: TopicPartition, state: LeaderAndIsr, outcome: Election) -> None:
        if outcome.unclean:
            self._context.stats.unclean.mark()
            logger.warning(
                "No broker in ISR is alive for %s. Elect leader %d from live brokers %s. "
                "There's potential data loss.",
                *(partition, state.leader, csv(outcome.recipients)),
            )
        self._context.leadership[partition] = state
        self._batch.add_leader_and_isr(
            outcome.recipients, partition, state, self._context.replicas_of(partition)
        )
        state_change_logger.log(
            TRACE,
            "Controller %d epoch %d elected leader %d for Offline partition %s",
            *(self._id, self._context.epoch, state.leader, partition),
        )
        self._mark(partition, PartitionState.ONLINE)

    def _current(
        self, partition: TopicPartition, states: dict[TopicPartition, LeaderAndIsr]
    ) -> LeaderAndIsr:
        current = states.get(partition)
        if current is None:
            raise StateChangeFailedError(
                f"LeaderAndIsr information doesn't exist for partition {partition} in "
                f"{self._context.partition_state(partition)} state"
            )
        check_epoch(partition, current, self._context.epoch)
        return current

    # The election rules, bound to the context

    def _vote(self, partition: TopicPartition, current: LeaderAndIsr) -> Vote:
        context = self._context
        replicas, live = context.replicas_of(partition), context.live_for(partition)
        return Vote(current, replicas, live, context.epoch)

    def offline_rule(self, partition: TopicPartition, current: LeaderAndIsr) -> Election:
        return self._offline(partition, current, {})

    def rule_by_log_ends(self, ends: Ends) -> Rule:
        """``offline_rule`` that decides an unclean election by these log ends."""
        return lambda partition, current: self._offline(partition, current, ends.get(partition, {}))

    def _offline(
        self, partition: TopicPartition, current: LeaderAndIsr, ends: Mapping[int, int]
    ) -> Election:
        vote = self._vote(partition, current)
        try:
            return elections.offline(vote, None)
        except elections.NoReplicaOnlineError:
            # The topic's configuration is read only if it is needed.
            if not vote.alive or not self._unclean_allowed(partition.topic):
                raise
        return elections.offline(vote, partial(elections.longest, ends))

    def reassigned_rule(self, partition: TopicPartition, current: LeaderAndIsr) -> Election:
        new_replicas = self._context.reassigned[partition]
        return elections.reassigned(self._vote(partition, current)._replace(assigned=new_replicas))

    def preferred_rule(self, partition: TopicPartition, current: LeaderAndIsr) -> Election:
        return elections.preferred(self._vote(partition, current))

    def controlled_shutdown_rule(
        self, partition: TopicPartition, current: LeaderAndIsr
    ) -> Election:
        vote, leaving = self._vote(partition, current), self._context.shutting_down
        live = {*vote.live, *leaving}
        return elections.controlled_shutdown(vote._replace(live=live), leaving)

    def full_disk_rule(self, partition: TopicPartition, current: LeaderAndIsr) -> Election:
        vote, full = self._vote(partition, current), self._context.full
        return elections.full_disks(
            vote, {i for i in vote.assigned if PartitionAndReplica(*partition, i) in full}
        )


def check_epoch(partition: TopicPartition, current: LeaderAndIsr, epoch: int) -> None:
    """Raises StateChangeFailedError if a later controller wrote ``current``."""
    if current.controller_epoch > epoch:
        raise StateChangeFailedError(
            f"aborted leader election for partition {partition} since the LeaderAndIsr path was "
            "already written by another controller. This probably means that the current "
            "controller went through a soft failure and another controller was elected with "
            f"epoch {current.controller_epoch}."
        )
