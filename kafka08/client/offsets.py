"""The two stores of a group's offsets: ZooKeeper's nodes and the group's coordinator.

Mirrors the offset half of kafka.consumer.ZookeeperConsumerConnector and
ClientUtils.channelToOffsetManager. Both stores hold next offsets by partition, -1 for none. The
caller decides which store a group uses, and how often to try.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from kafka08.client import requests
from kafka08.client.cluster import find_coordinator
from kafka08.client.requests import Call, Response, StoredOffset
from kafka08.client.retry import Retry
from kafka08.common import Broker, TopicPartition
from kafka08.errors import (
    ConsumerCoordinatorNotAvailableError,
    KafkaError,
    NotCoordinatorForConsumerError,
    OffsetsLoadInProgressError,
)
from kafka08.network.channel import BrokerConnection, Channel, Connect
from kafka08.protocol import schemas
from kafka08.runtime import Event, Runtime, ThreadRuntime
from zk import znodes
from zk.client import ZkClient
from zk.znodes import MalformedNodeError

T = TypeVar("T")
logger = logging.getLogger("kafka.client.ClientUtils$")

LOOKUP_TIMEOUT_MS = 3000
_MOVED = (ConsumerCoordinatorNotAvailableError.code, NotCoordinatorForConsumerError.code)


def stored_offsets(
    call: Call,
    group: str,
    partitions: Iterable[TopicPartition],
    *,
    version: int = 1,
) -> dict[TopicPartition, StoredOffset]:
    """The offsets that a broker keeps for a group: version 0 those in ZooKeeper, 1 those of which
    it is the coordinator. ``call`` sends it a request."""
    asked = dict.fromkeys(partitions)
    topics = requests.nested(asked, schemas.OffsetFetchTopic, lambda number, _: number)
    request = schemas.OffsetFetchRequest if version else schemas.OffsetFetchRequestV0
    return {
        tp: StoredOffset(entry.offset, entry.metadata, entry.error)
        for tp, entry in requests.flatten(call(request(group, topics)).topics).items()
    }


class ZooKeeperOffsets:
    """/consumers/G/offsets. Remembers what it last read or wrote and writes only changes."""

    def __init__(self, zk: ZkClient, group: str) -> None:
        self._zk = zk
        self._group = group
        self._known: dict[TopicPartition, int] = {}

    def fetch(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Raises MalformedNodeError and the client's errors."""
        return {tp: self._read(tp) for tp in partitions}

    def _read(self, tp: TopicPartition) -> int:
        path = znodes.consumer_offset_path(self._group, *tp)
        found = self._zk.get_if_exists(path)
        try:
            return -1 if found is None else znodes.decode_offset(path, found[0])
        except MalformedNodeError as error:
            advice = "kafka-consumer-groups --reset-offsets writes a good one"
            raise MalformedNodeError(path, f"{error.reason}; {advice}") from None

    def adopt(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Record offsets that are known to be stored, or need not be."""
        self._known = dict(offsets)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> int:
        """Returns how many were written."""
        written = 0
        for tp, offset in offsets.items():
            if self._known.get(tp) != offset:
                path = znodes.consumer_offset_path(self._group, *tp)
                self._zk.create_or_set(path, znodes.encode_offset(offset))
                self._known[tp] = offset
                written += 1
        return written


class CoordinatorOffsets:
    """Offsets in ``__consumer_offsets``, over a connection to the group's coordinator.

    ``brokers`` names the live brokers. Waits end when ``stopping`` is set. One task at a time.
    """

    def __init__(
        self,
        group: str,
        brokers: Callable[[], Sequence[Broker]],
        *,
        client_id: str = "",
        backoff_ms: int = 1000,
        socket_timeout_ms: int = 10000,
        stopping: Event | None = None,
        runtime: Runtime | None = None,
        channel: Connect = Channel,
    ) -> None:
        self._group = group
        self._brokers = brokers
        self._socket_timeout_ms = socket_timeout_ms
        self._runtime = runtime or ThreadRuntime()
        self._stopping = stopping or self._runtime.event()
        self._retry = Retry(self._runtime, backoff_ms / 1000, stopping=self._stopping)
        self._open = partial(channel, client_id=client_id, runtime=self._runtime)
        self._channel: BrokerConnection | None = None

    def connect(self) -> bool:
        """Search until the coordinator is found; False if stopped before that."""

        def log(error: Exception) -> None:
            logger.info("No coordinator for group %s yet: %s", self._group, error)

        return self._until_stopped(self.connect_once, log) is not None

    def _until_stopped(self, step: Callable[[], T], log: Callable[[Exception], None]) -> T | None:
        if self._stopping.is_set():
            return None
        try:
            return self._retry.run(step, again=log)
        except (OSError, KafkaError):
            return None

    def connect_once(self) -> BrokerConnection:
        """Connect unless connected. Raises OSError or KafkaError."""
        if self._channel is not None:
            return self._channel
        brokers = list(self._brokers())
        random.shuffle(brokers)
        timeout_ms = min(LOOKUP_TIMEOUT_MS, self._socket_timeout_ms)
        found = find_coordinator(self._group, brokers, partial(self._open, timeout_ms=timeout_ms))
        channel = self._open(found.host, found.port, timeout_ms=self._socket_timeout_ms)
        channel.connect()
        self._channel = channel
        return channel

    def disconnect(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def commit(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """One try: the error code of each partition. Raises OSError or KafkaError.

        A failure, or a coordinator that has moved, drops the connection.
        """
        codes = requests.commit_results(self._call(requests.commit_request(self._group, offsets)))
        if any(code in _MOVED for code in codes.values()):
            self.disconnect()
        return codes

    def fetch(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int] | None:
        """Try until the coordinator answers; None if stopped before that."""
        wanted = list(partitions)

        def ask() -> dict[TopicPartition, int]:
            if not self.connect():
                raise ConsumerCoordinatorNotAvailableError
            return self.fetch_once(wanted)

        def log(error: Exception) -> None:
            if not isinstance(error, NotCoordinatorForConsumerError | OffsetsLoadInProgressError):
                logger.warning("Error while fetching offsets. Possible cause: %s", error)

        return self._until_stopped(ask, log)

    def fetch_once(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """One try. Raises OSError or KafkaError, also if the coordinator is loading or has moved.

        A partition with another error counts as not stored.
        """
        stored = self.stored(partitions)
        codes = {each.error for each in stored.values()}
        if NotCoordinatorForConsumerError.code in codes:
            self.disconnect()
            raise NotCoordinatorForConsumerError
        if OffsetsLoadInProgressError.code in codes:
            raise OffsetsLoadInProgressError
        return {tp: each.offset for tp, each in stored.items()}

    def stored(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, StoredOffset]:
        """One try, with the error code of each partition. Raises OSError or KafkaError."""
        return stored_offsets(self._call, self._group, partitions)

    def _call(self, request: object) -> Response:
        channel = self.connect_once()
        try:
            return channel.call(request)
        except BaseException:
            self.disconnect()
            raise
