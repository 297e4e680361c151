"""The followers' side of replication: fetch loops, num.replica.fetchers for each leader.

Mirrors kafka.server.ReplicaFetcherThread with three differences, all invisible to peers:

- A new follower does not cut its log to the high watermark it knows. It fetches from there,
  compares what the leader sends with what it has, and cuts at the first difference. Its
  fetch offset is the end of the verified part, so the leader's view of it stays as cautious as
  before, and acknowledged records it already had survive if it is elected meanwhile.
- A partition that fails is set aside for a while; the others go on.
- A log that is longer than its leader's while unclean election is off takes that partition
  out of replication instead of halting the process.

A leader that serves later requests is asked with Fetch 9, which also says up to where the leader
has deleted records (ADR 42), and names the leader epoch: it is refused by a leader that has lost
its leadership and got it back meanwhile, whose log has to be compared again. Everything else is as
with Fetch 0.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from kafka08.cluster.partition import Partition
from kafka08.cluster.replica import UNKNOWN_OFFSET
from kafka08.common import EARLIEST_TIME, LATEST_TIME, Broker, TopicPartition, fetcher_number
from kafka08.errors import KafkaError, OffsetOutOfRangeError, for_code
from kafka08.log.disk import DiskFailure, is_full
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.log.recovery.divergence import compare
from kafka08.metrics.meters import Histogram, Meter, Timer
from kafka08.network.channel import BrokerConnection, Channel, Connectors
from kafka08.protocol.schemas import (
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchTopic,
    OffsetsPartition,
    OffsetsRequest,
    OffsetsTopic,
)
from kafka08.runtime import Loop, Runtime
from kafka08.server.quotas.replication import ReplicationQuota
from kafka08.server.requests.effects import Effects
from kafka08.server.requests.long_work import in_turns
from kafka08.server.storage import cold_reads
from kafka08.settings.broker import BrokerConfig

logger = logging.getLogger("kafka.server.ReplicaFetcherThread")

_BACKOFF_SECONDS = 1.0
_LAGS_WITHOUT_ROOM = 2.2
_NOT_WHOLE = "no whole message in {} bytes: replica.fetch.max.bytes is too small"
# The first version of Fetch with the leader epoch; that of version 5 has the start of the log.
_WITH_EPOCH = 9

DiskFailed = Callable[[Iterable[DiskFailure]], None]
ServesLater = Callable[[int], bool]


class _Position:
    """Where a partition's copy stands. ``verifying`` until the local tail has been compared;
    ``common``: the end of what the leader has too, as the comparison has found."""

    __slots__ = ("common", "lag", "offset", "partition", "retry_at", "verifying")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.retry_at = 0.0
        self.lag = 0  # below the leader's high watermark
        self.move_to(partition.high_watermark)

    def move_to(self, offset: int) -> None:
        """Go on at ``offset``, within the log. Entries above it are to be compared."""
        log = self.partition.any_log()
        self.offset = self.common = max(min(offset, log.log_end_offset), log.log_start_offset)
        self.verifying = self.offset < log.log_end_offset

    def is_on(self, directories: Collection[str]) -> bool:
        """Whether the log is in one of these data directories (usually there are none)."""
        log = self.partition.log
        return bool(directories) and log is not None and log.data_dir in directories


class FetcherStats:
    """``fetches``: how often and how long; ``sizes``: bytes of messages in each answer."""

    def __init__(self) -> None:
        self.fetches = Timer()
        self.sizes = Histogram()
        self.bytes = Meter()

    def fetched(self, seconds: float, size: int) -> None:
        self.fetches.record(seconds)
        self.sizes.update(size)
        self.bytes.mark(size)


class Following(NamedTuple):
    """All that the fetchers of a broker share. ``serves_later`` says which brokers serve the
    requests of later releases. ``effects`` and ``disk_failed`` hear of segments that rolled and of
    disk errors. ``quota``: the rate of copying to replicas that are throttled."""

    config: BrokerConfig
    runtime: Runtime
    connectors: Connectors
    serves_later: ServesLater
    log_manager: LogManager
    effects: Effects
    disk_failed: DiskFailed
    quota: ReplicationQuota


class ReplicaFetcher(Loop):
    """Copies the partitions given to it from one leader. Partitions in full directories are
    skipped."""

    def __init__(
        self, name: str, leader: Broker, channel: BrokerConnection, shared: Following
    ) -> None:
        super().__init__(shared.runtime, name, self.step)
        self.leader = leader
        self._channel = channel
        self._config, self._clock = shared.config, shared.runtime.clock
        self._serves_later, self._quota = shared.serves_later, shared.quota
        self._log_manager, self._effects = shared.log_manager, shared.effects
        self._disk_failed = shared.disk_failed
        self.stats = FetcherStats()
        self._positions: dict[TopicPartition, _Position] = {}
        self._cut: list[Log] = []  # in this step
        self._changed = shared.runtime.event()

    def __len__(self) -> int:
        return len(self._positions)

    @property
    def lags(self) -> dict[TopicPartition, int]:
        """Messages that each partition is behind the leader's high watermark, as last heard."""
        return {key: each.lag for key, each in self._positions.items()}

    def add(self, partition: Partition) -> None:
        self._positions[partition.topic_partition] = _Position(partition)
        self._changed.set()

    def remove(self, keys: Iterable[TopicPartition]) -> None:
        """Forget partitions: answers under way for them are dropped."""
        for key in keys:
            self._positions.pop(key, None)

    def stop(self, timeout: float | None = None) -> bool:
        self._positions.clear()
        self.stopping.set()
        self._changed.set()
        self._channel.close()  # ends a wait for a leader that may never answer
        ended = super().stop(timeout)
        self._channel.close()
        return ended

    def step(self) -> None:
        """One fetch for every partition that is not set aside."""
        self.remove([key for key, each in self._positions.items() if each.partition.log is None])
        now, full = self._clock.monotonic(), self._log_manager.full_dirs
        asked = {
            key: each
            for key, each in self._positions.items()
            if each.retry_at <= now and not each.is_on(full)
        }
        if self._quota.is_on and self._quota.is_used_up():
            asked = {key: each for key, each in asked.items() if not self._holds(key, each)}
        if not asked:
            self._changed.clear()
            self._changed.wait(_BACKOFF_SECONDS if self._positions else None)
            return
        for each in asked.values():
            if each.verifying:
                self._read_in(each)
        version = _WITH_EPOCH if self._serves_later(self.leader.id) else 0
        began = self._clock.monotonic()
        try:
            response = self._channel.call(self._request(asked), version)
        except (OSError, KafkaError) as error:
            if not self.stopping.is_set():
                logger.warning("Error in fetch from broker %s: %s", self.leader, error)
                self.stopping.wait(_BACKOFF_SECONDS)
            return
        answers = [(topic.topic, each) for topic in response.topics for each in topic.partitions]
        size = sum([len(each.message_set) for _, each in answers])
        self.stats.fetched(self._clock.monotonic() - began, size)
        if self._quota.is_on:
            self._quota.count(self._throttled_bytes(asked, answers))
        shortened: list[Log] = []
        for name, answer in in_turns(self._runtime, answers):
            key = TopicPartition(name, answer.partition)
            position = asked.get(key)
            if position is not None and self._is_current(key, position):
                self._process_partition_data(key, position, answer)
                if version and self._is_current(key, position):
                    shortened += position.partition.follow_start(answer.log_start_offset)
        if self._cut:  # before anything is appended behind a cut
            cut, self._cut = self._cut, []
            self._disk_failed(self._runtime.blocking(self._log_manager.flush_all, cut))
        if shortened:  # before the leader hears of it
            store = self._log_manager.store_deletions
            self._disk_failed(self._runtime.blocking(store, shortened))

    def _holds(self, key: TopicPartition, position: _Position) -> bool:
        """Whether a partition waits for the rate of copying: it is behind, or its end is not
        known to be the leader's."""
        return (position.lag > 0 or position.verifying) and self._is_throttled(key, position)

    def _is_throttled(self, key: TopicPartition, position: _Position) -> bool:
        log, broker_id = position.partition.log, self._config.broker_id
        return log is not None and log.config.throttles_follower(key.partition, broker_id)

    def _throttled_bytes(
        self,
        asked: dict[TopicPartition, _Position],
        answers: list[tuple[str, FetchPartitionResponse]],
    ) -> int:
        size = 0
        for name, answer in answers:
            key = TopicPartition(name, answer.partition)
            if key in asked and self._is_throttled(key, asked[key]):
                size += len(answer.message_set)
        return size

    def _is_current(self, key: TopicPartition, position: _Position) -> bool:
        """False if the partition was removed, or removed and added again, or its data directory
        has failed, while an answer was on its way."""
        return self._positions.get(key) is position and position.partition.log is not None

    def _read_in(self, position: _Position) -> None:
        """Have another thread read the bytes that will be compared with the answer."""
        log = position.partition.log
        if log is None:
            return
        if position.offset < log.log_start_offset:  # retention has deleted some of them
            position.move_to(log.log_start_offset)
        with contextlib.suppress(OSError):  # the read that follows reports the error
            size = self._config.replica_fetch_max_bytes
            cold_reads.read_in(self._runtime, log, position.offset, size)

    def _request(self, asked: dict[TopicPartition, _Position]) -> FetchRequest:
        topics: dict[str, list[FetchPartition]] = {}
        size = self._config.replica_fetch_max_bytes
        for key, position in asked.items():
            log = position.partition.log
            first = UNKNOWN_OFFSET if log is None else log.first_offset
            epoch = position.partition.leader_epoch
            partition = FetchPartition(key.partition, position.offset, size, epoch, first)
            topics.setdefault(key.topic, []).append(partition)
        return FetchRequest(
            self._config.broker_id,
            self._config.replica_fetch_wait_max_ms,
            self._config.replica_fetch_min_bytes,
            [FetchTopic(*item) for item in topics.items()],
        )

    def _process_partition_data(
        self, key: TopicPartition, position: _Position, answer: FetchPartitionResponse
    ) -> None:
        """Use one partition's answer; a failure concerns that partition alone."""
        try:
            if answer.error == OffsetOutOfRangeError.code:
                self._handle_offset_out_of_range(key, position)
            elif answer.error:  # when it leads again, what it did not commit may have changed
                position.move_to(position.partition.high_watermark)
                raise for_code(answer.error)
            else:
                data = memoryview(answer.message_set)  # type: ignore[arg-type]
                if position.verifying:
                    self._verify(position, data)
                elif len(data):
                    self._append(position, data)
                position.lag = max(answer.high_watermark - position.offset, 0)
                known = position.common if position.verifying else position.offset
                position.partition.follow_hw(min(answer.high_watermark, known))
        except Exception as error:
            position.retry_at = self._clock.monotonic() + self._pause_after(error)
            log = position.partition.log
            if isinstance(error, OSError) and log is not None:
                self._disk_failed([DiskFailure(log.data_dir, error)])
            elif isinstance(error, (KafkaError, OSError)):
                logger.warning("Partition %s is set aside for a while: %s", key, error)
            else:
                logger.exception("Partition %s is set aside for a while", key)

    def _pause_after(self, error: Exception) -> float:
        """Seconds. A replica that cannot write must leave the isr, or producers with acks -1
        wait for it; the leader keeps it while it fetches, and looks once per lag time."""
        # Partitions on full disks are skipped anyway.
        if isinstance(error, OSError) and not is_full(error):
            return _LAGS_WITHOUT_ROOM * self._config.replica_lag_time_max_ms / 1000
        return _BACKOFF_SECONDS

    def _append(self, position: _Position, data: memoryview) -> None:
        log = position.partition.any_log()
        if position.offset != log.log_end_offset:
            raise KafkaError(
                f"Offset mismatch: fetched offset = {position.offset}, "
                f"log end offset = {log.log_end_offset}."
            )
        appended = log.append(data, assign_offsets=False)
        if appended.rolled:
            self._effects.rolled(log)
        if not appended.count:
            raise KafkaError(_NOT_WHOLE.format(len(data)))
        position.offset = log.log_end_offset

    def _verify(self, position: _Position, data: memoryview) -> None:
        """Compare the local tail with the leader's bytes, and cut it at the first difference.
        Without bytes ``position.offset`` is the leader's log end."""
        log = position.partition.any_log()
        # One of our entries may be longer than all that the leader has.
        size = max(len(data), self._config.replica_fetch_max_bytes)
        local = log.read(position.offset, size).read()
        end, compacted = log.log_end_offset, log.config.compact
        agreement = compare(local, data, position.offset, position.common, compacted=compacted)
        parted = agreement.cut_at(end, is_over=not (len(data) and local))
        if parted is not None:
            logger.info("Truncating %s to %d, where it parts from the leader", log.name, parted)
            self._truncate(position, parted)
            return
        if agreement.verified == position.offset:
            raise KafkaError(_NOT_WHOLE.format(len(data)))
        position.common, position.offset = agreement.common, min(agreement.verified, end)
        position.verifying = position.offset < end

    def _truncate(self, position: _Position, offset: int) -> None:
        log = position.partition.any_log()
        try:
            log.truncate_to(offset)
        finally:  # on a full disk it is cut all the same
            if log.log_end_offset <= offset:
                self._go_on_behind_the_cut(position)

    def _go_on_behind_the_cut(self, position: _Position) -> None:
        """Also lower the high watermark: this replica may become leader. And write the recovery
        point: recovery after a crash must check what is appended there later. The cut is synced
        before that. A power cut could bring the old end back otherwise, when the high watermark has
        passed it, and nobody would compare it with the leader's."""
        log = position.partition.any_log()
        position.move_to(log.log_end_offset)
        self._cut.append(log)
        position.partition.follow_hw(position.partition.high_watermark)
        self._disk_failed(self._log_manager.checkpoint_recovery_points())

    def _handle_offset_out_of_range(self, key: TopicPartition, position: _Position) -> None:
        """Act on code 1 from the leader (ReplicaFetcherThread.handleOffsetOutOfRange)."""
        partition = position.partition
        log = partition.any_log()
        latest = self._leader_offset(key, LATEST_TIME)
        if not self._is_current(key, position):
            return  # this broker may have become its leader
        is_ahead = latest < position.offset
        # Retention may have removed all that was committed here, and more than that.
        is_void = partition.high_watermark <= latest or log.log_start_offset == log.log_end_offset
        if is_ahead and not is_void:
            if not log.config.unclean_leader_election_enable:
                self._positions.pop(key, None)
                logger.critical(
                    "%s ends at %d, its leader %d at %d, and unclean election is off: "
                    "this replica stays out until the leader changes",
                    key, log.log_end_offset, self.leader.id, latest,
                )  # fmt: skip
                return
            logger.warning("Replica of %s truncates to its leader's end %d", key, latest)
            self._truncate(position, latest)
            return
        earliest = self._leader_offset(key, EARLIEST_TIME)
        if not self._is_current(key, position):
            return
        if log.log_end_offset < earliest or is_ahead:
            logger.warning("Replica of %s starts over at its leader's start %d", key, earliest)
            try:
                log.truncate_fully_and_start_at(earliest)
            finally:  # on a full disk the log is empty, and begins where it did
                self._go_on_behind_the_cut(position)
            return
        position.move_to(max(position.offset, earliest))

    def _leader_offset(self, key: TopicPartition, time: int) -> int:
        request = OffsetsRequest(
            self._config.broker_id,
            [OffsetsTopic(key.topic, [OffsetsPartition(key.partition, time, 1)])],
        )
        try:
            answer = self._channel.call(request).topics[0].partitions[0]
        except OSError as error:
            raise KafkaError(f"no answer from the leader: {error}") from error
        if answer.error:
            raise for_code(answer.error)
        offset: int = answer.offsets[0]
        return offset


