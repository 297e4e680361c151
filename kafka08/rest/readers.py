"""The two ways in which instances read: as a member of a ZooKeeper group, or assigned partitions.

A ``Reader`` has one caller at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from kafka08.client.offsets import ZooKeeperOffsets
from kafka08.client.retry import Retry
from kafka08.common import Broker, TopicPartition
from kafka08.consumer.assigned import AssignedConsumer, raise_refused
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.errors import PartitionNotOwnedError
from kafka08.consumer.filters import TopicFilter
from kafka08.consumer.stream import KafkaStream
from kafka08.errors import KafkaError
from kafka08.network.channel import Channel, Connect
from kafka08.rest.errors import illegal_state
from kafka08.rest.reading import Limits, Show, Shown, StreamReader
from kafka08.runtime import Runtime
from zk.client import ZkClient

Connecting = Callable[..., ConsumerConnector]
# How long the coordinator of a group is searched for.
COORDINATOR_S = 5.0
ZOOKEEPER_S = 5.0


class Reader(Protocol):
    """The side of an instance that its requests use. Offsets are next offsets."""

    def assignment(self) -> list[TopicPartition]: ...
    def read(self, limits: Limits, show: Show) -> list[Shown]: ...
    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Raises RestError 40903 for partitions that are not assigned."""

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit these, or all that was read. Raises KafkaError."""

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Those that are stored."""

    def close(self) -> None: ...


class GroupReader:
    """A member of the group for ``topics``, a list or a filter. It joins at the first read.

    ``zk`` reads stored offsets; ``connect`` makes the member, which has a session of its own.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        topics: Sequence[str] | TopicFilter,
        reader: StreamReader,
        zk: ZkClient,
        runtime: Runtime,
        *,
        connect: Connecting = ConsumerConnector,
    ) -> None:
        self._config = config
        self._topics = topics
        self._reader = reader
        self._zk = zk
        self._runtime = runtime
        self._connect = connect
        self._connector: ConsumerConnector | None = None
        self._streams: list[KafkaStream] = []

    def assignment(self) -> list[TopicPartition]:
        return [] if self._connector is None else self._connector.assignment()

    def read(self, limits: Limits, show: Show) -> list[Shown]:
        if self._connector is None:
            self._join()
        found = []
        for stream in self._streams:
            found += self._reader.read(stream, limits, show)
        return found

    def _join(self) -> None:
        connector = self._connect(self._config, runtime=self._runtime)
        try:
            if isinstance(self._topics, TopicFilter):
                streams = connector.create_message_streams_by_filter(self._topics)
            else:
                made = connector.create_message_streams(dict.fromkeys(self._topics, 1))
                streams = [stream for each in made.values() for stream in each]
        except BaseException:
            connector.close(ZOOKEEPER_S)
            raise
        self._connector, self._streams = connector, streams

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        try:
            if self._connector is None:
                raise PartitionNotOwnedError("No partitions are assigned before the first read")
            self._connector.seek(offsets)
        except PartitionNotOwnedError as error:
            raise illegal_state(str(error)) from None

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        if self._connector is None:
            if offsets:
                ZooKeeperOffsets(self._zk, self._config.group_id).commit(offsets)
        elif not self._connector.commit_offsets(offsets):
            raise KafkaError("The group's coordinator did not store all offsets")

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        stored = ZooKeeperOffsets(self._zk, self._config.group_id).fetch(partitions)
        return {tp: offset for tp, offset in stored.items() if offset >= 0}

    def close(self) -> None:
        connector, self._connector = self._connector, None
        if connector is not None:
            connector.close(ZOOKEEPER_S)


class AssignedReader:
    """Partitions that the client chose, without other members.

    The group's offsets are those of its coordinator. ``brokers``: the live ones. A partition begins
    at the group's offset, and without one by auto.offset.reset.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        partitions: Iterable[TopicPartition],
        reader: StreamReader,
        brokers: Callable[[], Sequence[Broker]],
        runtime: Runtime,
        *,
        channel: Connect = Channel,
    ) -> None:
        self._config = config
        self._reader = reader
        self._runtime = runtime
        self._stopping = runtime.event()
        self._consumer = AssignedConsumer(
            config, brokers, stopping=self._stopping, runtime=runtime, channel=channel
        )
        # Where to begin when fetching starts; None: at the group's offset.
        self._begin: dict[TopicPartition, int | None] = dict.fromkeys(partitions)
        self._read: dict[TopicPartition, int] = {}
        self._committed_at = runtime.clock.monotonic()

    def assignment(self) -> list[TopicPartition]:
        return sorted(self._begin)

    def read(self, limits: Limits, show: Show) -> list[Shown]:
        if self._begin and not self._consumer.positions:
            self._start()
        found = self._reader.read(self._consumer.stream, limits, show)
        for message, _ in found:
            self._read[TopicPartition(message.topic, message.partition)] = message.offset + 1
        if self._config.auto_commit_enable:
            interval_s = self._config.auto_commit_interval_ms / 1000
            if self._runtime.clock.monotonic() - self._committed_at >= interval_s:
                self.commit()
        return found

    def _start(self) -> None:
        stored = self.committed([tp for tp, offset in self._begin.items() if offset is None])
        self._consumer.start(
            {tp: stored.get(tp, -1) if at is None else at for tp, at in self._begin.items()}
        )

    def _pause(self) -> None:
        """Stop fetching, and remember after which messages to go on."""
        self._begin.update(self._consumer.drop())

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these instead; those that were assigned before go on where they are."""
        self._pause()
        self._begin = {tp: self._begin.get(tp) for tp in partitions}

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        for tp in offsets:
            if tp not in self._begin:
                raise illegal_state(f"No current assignment for partition {tp}")
        self._pause()
        self._begin.update(offsets)

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        wanted = dict(self._read if offsets is None else offsets)
        if wanted:
            raise_refused(self._tried(lambda: self._consumer.offsets.commit(wanted)))
        self._committed_at = self._runtime.clock.monotonic()

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        wanted = list(partitions)
        if not wanted:
            return {}
        stored = self._tried(lambda: self._consumer.offsets.fetch_once(wanted))
        return {tp: offset for tp, offset in stored.items() if offset >= 0}

    def _tried(self, call: Callable[[], Any]) -> Any:
        """The result of a call to the coordinator, which may have to be made first."""
        backoff = self._config.refresh_leader_backoff_ms / 1000
        retry = Retry(self._runtime, backoff, patience=COORDINATOR_S, stopping=self._stopping)
        return retry.run(call)

    def close(self) -> None:
        self._pause()
        if self._config.auto_commit_enable and self._read:
            self._commit_at_end()
        self._stopping.set()
        self._consumer.offsets.disconnect()

    def _commit_at_end(self) -> None:
        try:
            self.commit()
        except (OSError, KafkaError):
            pass  # they are read again, as after a crash
