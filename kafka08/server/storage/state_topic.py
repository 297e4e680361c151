"""Internal topics whose partitions hold the state of some ids, which their leader keeps in memory:
groups in ``__consumer_offsets``, transactions in ``__transaction_state``.

When leadership begins, the partition's log is read to a new ``Loader``, in small pieces and on a
task of its own; requests for its ids are answered with 14 meanwhile. Does not know records.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from kafka08.cluster.partition import Partition
from kafka08.common import TopicPartition, offsets_partition_for
from kafka08.errors import (
    NO_ERROR,
    KafkaError,
    NotCoordinatorForConsumerError,
    OffsetsLoadInProgressError,
)
from kafka08.log.disk import is_shortage
from kafka08.log.log import Log
from kafka08.runtime import Runtime, Tasks
from kafka08.server.storage.replica_manager import ReplicaManager

logger = logging.getLogger("kafka.server.OffsetManager")

# Small enough that decoding one piece does not hold up other requests.
_LOAD_BYTES = 64 * 1024
_LOAD_RETRY_SECONDS = 1.0


class Loader(Protocol):
    """Takes the content of one partition."""

    def take(self, data: bytes) -> int | None:
        """Whole entries, and perhaps a part of one more. Returns the offset after the last one;
        None if no entry is whole."""

    def finish(self) -> None:
        """All of it was taken: the leader answers for it from now on."""


class StateTopic:
    """The topic ``name`` with ``count`` partitions. ``loader`` makes the one for a partition and a
    log, whose leadership has begun; ``forget`` is called with the number of a partition whose
    leadership begins or ends."""

    def __init__(
        self,
        runtime: Runtime,
        replicas: ReplicaManager,
        name: str,
        count: int,
        loader: Callable[[Partition, Log], Loader],
        forget: Callable[[int], None],
    ) -> None:
        self.name = name
        self._count = count
        self._runtime = runtime
        self._replicas = replicas
        self._loader = loader
        self._forget = forget
        # Partitions being loaded, each with the leader epoch the load belongs to.
        self.loading: dict[int, int] = {}
        self._loads = Tasks(runtime)
        self._stopping = runtime.event()

    def partition_for(self, id_: str) -> TopicPartition:
        return TopicPartition(self.name, offsets_partition_for(id_, self._count))

    def check(self, id_: str) -> int:
        """0 if this broker answers for the id, else 16 or 14."""
        key = self.partition_for(id_)
        if self.led(key.partition) is None:
            return NotCoordinatorForConsumerError.code
        if key.partition in self.loading:
            return OffsetsLoadInProgressError.code
        return NO_ERROR

    def led(self, number: int) -> Partition | None:
        """The partition of that number, if it is led here."""
        partition = self._replicas.partitions.get(TopicPartition(self.name, number))
        return partition if partition is not None and partition.is_leader else None

    def leadership_changed(self, partition: Partition, leads: bool) -> None:
        """Load a partition of the topic whose leadership began, or forget it."""
        if partition.topic_partition.topic != self.name:
            return
        number = partition.topic_partition.partition
        self._forget(number)
        if leads:
            epoch = self.loading[number] = partition.leader_epoch
            name = f"{self.name.strip('_')}-load-{number}"
            self._loads.begin(name, self._load, partition, epoch)
        else:
            self.loading.pop(number, None)

    def _load(self, partition: Partition, epoch: int) -> None:
        number, key = partition.topic_partition.partition, partition.topic_partition
        try:
            while not self._has_read_log(partition, number, epoch):
                self._stopping.wait(_LOAD_RETRY_SECONDS)
        except KafkaError as error:
            logger.error("Error in loading %s: %s", key, error)
        except Exception:
            logger.exception("Error in loading %s", key)
        finally:
            if self.loading.get(number) == epoch:
                del self.loading[number]

    def _has_read_log(self, partition: Partition, number: int, epoch: int) -> bool:
        """Load a partition; False if that must be repeated. A part of its state is not used: a
        consumer without its offset would begin somewhere else."""
        try:
            if self.loading.get(number) == epoch:
                self._read_log(partition, number, epoch)
        except KafkaError as error:
            if not is_shortage(error.__cause__):
                raise
            logger.warning("Loading %s failed: %s", partition.topic_partition, error)
            return False
        return True

    def _read_log(self, partition: Partition, number: int, epoch: int) -> None:
        log = partition.leader_log()
        loader = self._loader(partition, log)
        offset, max_bytes = log.log_start_offset, _LOAD_BYTES
        # A new leader's high watermark lags behind what the old one has acknowledged; all that
        # this leadership began with will be committed or the leadership is over.
        end = max(partition.high_watermark, partition.leadership_start)
        while offset < end and not self._stopping.is_set():
            self._replicas.read_in(partition, log, offset, max_bytes)
            self._runtime.sleep(0)
            if self.loading.get(number) != epoch or not partition.is_leader:
                return
            try:
                data = log.read(offset, max_bytes, end).read()
            except OSError as error:
                raise self._replicas.disk_error(partition, error) from error
            following = loader.take(data)
            if following is not None:
                offset = following
            elif len(data) < max_bytes:  # only a gap is left below the high watermark
                break
            else:
                max_bytes *= 2  # an entry larger than the piece
        if not self._stopping.is_set():
            loader.finish()

    def stop(self) -> None:
        """Stop loading."""
        self._stopping.set()
        self._loads.join()
