"""Which partitions this broker leads or follows: LeaderAndIsr, StopReplica, lost leaderships.

Mirrors the half of kafka.server.ReplicaManager that carries out the controller's requests. After
each change fetchers are started or stopped, waiting requests are woken, and the offset manager
hears of a leadership that came or went. Nothing in this module talks to ZooKeeper, apart from the
settings of new topics, which are read before anything is changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Protocol

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.cluster.partition import NO_EPOCH, Partition
from kafka08.common import Broker, TopicPartition, validate_topic
from kafka08.errors import (
    NO_ERROR,
    InvalidTopicError,
    KafkaError,
    StaleControllerEpochError,
    StaleLeaderEpochError,
    code_of,
)
from kafka08.log.disk import DiskFailure
from kafka08.log.log import Log
from kafka08.protocol.schemas import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
    PartitionStateInfo,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
)
from kafka08.runtime import Clock
from kafka08.server.replication.hw_checkpoints import HwCheckpoints
from kafka08.server.storage.log_dir_failures import LogDirFailures
from kafka08.server.storage.replica_manager import ReplicaManager
from kafka08.settings.topic import LogConfig

logger = logging.getLogger("kafka.server.ReplicaManager")
state_change_logger = logging.getLogger("state.change.logger")

ReadLogConfig = Callable[[str], LogConfig]


class FetcherControl(Protocol):
    """The part of the follower side that role changes need (server.fetchers)."""

    def add_fetcher_for_partition(self, partition: Partition, leader: Broker) -> None: ...
    def remove_fetcher_for_partitions(self, topic_partitions: Iterable[TopicPartition]) -> None: ...


class LeadershipControl(Protocol):
    """A part that keeps state for the partitions led here, and for partitions until they are
    deleted (server.offset_manager)."""

    def leadership_changed(self, partition: Partition, leads: bool) -> None: ...
    def partitions_deleted(self, deleted: Set[TopicPartition]) -> None: ...


class Keepers:
    """Several of them as one."""

    def __init__(self, *keepers: LeadershipControl) -> None:
        self._keepers = keepers

    def leadership_changed(self, partition: Partition, leads: bool) -> None:
        for each in self._keepers:
            each.leadership_changed(partition, leads)

    def partitions_deleted(self, deleted: Set[TopicPartition]) -> None:
        for each in self._keepers:
            each.partitions_deleted(deleted)


class Roles:
    """Carries out role changes of the partitions in ``replicas``, and knows the newest controller.

    ``log_config`` reads the settings of a topic, and may wait.
    """

    def __init__(
        self,
        clock: Clock,
        replicas: ReplicaManager,
        metadata_cache: MetadataCache,
        log_config: ReadLogConfig,
        checkpoints: HwCheckpoints,
        fetchers: FetcherControl,
        offsets: LeadershipControl,
        failures: LogDirFailures,
    ) -> None:
        self.replicas = replicas
        self.log_config = log_config
        self.controller_epoch = 0
        self._clock = clock
        self._metadata_cache = metadata_cache
        self._checkpoints = checkpoints
        self._fetchers = fetchers
        self._offsets = offsets
        self._failures = failures
        self._broker_id = replicas.broker_id
        self._partitions = replicas.partitions
        self._log_manager = replicas.log_manager

    def check_controller(self, epoch: int) -> None:
        """Remember the newest controller. Raises StaleControllerEpochError for an older one."""
        if epoch < self.controller_epoch:
            raise StaleControllerEpochError(
                f"Controller epoch {epoch} is older than {self.controller_epoch}"
            )
        self.controller_epoch = epoch

    def update_metadata(self, request: UpdateMetadataRequest) -> None:
        """Take over the controller's view. Raises StaleControllerEpochError."""
        self.check_controller(request.controller_epoch)
        deleted = self._metadata_cache.update(
            request.partitions, (Broker(*broker[:3]) for broker in request.live_brokers)
        )
        self._offsets.partitions_deleted(deleted)

    def become_leader_or_follower(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Carry out a LeaderAndIsr. The answer leaves out partitions without a replica here."""
        configs = self._missing_configs(request)  # may wait; nothing below does
        self.check_controller(request.controller_epoch)
        brokers = {broker.node_id: Broker(*broker[:3]) for broker in request.leaders}
        answers = [
            PartitionError(state.topic, state.partition, self._change_role(state, brokers, configs))
            for state in sorted(request.partitions, key=lambda each: each.leader != self._broker_id)
            if self._broker_id in state.replicas
        ]
        return LeaderAndIsrResponse(NO_ERROR, answers)

    def _missing_configs(self, request: LeaderAndIsrRequest) -> dict[str, LogConfig]:
        """The settings of topics for which a log has to be made."""
        configs: dict[str, LogConfig] = {}
        # Once more after each wait: a log may have been deleted meanwhile.
        while missing := self._without_log(request) - configs.keys():
            configs.update({topic: self.log_config(topic) for topic in missing})
        return configs

    def _without_log(self, request: LeaderAndIsrRequest) -> set[str]:
        return {
            state.topic
            for state in request.partitions
            if self._broker_id in state.replicas
            and _is_legal(state)
            and self._log_manager.get_log(TopicPartition(state.topic, state.partition)) is None
        }

    def _change_role(
        self,
        state: PartitionStateInfo,
        brokers: Mapping[int, Broker],
        configs: Mapping[str, LogConfig],
    ) -> int:
        topic_partition = TopicPartition(state.topic, state.partition)
        if not _is_legal(state):
            state_change_logger.error(
                "Broker %d refuses %s: no legal name", self._broker_id, topic_partition
            )
            return InvalidTopicError.code
        partition = self._partitions.get(topic_partition)
        current = NO_EPOCH if partition is None else partition.leader_epoch
        if state.leader_epoch <= current:
            state_change_logger.warning(
                "Broker %d ignoring LeaderAndIsr request for partition %s: "
                "leader epoch %d is not above the current %d",
                self._broker_id, topic_partition, state.leader_epoch, current,
            )  # fmt: skip
            return StaleLeaderEpochError.code
        try:
            if partition is None:
                partition = Partition(topic_partition, self._broker_id)
            if partition.log is None:
                self._open_log(partition, configs)
            self._partitions[topic_partition] = partition
            if state.leader == self._broker_id:
                self._make_leader(partition, state)
            else:
                self._make_follower(partition, state, brokers.get(state.leader))
        except Exception as error:
            state_change_logger.error(
                "Broker %d failed on LeaderAndIsr for partition %s: %s",
                *(self._broker_id, topic_partition, error),
                exc_info=not isinstance(error, (KafkaError, OSError)),
            )
            return code_of(error)
        return NO_ERROR

    def _open_log(self, partition: Partition, configs: Mapping[str, LogConfig]) -> None:
        key = partition.topic_partition
        log = self._log_manager.get_log(key)
        if log is None:
            try:
                log = self._create_log(key, configs[key.topic])
            except (KafkaError, OSError):
                if key in self._log_manager.offline:
                    self._failures.changed.set()
                raise
        partition.open_log(log, self._checkpoints.recorded(key))

    def _create_log(self, key: TopicPartition, config: LogConfig) -> Log:
        if self._log_manager.lost_at_start:
            # Its log may lie in the lost directory, which may be back after a restart.
            self._log_manager.offline.add(key)
            raise KafkaError(f"{key} may lie in a data directory that has failed")
        return self._log_manager.create_log(key, config)

    def _make_leader(self, partition: Partition, state: PartitionStateInfo) -> None:
        was_leader = partition.is_leader
        self._fetchers.remove_fetcher_for_partitions([partition.topic_partition])
        if partition.make_leader(state, self._clock.monotonic()):
            self.replicas.unblock_delayed_requests(partition.topic_partition)
        self.replicas.set_rules(partition)
        if not was_leader:
            self._offsets.leadership_changed(partition, True)
        state_change_logger.debug("Broker %d leads %s", self._broker_id, partition.topic_partition)

    def _make_follower(
        self, partition: Partition, state: PartitionStateInfo, leader: Broker | None
    ) -> None:
        was_leader = partition.is_leader
        key = partition.topic_partition
        self._fetchers.remove_fetcher_for_partitions([key])
        if leader is None:
            # Its epoch is not taken over: the same one is obeyed once it comes with a live leader.
            partition.resign()
        else:
            partition.make_follower(state)
        if was_leader:
            self._offsets.leadership_changed(partition, False)
        self.replicas.unblock_delayed_requests(key)
        if leader is not None:
            self._fetchers.add_fetcher_for_partition(partition, leader)
        state_change_logger.debug("Broker %d follows %d for %s", self._broker_id, state.leader, key)

    def stop_replicas(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop following, and delete the log if the request says so: ``sync_deletions`` of the
        replica manager comes before the answer. Unknown partitions count as done."""
        self.check_controller(request.controller_epoch)
        keys = [TopicPartition(*partition) for partition in request.partitions]
        self._fetchers.remove_fetcher_for_partitions(keys)
        answers = []
        for key in keys:
            error = NO_ERROR
            try:
                self._stop_replica(key, request.delete_partitions)
            except Exception as failure:
                state_change_logger.exception("Could not stop the replica of %s", key)
                error = code_of(failure)
            answers.append(PartitionError(key.topic, key.partition, error))
        return StopReplicaResponse(NO_ERROR, answers)

    def _stop_replica(self, key: TopicPartition, delete: bool) -> None:
        partition = self._partitions.get(key)
        if partition is not None and not delete:
            partition.resign()
        if delete:
            # A topic of the same name may start over at epoch 0: keep nothing of this one.
            self._partitions.pop(key, None)
            self._checkpoints.forget(key)
        if partition is not None:
            self._offsets.leadership_changed(partition, False)
        self.replicas.unblock_delayed_requests(key)
        if delete:
            self._delete_log(key)

    def _delete_log(self, key: TopicPartition) -> None:
        """Raises OSError, and KafkaError if the log may be there again after a restart."""
        log = self._log_manager.get_log(key)
        if log is None:
            if self._log_manager.may_be_lost(key):
                raise KafkaError(f"{key} may lie in a data directory that has failed")
            return
        try:
            self._log_manager.delete_log(key)
        except OSError as error:
            self.replicas.disk_failed([DiskFailure(log.data_dir, error)])
            raise

    def confirm_leaderships(
        self, stored: Callable[[TopicPartition], tuple[int, int] | None]
    ) -> None:
        """After a new session: keep the leaderships that ZooKeeper records, give up the others.

        ``stored`` reads (leader, leader epoch) of a partition. A leadership given up comes back
        with the controller's next LeaderAndIsr, if it is still ours.
        """
        for key, partition in list(self._partitions.items()):
            epoch = partition.leader_epoch
            if not partition.is_leader or len(partition.replicas) == 1:
                continue
            found = stored(key)
            # A server of ZooKeeper may be behind what the controller has told this broker.
            is_ours = found is not None and (found[1] < epoch or found == (self._broker_id, epoch))
            if is_ours or partition.leader_epoch != epoch:
                continue
            logger.warning("Leadership of %s passed while the session was lost", key)
            partition.resign()
            self._offsets.leadership_changed(partition, False)
            self.replicas.unblock_delayed_requests(key)


def _is_legal(state: PartitionStateInfo) -> bool:
    """Whether a directory may be named after the partition; a peer can send any name."""
    try:
        validate_topic(state.topic)
    except InvalidTopicError:
        return False
    return state.partition >= 0
