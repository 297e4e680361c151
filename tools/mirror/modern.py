"""The ends of a mirror at clusters of 0.10 and later: librdkafka, through confluent-kafka.

Optional: without the package these ends refuse by name, the rest works. Settings are librdkafka's,
which share most names with the Java clients; what only a JVM understands is left out. Knows
nothing of the other end.
"""

from __future__ import annotations

import importlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from kafka08.common import READ_UNCOMMITTED
from kafka08.consumer.filters import TopicFilter
from kafka08.errors import ConfigError, KafkaError
from tools.mirror.pipeline import Done, SourceMessage, Window

logger = logging.getLogger("kafka.tools.MirrorMaker$")

POLL_S = 0.2
TOPICS_EVERY_S = 30.0
SETTLE_S = 30.0
LIST_TIMEOUT_S = 30.0
LEAVE_S = 2.0
_JVM_ONLY = (
    "key.serializer",
    "value.serializer",
    "key.deserializer",
    "value.deserializer",
    "producer.type",
    "block.on.buffer.full",
    "buffer.memory",
    "max.block.ms",
    "metadata.fetch.timeout.ms",
)
# Keys land where the Java producer puts them, and nothing is given up on.
_PRODUCER_DEFAULTS = {
    "acks": "all",
    "enable.idempotence": "true",
    "message.timeout.ms": "0",
    "partitioner": "murmur2_random",
}
# All messages, unless the settings say otherwise: librdkafka's default is not that of Kafka.
_CONSUMER_DEFAULTS = {"isolation.level": READ_UNCOMMITTED}
Foreign: TypeAlias = Any
"""An object of confluent-kafka, which is not there where types are checked."""


class MissingLibraryError(KafkaError):
    text = (
        "Clusters of 0.10 and later are reached through confluent-kafka, which is not installed: "
        "pip install 'confluent-kafka>=2.5'"
    )


class ModernError(KafkaError):
    """An error that librdkafka reports."""


def confluent_kafka() -> Foreign:
    """The library. Raises MissingLibraryError."""
    try:
        return importlib.import_module("confluent_kafka")
    except ImportError:
        raise MissingLibraryError() from None


def _make(kind: str, settings: Mapping[str, object]) -> Foreign:
    """A Producer or Consumer. Raises ConfigError for settings librdkafka refuses."""
    library = confluent_kafka()
    known = {key: value for key, value in settings.items() if key not in _JVM_ONLY}
    try:
        return getattr(library, kind)({"log_level": 3, **known}, logger=logger)
    except library.KafkaException as error:
        raise ConfigError(f"librdkafka refuses the settings: {error.args[0].str()}") from None


class ModernTarget:
    """A producer, and the thread that calls back."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        defaults = dict(_PRODUCER_DEFAULTS)
        if settings.get("acks", settings.get("request.required.acks", "all")) not in ("all", "-1"):
            del defaults["enable.idempotence"], defaults["acks"]
        self._producer = _make("Producer", {**defaults, **settings})
        self._stopping = threading.Event()
        self._poller = threading.Thread(target=self._poll, name="mirror-poll", daemon=True)
        self._poller.start()

    def _poll(self) -> None:
        while not self._stopping.is_set():
            self._producer.poll(POLL_S)

    def send(
        self,
        message: SourceMessage,
        key: bytes | None,
        done: Done,
    ) -> None:
        """Waits while librdkafka's queue is full. Raises what it refuses."""
        topic = message.topic
        extra: dict[str, object] = {}
        if message.timestamp > 0:  # 0 means now to librdkafka
            extra["timestamp"] = message.timestamp
        if message.headers:
            extra["headers"] = list(message.headers)

        def delivered(error: Foreign, _message: object) -> None:
            done(None if error is None else ModernError(f"{topic}: {error.str()}"))

        while not self._stopping.is_set():
            try:
                self._producer.produce(topic, message.value, key, on_delivery=delivered, **extra)
                return
            except BufferError:
                self._stopping.wait(0.01)
        raise ModernError("closed")

    def close(self, timeout: float) -> None:
        self._producer.flush(timeout)
        self._stopping.set()
        self._poller.join(timeout + POLL_S)


