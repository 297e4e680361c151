"""Committed offsets and groups kept in ``__consumer_offsets`` (kafka.server.OffsetManager).

This broker answers for the groups whose partition of that topic it leads: a cache in memory,
filled from the log when leadership begins, changed only after a commit's append has its acks.
The groups themselves are those of ``coordinator``; here they are loaded and stored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from kafka08.cluster.partition import Partition
from kafka08.common import OFFSETS_TOPIC, TopicPartition, offsets_partition_for
from kafka08.errors import (
    NO_ERROR,
    KafkaError,
    MessageSetSizeTooLargeError,
    MessageSizeTooLargeError,
    NotCoordinatorForConsumerError,
    OffsetsLoadInProgressError,
    ProtocolError,
    code_of,
)
from kafka08.groups.records import (
    Committed,
    GroupPartition,
    GroupRecord,
    decode_group,
    decode_key,
    decode_value,
    encode_group,
    encode_group_key,
    encode_key,
    encode_value,
    is_offset_key,
    is_original,
)
from kafka08.log.disk import is_shortage
from kafka08.log.log import Log
from kafka08.log.numbering import LogAppendInfo
from kafka08.message.entry import Message, TimedMessage
from kafka08.message.sets import encode_set, iter_messages
from kafka08.runtime import Runtime, TaskHandle
from kafka08.server.groups.coordinator import GroupCoordinator
from kafka08.server.groups.group import Group
from kafka08.server.replication.acks import await_acks
from kafka08.server.storage.replica_manager import ReplicaManager
from kafka08.settings.broker import BrokerConfig

logger = logging.getLogger("kafka.server.OffsetManager")

# Small enough that decoding one piece does not hold up other requests.
_LOAD_BYTES = 64 * 1024
_LOAD_RETRY_SECONDS = 1.0
_MAX_INFLATED = 64 << 20
_NEWEST = 1 << 63  # above every offset of a log
_TOMBSTONES = 1000  # in one append, so that it stays below the largest message set
# A group that is too large for a record is not stored: its members join again if the coordinator
# changes.
_TOO_LARGE = (MessageSizeTooLargeError.code, MessageSetSizeTooLargeError.code)


class _Cached(NamedTuple):
    committed: Committed
    log_offset: int


_Record = tuple[bytes, bytes | None]


class OffsetManager:
    """The groups this broker coordinates."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        replicas: ReplicaManager,
        groups: GroupCoordinator,
    ) -> None:
        # Whether groups are stored: brokers of 0.8.2.2 stop reading a partition at such a record.
        self.stores_groups = False
        self._config = config
        self._runtime = runtime
        self._replicas = replicas
        self._groups = groups
        # By number of the offsets partition, so that one can be forgotten as a whole; then by
        # group.
        self._cache: dict[int, dict[str, dict[GroupPartition, _Cached]]] = {}
        # Partitions being loaded, each with the leader epoch the load belongs to.
        self._loading: dict[int, int] = {}
        self._loads: dict[tuple[int, int], TaskHandle] = {}  # by partition and leader epoch
        # Partitions deleted while one of the offsets topic is being loaded, by the latter's number.
        self._deleted: dict[int, set[TopicPartition]] = {}
        self._stopping = runtime.event()

    def partition_for(self, group: str) -> TopicPartition:
        count = self._config.offsets_topic_num_partitions
        return TopicPartition(OFFSETS_TOPIC, offsets_partition_for(group, count))

    # Requests

    def check_coordinator(self, group: str) -> int:
        """0 if this broker coordinates ``group`` and has loaded its offsets, else 16 or 14."""
        key = self.partition_for(group)
        partition = self._replicas.partitions.get(key)
        if partition is None or not partition.is_leader:
            return NotCoordinatorForConsumerError.code
        if key.partition in self._loading:
            return OffsetsLoadInProgressError.code
        return NO_ERROR

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    @property
    def num_offsets(self) -> int:
        return sum(len(found) for groups in self._cache.values() for found in groups.values())

    def fetch(self, key: GroupPartition) -> Committed | None:
        cached = self._cached(key.group).get(key)
        return None if cached is None else cached.committed

    def offsets_of(self, group: str) -> list[GroupPartition]:
        """The partitions for which the group has an offset."""
        return list(self._cached(group))

    def groups_with_offsets(self) -> set[str]:
        return {
            group for groups in self._cache.values() for group, found in groups.items() if found
        }

    def _cached(self, group: str) -> Mapping[GroupPartition, _Cached]:
        return self._cache.get(self.partition_for(group).partition, {}).get(group, {})

    def commit(self, group: str, entries: Mapping[GroupPartition, Committed]) -> int:
        """Append the commits, wait for their acks, then remember them; the wire code."""
        records = [(encode_key(entry), encode_value(entries[entry])) for entry in entries]
        code, base = self._store(group, records)
        if code == NO_ERROR:
            for index, entry in enumerate(entries):
                self._remember(entry, entries[entry], base + index)
        return code

    def forget(self, group: str, keys: Iterable[GroupPartition]) -> int:
        """Delete offsets for good; the wire code."""
        known = self._cached(group)
        gone = [key for key in keys if key in known]
        if not gone:
            return NO_ERROR
        code, base = self._store(group, [(encode_key(key), None) for key in gone])
        if code == NO_ERROR:
            for index, key in enumerate(gone):
                self._drop(key, base + index)
        return code

    def store_group(self, group: str, record: GroupRecord) -> int:
        """Append a group's record and wait for its acks; the wire code."""
        if not self._may_store_groups(self.partition_for(group)):
            return NO_ERROR
        code, _ = self._store(group, [(encode_group_key(group), encode_group(record))])
        if code in _TOO_LARGE:
            logger.warning("Group %s is too large to be stored", group)
            return NO_ERROR
        return code

    def store_groups_if(self, all_can_read: bool) -> None:
        """Switch the storing of groups on or off."""
        if all_can_read != self.stores_groups:
            logger.info("Groups are %s", "stored" if all_can_read else "not stored any more")
        self.stores_groups = all_can_read

    def save_groups(self) -> None:
        """Append the records that groups have left to be stored; does not wait for acks."""
        for group, (number, record) in self._groups.take_unsaved().items():
            key = TopicPartition(OFFSETS_TOPIC, number)
            if self._may_store_groups(key):
                value = None if record is None else encode_group(record)
                self._append_late(key, [(encode_group_key(group), value)])

    def _may_store_groups(self, key: TopicPartition) -> bool:
        """Whether no broker of 0.8.2.2 is registered or has a replica."""
        partition = self._replicas.partitions.get(key)
        if not self.stores_groups or partition is None or partition.log is None:
            return False
        return partition.log.rules.max_format > 0

    def _store(self, group: str, records: Sequence[_Record]) -> tuple[int, int]:
        """Append to the group's partition and wait for acks; (wire code, first offset)."""
        key = self.partition_for(group)
        acks = self._config.offsets_commit_required_acks
        try:
            appended = self._append(key, records, acks)
        except KafkaError as error:
            return error.code, -1
        except Exception as error:
            logger.exception("Could not append the records of group %s", group)
            return code_of(error), -1
        meters = self._replicas.counts.topics.of(OFFSETS_TOPIC)
        meters.messages_in.mark(appended.count)
        meters.bytes_in.mark(appended.valid_bytes)
        base = appended.first_offset
        if acks in (0, 1):
            return NO_ERROR, base
        required = {key: base + len(records)}
        timeout_ms = self._config.offsets_commit_timeout_ms
        return await_acks(self._replicas, required, acks, timeout_ms)[key], base

    def _append_late(self, key: TopicPartition, records: Sequence[_Record]) -> None:
        """Append records for which no request waits; errors are logged."""
        try:
            self._append(key, records, 1)
        except Exception as error:
            logger.warning("Could not append %d records to %s: %s", len(records), key, error)

    def _append(self, key: TopicPartition, records: Sequence[_Record], acks: int) -> LogAppendInfo:
        """Append to the offsets topic."""
        log = self._replicas.partition(key).leader_log()
        codec = self._config.offsets_topic_compression_codec
        data = encode_set(records, codec, log.log_end_offset)
        appended = self._replicas.append_messages(key, memoryview(bytearray(data)), acks)
        if not all(is_offset_key(key) for key, _ in records):
            log.later_formats.end = appended.last_offset + 1
        return appended

    def _remember(self, key: GroupPartition, value: Committed, log_offset: int) -> None:
        number = self.partition_for(key.group).partition
        cache = self._cache.setdefault(number, {}).setdefault(key.group, {})
        cached = cache.get(key)
        if cached is None or cached.log_offset < log_offset:
            cache[key] = _Cached(value, log_offset)

    def _drop(self, key: GroupPartition, log_offset: int) -> None:
        number = self.partition_for(key.group).partition
        groups = self._cache.get(number, {})
        cache = groups.get(key.group, {})
        cached = cache.get(key)
        if cached is not None and cached.log_offset < log_offset:
            del cache[key]
            if not cache:
                del groups[key.group]

    # Leadership

    def leadership_changed(self, partition: Partition, leads: bool) -> None:
        """Load a partition of the offsets topic whose leadership began, or forget its groups."""
        if partition.topic_partition.topic != OFFSETS_TOPIC:
            return
        number = partition.topic_partition.partition
        self._cache.pop(number, None)
        self._groups.unload(number)
        if leads:
            epoch = self._loading[number] = partition.leader_epoch
            self._loads[number, epoch] = self._runtime.spawn(
                f"offsets-load-{number}", self._load, partition, epoch
            )
        else:
            self._loading.pop(number, None)
            self._deleted.pop(number, None)

    def _load(self, partition: Partition, epoch: int) -> None:
        number = partition.topic_partition.partition
        try:
            while not self._has_read_log(partition, number, epoch):
                self._stopping.wait(_LOAD_RETRY_SECONDS)
        except KafkaError as error:
            logger.error("Error in loading offsets from %s: %s", partition.topic_partition, error)
        except Exception:
            logger.exception("Error in loading offsets from %s", partition.topic_partition)
        finally:
            self._loads.pop((number, epoch), None)
            if self._loading.get(number) == epoch:
                del self._loading[number]
                self._drop_deleted(number, self._deleted.pop(number, set()))

    def _has_read_log(self, partition: Partition, number: int, epoch: int) -> bool:
        """Load a partition; False if that must be repeated. Partly loaded offsets are not used: a
        consumer without one would begin somewhere else."""
        try:
            if self._loading.get(number) == epoch:
                self._read_log(partition, number, epoch)
        except KafkaError as error:
            if not is_shortage(error.__cause__):
                raise
            logger.warning("Loading offsets from %s failed: %s", partition.topic_partition, error)
            return False
        return True

    def _read_log(self, partition: Partition, number: int, epoch: int) -> None:
        groups: dict[str, GroupRecord] = {}
        log = partition.leader_log()
        offset, max_bytes = log.log_start_offset, _LOAD_BYTES
        # A new leader's high watermark lags behind what the old one has acknowledged; all that
        # this leadership began with will be committed or the leadership is over.
        end = max(partition.high_watermark, partition.leadership_start)
        while offset < end and not self._stopping.is_set():
            self._replicas.read_in(partition, log, offset, max_bytes)
            self._runtime.sleep(0)
            if self._loading.get(number) != epoch or not partition.is_leader:
                return
            try:
                data = log.read(offset, max_bytes, end).read()
            except OSError as error:
                raise self._replicas.disk_error(partition, error) from error
            before = offset
            for message in iter_messages(data, max_inflated=_MAX_INFLATED):
                self._load_record(log, message, groups)
                offset = message.offset + 1
            if offset == before:
                if len(data) < max_bytes:  # only a gap is left below the high watermark
                    break
                max_bytes *= 2  # an entry larger than the piece
        if not self._stopping.is_set():
            self._groups.load(number, groups)

    def _load_record(
        self, log: Log, message: Message | TimedMessage, groups: dict[str, GroupRecord]
    ) -> None:
        key, value, log_offset = message.key or b"", message.value, message.offset
        if not is_original(key, value):
            log.later_formats.end = max(log_offset + 1, log.later_formats.end)
        try:
            entry = decode_key(key)
            if isinstance(entry, GroupPartition):
                if value is None:
                    self._drop(entry, log_offset)
                else:
                    self._remember(entry, decode_value(value), log_offset)
            elif value is None:
                groups.pop(entry, None)
            else:
                groups[entry] = decode_group(value)
        except ProtocolError as error:
            # 0.8.2.2 stops loading the partition at such a record.
            logger.warning(
                "Skipping record at offset %d of the offsets topic: %s", log_offset, error
            )

    # Deleted topics

    def partitions_deleted(self, deleted: Set[TopicPartition]) -> None:
        """Drop all offsets of these partitions and leave a tombstone for each: as positions in a
        later topic of the same name they would be wrong."""
        if not deleted:
            return
        for number in self._loading:
            self._deleted.setdefault(number, set()).update(deleted)
        for number in list(self._cache):
            if number not in self._loading:
                self._drop_deleted(number, deleted)

    def _drop_deleted(self, number: int, deleted: Set[TopicPartition]) -> None:
        partition = TopicPartition(OFFSETS_TOPIC, number)
        led = self._replicas.partitions.get(partition)
        if led is None or not led.is_leader:
            return
        keys = [
            key
            for cache in self._cache.get(number, {}).values()
            for key in cache
            if TopicPartition(*key[1:]) in deleted
        ]
        if keys:
            self._bury(partition, keys)
            logger.info("Removed %d offsets of deleted partitions.", len(keys))

    def _bury(self, partition: TopicPartition, keys: Sequence[GroupPartition]) -> None:
        """Drop offsets and append their tombstones; ``partition`` is that of the groups."""
        for key in keys:
            self._drop(key, _NEWEST)
        for start in range(0, len(keys), _TOMBSTONES):
            chunk = keys[start : start + _TOMBSTONES]
            self._append_late(partition, [(encode_key(key), None) for key in chunk])

    # Expiry

    def expire(self) -> None:
        """Drop commits older than the retention and leave a tombstone for each.

        A group with members keeps its offsets. The retention of the others begins when the last
        member leaves, at the earliest. Groups that have nothing left are forgotten.
        """
        oldest = self._runtime.clock.millis() - self._config.offsets_retention_minutes * 60_000
        expired = 0
        for number in list(self._cache):
            partition = TopicPartition(OFFSETS_TOPIC, number)
            led = self._replicas.partitions.get(partition)
            if led is None or not led.is_leader:  # its data directory has failed
                del self._cache[number]
                self._groups.unload(number)
                continue
            keys = [
                key
                for group, cache in self._cache[number].items()
                if self._may_expire(self._groups.groups.get(group), oldest)
                for key, cached in cache.items()
                if cached.committed.timestamp < oldest
            ]
            if keys:
                expired += len(keys)
                self._bury(partition, keys)
        if expired:
            logger.info("Removed %d expired offsets.", expired)
        for group in list(self._groups.groups):
            if not self._cached(group):
                self._groups.delete(group)
        self.save_groups()

    @staticmethod
    def _may_expire(group: Group | None, oldest: int) -> bool:
        return group is None or (not group.members and group.since_ms < oldest)

    def stop(self) -> None:
        """Stop loading."""
        self._stopping.set()
        for task in list(self._loads.values()):
            task.join()
