"""Collects the state changes for the brokers and groups them into requests.

Mirrors kafka.controller.ControllerBrokerRequestBatch. Knows the context, but not queues or
sockets. ``drain`` returns the requests in the order they must be queued, and always leaves the
batch empty (after a failure 0.8.2.2 refuses every later batch).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import NamedTuple

from kafka08.common import TRACE, TopicPartition
from kafka08.controller.context import (
    INITIAL_LEADER_EPOCH,
    INITIAL_ZK_VERSION,
    ControllerContext,
    LeaderAndIsr,
    PartitionAndReplica,
)
from kafka08.protocol import schemas
from kafka08.protocol.schemas import LEADER_DURING_DELETE, BrokerEndpoint

ControllerRequest = (
    schemas.LeaderAndIsrRequest | schemas.UpdateMetadataRequest | schemas.StopReplicaRequest
)

state_change_logger = logging.getLogger("state.change.logger")


class Outgoing(NamedTuple):
    """A request for one broker. ``client_id`` is part of its header."""

    broker_id: int
    request: ControllerRequest
    client_id: str


class ControllerBrokerRequestBatch:
    """The collected changes. ``client_id`` is that of LeaderAndIsr and UpdateMetadata."""

    def __init__(self, context: ControllerContext, controller_id: int, client_id: str) -> None:
        self._context = context
        self._controller_id = controller_id
        self._client_id = client_id
        self._leader_and_isr: dict[int, dict[TopicPartition, schemas.PartitionStateInfo]] = {}
        # None means every partition that has a leader.
        self._metadata: dict[int, set[TopicPartition] | None] = {}
        self._metadata_for_all: set[TopicPartition] = set()
        self._stop: dict[int, dict[tuple[PartitionAndReplica, bool], None]] = {}

    def add_leader_and_isr(
        self,
        broker_ids: Iterable[int],
        partition: TopicPartition,
        state: LeaderAndIsr,
        replicas: Iterable[int],
    ) -> None:
        """Add a partition's state for ``broker_ids``, and an UpdateMetadata for every broker."""
        info = _partition_state(partition, state, replicas)
        for broker_id in broker_ids:
            if broker_id >= 0:
                self._leader_and_isr.setdefault(broker_id, {})[partition] = info
        self._metadata_for_all.add(partition)

    def add_stop_replica(self, replica: PartitionAndReplica, *, delete: bool) -> None:
        if replica.replica >= 0:
            self._stop.setdefault(replica.replica, {})[(replica, delete)] = None

    def add_update_metadata(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition] | None = None
    ) -> None:
        """Add the list of live brokers, with ``partitions`` (None: all).

        Unlike in 0.8.2.2 the list is also sent if there are no partitions to send.
        """
        wanted = None if partitions is None else set(partitions)
        for broker_id in broker_ids:
            queued = self._metadata.get(broker_id, set())
            if wanted is None or queued is None:
                self._metadata[broker_id] = None
            else:
                self._metadata[broker_id] = queued | wanted

    def clear(self) -> None:
        self._leader_and_isr = {}
        self._metadata = {}
        self._metadata_for_all = set()
        self._stop = {}

    def drain(self) -> list[Outgoing]:
        """LeaderAndIsr, then UpdateMetadata, then StopReplica: the order that brokers need."""
        try:
            return [
                *self._leader_and_isr_requests(),
                *self._update_metadata_requests(),
                *self._stop_replica_requests(),
            ]
        finally:
            self.clear()

    def _leader_and_isr_requests(self) -> Iterable[Outgoing]:
        epoch = self._context.epoch
        brokers = self._context.broker_list()
        for broker_id, states in self._leader_and_isr.items():
            for partition, state in states.items():
                if state_change_logger.isEnabledFor(TRACE):
                    kind = "become-leader" if state.leader == broker_id else "become-follower"
                    state_change_logger.log(
                        TRACE,
                        "Controller %d epoch %d sending %s LeaderAndIsr request %s "
                        "to broker %d for partition %s",
                        *(self._controller_id, epoch, kind, state, broker_id, partition),
                    )
            leading = {state.leader for state in states.values()}
            yield Outgoing(
                broker_id,
                schemas.LeaderAndIsrRequest(
                    self._controller_id,
                    epoch,
                    list(states.values()),
                    [BrokerEndpoint(*broker) for broker in brokers if broker.id in leading],
                ),
                self._client_id,
            )

    def _update_metadata_requests(self) -> Iterable[Outgoing]:
        context = self._context
        targets: dict[int, set[TopicPartition] | None] = dict(self._metadata)
        if self._metadata_for_all:
            for broker_id in context.live_or_shutting_down:
                queued = targets.get(broker_id, set())
                targets[broker_id] = None if queued is None else queued | self._metadata_for_all
        if not targets:
            return
        brokers = [BrokerEndpoint(*broker) for broker in context.broker_list()]
        deleted = [
            _partition_state(
                partition,
                LeaderAndIsr(
                    LEADER_DURING_DELETE,
                    INITIAL_LEADER_EPOCH,
                    context.leadership[partition].isr,
                    context.leadership[partition].controller_epoch,
                    INITIAL_ZK_VERSION,
                ),
                context.replicas_of(partition),
            )
            for partition in context.partitions_being_deleted()
            if partition in context.leadership
        ]
        # Most brokers get the same partitions, so the values are shared.
        known: dict[TopicPartition, schemas.PartitionStateInfo] = {}
        for broker_id, wanted in targets.items():
            chosen = context.leadership if wanted is None else sorted(wanted)
            states = [*self._known_states(chosen, known), *deleted]
            if state_change_logger.isEnabledFor(TRACE):
                for state in states:
                    state_change_logger.log(
                        TRACE,
                        "Controller %d epoch %d sending UpdateMetadata request %s "
                        "to broker %d for partition %s",
                        *(self._controller_id, context.epoch, state, broker_id),
                        TopicPartition(state.topic, state.partition),
                    )
            request = schemas.UpdateMetadataRequest(
                self._controller_id, context.epoch, states, brokers
            )
            yield Outgoing(broker_id, request, self._client_id)

    def _known_states(
        self,
        partitions: Iterable[TopicPartition],
        known: dict[TopicPartition, schemas.PartitionStateInfo],
    ) -> Iterable[schemas.PartitionStateInfo]:
        context = self._context
        for partition in partitions:
            state = context.leadership.get(partition)
            if state is None or context.is_being_deleted(partition):
                continue
            info = known.get(partition)
            if info is None:
                info = _partition_state(partition, state, context.replicas_of(partition))
                known[partition] = info
            yield info

    def _stop_replica_requests(self) -> Iterable[Outgoing]:
        """One request per replica to delete, since each answer counts; else one per broker."""
        for broker_id, stops in self._stop.items():
            kept = [replica for replica, delete in stops if not delete]
            if kept:
                yield self._stop_replica(broker_id, False, kept)
            for replica, delete in stops:
                if delete:
                    yield self._stop_replica(broker_id, True, [replica])

    def _stop_replica(
        self, broker_id: int, delete: bool, replicas: Iterable[PartitionAndReplica]
    ) -> Outgoing:
        partitions = [schemas.StopReplicaPartition(each.topic, each.partition) for each in replicas]
        request = schemas.StopReplicaRequest(
            self._controller_id, self._context.epoch, delete, partitions
        )
        return Outgoing(broker_id, request, "")


def _partition_state(
    partition: TopicPartition, state: LeaderAndIsr, replicas: Iterable[int]
) -> schemas.PartitionStateInfo:
    return schemas.PartitionStateInfo(
        partition.topic,
        partition.partition,
        state.controller_epoch,
        state.leader,
        state.leader_epoch,
        list(state.isr),
        state.zk_version,
        list(replicas),
    )
