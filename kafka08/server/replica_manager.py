"""The partitions on this broker: appends, reads, role changes, high watermark checkpoints.

Mirrors kafka.server.ReplicaManager. Partitions say what changed; here that becomes action:
waiting requests are woken, fetchers started and stopped, isr changes handed to their owner.
Nothing in this module talks to ZooKeeper.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.cluster.partition import NO_EPOCH, NO_LEADER, LeaderState, Partition
from kafka08.common import Broker, TopicPartition, validate_topic
from kafka08.config import BrokerConfig, LogConfig
from kafka08.errors import (
    NO_ERROR,
    InvalidTopicError,
    KafkaError,
    NotLeaderForPartitionError,
    ReplicaNotAvailableError,
    StaleControllerEpochError,
    StaleLeaderEpochError,
    UnknownError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kafka08.log.checkpoint import OffsetCheckpoint
from kafka08.log.disk import DiskFailure
from kafka08.log.log import Log, LogAppendInfo, Numbered
from kafka08.log.manager import LogManager
from kafka08.log.segment import FileSlice
from kafka08.message.sets import Opened
from kafka08.protocol.schemas import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
    PartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
)
from kafka08.runtime import Runtime
from kafka08.server import cold_reads
from kafka08.server.purgatory import Purgatory

logger = logging.getLogger("kafka.server.ReplicaManager")
state_change_logger = logging.getLogger("state.change.logger")

HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
TopicConfigs = Callable[[str], LogConfig]


class FetcherControl(Protocol):
    """The part of the follower side that role changes need (server.fetchers)."""

    def add(self, partition: Partition, leader: Broker) -> None: ...
    def remove(self, topic_partitions: Iterable[TopicPartition]) -> None: ...


class ReadResult(NamedTuple):
    """Stored bytes and the high watermark that goes with them.

    ``in_older_segment``: the bytes end with a segment that is not the newest, so that no
    waiting would add to them.
    """

    data: FileSlice
    high_watermark: int
    in_older_segment: bool


class ReplicaManager:
    """All partitions of this broker, by TopicPartition.

    ``log_config`` gives the settings of a topic. ``on_disk_errors`` may have ``take_offline``
    called before it returns; ``on_offline`` hears of partitions that got no log. The three
    purgatories are told of moves: ``produce_purgatory`` and ``fetch_purgatory`` of high
    watermarks (the first of follower positions too), ``follower_purgatory`` of log ends; all of
    lost leadership.
    """

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        log_manager: LogManager,
        log_config: TopicConfigs,
        *,
        on_caught_up: Callable[[Partition], None],
        on_rolled: Callable[[Log], None],
        on_leader_change: Callable[[Partition, bool], None],
        on_disk_errors: Callable[[Iterable[DiskFailure]], None],
        on_offline: Callable[[], None],
    ) -> None:
        self.config = config
        self.broker_id = config.broker_id
        self.log_manager = log_manager
        self.metadata_cache = MetadataCache()
        self.partitions: dict[TopicPartition, Partition] = {}
        self.produce_purgatory = Purgatory(runtime)
        # A produce waits on without its sender, who may have closed only its half: a fetch can be
        # answered early, with what there is.
        self.fetch_purgatory = Purgatory(runtime, for_peers=True)
        self.follower_purgatory = Purgatory(runtime, for_peers=True)
        self.controller_epoch = 0
        # Set while ZooKeeper may have given our leaderships away: see ``fence``.
        self.fenced = False
        self.fetchers: FetcherControl | None = None
        self._clock = runtime.clock
        self._runtime = runtime
        self._log_config = log_config
        self._on_caught_up = on_caught_up
        self._on_rolled = on_rolled
        self._on_leader_change = on_leader_change
        self._on_disk_errors = on_disk_errors
        self._on_offline = on_offline
        self._checkpoints = {
            directory: OffsetCheckpoint(os.path.join(directory, HIGH_WATERMARK_CHECKPOINT))
            for directory in log_manager.log_dirs
        }
        # High watermarks of logs the controller has not assigned to us yet stay on record.
        self._recorded = {
            topic_partition: offset
            for checkpoint in self._checkpoints.values()
            for topic_partition, offset in checkpoint.read().items()
        }

    # Lookup

    def partition(self, topic_partition: TopicPartition) -> Partition:
        """The partition, if this broker hosts it. Raises UnknownTopicOrPartitionError."""
        try:
            return self.partitions[topic_partition]
        except KeyError:
            raise UnknownTopicOrPartitionError(
                f"Partition {topic_partition} doesn't exist on {self.broker_id}"
            ) from None

    def writable(self, topic_partition: TopicPartition, acks: int) -> Partition:
        """The partition, unless ZooKeeper is away and a new leader might not have the write.

        Raises UnknownTopicOrPartitionError or NotLeaderForPartitionError.
        """
        partition = self.partition(topic_partition)
        if self.fenced and not partition.keeps_unseen(acks):
            raise NotLeaderForPartitionError(
                f"{topic_partition} may have another leader: ZooKeeper is out of reach"
            )
        return partition

    # Produce and fetch

    def append(
        self,
        topic_partition: TopicPartition,
        buffer: memoryview,
        acks: int,
        opened: Opened | None = None,
        numbered: Numbered | None = None,
    ) -> LogAppendInfo:
        """Append a producer's message set as leader and wake who waits for it. ``opened`` and
        ``numbered`` are for Log.append."""
        partition = self.writable(topic_partition, acks)
        try:
            appended, hw_moved = partition.append_as_leader(buffer, acks, opened, numbered)
        except OSError as error:
            self.disk_error(partition, error)
            # Another broker may lead in a moment, or there may be room. Clients ask for the
            # leader and try again; to most of them -1 is final.
            raise NotLeaderForPartitionError(
                f"{topic_partition} cannot be written here: {error}"
            ) from error
        if appended.rolled and partition.log is not None:
            self._on_rolled(partition.log)
        if hw_moved:
            self.hw_moved(topic_partition)
        if partition.remote:
            self.follower_purgatory.notify(topic_partition)
        return appended

    def read(
        self, topic_partition: TopicPartition, offset: int, max_bytes: int, replica_id: int
    ) -> ReadResult:
        """Stored bytes of a partition, in the page cache; may wait for them to get there.

        A follower's position is recorded on the way.
        """
        try:
            partition = self.partition(topic_partition)
        except UnknownTopicOrPartitionError:
            if replica_id == -2:
                raise ReplicaNotAvailableError() from None
            raise
        log = partition.log
        if log is not None and not log.is_fresh(offset):
            self.read_in(partition, log, offset, max_bytes)
            partition = self.partition(topic_partition)
        try:
            data = partition.read(offset, max_bytes, replica_id)
        except OSError as error:
            raise self.disk_error(partition, error) from error
        except Exception:
            if replica_id >= 0 and partition.is_leader and replica_id in partition.remote:
                self._record_follower(partition, replica_id, -1)
            raise
        if replica_id >= 0:
            self._record_follower(partition, replica_id, offset)
        older = data.base_offset < partition.any_log().segments[-1].base_offset
        return ReadResult(data, partition.high_watermark, older)

    def read_in(self, partition: Partition, log: Log, offset: int, max_bytes: int) -> None:
        """Have another thread read what is not in the page cache of what a read would touch."""
        try:
            cold_reads.read_in(self._runtime, log, offset, max_bytes)
        except OSError as error:
            raise self.disk_error(partition, error) from error

    def stat_files(self, topic_partition: TopicPartition) -> None:
        """Have another thread ask the disk for the times of a log's files."""
        partition = self.partitions.get(topic_partition)
        if partition is not None and partition.log is not None:
            try:
                cold_reads.stat_files(self._runtime, partition.log)
            except OSError as error:
                raise self.disk_error(partition, error) from error

    def disk_error(self, partition: Partition, error: OSError) -> KafkaError:
        """Report what was met in its files; what to answer, which clients take as a reason to
        look for the leader."""
        log = partition.log
        if log is not None:
            self._on_disk_errors([DiskFailure(os.path.dirname(log.directory), error)])
        if partition.log is None:
            return NotLeaderForPartitionError(
                f"The data directory of {partition.topic_partition} has failed: {error}"
            )
        return UnknownError(f"I/O error in {partition.topic_partition}: {error}")

    def take_offline(self, keys: Iterable[TopicPartition]) -> list[TopicPartition]:
        """These logs are not to be used any more; the partitions that were led here."""
        keys = list(keys)
        led = [key for key in keys if key in self.partitions and self.partitions[key].is_leader]
        self._stop_fetching(keys)
        for key in keys:
            self._recorded.pop(key, None)
            partition = self.partitions.get(key)
            if partition is not None:
                partition.log = None
                partition.leader_id = NO_LEADER
                self._on_leader_change(partition, False)
                self.hw_moved(key)
        return led

    def _record_follower(self, partition: Partition, broker_id: int, offset: int) -> None:
        now, config = self._clock.monotonic(), self.config
        progress = partition.record_follower(broker_id, offset, now)
        if progress.hw_moved:
            self.hw_moved(partition.topic_partition)
        elif progress.leo_moved:
            self.produce_purgatory.notify(partition.topic_partition)
        if broker_id not in partition.isr and partition.expansion(
            now, config.replica_lag_time_max_ms / 1000, config.replica_lag_max_messages
        ):
            self._on_caught_up(partition)

    def hw_moved(self, topic_partition: TopicPartition) -> None:
        """Wake everyone a higher high watermark may release."""
        self.fetch_purgatory.notify(topic_partition)
        self.produce_purgatory.notify(topic_partition)
        self.follower_purgatory.notify(topic_partition)

    # Requests of the controller

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
        self.metadata_cache.update(
            request.partitions, (Broker(*broker) for broker in request.live_brokers)
        )

    def become_leader_or_follower(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Lead and follow as told; partitions we are no replica of are left out of the answer."""
        configs = self._missing_configs(request)  # may wait; nothing below does
        self.check_controller(request.controller_epoch)
        brokers = {broker.node_id: Broker(*broker) for broker in request.leaders}
        answers = [
            PartitionError(state.topic, state.partition, self._change_role(state, brokers, configs))
            for state in sorted(request.partitions, key=lambda each: each.leader != self.broker_id)
            if self.broker_id in state.replicas
        ]
        return LeaderAndIsrResponse(NO_ERROR, answers)

    def _missing_configs(self, request: LeaderAndIsrRequest) -> dict[str, LogConfig]:
        """The settings of topics for which a log has to be made."""
        configs: dict[str, LogConfig] = {}
        # Once more after each wait: a log may have been deleted meanwhile.
        while missing := self._without_log(request) - configs.keys():
            configs.update({topic: self._log_config(topic) for topic in missing})
        return configs

    def _without_log(self, request: LeaderAndIsrRequest) -> set[str]:
        return {
            state.topic
            for state in request.partitions
            if self.broker_id in state.replicas
            and _is_legal(state)
            and self.log_manager.get_log(TopicPartition(state.topic, state.partition)) is None
        }

    def _change_role(
        self,
        state: PartitionState,
        brokers: Mapping[int, Broker],
        configs: Mapping[str, LogConfig],
    ) -> int:
        topic_partition = TopicPartition(state.topic, state.partition)
        if not _is_legal(state):
            state_change_logger.error(
                "Broker %d refuses %s: no legal name", self.broker_id, topic_partition
            )
            return InvalidTopicError.code
        partition = self.partitions.get(topic_partition)
        current = NO_EPOCH if partition is None else partition.leader_epoch
        if state.leader_epoch <= current:
            state_change_logger.warning(
                "Broker %d ignoring LeaderAndIsr request for partition %s: "
                "leader epoch %d is not above the current %d",
                self.broker_id, topic_partition, state.leader_epoch, current,
            )  # fmt: skip
            return StaleLeaderEpochError.code
        try:
            if partition is None:
                partition = Partition(topic_partition, self.broker_id)
            if partition.log is None:
                self._open_log(partition, configs)
            self.partitions[topic_partition] = partition
            if state.leader == self.broker_id:
                self._lead(partition, _leader_state(state))
            else:
                self._follow(partition, state, brokers.get(state.leader))
        except Exception as error:
            state_change_logger.error(
                "Broker %d failed on LeaderAndIsr for partition %s: %s",
                *(self.broker_id, topic_partition, error),
                exc_info=not isinstance(error, (KafkaError, OSError)),
            )
            return code_of(error)
        return NO_ERROR

    def _open_log(self, partition: Partition, configs: Mapping[str, LogConfig]) -> None:
        key = partition.topic_partition
        log = self.log_manager.get_log(key)
        if log is None:
            try:
                log = self._create_log(key, configs[key.topic])
            except (KafkaError, OSError):
                if key in self.log_manager.offline:
                    self._on_offline()
                raise
        partition.open_log(log, self._recorded.get(key, 0))

    def _create_log(self, key: TopicPartition, config: LogConfig) -> Log:
        if self.log_manager.lost_at_start:
            # It may lie in the lost directory, which can be back tomorrow.
            self.log_manager.offline.add(key)
            raise KafkaError(f"{key} may lie in a data directory that has failed")
        return self.log_manager.create_log(key, config)

    def _lead(self, partition: Partition, state: LeaderState) -> None:
        was_leader = partition.is_leader
        self._stop_fetching([partition.topic_partition])
        if partition.make_leader(state, self._clock.monotonic()):
            self.hw_moved(partition.topic_partition)
        if not was_leader:
            self._on_leader_change(partition, True)
        state_change_logger.debug("Broker %d leads %s", self.broker_id, partition.topic_partition)

    def _follow(self, partition: Partition, state: PartitionState, leader: Broker | None) -> None:
        was_leader = partition.is_leader
        key = partition.topic_partition
        self._stop_fetching([key])
        # Without a live leader nothing can be fetched; the epoch still fences older requests.
        partition.make_follower(_leader_state(state))
        if was_leader:
            self._on_leader_change(partition, False)
        self.hw_moved(key)
        if leader is not None and self.fetchers is not None:
            self.fetchers.add(partition, leader)
        state_change_logger.debug("Broker %d follows %d for %s", self.broker_id, state.leader, key)

    def _stop_fetching(self, keys: Iterable[TopicPartition]) -> None:
        if self.fetchers is not None:
            self.fetchers.remove(keys)

    def stop_replicas(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop following; delete the log too when told. Unknown partitions count as done."""
        self.check_controller(request.controller_epoch)
        keys = [TopicPartition(*partition) for partition in request.partitions]
        self._stop_fetching(keys)
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
        partition = self.partitions.get(key)
        if partition is not None and not delete:
            # A later LeaderAndIsr with the same leader must start the fetcher again.
            partition.leader_id = -1
        if delete:
            # A topic of the same name may start over at epoch 0: keep nothing of this one.
            self.partitions.pop(key, None)
            self._recorded.pop(key, None)
            log = self.log_manager.get_log(key)
            if log is not None:
                self._delete(log)
        if partition is not None:
            self._on_leader_change(partition, False)
        self.hw_moved(key)

    def _delete(self, log: Log) -> None:
        try:
            self.log_manager.delete_log(log.topic_partition)
        except OSError as error:
            self._on_disk_errors([DiskFailure(os.path.dirname(log.directory), error)])
            raise

    # Upkeep

    def fence(self, fenced: bool) -> None:
        """ZooKeeper has been out of reach for a whole session, or is back.

        Meanwhile partitions may have got another leader. They take only writes that it will
        have (``Partition.keeps_unseen``).
        """
        if fenced == self.fenced:
            return
        self.fenced = fenced
        if not fenced:
            logger.warning("All writes are taken again")
            return
        logger.warning(
            "ZooKeeper is out of reach: replicated partitions take only writes with acks -1, and "
            "only where every replica that could be elected takes part"
        )
        for key in self.partitions:
            self.produce_purgatory.notify(key)

    def confirm_leaderships(
        self, stored: Callable[[TopicPartition], tuple[int, int] | None]
    ) -> None:
        """After a new session: keep the leaderships that ZooKeeper records, give up the others.

        ``stored`` reads (leader, leader epoch) of a partition. A leadership given up comes back
        with the controller's next LeaderAndIsr, if it is still ours.
        """
        for key, partition in list(self.partitions.items()):
            epoch = partition.leader_epoch
            if not partition.is_leader or len(partition.replicas) == 1:
                continue
            if stored(key) == (self.broker_id, epoch) or partition.leader_epoch != epoch:
                continue
            logger.warning("Leadership of %s passed while the session was lost", key)
            partition.leader_id = NO_LEADER
            self._on_leader_change(partition, False)
            self.hw_moved(key)

    def checkpoint_high_watermarks(self) -> None:
        """Write every high watermark to the checkpoint of the directory its log is in."""
        for key, partition in self.partitions.items():
            self._recorded[key] = partition.high_watermark
        by_directory: dict[str, dict[TopicPartition, int]] = {
            directory: {} for directory in self.log_manager.log_dirs
        }
        for key, log in self.log_manager.logs.items():
            if key in self._recorded:
                by_directory[os.path.dirname(log.directory)][key] = self._recorded[key]
        for directory, offsets in by_directory.items():
            try:
                self._runtime.blocking(self._checkpoints[directory].write, offsets)
            except OSError as error:
                self._on_disk_errors([DiskFailure(directory, error)])

    def on_full_disks(self) -> set[TopicPartition]:
        """The partitions in full data directories that have other replicas."""
        directories = self.log_manager.full_dirs
        return {
            key
            for key, partition in self.partitions.items()
            if len(partition.replicas) > 1
            and partition.log is not None
            and os.path.dirname(partition.log.directory) in directories
        }

    def led_with_followers(self) -> list[Partition]:
        """Partitions led here whose isr may change."""
        return [each for each in self.partitions.values() if each.is_leader and each.remote]

    def close(self) -> None:
        """Release every waiting request."""
        for purgatory in (self.produce_purgatory, self.fetch_purgatory, self.follower_purgatory):
            purgatory.close()


def _is_legal(state: PartitionState) -> bool:
    """Whether a directory may be named after the partition; any peer can send anything."""
    try:
        validate_topic(state.topic)
    except InvalidTopicError:
        return False
    return state.partition >= 0


def _leader_state(state: PartitionState) -> LeaderState:
    return LeaderState(
        state.leader,
        state.leader_epoch,
        tuple(state.isr),
        state.zk_version,
        tuple(state.replicas),
        state.controller_epoch,
    )
