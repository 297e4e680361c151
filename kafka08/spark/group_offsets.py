"""Stores a batch's offsets as those of a consumer group, for the tools that show lags.

Runs in the driver. Call ``commit`` after a batch's output has succeeded: what it stores is then
where a restarted job, or another program of the group, has to go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from kafka08.client.cluster import parse_broker_list
from kafka08.client.offsets import CoordinatorOffsets
from kafka08.client.retry import Retry
from kafka08.client.security import ClientSecurity, runtime_for
from kafka08.common import Broker, TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.group import zookeeper_session
from kafka08.consumer.offset_store import OffsetStore
from kafka08.errors import (
    ConfigError,
    ConsumerCoordinatorNotAvailableError,
    NotCoordinatorForConsumerError,
    OffsetsLoadInProgressError,
    raise_for_code,
)
from kafka08.network.channel import Channel, Connect
from kafka08.runtime import Runtime
from kafka08.spark.params import BOOTSTRAP, BROKERS
from kafka08.spark.patience import PATIENCE_S
from kafka08.spark.planner import Offsets
from kafka08.spark.values import OffsetRange, TopicAndPartition, to_range, to_topic_partition
from zk.registry import live_brokers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BACKOFF_S = 1.0
_MOVING = (
    ConsumerCoordinatorNotAvailableError,
    NotCoordinatorForConsumerError,
    OffsetsLoadInProgressError,
)


class KeptOffsets(Protocol):
    """Next offsets of a group; -1 where there is none. Raises OSError and KafkaError."""

    def commit(self, offsets: Offsets) -> None: ...
    def fetch(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]: ...
    def close(self) -> None: ...


class GroupOffsets:
    """The offsets of ``group`` (or of ``group.id``), for a driver. Safe for concurrent use.

    ``properties`` are those of a consumer of the group: with ``zookeeper.connect`` its
    ``offsets.storage`` and ``dual.commit.enabled`` say where offsets are; with
    ``metadata.broker.list`` or ``bootstrap.servers`` alone they are with the brokers. It connects
    when it is used; pickled, it is not connected. Raises ConfigError.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        group: str = "",
        *,
        opened: Callable[[], KeptOffsets] | None = None,
    ) -> None:
        self._properties = {**properties, **({"group.id": group} if group else {})}
        if not self._properties.get("group.id"):
            raise ConfigError("group.id has no value: name the group whose offsets these are")
        self._open = opened or opener(self._properties)
        self._lock = threading.Lock()
        self._store: KeptOffsets | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return GroupOffsets, (self._properties,)

    def commit(self, ranges: Iterable[OffsetRange]) -> None:
        """Store where ``ranges``, such as those of ``rdd.offsetRanges()``, end.

        Raises OSError or KafkaError if they were not stored.
        """
        self.store({each.topic_partition: each.end for each in map(to_range, ranges)})

    def commit_frame(self, frame: DataFrame) -> None:
        """The same for the rows of a ``foreachBatch``: the offset after the last row of each
        partition. Reads ``topic``, ``partition`` and ``offset``; ``persist()`` the frame first, or
        its messages are fetched once more."""
        last = frame.groupBy("topic", "partition").agg({"offset": "max"}).collect()
        self.store({TopicPartition(topic, number): offset + 1 for topic, number, offset in last})

    def committed(self, partitions: Iterable[TopicAndPartition]) -> dict[TopicAndPartition, int]:
        """Where to go on, as ``fromOffsets`` of a direct stream; without those that have none."""
        with self._lock:
            found = self._used().fetch([to_topic_partition(tp) for tp in partitions])
        return {TopicAndPartition(*tp): offset for tp, offset in found.items() if offset >= 0}

    def store(self, offsets: Offsets) -> None:
        """Store next offsets by partition. After an error it connects again."""
        if not offsets:
            return
        with self._lock:
            try:
                self._used().commit(offsets)
            except Exception:
                self._disconnect()
                raise

    def _used(self) -> KeptOffsets:
        if self._store is None:
            self._store = self._open()
        return self._store

    def close(self) -> None:
        """Disconnect; what is called later connects again."""
        with self._lock:
            self._disconnect()

    def _disconnect(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()


def opener(properties: Mapping[str, str]) -> Callable[[], KeptOffsets]:
    """Connects to where the settings say that the group's offsets are. Raises ConfigError."""
    brokers = properties.get(BROKERS) or properties.get(BOOTSTRAP)
    if "zookeeper.connect" in properties or not brokers:
        return partial(ConsumerStore, ConsumerConfig.from_properties(properties))
    known = [Broker(-1, host, port) for host, port in parse_broker_list(brokers)]
    runtime = runtime_for(ClientSecurity.from_properties(properties))
    return partial(BrokerStore, properties["group.id"], known, runtime)


class ConsumerStore:
    """Where the settings of a consumer say."""

    def __init__(self, config: ConsumerConfig) -> None:
        runtime = runtime_for(config)
        self._tries = config.offsets_commit_max_retries
        self._zk = zookeeper_session(config, runtime)
        brokers = partial(live_brokers, self._zk, config.security_protocol)
        self._offsets = OffsetStore(config, self._zk, brokers, runtime=runtime)

    def commit(self, offsets: Offsets) -> None:
        if not self._offsets.commit(offsets, self._tries):
            raise OSError("no coordinator took the offsets")

    def fetch(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._offsets.fetch(partitions) or {}

    def close(self) -> None:
        self._offsets.close()
        self._zk.close()


class BrokerStore:
    """The group's coordinator, found without ZooKeeper."""

    def __init__(
        self, group: str, brokers: list[Broker], runtime: Runtime, channel: Connect = Channel
    ) -> None:
        self._group = group
        self._offsets = CoordinatorOffsets(group, lambda: brokers, runtime=runtime, channel=channel)
        self._retry = Retry(
            runtime,
            BACKOFF_S,
            patience=PATIENCE_S,
            passes=lambda error: isinstance(error, (OSError, *_MOVING)),
        )

    def commit(self, offsets: Offsets) -> None:
        self._retry.run(partial(self._commit, offsets))

    def _commit(self, offsets: Offsets) -> None:
        for tp, code in self._offsets.commit(offsets).items():
            raise_for_code(code, f"Group {self._group} did not take the offset of {tp}: {code}")

    def fetch(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._retry.run(partial(self._offsets.fetch_once, list(partitions)))

    def close(self) -> None:
        self._offsets.disconnect()
