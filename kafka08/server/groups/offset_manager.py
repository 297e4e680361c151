"""Committed offsets and groups kept in ``__consumer_offsets`` (kafka.server.OffsetManager).

This broker answers for the groups whose partition of that topic it leads: a cache in memory,
filled from the log when leadership begins, changed only after a commit's append has its acks. A
commit in a transaction is pending until the transaction's marker has its acks. The groups
themselves are those of ``coordinator``; here they are loaded and stored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence, Set

from kafka08.cluster.partition import Partition
from kafka08.common import OFFSETS_TOPIC, TopicPartition
from kafka08.errors import (
    NO_ERROR,
    KafkaError,
    MessageSetSizeTooLargeError,
    MessageSizeTooLargeError,
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
from kafka08.log import numbering
from kafka08.log.log import Log
from kafka08.log.numbering import LogAppendInfo
from kafka08.message.batch import TRANSACTIONAL
from kafka08.message.entry import Message, TimedMessage
from kafka08.message.markers import ABORT, COMMIT, IN_TRANSACTION, NO_TRANSACTION
from kafka08.message.record_sets import Sender, encode_records
from kafka08.message.scan import iter_entries, producer_batches, walk
from kafka08.message.sets import encode_set, iter_messages
from kafka08.runtime import Runtime
from kafka08.server.groups.coordinator import GroupCoordinator
from kafka08.server.groups.group import Group
from kafka08.server.groups.pending_offsets import EndedTransaction, PendingOffsets, Stored
from kafka08.server.replication.acks import await_acks
from kafka08.server.storage.replica_manager import ReplicaManager
from kafka08.server.storage.state_topic import StateTopic
from kafka08.settings.broker import BrokerConfig

logger = logging.getLogger("kafka.server.OffsetManager")

_MAX_INFLATED = 64 << 20
_NEWEST = 1 << 63  # above every offset of a log
_TOMBSTONES = 1000  # in one append, so that it stays below the largest message set
# A group that is too large for a record is not stored: its members join again if the coordinator
# changes.
_TOO_LARGE = (MessageSizeTooLargeError.code, MessageSetSizeTooLargeError.code)


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
        self._cache: dict[int, dict[str, dict[GroupPartition, Stored]]] = {}
        self._pending = PendingOffsets()
        # Transactions that ended while one of the offsets topic is being loaded, by its number.
        self._ended: dict[int, list[EndedTransaction]] = {}
        # Partitions deleted while one of the offsets topic is being loaded, by the latter's number.
        self._deleted: dict[int, set[TopicPartition]] = {}
        count = config.offsets_topic_num_partitions
        self._topic = StateTopic(
            runtime, replicas, OFFSETS_TOPIC, count, self._loader, self._forget_all
        )
        self.leadership_changed = self._topic.leadership_changed
        self.stop = self._topic.stop
        self.partition_for = self._topic.partition_for
        # 0 if this broker coordinates a group and has loaded its offsets, else 16 or 14.
        self.check_coordinator = self._topic.check

    # Requests

    @property
    def is_loading(self) -> bool:
        return bool(self._topic.loading)

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

    def _cached(self, group: str) -> Mapping[GroupPartition, Stored]:
        return self._cache.get(self.partition_for(group).partition, {}).get(group, {})

    def commit(self, group: str, entries: Mapping[GroupPartition, Committed]) -> int:
        """Append the commits, wait for their acks, then remember them; the wire code."""
        records = [(encode_key(entry), encode_value(entries[entry])) for entry in entries]
        code, base = self._store(group, records)
        if code == NO_ERROR:
            for index, entry in enumerate(entries):
                self._remember(entry, entries[entry], base + index)
        return code

    def commit_in_transaction(
        self, group: str, entries: Mapping[GroupPartition, Committed], producer_id: int, epoch: int
    ) -> int:
        """Append the commits to the producer's transaction, and wait for their acks; the wire
        code. They count when the transaction is committed."""
        key = self.partition_for(group)
        keys, values = [], []
        for entry, committed in entries.items():
            keys.append(encode_key(entry))
            values.append(encode_value(committed))
        times = [self._runtime.clock.millis()] * len(entries)
        sender = Sender(producer_id, epoch, 0, TRANSACTIONAL)
        data = memoryview(bytearray(encode_records(values, keys, times, None, sender=sender)))
        acks = self._config.offsets_commit_required_acks
        try:
            log = self._replicas.partition(key).leader_log()
            numbered = numbering.of_coordinator(data, log.log_end_offset, log.rules, log.config)
            appended = self._replicas.append_messages(key, data, acks, numbered=numbered)
        except Exception as error:
            return self._refused(group, error)
        for at, (entry, committed) in enumerate(entries.items(), appended.first_offset):
            self._pending.add(key.partition, producer_id, entry, Stored(committed, at))
        return self._acknowledged(key, appended, acks)

    def transaction_ended(self, number: int, ended: EndedTransaction) -> None:
        """The marker of a producer's transaction is in a partition of the topic, with its acks."""
        self._end(number, ended)
        if number in self._topic.loading:
            # The load reads to where the log ended when it began: it may still come to the offsets
            # of this transaction, and not to its marker.
            self._ended.setdefault(number, []).append(ended)

    def _end(self, number: int, ended: EndedTransaction) -> None:
        pending = self._pending.take(number, ended.producer_id, ended.marker_offset)
        if ended.is_committed:
            for key, stored in pending.items():
                self._remember(key, *stored)

    def is_unstable(self, key: GroupPartition) -> bool:
        """Whether a transaction is open that is to commit an offset for it."""
        return key in self._pending

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
        except Exception as error:
            return self._refused(group, error), -1
        return self._acknowledged(key, appended, acks), appended.first_offset

    @staticmethod
    def _refused(group: str, error: Exception) -> int:
        if not isinstance(error, KafkaError):
            logger.error("Could not append the records of group %s", group, exc_info=error)
        return code_of(error)

    def _acknowledged(self, key: TopicPartition, appended: LogAppendInfo, acks: int) -> int:
        """Wait for the acks of records; the wire code."""
        meters = self._replicas.counts.topics.of(OFFSETS_TOPIC)
        meters.messages_in.mark(appended.count)
        meters.bytes_in.mark(appended.valid_bytes)
        if acks in (0, 1):
            return NO_ERROR
        required = {key: appended.last_offset + 1}
        timeout_ms = self._config.offsets_commit_timeout_ms
        return await_acks(self._replicas, required, acks, timeout_ms)[key]

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
            cache[key] = Stored(value, log_offset)

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

    def _forget_all(self, number: int) -> None:
        """Of a partition of the topic."""
        self._cache.pop(number, None)
        self._pending.forget(number)
        self._ended.pop(number, None)
        self._deleted.pop(number, None)
        self._groups.unload(number)

    def _loader(self, partition: Partition, log: Log) -> _Loader:
        return _Loader(self, log, partition.topic_partition.partition)

    def take_records(self, loader: _Loader, data: bytes) -> None:
        """Of whole entries without transactions."""
        for message in iter_messages(data, max_inflated=_MAX_INFLATED):
            self._load_record(loader, message)

    def take_transactional(self, loader: _Loader, data: bytes) -> None:
        """The same of entries of which some are."""
        for entry in iter_entries(data):
            found = data[entry.position : entry.stop]
            rows = producer_batches(found, 0, len(found))
            producer_id, part = (rows[0][0], rows[0][6]) if rows else (-1, NO_TRANSACTION)
            if part in (ABORT, COMMIT):
                ended = EndedTransaction(producer_id, part == COMMIT, entry.offset)
                self._end(loader.number, ended)
                continue
            pending_of = producer_id if part == IN_TRANSACTION else None
            for message in iter_messages(found, max_inflated=_MAX_INFLATED):
                self._load_record(loader, message, pending_of)

    def _load_record(
        self, loader: _Loader, message: Message | TimedMessage, pending_of: int | None = None
    ) -> None:
        """``pending_of``: the producer in whose transaction the record is."""
        key, value, log_offset = message.key or b"", message.value, message.offset
        log, groups = loader.log, loader.groups
        if not is_original(key, value):
            log.later_formats.end = max(log_offset + 1, log.later_formats.end)
        try:
            entry = decode_key(key)
            if isinstance(entry, GroupPartition):
                if value is None:
                    self._drop(entry, log_offset)
                elif pending_of is not None:
                    stored = Stored(decode_value(value), log_offset)
                    self._pending.add(loader.number, pending_of, entry, stored)
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

    def loaded(self, number: int, groups: Mapping[str, GroupRecord]) -> None:
        """All of a partition has been taken."""
        for ended in self._ended.pop(number, ()):
            self._end(number, ended)
        self._groups.load(number, groups)
        self._drop_deleted(number, self._deleted.pop(number, set()))

    # Deleted topics

    def partitions_deleted(self, deleted: Set[TopicPartition]) -> None:
        """Drop all offsets of these partitions and leave a tombstone for each: as positions in a
        later topic of the same name they would be wrong."""
        if not deleted:
            return
        loading = self._topic.loading
        for number in loading:
            self._deleted.setdefault(number, set()).update(deleted)
        self._pending.drop(deleted)
        for number in list(self._cache):
            if number not in loading:
                self._drop_deleted(number, deleted)

    def _drop_deleted(self, number: int, deleted: Set[TopicPartition]) -> None:
        partition = TopicPartition(OFFSETS_TOPIC, number)
        if self._topic.led(number) is None:
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
            if self._topic.led(number) is None:  # its data directory has failed
                del self._cache[number]
                self._groups.unload(number)
                continue
            keys = [
                key
                for group, cache in self._cache[number].items()
                if self._may_expire(self._groups.groups.get(group), oldest)
                for key, cached in cache.items()
                if cached.committed.timestamp < oldest and key not in self._pending
            ]
            if keys:
                expired += len(keys)
                self._bury(partition, keys)
        if expired:
            logger.info("Removed %d expired offsets.", expired)
        for group in list(self._groups.groups):
            if not self._cached(group) and not self._pending.of_group(group):
                self._groups.delete(group)
        self.save_groups()

    @staticmethod
    def _may_expire(group: Group | None, oldest: int) -> bool:
        return group is None or (not group.members and group.since_ms < oldest)


class _Loader:
    """Takes the records of one partition of the topic. ``groups``: those found so far."""

    def __init__(self, manager: OffsetManager, log: Log, number: int) -> None:
        self.log = log
        self.number = number
        self.groups: dict[str, GroupRecord] = {}
        self._manager = manager

    def take(self, data: bytes) -> int | None:
        """As ``state_topic.Loader``."""
        walked = walk(data, 0, len(data), wrappers=True)
        found = data[: walked.stop]
        rows = producer_batches(found, 0, len(found))
        if all(part == NO_TRANSACTION for *_, part, _ in rows):
            self._manager.take_records(self, found)
        else:
            self._manager.take_transactional(self, found)
        return walked.last + 1 if walked.count else None

    def finish(self) -> None:
        """As ``state_topic.Loader``."""
        self._manager.loaded(self.number, self.groups)
