"""Committed offsets kept in ``__consumer_offsets`` (kafka.server.OffsetManager).

This broker answers for the groups whose partition of that topic it leads: a cache in memory,
filled from the log when leadership begins, changed only after a commit's append has its acks.
Keys and values are of version 0 (docs/protocol.md); a null value deletes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

from kafka08.cluster.partition import Partition
from kafka08.common import OFFSETS_TOPIC, TopicPartition, offsets_partition_for
from kafka08.config import BrokerConfig
from kafka08.errors import (
    NO_ERROR,
    KafkaError,
    NotCoordinatorForConsumerError,
    OffsetsLoadInProgressError,
    ProtocolError,
    code_of,
)
from kafka08.log.disk import is_shortage
from kafka08.message.sets import encode_set, iter_messages
from kafka08.protocol.codec import decode, encode
from kafka08.protocol.schemas import OffsetKey, OffsetValue
from kafka08.runtime import Runtime, Task
from kafka08.server.acks import await_acks
from kafka08.server.replica_manager import ReplicaManager

logger = logging.getLogger("kafka.server.OffsetManager")

_VERSION = 0
# Small enough that decoding one piece does not hold up other requests.
_LOAD_BYTES = 64 * 1024
_LOAD_RETRY_SECONDS = 1.0
_MAX_INFLATED = 64 << 20


class GroupPartition(NamedTuple):
    """The key of a commit (kafka.server.GroupTopicPartition)."""

    group: str
    topic: str
    partition: int


class Committed(NamedTuple):
    """A committed position: next offset to read, metadata, ms since the epoch."""

    offset: int
    metadata: str
    timestamp: int


class _Cached(NamedTuple):
    committed: Committed
    log_offset: int


def encode_key(key: GroupPartition) -> bytes:
    """The stored key of a commit."""
    return encode(OffsetKey(_VERSION, *key))


def encode_value(value: Committed) -> bytes:
    """The stored value of a commit."""
    return encode(OffsetValue(_VERSION, *value))


def decode_key(data: bytes) -> GroupPartition:
    """Raises ProtocolError for anything but version 0."""
    key, _ = decode(OffsetKey, memoryview(data))
    _check_version(key.version)
    return GroupPartition(key.group, key.topic, key.partition)


def decode_value(data: bytes) -> Committed:
    """Raises ProtocolError for anything but version 0."""
    value, _ = decode(OffsetValue, memoryview(data))
    _check_version(value.version)
    return Committed(value.offset, value.metadata, value.timestamp)


def _check_version(version: int) -> None:
    if version != _VERSION:
        raise ProtocolError(f"offset record of version {version}")


class OffsetManager:
    """The groups this broker coordinates."""

    def __init__(self, config: BrokerConfig, runtime: Runtime, replicas: ReplicaManager) -> None:
        self._config = config
        self._runtime = runtime
        self._replicas = replicas
        # By number of the offsets partition, so that one can be forgotten as a whole.
        self._cache: dict[int, dict[GroupPartition, _Cached]] = {}
        # Partitions being loaded, each with the leader epoch the load belongs to.
        self._loading: dict[int, int] = {}
        self._loads: dict[tuple[int, int], Task] = {}  # by partition and leader epoch
        self._stopping = runtime.event()

    def partition_for(self, group: str) -> TopicPartition:
        count = self._config.offsets_topic_num_partitions
        return TopicPartition(OFFSETS_TOPIC, offsets_partition_for(group, count))

    # Requests

    def check_coordinator(self, group: str) -> int:
        """0 when this broker can answer for ``group``, else 16 or 14."""
        key = self.partition_for(group)
        partition = self._replicas.partitions.get(key)
        if partition is None or not partition.is_leader:
            return NotCoordinatorForConsumerError.code
        if key.partition in self._loading:
            return OffsetsLoadInProgressError.code
        return NO_ERROR

    def fetch(self, key: GroupPartition) -> Committed | None:
        cached = self._cached(key.group).get(key)
        return None if cached is None else cached.committed

    def _cached(self, group: str) -> dict[GroupPartition, _Cached]:
        return self._cache.setdefault(self.partition_for(group).partition, {})

    def commit(self, group: str, entries: Mapping[GroupPartition, Committed]) -> int:
        """Append the commits, wait for their acks, then remember them; the wire code."""
        key = self.partition_for(group)
        acks = self._config.offsets_commit_required_acks
        try:
            base = self._append(
                key, [(encode_key(entry), encode_value(entries[entry])) for entry in entries], acks
            )
        except KafkaError as error:
            return error.code
        except Exception as error:
            logger.exception("Could not append the offsets of group %s", group)
            return code_of(error)
        required = {key: base + len(entries)}
        code = NO_ERROR
        if acks not in (0, 1):
            timeout_ms = self._config.offsets_commit_timeout_ms
            code = await_acks(self._replicas, required, acks, timeout_ms)[key]
        if code == NO_ERROR:
            for index, entry in enumerate(entries):
                self._remember(entry, entries[entry], base + index)
        return code

    def _append(
        self, key: TopicPartition, records: list[tuple[bytes, bytes | None]], acks: int
    ) -> int:
        """Append to the offsets topic; returns the first offset."""
        log = self._replicas.partition(key).leader_log()
        codec = self._config.offsets_topic_compression_codec
        data = encode_set(records, codec, log.log_end_offset)
        return self._replicas.append_messages(key, memoryview(bytearray(data)), acks).first_offset

    def _remember(self, key: GroupPartition, value: Committed, log_offset: int) -> None:
        cache = self._cached(key.group)
        cached = cache.get(key)
        if cached is None or cached.log_offset < log_offset:
            cache[key] = _Cached(value, log_offset)

    # Leadership

    def leadership_changed(self, partition: Partition, leads: bool) -> None:
        """Leadership came or went: load a partition of the offsets topic, or forget its groups."""
        if partition.topic_partition.topic != OFFSETS_TOPIC:
            return
        number = partition.topic_partition.partition
        self._cache.pop(number, None)
        if leads:
            epoch = self._loading[number] = partition.leader_epoch
            self._loads[number, epoch] = self._runtime.spawn(
                f"offsets-load-{number}", self._load, partition, epoch
            )
        else:
            self._loading.pop(number, None)

    def _load(self, partition: Partition, epoch: int) -> None:
        number = partition.topic_partition.partition
        try:
            while not self._has_read_log(partition, number, epoch):
                self._stopping.wait(_LOAD_RETRY_SECONDS)
        except Exception:
            logger.exception("Error in loading offsets from %s", partition.topic_partition)
        finally:
            self._loads.pop((number, epoch), None)
            if self._loading.get(number) == epoch:
                del self._loading[number]

    def _has_read_log(self, partition: Partition, number: int, epoch: int) -> bool:
        """False when it has to be done again: half of the offsets are worse than none, since
        consumers without one begin somewhere else."""
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
                self._load_record(message.key, message.value, message.offset)
                offset = message.offset + 1
            if offset == before:
                if len(data) < max_bytes:  # nothing but a gap is left below the high watermark
                    return
                max_bytes *= 2  # an entry larger than the piece

    def _load_record(self, key: bytes | None, value: bytes | None, log_offset: int) -> None:
        try:
            entry = decode_key(key or b"")
            if value is not None:
                self._remember(entry, decode_value(value), log_offset)
                return
        except ProtocolError as error:
            # 0.8.2.2 gives the whole partition up at such a record.
            logger.warning(
                "Skipping record at offset %d of the offsets topic: %s", log_offset, error
            )
            return
        cache = self._cached(entry.group)
        cached = cache.get(entry)
        if cached is not None and cached.log_offset < log_offset:
            del cache[entry]

    # Expiry

    def expire(self) -> None:
        """Drop commits older than the retention and leave a tombstone for each."""
        oldest = self._runtime.clock.millis() - self._config.offsets_retention_minutes * 60_000
        expired = 0
        for number, cache in list(self._cache.items()):
            partition = TopicPartition(OFFSETS_TOPIC, number)
            led = self._replicas.partitions.get(partition)
            if led is None or not led.is_leader:  # its data directory has failed
                del self._cache[number]
                continue
            keys = [key for key, cached in cache.items() if cached.committed.timestamp < oldest]
            if not keys:
                continue
            expired += len(keys)
            for key in keys:
                del cache[key]
            try:
                self._append(partition, [(encode_key(key), None) for key in keys], 1)
            except Exception as error:
                logger.warning("Could not append tombstones to %s: %s", partition, error)
        if expired:
            logger.info("Removed %d expired offsets.", expired)

    def stop(self) -> None:
        """Let loads end."""
        self._stopping.set()
        for task in list(self._loads.values()):
            task.join()
