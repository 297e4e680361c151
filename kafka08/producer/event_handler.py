"""Sends a batch: serialises, chooses partitions, sends one request per leader, retries failures.

Mirrors kafka.producer.async.DefaultEventHandler and BrokerPartitionInfo. It does not know
whether its batch came from one call or from a queue.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafka08.client import requests
from kafka08.client.cluster import ClusterClient
from kafka08.common import TopicPartition, csv
from kafka08.errors import (
    NO_ERROR,
    KafkaError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka08.message.sets import encode_set
from kafka08.producer.config import SYNC, ProducerConfig
from kafka08.producer.errors import FailedToSendMessageError
from kafka08.producer.metrics import ScalaProducerMetrics
from kafka08.producer.partitioners import Partitioner
from kafka08.producer.serializers import Encoder
from kafka08.protocol.schemas import NO_LEADER, PartitionMetadata, ProduceResponse
from kafka08.runtime import Runtime

logger = logging.getLogger("kafka.producer.async.DefaultEventHandler")
metadata_logger = logging.getLogger("kafka.producer.BrokerPartitionInfo")


class KeyedMessage(NamedTuple):
    """A message to send. ``part_key`` replaces ``key`` for partitioning; it is not stored."""

    topic: str
    value: object
    key: object = None
    part_key: object = None

    @property
    def partition_key(self) -> object:
        return self.key if self.part_key is None else self.part_key


class _Serialised(NamedTuple):
    topic: str
    partition_key: object
    entry: tuple[bytes | None, bytes | None]


_Batches = dict[int, dict[TopicPartition, list[_Serialised]]]


class EventHandler:
    """Sends one batch at a time over the connections of ``cluster``."""

    def __init__(
        self,
        config: ProducerConfig,
        cluster: ClusterClient,
        partitioner: Partitioner,
        encoder: Encoder,
        key_encoder: Encoder,
        runtime: Runtime,
        rng: random.Random | None = None,
        metrics: ScalaProducerMetrics | None = None,
    ) -> None:
        self._metrics = metrics or ScalaProducerMetrics(runtime.clock.monotonic)
        self._config = config
        self._cluster = cluster
        self._partitioner = partitioner
        self._encoder = encoder
        self._key_encoder = key_encoder
        self._runtime = runtime
        self._random = rng or random.Random()
        self._sticky: dict[str, int] = {}
        self._to_refresh: set[str] = set()
        self._refreshed_ms = 0
        self._requests = 0
        self._trouble = ""

    def handle(self, messages: Sequence[KeyedMessage]) -> None:
        """Raises FailedToSendMessageError if messages failed at the last try too."""
        outstanding = self._serialise(messages)
        self._count(outstanding)
        first_request = self._requests
        for _ in range(self._config.message_send_max_retries + 1):
            if not outstanding:
                return
            self._refresh_if_due(outstanding)
            outstanding = self._dispatch(outstanding)
            if outstanding:
                self._metrics.resends.mark()
                self._runtime.sleep(self._config.retry_backoff_ms / 1000)
                self._refresh({message.topic for message in outstanding})
        if outstanding:
            self._metrics.failed_sends.mark()
            logger.error(
                "Failed to send requests for topics %s with correlation ids in [%d,%d]",
                ",".join(sorted({message.topic for message in outstanding})),
                first_request,
                self._requests - 1,
            )
            raise FailedToSendMessageError(
                f"Failed to send messages after {self._config.message_send_max_retries} tries. "
                f"{len(outstanding)} of {len(messages)} failed at the last try: {self._trouble}"
            )

    def _count(self, messages: Iterable[_Serialised]) -> None:
        counts: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for message in messages:
            counts[message.topic] += 1
            sizes[message.topic] += len(message.entry[1] or b"")
        for topic, count in counts.items():
            self._metrics.messages.mark(topic, count)
            self._metrics.bytes.mark(topic, sizes[topic])

    def _serialise(self, messages: Iterable[KeyedMessage]) -> list[_Serialised]:
        serialised = []
        for message in messages:
            try:
                key = None if message.key is None else self._key_encoder(message.key)
                entry = (key, self._encoder(message.value))
            except Exception:
                self._metrics.serialization_errors.mark()
                if self._config.producer_type == SYNC:
                    raise
                logger.exception("Error serializing message for topic %s", message.topic)
                continue
            serialised.append(_Serialised(message.topic, message.partition_key, entry))
        return serialised

    # --- metadata

    def _refresh_if_due(self, messages: Iterable[_Serialised]) -> None:
        self._to_refresh.update(message.topic for message in messages)
        interval = self._config.topic_metadata_refresh_interval_ms
        now = self._runtime.clock.millis()
        if 0 <= interval < now - self._refreshed_ms:
            self._refresh(self._to_refresh)
            self._to_refresh.clear()
            self._refreshed_ms = now

    def _refresh(self, topics: Iterable[str]) -> None:
        """Failures are logged: old metadata may suffice, and the next try refreshes it again."""
        self._sticky.clear()
        self._requests += 1
        try:
            response = self._cluster.refresh(sorted(topics))
        except (OSError, KafkaError) as error:
            metadata_logger.error("%s", error)
            return
        for topic in response.topics:
            if topic.error != NO_ERROR:
                metadata_logger.warning(
                    "Error while fetching metadata [%s] for topic [%s]: class %s",
                    "No partition metadata for topic "
                    f"{topic.topic} due to {for_code(topic.error).java_class}",
                    topic.topic,
                    for_code(topic.error).java_class,
                )

    # --- one round

    def _dispatch(self, messages: list[_Serialised]) -> list[_Serialised]:
        """Send all messages once; returns those that failed."""
        try:
            batches = self._collate(messages)
        except (UnknownTopicOrPartitionError, LeaderNotAvailableError) as error:
            self._trouble = str(error)
            logger.warning("Failed to collate messages by topic,partition due to: %s", error)
            return messages
        except Exception as error:
            self._trouble = f"{type(error).__name__}: {error}"
            logger.error("Failed to collate messages by topic, partition due to: %s", error)
            return messages
        failed: list[_Serialised] = []
        for leader, batch in batches.items():
            for tp in self._send(leader, batch):
                failed += batch[tp]
        return failed

    def _collate(self, messages: Iterable[_Serialised]) -> _Batches:
        """Leader -> partition -> messages; the leader is -1 if there is none."""
        batches: _Batches = {}
        known: dict[str, list[PartitionMetadata]] = {}
        for message in messages:
            topic = message.topic
            if topic not in known:
                known[topic] = self._cluster.partitions(topic)
            chosen = known[topic][self._choose(topic, message.partition_key, known[topic])]
            batch = batches.setdefault(chosen.leader, {})
            batch.setdefault(TopicPartition(topic, chosen.partition), []).append(message)
        return batches

    def _choose(self, topic: str, key: object, partitions: Sequence[PartitionMetadata]) -> int:
        """The partition, as an index into ``partitions``."""
        if key is not None:
            index = self._partitioner(key, len(partitions))
        elif topic in self._sticky:
            index = self._sticky[topic]
        else:
            led = [i for i, p in enumerate(partitions) if p.leader != NO_LEADER]
            if not led:
                raise LeaderNotAvailableError(f"No leader for any partition in topic {topic}")
            index = self._sticky[topic] = self._random.choice(led)
        if not 0 <= index < len(partitions):
            raise UnknownTopicOrPartitionError(
                f"Invalid partition id: {index} for topic {topic}; Valid values are in the "
                f"inclusive range of [0, {len(partitions) - 1}]"
            )
        return index

    def _send(
        self, leader: int, batch: dict[TopicPartition, list[_Serialised]]
    ) -> Iterable[TopicPartition]:
        """Send to one leader; returns the partitions that failed."""
        broker = self._cluster.broker(leader)
        if broker is None:
            self._trouble = f"{csv(sorted(batch))} without a leader"
            logger.warning(
                "Failed to send data since partitions %s don't have a leader", csv(sorted(batch))
            )
            return list(batch)
        sets = {tp: self._message_set(tp.topic, messages) for tp, messages in batch.items()}
        request = requests.produce_request(
            sets,
            self._config.request_required_acks,
            self._config.request_timeout_ms,
        )
        self._requests += 1
        now = self._runtime.clock.monotonic
        begin = now()
        try:
            response = self._cluster.call(broker, request)
        except (OSError, KafkaError) as error:
            self._trouble = f"{broker.host}:{broker.port}: {error}"
            logger.warning(
                "Failed to send producer request with correlation id %d to broker %d with data "
                "for partitions %s: %s",
                self._requests - 1,
                leader,
                csv(sorted(batch)),
                error,
            )
            return list(batch)
        size = sum(map(len, sets.values()))
        self._metrics.requests.record(broker.host, broker.port, now() - begin, size)
        return [] if response is None else self._failures(response, batch)

    def _message_set(self, topic: str, messages: Iterable[_Serialised]) -> bytes:
        only = self._config.compressed_topics
        codec = self._config.compression_codec if not only or topic in only else 0
        return encode_set((message.entry for message in messages), codec)

    def _failures(
        self, response: ProduceResponse, batch: dict[TopicPartition, list[_Serialised]]
    ) -> list[TopicPartition]:
        codes = {tp: entry.error for tp, entry in requests.flatten(response.topics).items()}
        failed = [tp for tp in batch if codes.get(tp, -1) != NO_ERROR]
        if failed:
            errors = {tp: for_code(codes.get(tp, -1)) for tp in sorted(failed)}
            self._trouble = ", ".join(f"{tp}: {error}" for tp, error in errors.items())
            logger.warning(
                "Produce request with correlation id %d failed due to %s",
                self._requests - 1,
                ",".join(f"{tp}: {error.java_class}" for tp, error in errors.items()),
            )
        return failed
