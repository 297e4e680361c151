"""The partitions on this broker: find them, append to them as leader, read from them.

Mirrors kafka.server.ReplicaManager, whose other halves are in ``roles`` and ``hw_checkpoints``.
Partitions say what changed; here that becomes action: waiting requests are woken, isr changes
handed to their owner. Nothing in this module talks to ZooKeeper.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from kafka08.cluster.partition import Partition
from kafka08.cluster.replica import UNKNOWN_OFFSET
from kafka08.common import TopicPartition
from kafka08.errors import (
    KafkaError,
    NotLeaderForPartitionError,
    ReplicaNotAvailableError,
    UnknownError,
    UnknownTopicOrPartitionError,
    caused,
)
from kafka08.log.disk import DiskFailure
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.log.numbering import LogAppendInfo, Numbered
from kafka08.log.segments.file_slice import FileSlice
from kafka08.message.entry import BATCH
from kafka08.message.sets import Opened
from kafka08.named import named
from kafka08.runtime import Runtime
from kafka08.server.requests.counts import Counts
from kafka08.server.requests.effects import Effects
from kafka08.server.requests.purgatory import Purgatory
from kafka08.server.storage import cold_reads
from kafka08.server.storage.log_dir_failures import LogDirFailures
from kafka08.settings.broker import BrokerConfig

logger = logging.getLogger("kafka.server.ReplicaManager")


class ReadResult(NamedTuple):
    """Stored bytes and the high watermark that goes with them.

    ``is_final``: no waiting would add to the bytes, as they end with a segment that is not the
    newest.
    """

    data: FileSlice
    high_watermark: int
    is_final: bool


class ReplicaManager:
    """All partitions of this broker, by TopicPartition.

    The three purgatories learn of moves: ``produce_purgatory`` and ``fetch_purgatory`` of high
    watermarks (the first of follower positions too), ``follower_purgatory`` of log ends; all of
    lost leadership.
    """

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        log_manager: LogManager,
        failures: LogDirFailures,
        effects: Effects,
    ) -> None:
        self.config = config
        self.broker_id = config.broker_id
        self.log_manager = log_manager
        self.partitions: dict[TopicPartition, Partition] = {}
        self.produce_purgatory = Purgatory(runtime)
        # A produce waits on without its sender, who may have closed only its half: a fetch can be
        # answered early, with what there is.
        self.fetch_purgatory = Purgatory(runtime, for_peers=True)
        self.follower_purgatory = Purgatory(runtime, for_peers=True)
        self.counts = Counts()
        # Set while ZooKeeper may have given our leaderships away: see ``fence``.
        self.fenced = False
        # The only brokers that hold formats above 0; None: all do.
        self._later: frozenset[int] | None = None
        # Those that were told so, with the partition.
        self._kept_out: set[tuple[TopicPartition, int]] = set()
        self._clock = runtime.clock
        self._runtime = runtime
        self._effects = effects
        self._failures = failures

    # Lookup

    def partition(self, topic_partition: TopicPartition) -> Partition:
        """The partition, if this broker hosts it. Raises UnknownTopicOrPartitionError."""
        try:
            return self.partitions[topic_partition]
        except KeyError:
            raise UnknownTopicOrPartitionError(
                f"Partition {topic_partition} doesn't exist on {self.broker_id}"
            ) from None

    def led_until(self, topic_partition: TopicPartition) -> int:
        """The high watermark of a partition led here; 0 for others."""
        partition = self.partitions.get(topic_partition)
        return partition.high_watermark if partition is not None and partition.is_leader else 0

    def writable(self, topic_partition: TopicPartition, acks: int) -> Partition:
        """The partition, unless ZooKeeper is away and a new leader might not have the write.

        Raises UnknownTopicOrPartitionError or NotLeaderForPartitionError.
        """
        partition = self.partition(topic_partition)
        if self.fenced and not partition.is_safe_without_zookeeper(acks):
            raise NotLeaderForPartitionError(
                f"{topic_partition} may have another leader: ZooKeeper is out of reach"
            )
        return partition

    # Produce and fetch

    def append_messages(
        self,
        topic_partition: TopicPartition,
        buffer: memoryview,
        acks: int,
        opened: Opened | None = None,
        numbered: Numbered | None = None,
    ) -> LogAppendInfo:
        """Append a producer's message set as leader, and wake the requests that wait for it.
        ``opened`` and ``numbered`` are for Log.append."""
        partition = self.writable(topic_partition, acks)
        try:
            appended, hw_moved = partition.append_messages_to_leader(buffer, acks, opened, numbered)
        except OSError as error:
            self.disk_error(partition, error)
            # Another broker may lead in a moment, or there may be room. Clients ask for the
            # leader and try again; to most of them -1 is final.
            refused = f"{topic_partition} cannot be written here: {error}"
            raise caused(NotLeaderForPartitionError(refused), error) from error
        if appended.rolled and partition.log is not None:
            self._effects.rolled(partition.log)
        if hw_moved:
            self.unblock_delayed_requests(topic_partition)
        if partition.remote:
            self.follower_purgatory.notify(topic_partition)
        return appended

    def read_message_set(
        self,
        topic_partition: TopicPartition,
        offset: int,
        max_bytes: int,
        replica_id: int,
        *,
        later: bool = False,
        committed: bool = False,
        first_offset: int = UNKNOWN_OFFSET,
        is_new: bool = True,
    ) -> ReadResult:
        """Stored bytes of a partition, in the page cache; may wait for them to get there.

        A follower's position is recorded on the way, with its ``first_offset`` if it sends one. It
        is not if the request ``is_new`` no more: in another leadership the position is a former
        one. An original broker that follows is not given what it cannot read.
        """
        try:
            partition = self.partition(topic_partition)
        except UnknownTopicOrPartitionError:
            if replica_id == -2:
                raise ReplicaNotAvailableError() from None
            raise
        log, epoch = partition.log, partition.leader_epoch
        if log is not None and not log.is_fresh(offset):
            self.read_in(
                partition, log, offset, max_bytes, for_consumer=replica_id < 0 and not later
            )
            partition = self.partition(topic_partition)
        if (
            replica_id >= 0
            and not self._hold_later_formats((replica_id,))
            and offset < self.later_formats_until(topic_partition)
        ):
            return self._nothing_readable(topic_partition, replica_id)
        try:
            data = partition.read(offset, max_bytes, replica_id, later=later, committed=committed)
        except OSError as error:
            raise self.disk_error(partition, error) from error
        except Exception:
            if replica_id >= 0 and partition.is_leader and replica_id in partition.remote:
                self._record_follower_position(partition, replica_id, -1)
            raise
        if replica_id >= 0 and is_new and partition.leader_epoch == epoch:
            self._record_follower_position(partition, replica_id, offset, first_offset)
        # what was rebuilt of the newest segment ends before the segment does
        older = data.file is not partition.any_log().segments[-1].file
        return named(ReadResult, (data, partition.high_watermark, older))

    def later_formats_until(self, topic_partition: TopicPartition) -> int:
        """All that brokers of 0.8.2.2 cannot read in a partition led here is below this offset; 0
        without any. May wait for the log to be searched."""
        partition = self.partition(topic_partition)
        log = partition.leader_log()
        try:
            if not log.later_formats.is_known:
                self._runtime.blocking(log.later_formats.until, log.segments)
            until = log.later_formats.until(log.segments)
            return until if until > log.log_start_offset else 0
        except OSError as error:
            raise self.disk_error(partition, error) from error

    def _nothing_readable(self, topic_partition: TopicPartition, broker_id: int) -> ReadResult:
        """For an original broker that has to wait until the log ends before what it cannot read.
        Its position is not recorded, so that it leaves the isr."""
        partition = self.partition(topic_partition)
        log = partition.leader_log()
        if (topic_partition, broker_id) not in self._kept_out:
            self._kept_out.add((topic_partition, broker_id))
            logger.error(
                "Broker %d of 0.8.2.2 cannot be a replica of %s: it cannot read what the log has "
                "below offset %d. Convert the log, or move the replica to another broker",
                *(broker_id, topic_partition, self.later_formats_until(topic_partition)),
            )
        return ReadResult(log.read(log.log_end_offset, 0), partition.high_watermark, False)

    def read_in(
        self,
        partition: Partition,
        log: Log,
        offset: int,
        max_bytes: int,
        *,
        for_consumer: bool = False,
    ) -> None:
        """Have another thread read the bytes that a read would touch and that are not in the page
        cache."""
        try:
            cold_reads.read_in(self._runtime, log, offset, max_bytes, for_consumer=for_consumer)
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
        """Report an I/O error in the partition's files; returns the error to answer, whose cause
        it is."""
        log, key = partition.log, partition.topic_partition
        if log is not None:
            self.disk_failed([DiskFailure(log.data_dir, error)])
        if partition.log is None:
            failed = f"The data directory of {key} has failed: {error}"
            return caused(NotLeaderForPartitionError(failed), error)
        return caused(UnknownError(f"I/O error in {key}: {error}"), error)

    def disk_failed(self, failures: Iterable[DiskFailure]) -> None:
        """Act on I/O errors below data directories. Partitions in failed ones are out of use on
        return."""
        for key in self._failures.report(failures):
            partition = self.partitions.get(key)
            if partition is not None:
                if partition.is_leader:
                    self._failures.lost_leaderships.add(key)
                partition.go_offline()
                self.unblock_delayed_requests(key)

    def _record_follower_position(
        self,
        partition: Partition,
        broker_id: int,
        offset: int,
        first_offset: int = UNKNOWN_OFFSET,
    ) -> None:
        now, config = self._clock.monotonic(), self.config
        progress = partition.record_follower_position(broker_id, offset, now, first_offset)
        if progress.hw_moved:
            self.unblock_delayed_requests(partition.topic_partition)
        elif progress.moved:
            self.produce_purgatory.notify(partition.topic_partition)
        if broker_id not in partition.isr and partition.expanded_isr(
            now, config.replica_lag_time_max_ms / 1000, config.replica_lag_max_messages
        ):
            self._effects.isr_may_change(partition)

    def unblock_delayed_requests(self, topic_partition: TopicPartition) -> None:
        """Wake all requests that may wait for a higher high watermark."""
        self.fetch_purgatory.notify(topic_partition)
        self.produce_purgatory.notify(topic_partition)
        self.follower_purgatory.notify(topic_partition)

    def sync_deletions(self, keys: Collection[TopicPartition]) -> None:
        """Have another thread make it durable that logs were deleted. Raises OSError."""
        for failure in self._runtime.blocking(self.log_manager.sync_deletions, keys):
            self.disk_failed([failure])
            raise failure.error

    # Deletion of records

    def delete_records(self, topic_partition: TopicPartition, offset: int) -> int:
        """Delete the records below ``offset`` as leader, see Partition.delete_records. Until
        ``store_deletions`` they may come back."""
        return self.writable(topic_partition, -1).delete_records(offset)

    def store_deletions(self, keys: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Have another thread make deletions durable; returns the partitions where that failed."""
        logs = {key: log for key in keys if (log := self.log_manager.get_log(key)) is not None}
        if not logs:
            return set()
        failures = self._runtime.blocking(self.log_manager.store_deletions, logs.values())
        self.disk_failed(failures)
        failed = {failure.directory for failure in failures}
        return {key for key, log in logs.items() if log.data_dir in failed}

    def low_watermark(self, topic_partition: TopicPartition, live: Iterable[int]) -> int:
        """The lowest first offset of a partition led here on the ``live`` brokers; -1 if one has
        not told yet. Those of 0.8.2.2 never tell and do not count."""
        telling = [broker_id for broker_id in live if self._hold_later_formats((broker_id,))]
        return self.writable(topic_partition, -1).low_watermark(telling)

    # Upkeep

    def fence(self, fenced: bool) -> None:
        """ZooKeeper has been out of reach for a whole session, or is back.

        Meanwhile partitions may have got another leader. They take only writes that it will
        have (``Partition.is_safe_without_zookeeper``).
        """
        if fenced == self.fenced:
            return
        self.fenced = fenced
        if not fenced:
            logger.warning("All writes are accepted again")
            return
        logger.warning(
            "ZooKeeper is out of reach: replicated partitions accept only writes with acks -1, and "
            "only if every replica that could be elected is in the isr"
        )
        for key in self.partitions:
            self.produce_purgatory.notify(key)

    def follow_later(self, brokers: frozenset[int]) -> None:
        """Partitions with a replica on any other broker store format 0 only from now on."""
        if brokers != self._later:
            self._later = brokers
            self._kept_out.clear()
            for partition in self.partitions.values():
                self.set_rules(partition)

    def set_rules(self, partition: Partition) -> None:
        """Have the log of a partition take what its replicas can hold, with its leader epoch."""
        if partition.log is not None:
            most = BATCH if self._hold_later_formats(partition.replicas) else 0
            epoch = partition.leader_epoch
            rules = partition.log.rules._replace(max_format=most, leader_epoch=epoch)
            if rules != partition.log.rules:
                partition.log.rules = rules

    def _hold_later_formats(self, replicas: Sequence[int]) -> bool:
        return self._later is None or self._later.issuperset(replicas)

    def on_full_disks(self) -> set[TopicPartition]:
        """The partitions in full data directories that have other replicas."""
        directories = self.log_manager.full_dirs
        return {
            key
            for key, partition in self.partitions.items()
            if len(partition.replicas) > 1
            and partition.log is not None
            and partition.log.data_dir in directories
        }

    def led_with_followers(self) -> list[Partition]:
        """Partitions led here whose isr may change."""
        return [each for each in self.partitions.values() if each.is_leader and each.remote]

    def close(self) -> None:
        """Release every waiting request."""
        for purgatory in (self.produce_purgatory, self.fetch_purgatory, self.follower_purgatory):
            purgatory.close()
