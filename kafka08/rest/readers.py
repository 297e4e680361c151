"""The ways to read messages: of a partition from an offset on, without a group; and as an instance,
which is a member of a ZooKeeper group or has partitions assigned.

An ``InstanceReader`` has one caller at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from kafka08.client.offsets import ZooKeeperOffsets
from kafka08.client.reading import FETCH_BYTES, FetchTooSmallError, PartitionReader, Position
from kafka08.client.retry import Retry
from kafka08.common import Broker, TopicPartition
from kafka08.consumer.assigned import AssignedConsumer, raise_refused
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.errors import (
    ConsumerTimeoutError,
    PartitionNotOwnedError,
    StreamFailedError,
)
from kafka08.consumer.filters import TopicFilter
from kafka08.consumer.stream import KafkaStream
from kafka08.errors import KafkaError, MessageSizeTooLargeError
from kafka08.message.consumed import Message, MessageSource, consumed, timed
from kafka08.message.entry import BytesLike
from kafka08.message.sets import iter_runs
from kafka08.network.channel import Connect
from kafka08.rest.calls import Row
from kafka08.rest.cluster import Cluster
from kafka08.rest.errors import KAFKA_ERROR, RestError, illegal_state
from kafka08.rest.formats import size_of
from kafka08.runtime import Event, Runtime
from zk.client import ZkClient

T = TypeVar("T")
Connecting = Callable[..., ConsumerConnector]
# How long the coordinator of a group is searched for.
COORDINATOR_S = 5.0
ZOOKEEPER_S = 5.0
# A stream waits this long for a message; then the read checks whether it should end.
STREAM_TIMEOUT_MS = 1


class OffsetReader(NamedTuple):
    """Reads up to ``max_bytes`` at a time, and one message at least. ``committed``: none of open
    and aborted transactions."""

    cluster: Cluster
    max_bytes: int
    committed: bool = False

    def read(self, tp: TopicPartition, offset: int, count: int) -> list[Message]:
        """Up to ``count`` messages at ``offset`` and after it; fewer at the end of the log.

        Raises RestError, OffsetOutOfRangeError beyond the log, and the errors of the leader.
        """
        found: list[Message] = []
        left = self.max_bytes
        position = Position(offset, min(FETCH_BYTES, self.max_bytes), self.max_bytes)
        leader, committed = self.cluster.leader(tp), self.committed
        with self.cluster.consumer(leader, api_versions=committed) as consumer:
            reader = PartitionReader(consumer.call, tp, position, committed=committed)
            while len(found) < count:
                begin = reader.offset
                try:
                    data = reader.read()
                except FetchTooSmallError as error:
                    text = (
                        f"Kafka error: the message at offset {error.offset} of topic {tp.topic} "
                        f"partition {tp.partition} is larger than the {error.size} bytes of "
                        "consumer.request.max.bytes"
                    )
                    raise RestError(500, KAFKA_ERROR, text) from None
                if not len(data):
                    break
                for message in _messages(tp, data, begin)[: count - len(found)]:
                    left -= size_of(message)
                    if found and left < 0:
                        return found
                    found.append(message)
        return found


def _messages(tp: TopicPartition, data: BytesLike, offset: int) -> list[Message]:
    """The messages from ``offset`` on; a compressed set begins before it."""
    source = MessageSource(*tp)
    runs = iter_runs(data, partial(consumed, source), partial(timed, source))
    return [message for run in runs for message in run if message.offset >= offset]


class Limits(NamedTuple):
    """``min_bytes``: wait for so much, if there is time."""

    timeout_s: float
    max_bytes: int
    min_bytes: int = 1


class Shown(NamedTuple):
    """A message and what is sent of it."""

    message: Message
    record: Row


Show = Callable[[Message], Row]
"""Raises RestError for a message that cannot be shown."""


class BoundedReader:
    """Reads with pauses of ``backoff_s`` while nothing arrives, until ``stopping`` is set."""

    def __init__(self, runtime: Runtime, stopping: Event, backoff_s: float) -> None:
        self._clock = runtime.clock
        self._stopping = stopping
        self._backoff_s = backoff_s

    def read(self, stream: KafkaStream, limits: Limits, show: Show) -> list[Shown]:
        """The next messages: one at least if any comes in time, and those at hand with it.

        The stream must have the time-out STREAM_TIMEOUT_MS. All messages that are returned count as
        processed. Raises RestError 50002 if the next message cannot be read.
        """
        deadline = self._clock.monotonic() + limits.timeout_s
        found: list[Shown] = []
        size = 0
        while not self._stopping.is_set():
            try:
                if not stream.has_next():
                    break
            except ConsumerTimeoutError:
                left = deadline - self._clock.monotonic()
                if (found and size >= limits.min_bytes) or left <= 0:
                    break
                self._stopping.wait(min(self._backoff_s, left))
                continue
            except KafkaError as error:
                if found:
                    break  # the next read raises it
                raise _unreadable(error) from error
            message = stream.peek()
            if message is None:  # its partition was released meanwhile
                stream.take()
                continue
            if found and size + size_of(message) > limits.max_bytes:
                break
            try:
                found.append(Shown(message, show(message)))
            except RestError:
                if found:
                    break
                raise
            size += size_of(message)
            taken = stream.take()
            if taken is not None:
                taken[0].processed_offset = message.offset + 1
        return found


def _unreadable(error: KafkaError) -> RestError:
    cause = error.__cause__ if isinstance(error, StreamFailedError) else error
    advice = ""
    if isinstance(cause, MessageSizeTooLargeError):
        advice = " The fetch size is consumer.request.max.bytes."
    return RestError(500, KAFKA_ERROR, f"Kafka error: {cause or error}{advice}")


class InstanceReader(Protocol):
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


@dataclass
class GroupReader:
    """A member of the group for ``topics``, a list or a filter. It joins at the first read.

    ``zk`` reads stored offsets; ``connect`` makes the member, which has a session of its own.
    """

    config: ConsumerConfig
    topics: Sequence[str] | TopicFilter
    reader: BoundedReader
    zk: ZkClient
    runtime: Runtime
    connect: Connecting
    _connector: ConsumerConnector | None = None
    _streams: Sequence[KafkaStream] = ()

    def assignment(self) -> list[TopicPartition]:
        return [] if self._connector is None else self._connector.assignment()

    def read(self, limits: Limits, show: Show) -> list[Shown]:
        if self._connector is None:
            self._join()
        found = []
        for stream in self._streams:
            found += self.reader.read(stream, limits, show)
        return found

    def _join(self) -> None:
        with contextlib.ExitStack() as undo:
            connector = self.connect(self.config, runtime=self.runtime)
            undo.callback(connector.close, ZOOKEEPER_S)
            if isinstance(self.topics, TopicFilter):
                streams = connector.create_message_streams_by_filter(self.topics)
            else:
                made = connector.create_message_streams(dict.fromkeys(self.topics, 1))
                streams = [stream for each in made.values() for stream in each]
            undo.pop_all()
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
                ZooKeeperOffsets(self.zk, self.config.group_id).commit(offsets)
        elif not self._connector.commit_offsets(offsets):
            raise KafkaError("The group's coordinator did not store all offsets")

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        stored = ZooKeeperOffsets(self.zk, self.config.group_id).fetch(partitions)
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
        reader: BoundedReader,
        brokers: Callable[[], Sequence[Broker]],
        runtime: Runtime,
        channel: Connect,
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

    def _tried(self, call: Callable[[], T]) -> T:
        """The result of a call to the coordinator, which may have to be made first."""
        backoff = self._config.refresh_leader_backoff_ms / 1000
        retry = Retry(self._runtime, backoff, patience=COORDINATOR_S, stopping=self._stopping)
        return retry.run(call)

    def close(self) -> None:
        self._pause()
        if self._config.auto_commit_enable and self._read:
            with contextlib.suppress(OSError, KafkaError):  # they are read again, as after a crash
                self.commit()
        self._stopping.set()
        self._consumer.offsets.disconnect()