class ReplicaFetcherManager:
    """The fetchers by (leader, number); kafka.server.ReplicaFetcherManager."""

    def __init__(self, shared: Following) -> None:
        self._shared = shared
        self._fetchers: dict[tuple[Broker, int], ReplicaFetcher] = {}
        self._leaving = False

    @property
    def fetchers(self) -> list[ReplicaFetcher]:
        return list(self._fetchers.values())

    def add_fetcher_for_partition(self, partition: Partition, leader: Broker) -> None:
        """Copy ``partition`` from ``leader`` from now on."""
        if self._leaving:
            return
        lanes = self._shared.config.num_replica_fetchers
        lane = fetcher_number(partition.topic_partition, lanes)
        fetcher = self._fetchers.get((leader, lane))
        if fetcher is None:
            fetcher = self._fetchers[(leader, lane)] = self._fetcher(leader, lane)
            fetcher.add(partition)
            fetcher.start()
        else:
            fetcher.add(partition)

    def _fetcher(self, leader: Broker, lane: int) -> ReplicaFetcher:
        name, config = f"ReplicaFetcherThread-{lane}-{leader.id}", self._shared.config
        channel = Channel(
            leader.host,
            leader.port,
            client_id=name,
            timeout_ms=config.replica_socket_timeout_ms,
            runtime=self._shared.connectors(leader.id),
            receive_buffer_bytes=config.replica_socket_receive_buffer_bytes,
        )
        return ReplicaFetcher(name, leader, channel, self._shared)

    def remove_fetcher_for_partitions(self, keys: Iterable[TopicPartition]) -> None:
        """Stop copying these partitions, from all leaders."""
        for fetcher in self._fetchers.values():
            fetcher.remove(keys)

    def shutdown_idle_fetchers(self) -> None:
        """End fetchers that have nothing left to copy."""
        for key, fetcher in list(self._fetchers.items()):
            # Looked at one by one: stopping waits, and meanwhile another may get work.
            if not len(fetcher) and self._fetchers.get(key) is fetcher:
                del self._fetchers[key]
                fetcher.stop()

    def leave(self) -> None:
        """Start no more fetchers. A broker that stops must not follow the partitions it led: it
        would enter their isrs again, and writes would wait for it after it has stopped."""
        self._leaving = True

    def stop(self) -> None:
        """End every fetcher; no new ones are started."""
        self._leaving = True
        fetchers, self._fetchers = self._fetchers, {}
        for fetcher in fetchers.values():
            fetcher.stop()
