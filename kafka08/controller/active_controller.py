"""One term of a broker as the active controller, from its election to its resignation.

Mirrors what KafkaController does between onControllerFailover and onControllerResignation. A
term starts with an empty context and is discarded as a whole, so no state outlives it. Only the
controller's loop calls it, so no lock is needed. Errors that end a term (lost session, lost
epoch, ZooKeeper not reachable) pass through to the loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from kafka08.common import LATER_FORMATS_TIME, LATEST_TIME, Broker, TopicPartition, csv
from kafka08.controller import events
from kafka08.controller.batch import ControllerBrokerRequestBatch, Outgoing
from kafka08.controller.channels import ControllerChannelManager
from kafka08.controller.context import ControllerContext, LiveBroker, PartitionAndReplica
from kafka08.controller.deletion import TopicDeletionManager
from kafka08.controller.elections import unclean_allowed
from kafka08.controller.log_ends import Ends, FetchLogEnds, ReplicaLogEnds
from kafka08.controller.partitions import PartitionStateMachine
from kafka08.controller.preferred import PreferredReplicaElection
from kafka08.controller.reassignment import Reassignment
from kafka08.controller.replicas import ReplicaStateMachine
from kafka08.controller.states import PartitionState, ReplicaState
from kafka08.controller.store import ControllerStore
from kafka08.controller.term import Term
from kafka08.errors import UnknownError
from kafka08.network.channel import BrokerConnection
from kafka08.protocol import schemas
from kafka08.runtime import Runtime, Scheduler
from kafka08.settings.broker import BrokerConfig
from zk.client import ZkClient
from zk.watches import WatchSet

logger = logging.getLogger("kafka.controller.KafkaController")
broker_logger = logging.getLogger("kafka.controller.ReplicaStateMachine$BrokerChangeListener")
topic_logger = logging.getLogger("kafka.controller.PartitionStateMachine$TopicChangeListener")
delete_logger = logging.getLogger("kafka.controller.PartitionStateMachine$DeleteTopicsListener")

REBALANCE_DELAY_MS = 5000


class Peers(NamedTuple):
    """How a controller reaches brokers. ``connect`` creates a connection that is not open yet."""

    connect: Callable[[Broker], BrokerConnection]
    fetch_log_ends: FetchLogEnds


class ActiveController:
    """One term as controller. ``number`` counts this broker's terms and marks their events.

    ``context`` is new, but for its epoch. ``post`` enqueues an event for the loop.
    """

    def __init__(
        self,
        number: int,
        context: ControllerContext,
        config: BrokerConfig,
        zk: ZkClient,
        watches: WatchSet,
        runtime: Runtime,
        peers: Peers,
        post: Callable[[events.TermEvent], None],
    ) -> None:
        self.number = number
        self.context = context
        self._clock = runtime.clock
        self._config = config
        self._id = config.broker_id
        self._prefix = f"[Controller {self._id}]: "
        self._post = post
        self._watches = watches
        self._scheduler = Scheduler(runtime)
        self._store = store = ControllerStore(zk, watches, context)
        self._channels = ControllerChannelManager(runtime, self._id, peers.connect, self._answered)
        client_id = f"id_{self._id}-host_{config.host_name or 'null'}-port_{config.port}"
        self._batch = ControllerBrokerRequestBatch(context, self._id, client_id)
        self.term = term = Term(number, self._id, context, store, self._batch, self._channels.send)

        def log_ends(time: int, fetched: type[events.LogEndsFetched]) -> ReplicaLogEnds:
            def answered(asked: int, ends: Ends) -> None:
                post(fetched(number, asked, ends))

            return ReplicaLogEnds(runtime, peers.fetch_log_ends, time, answered)

        self._log_ends = log_ends(LATEST_TIME, events.LogEndsFetched)
        self._later_formats = log_ends(LATER_FORMATS_TIME, events.LaterFormatsFetched)
        self._partitions = PartitionStateMachine(term, self._unclean_allowed, self._log_ends)
        self._replicas = ReplicaStateMachine(term)
        self._deletion = TopicDeletionManager(term, self._partitions, self._replicas)
        self._preferred = PreferredReplicaElection(term, self._partitions, self._deletion)
        self._reassignment = Reassignment(
            term, self._partitions, self._replicas, self._deletion, self._later_formats
        )
        self._handlers = self._event_handlers()

    def _event_handlers(self) -> dict[type, Callable[[Any], None]]:
        return {
            events.BrokerIdsChanged: lambda event: self._brokers_changed(),
            events.OfflineReplicasChanged: lambda event: self._offline_replicas_changed(),
            events.TopicsChanged: lambda event: self._topics_changed(),
            events.PartitionsChanged: lambda event: self._partitions_changed(event.topic),
            events.DeleteTopicsChanged: lambda event: self._delete_topics_changed(),
            events.ReassignmentChanged: lambda event: self._reassignment_changed(),
            events.PreferredElectionChanged: lambda event: self._preferred_changed(),
            events.IsrChanged: lambda event: self._reassignment.isr_changed(event.partition),
            events.IsrChangesAnnounced: lambda event: self._partitions.isrs_changed(
                self._store.take_isr_changes(event)
            ),
            events.StopReplicaAnswered: self._stop_replica_answered,
            events.LogEndsFetched: self._log_ends_fetched,
            events.LaterFormatsFetched: self._later_formats_fetched,
            events.RebalanceDue: lambda event: self._rebalance(),
        }

    # Begin and end

    def start(self) -> None:
        """Fail over: read all state, take over pending operations, send state to every broker."""
        context, store, number = self.context, self._store, self.number
        reassignments = store.reassignments(events.ReassignmentChanged(number))
        preferred = store.preferred_elections(events.PreferredElectionChanged(number))
        to_delete: set[str] = set()
        if self._config.delete_topic_enable:
            to_delete = store.topics_to_delete(events.DeleteTopicsChanged(number))
        context.topics = store.topics(events.TopicsChanged(number))
        context.brokers = store.brokers(events.BrokerIdsChanged(number))
        context.offline, context.full = store.offline_replicas(
            events.OfflineReplicasChanged(number)
        )
        self._load_topics(context.topics)
        store.take_isr_changes(events.IsrChangesAnnounced(number))
        states = store.written_states(list(context.assignment))
        context.leadership = {partition: state for partition, (state, _) in states.items()}
        for live in context.brokers.values():
            self._channels.add_broker(live.broker)
        self._preferred.load(preferred or ())
        self._reassignment.load(reassignments)
        self._deletion.startup(to_delete)
        self._log_view()
        self._partitions.bounced_leave_isrs({tp: zxid for tp, (_, zxid) in states.items()})
        self._replicas.startup()
        self._partitions.startup()
        self._replicas.dead_leave_isrs()
        self._hand_over_full()
        logger.info(
            "%sBroker %d is ready to serve as the new controller with epoch %d",
            *(self._prefix, self._id, context.epoch),
        )
        self._reassignment.resume()
        if preferred is not None:
            self._preferred.resume()
        self.term.send_metadata(context.live_or_shutting_down, None)
        if self._config.auto_leader_rebalance_enable:
            logger.info("%sstarting the partition rebalance scheduler", self._prefix)
            self._scheduler.every(
                "partition-rebalance-thread",
                self._config.leader_imbalance_check_interval_seconds * 1000,
                lambda: self._post(events.RebalanceDue(number)),
                delay_ms=REBALANCE_DELAY_MS,
            )

    def _log_view(self) -> None:
        context = self.context
        for what, values in (
            ("Currently active brokers in the cluster", context.live_or_shutting_down),
            ("Current list of topics in the cluster", sorted(context.topics)),
            ("List of topics to be deleted", sorted(context.topics_to_delete)),
        ):
            logger.info("%s%s: %s", self._prefix, what, csv(values))

    def halt(self) -> None:
        """Stop sending at once. May be called by any task."""
        self._channels.halt()

    def stop(self) -> None:
        """End the term. May be repeated, and follow a start that failed."""
        self._channels.halt()
        self._watches.clear()
        self._scheduler.stop()

    def join(self, timeout: float) -> None:
        """Call after ``stop``: wait for the senders, for at most ``timeout`` seconds."""
        self._channels.join(timeout)
        self._log_ends.join(timeout)
        self._later_formats.join(timeout)

    # Events

    def handle(self, event: events.TermEvent) -> None:
        """Handle one event. Events of another term are dropped."""
        if event.term == self.number:
            self._handlers[type(event)](event)

    def work_on_deletions(self) -> None:
        """Continue topic deletions, once the queue is empty, as many answers come at once."""
        while self._deletion.due:
            self._deletion.work()

    def _answered(self, outgoing: Outgoing, response: Any) -> None:
        """Runs on a sender's task: passes answers to deletions to the loop."""
        request = outgoing.request
        if not isinstance(request, schemas.StopReplicaRequest) or not request.delete_partitions:
            return
        asked = tuple(TopicPartition(p.topic, p.partition) for p in request.partitions)
        errors = {TopicPartition(p.topic, p.partition): p.error for p in response.partitions}
        failed = asked if response.error else tuple(tp for tp in asked if errors.get(tp))
        self._post(events.StopReplicaAnswered(self.number, outgoing.broker_id, asked, failed))

    def _stop_replica_answered(self, event: events.StopReplicaAnswered) -> None:
        replicas = {tp: PartitionAndReplica(*tp, event.broker_id) for tp in event.partitions}
        self._deletion.fail(replicas[tp] for tp in event.failed)
        deleted = [replicas[tp] for tp in event.partitions if tp not in event.failed]
        self._deletion.complete(deleted)
        self._reassignment.left_deleted(deleted)

    def _log_ends_fetched(self, event: events.LogEndsFetched) -> None:
        """Decide the unclean elections that waited for these log ends, if they are still due."""
        context = self.context
        ends = self._log_ends.latest(event.number, event.ends)
        waiting = [
            partition
            for partition in ends
            if context.partition_states.get(partition) is PartitionState.OFFLINE
            and not context.is_being_deleted(partition)
        ]
        rule = self._partitions.rule_by_log_ends(ends)
        self._partitions.handle_state_changes(waiting, PartitionState.ONLINE, rule)

    def _later_formats_fetched(self, event: events.LaterFormatsFetched) -> None:
        for partition, told in self._later_formats.latest(event.number, event.ends).items():
            self._reassignment.later_formats_told(partition, max(told.values()))

    # Brokers

    def _brokers_changed(self) -> None:
        """Compare whole registrations. If one changed, the old broker is treated as failed and
        the new one as started."""
        context, began = self.context, self._clock.monotonic()
        # A restarted broker may use its disks again, but one may have failed meanwhile.
        self._offline_replicas_changed()
        known = context.brokers
        current = self._store.brokers(events.BrokerIdsChanged(self.number))
        new = {broker_id for broker_id in current if broker_id not in known}
        dead = {broker_id for broker_id in known if broker_id not in current}
        bounced = {i for i in current if i in known and current[i] != known[i]}
        broker_logger.info(
            "[BrokerChangeListener on Controller %d]: Newly added brokers: %s, "
            "deleted brokers: %s, bounced brokers: %s, all live brokers: %s",
            *(self._id, csv(new), csv(dead), csv(bounced), csv(current)),
        )
        for broker_id in dead | bounced:
            self._channels.remove_broker(broker_id)
        context.brokers = {i: live for i, live in current.items() if i not in bounced}
        self._on_broker_startup({i: current[i] for i in new})
        self._on_broker_failure(dead | bounced)
        context.brokers = current
        self._on_broker_startup({i: current[i] for i in bounced})
        if new or dead or bounced:
            # 0.8.2.2 does not send the other brokers the new list until their next request.
            self.term.send_metadata(context.live_or_shutting_down, ())
        context.stats.elections.record(self._clock.monotonic() - began)

    def _on_broker_startup(self, brokers: dict[int, LiveBroker]) -> None:
        """KafkaController.onBrokerStartup."""
        if not brokers:
            return
        logger.info("%sNew broker startup callback for %s", self._prefix, csv(brokers))
        for live in brokers.values():
            self._channels.add_broker(live.broker)
        self.term.send_metadata(sorted(brokers), None)
        # One request lists all their replicas: from the first one brokers learn which to keep.
        hosted = self.context.replicas_on(brokers)
        self._replicas.handle_state_changes(
            [
                replica
                for replica in hosted
                if self.context.replica_state(replica) is not ReplicaState.DELETION_SUCCESSFUL
                and replica not in self.context.offline
            ],
            ReplicaState.ONLINE,
        )
        self._partitions.trigger_online()
        self._reassignment.brokers_started(brokers)
        self._deletion.resume({replica.topic for replica in hosted})

    def _on_broker_failure(self, broker_ids: Collection[int]) -> None:
        """KafkaController.onBrokerFailure."""
        if not broker_ids:
            return
        context = self.context
        logger.info("%sBroker failure callback for %s", self._prefix, csv(broker_ids))
        context.shutting_down.difference_update(broker_ids)
        leaderless = [
            partition
            for partition, state in context.leadership.items()
            if state.leader in broker_ids and not context.is_being_deleted(partition)
        ]
        self._replicas_failed(leaderless, context.replicas_on(broker_ids))

    def _offline_replicas_changed(self) -> None:
        """Disks of live brokers have failed or are full."""
        context = self.context
        known = context.offline
        context.offline, context.full = self._store.offline_replicas(
            events.OfflineReplicasChanged(self.number)
        )
        self._disks_failed(known)
        self._hand_over_full()

    def _disks_failed(self, known: set[PartitionAndReplica]) -> None:
        """Treat replicas on failed disks, other than those ``known``, as dead."""
        context = self.context
        failed = [
            replica
            for replica in sorted(context.offline - known)
            if replica.replica in context.brokers
            and replica.replica in context.replicas_of(replica.topic_partition)
        ]
        if not failed:
            return
        logger.info("%sReplicas on failed disks: %s", self._prefix, csv(failed))
        leaderless = [
            replica.topic_partition
            for replica in failed
            if replica.topic_partition in context.leadership
            and context.leadership[replica.topic_partition].leader == replica.replica
            and not context.is_being_deleted(replica.topic_partition)
        ]
        self._replicas_failed(leaderless, failed)
        self.term.send_metadata(context.live_or_shutting_down, ())

    def _hand_over_full(self) -> None:
        """Move partitions from full disks to other members of the isr. A partition without one does
        not change; the broker asks again."""
        context = self.context
        concerned = {
            replica.topic_partition
            for replica in context.full
            if replica.replica in context.brokers
            and replica.topic_partition in context.leadership
            and replica.replica in context.leadership[replica.topic_partition].isr
            and not context.is_being_deleted(replica.topic_partition)
        }
        if concerned:
            partitions = sorted(concerned)
            logger.info("%sPartitions on full disks: %s", self._prefix, csv(partitions))
            self._partitions.handle_state_changes(
                partitions, PartitionState.ONLINE, self._partitions.full_disk_rule
            )

    def _replicas_failed(
        self, leaderless: list[TopicPartition], replicas: list[PartitionAndReplica]
    ) -> None:
        context = self.context
        self._partitions.handle_state_changes(leaderless, PartitionState.OFFLINE)
        self._partitions.trigger_online()
        self._replicas.handle_state_changes(
            [r for r in replicas if r.topic not in context.topics_to_delete], ReplicaState.OFFLINE
        )
        self._deletion.fail(r for r in replicas if r.topic in context.topics_to_delete)

    def controlled_shutdown(self, broker_id: int) -> list[TopicPartition]:
        """Move leadership away from a broker; returns what it still leads with replication above 1.

        Raises KafkaError for a broker that is not registered.
        """
        context = self.context
        logger.info("%sShutting down broker %d", self._prefix, broker_id)
        if broker_id not in context.brokers:
            raise UnknownError(f"Broker id {broker_id} does not exist.")
        context.shutting_down.add(broker_id)
        led: list[TopicPartition] = []
        followed: list[TopicPartition] = []
        for partition in context.partitions_on(broker_id):
            state = context.leadership.get(partition)
            if state is not None and len(context.replicas_of(partition)) > 1:
                (led if state.leader == broker_id else followed).append(partition)
        self._partitions.handle_state_changes(
            led, PartitionState.ONLINE, self._partitions.controlled_shutdown_rule
        )
        # Stop the followers first, so that no leader adds them to the isr again meanwhile.
        replicas = [PartitionAndReplica(*partition, broker_id) for partition in followed]
        self._batch.clear()
        for replica in replicas:
            self._batch.add_stop_replica(replica, delete=False)
        self.term.send_batch()
        self._replicas.handle_state_changes(replicas, ReplicaState.OFFLINE)
        return [partition for partition in led if context.leadership[partition].leader == broker_id]

    # Topics

    def _topics_changed(self) -> None:
        context = self.context
        current = self._store.topics(events.TopicsChanged(self.number))
        new, gone = current - context.topics, context.topics - current
        for topic in gone:
            self._topic_vanished(topic)
        context.topics |= new
        added = self._load_topics(new)
        topic_logger.info(
            "[TopicChangeListener on Controller %d]: New topics: [%s], deleted topics: [%s], "
            "new partition replica assignment [%s]",
            *(self._id, csv(new), csv(gone), csv(added)),
        )
        self._on_new_partition_creation(added)

    def _topic_vanished(self, topic: str) -> None:
        """Handle topics whose nodes were removed by hand."""
        context = self.context
        moving = [tp for tp in context.reassigned if tp.topic == topic]
        if moving:
            self._reassignment.drop(moving)
        if topic in context.topics_to_delete:
            self._store.delete_topic_request(topic)
        self._store.forget_topic(topic)
        context.remove_topic(topic)

    def _load_topics(self, topics: Collection[str]) -> list[TopicPartition]:
        """Add unknown partitions to the context, and watch their topics."""
        context = self.context
        assignments = self._store.assignments(
            sorted(topics), lambda topic: events.PartitionsChanged(self.number, topic)
        )
        added = [tp for tp in assignments if tp not in context.assignment]
        for partition in added:
            context.assign(partition, assignments[partition])
        return added

    def _partitions_changed(self, topic: str) -> None:
        context = self.context
        if topic not in context.topics:
            return
        if topic in context.topics_to_delete:
            self._store.assignments([topic], lambda t: events.PartitionsChanged(self.number, t))
            logger.error(
                "%sSkipping adding partitions for topic %s since it is currently being deleted",
                *(self._prefix, topic),
            )
            return
        added = self._load_topics([topic])
        if added:
            logger.info("%sNew partitions to be added %s", self._prefix, csv(added))
            self._on_new_partition_creation(added)

    def _on_new_partition_creation(self, partitions: Collection[TopicPartition]) -> None:
        """KafkaController.onNewPartitionCreation."""
        if not partitions:
            return
        logger.info("%sNew partition creation callback for %s", self._prefix, csv(partitions))
        replicas = self.context.replicas_of_partitions(partitions)
        self._partitions.handle_state_changes(partitions, PartitionState.NEW)
        self._replicas.handle_state_changes(replicas, ReplicaState.NEW)
        self._partitions.handle_state_changes(partitions, PartitionState.ONLINE)
        self._replicas.handle_state_changes(replicas, ReplicaState.ONLINE)

    def _delete_topics_changed(self) -> None:
        context = self.context
        listed = self._store.topics_to_delete(events.DeleteTopicsChanged(self.number))
        if not listed <= context.topics:
            # The topic was just created and deleted: its creation may still be in the queue.
            self._topics_changed()
        for topic in sorted(listed - context.topics):
            delete_logger.warning("Ignoring request to delete non-existing topics %s", topic)
            self._store.delete_topic_request(topic)
        wanted = (listed & context.topics) - context.topics_to_delete
        if wanted:
            delete_logger.info("Starting topic deletion for topics %s", csv(wanted))
            self._deletion.enqueue(wanted)

    # Administrative requests and timers

    def _reassignment_changed(self) -> None:
        self._reassignment.request(
            self._store.reassignments(events.ReassignmentChanged(self.number))
        )

    def _preferred_changed(self) -> None:
        listed = self._store.preferred_elections(events.PreferredElectionChanged(self.number))
        if listed is not None:
            self._preferred.request(listed)

    def _rebalance(self) -> None:
        self._preferred.rebalance(self._config.leader_imbalance_per_broker_percentage)

    def _unclean_allowed(self, topic: str) -> bool:
        own = self._store.topic_config(topic)
        return unclean_allowed(own, self._config.unclean_leader_election_enable)
