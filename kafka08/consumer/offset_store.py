"""Stores a member's positions: chooses the store or both, and the number of tries.

Follows kafka.consumer.ZookeeperConsumerConnector.commitOffsets and fetchOffsets. It knows stores
and settings, but not how positions are determined.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from kafka08.client.offsets import CoordinatorOffsets, ZooKeeperOffsets
from kafka08.common import Broker, TopicPartition
from kafka08.consumer.config import KAFKA, ConsumerConfig
from kafka08.errors import NO_ERROR, KafkaError, OffsetMetadataTooLargeError
from kafka08.metrics.meters import Meter
from kafka08.network.channel import Channel, Connect
from kafka08.runtime import Event, Runtime
from zk.client import ZkClient

logger = logging.getLogger("kafka.consumer.ZookeeperConsumerConnector")


def coordinator_offsets(
    config: ConsumerConfig,
    brokers: Callable[[], Sequence[Broker]],
    *,
    runtime: Runtime,
    group: str | None = None,
    stopping: Event | None = None,
    channel: Connect = Channel,
) -> CoordinatorOffsets:
    """The coordinator's store, with the settings of a consumer; ``group`` replaces its own."""
    return CoordinatorOffsets(
        group or config.group_id,
        brokers,
        client_id=config.client_id,
        backoff_ms=config.offsets_channel_backoff_ms,
        socket_timeout_ms=config.offsets_channel_socket_timeout_ms,
        stopping=stopping,
        runtime=runtime,
        channel=channel,
    )


class OffsetStore:
    """The group's offsets in the stores that the settings choose. Safe for concurrent use.

    ``brokers`` returns the live brokers. Waits for the coordinator end when ``stopping`` is set.
    The meters count offsets sent to Kafka, and to ZooKeeper.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        zk: ZkClient,
        brokers: Callable[[], Sequence[Broker]],
        *,
        runtime: Runtime,
        stopping: Event | None = None,
        channel: Connect = Channel,
        meters: tuple[Meter, Meter] | None = None,
    ) -> None:
        self._kafka_meter, self._zookeeper_meter = meters or (Meter(), Meter())
        self._in_kafka = config.offsets_storage == KAFKA
        self._dual = config.dual_commit_enabled
        self._backoff = config.offsets_channel_backoff_ms / 1000
        self._zookeeper = ZooKeeperOffsets(zk, config.group_id)
        self._coordinator = coordinator_offsets(
            config, brokers, stopping=stopping, runtime=runtime, channel=channel
        )
        self._runtime = runtime
        self._lock = runtime.lock()

    def connect(self) -> None:
        """Wait for the coordinator, if it stores the offsets."""
        if self._in_kafka:
            self._coordinator.connect()

    def commit(self, offsets: Mapping[TopicPartition, int], tries: int = 1) -> bool:
        """Store next offsets; unknown (negative) ones are left out.

        Returns whether Kafka stored them within ``tries``. ZooKeeper's errors are raised.
        """
        known = {tp: offset for tp, offset in offsets.items() if offset >= 0}
        if not known:
            return True
        if not self._in_kafka:
            with self._lock:
                self._zookeeper_meter.mark(self._zookeeper.commit(known))
            return True
        while not self._commit_to_kafka(known):
            tries -= 1
            if tries <= 0:
                return False
            self._runtime.sleep(self._backoff)
        return True

    def _commit_to_kafka(self, offsets: Mapping[TopicPartition, int]) -> bool:
        with self._lock:
            try:
                codes = self._coordinator.commit(offsets)
                self._kafka_meter.mark(len(offsets))
            except (OSError, KafkaError) as error:
                logger.error("Error while committing offsets: %s", error)
                return False
            if self._dual:
                stored = {tp: o for tp, o in offsets.items() if codes.get(tp) == NO_ERROR}
                self._zookeeper_meter.mark(self._zookeeper.commit(stored))
        final = (NO_ERROR, OffsetMetadataTooLargeError.code)
        failed = {tp: code for tp, code in codes.items() if code not in final}
        if failed:
            logger.debug("Offset commit failed: %s", failed)
        return not failed

    def fetch(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int] | None:
        """Next offsets, -1 where none is stored; None if the connector was stopped."""
        wanted = list(partitions)
        if not wanted:
            return {}
        with self._lock:
            if not self._in_kafka:
                found: dict[TopicPartition, int] | None = self._zookeeper.fetch(wanted)
            else:
                found = self._fetch_from_kafka(wanted)
            if found is not None:
                self._zookeeper.adopt(found)
        return found

    def _fetch_from_kafka(self, wanted: list[TopicPartition]) -> dict[TopicPartition, int] | None:
        found = self._coordinator.fetch(wanted)
        if found is None:
            return None
        offsets = {tp: found.get(tp, -1) for tp in wanted}
        if self._dual:
            in_zookeeper = self._zookeeper.fetch(wanted)
            offsets = {tp: max(offset, in_zookeeper[tp]) for tp, offset in offsets.items()}
        return offsets

    def close(self) -> None:
        self._coordinator.disconnect()