class Taken(NamedTuple):
    """A message in the shape of ours."""

    topic: str
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Sequence[tuple[str, bytes | None]]


@dataclass(slots=True)
class _StreamPosition:
    """The offset of one partition that may be committed; ``committed`` is the last one that was."""

    processed_offset: int = -1
    committed: int = -1


class ModernReader:
    """A member of a group that the brokers coordinate. All but ``close`` is one thread's.

    Commits what its window says is stored, every ``commit_interval_ms`` and before partitions
    are given to others.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        topics: TopicFilter,
        window: Window,
        *,
        commit_interval_ms: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        own = {"enable.auto.commit": "false", "enable.auto.offset.store": "false"}
        self._library = confluent_kafka()
        self._consumer = _make("Consumer", {**_CONSUMER_DEFAULTS, **settings, **own})
        self._filter = topics
        self._window = window
        self._interval = commit_interval_ms / 1000
        self._clock = clock
        self._positions: dict[tuple[str, int], _StreamPosition] = {}
        self._subscribed: list[str] = []
        self._message: Foreign = None
        self._listed_at = float("-inf")
        self._committed_at = clock()
        self._left = threading.Event()

    def has_next(self) -> bool:
        """Poll until there is a message. Raises ModernError for errors that do not pass."""
        while not self._window.stopping:
            now = self._clock()
            if now - self._listed_at >= TOPICS_EVERY_S:
                self._subscribe()
                self._listed_at = now
            if now - self._committed_at >= self._interval:
                self._commit()
            message = self._consumer.poll(POLL_S)
            if message is None:
                continue
            error = message.error()
            if error is None:
                self._message = message
                return True
            if error.fatal():
                raise ModernError(error.str())
            logger.warning("%s", error.str())
        self._left.set()
        return False

    def take(self) -> tuple[_StreamPosition, Taken] | None:
        message, self._message = self._message, None
        position = self._positions.get((message.topic(), message.partition()))
        if position is None:
            return None
        if position.processed_offset < 0:
            position.processed_offset = position.committed = message.offset()
        _, timestamp = message.timestamp()  # -1 if it has none
        return position, Taken(
            message.topic(),
            message.offset(),
            message.key(),
            message.value(),
            timestamp,
            message.headers() or (),
        )

    def _subscribe(self) -> None:
        """To the topics there are; the filter is ours, so that both kinds mean the same."""
        try:
            listed = self._consumer.list_topics(timeout=LIST_TIMEOUT_S).topics
        except self._library.KafkaException as error:
            logger.warning("Topics could not be listed: %s", error.args[0].str())
            return
        wanted = self._filter.select(name for name in listed if not name.startswith("__"))
        if wanted and wanted != self._subscribed:
            self._consumer.subscribe(
                wanted, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
            )
            self._subscribed = wanted

    def _assigned(self, _consumer: object, partitions: list[Foreign]) -> None:
        for found in partitions:
            self._positions[found.topic, found.partition] = _StreamPosition()

    def _revoked(self, _consumer: object, partitions: list[Foreign]) -> None:
        self._window.settle(SETTLE_S)
        self._commit()
        self._forget(partitions)

    def _lost(self, _consumer: object, partitions: list[Foreign]) -> None:
        """Another member may have them by now: nothing of them may be committed."""
        self._forget(partitions)
        self._window.settle(SETTLE_S)

    def _forget(self, partitions: list[Foreign]) -> None:
        for gone in partitions:
            self._positions.pop((gone.topic, gone.partition), None)

    def _commit(self) -> None:
        self._committed_at = self._clock()
        moved = {
            place: position.processed_offset
            for place, position in self._positions.items()
            if position.processed_offset != position.committed
        }
        if not moved:
            return
        offsets = [self._library.TopicPartition(*place, moved[place]) for place in moved]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except self._library.KafkaException as error:
            logger.error("Error while committing offsets: %s", error.args[0].str())
            return
        for place, offset in moved.items():
            if place in self._positions:
                self._positions[place].committed = offset

    def close(self) -> None:
        """Commit and leave the group, once the thread that reads has seen that it is to stop."""
        self._left.wait(LEAVE_S)
        self._commit()
        self._consumer.close()
