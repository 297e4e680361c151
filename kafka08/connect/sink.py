"""Runs a sink task: messages are put and flushed before their offsets are committed.

The group ``connect-NAME`` keeps its offsets with its coordinator (`__consumer_offsets`), where
the group tools find them; ZooKeeper is not needed. The partitions of a topic are divided among
the tasks of this worker by a fixed rule. Mirrors
org.apache.kafka.connect.runtime.WorkerSinkTask.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from kafka08.client.cluster import ClusterClient, Endpoint
from kafka08.common import INTERNAL_TOPICS, Broker, TopicPartition, java_string_hash
from kafka08.connect.config import SinkConfig
from kafka08.connect.converters import Converter
from kafka08.connect.interface import DataError, RetriableError, SinkRecord, SinkTask
from kafka08.connect.runner import Runner, await_topics
from kafka08.consumer.assigned import AssignedConsumer
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.errors import ConsumerTimeoutError
from kafka08.errors import NO_ERROR, KafkaError
from kafka08.message.consumed import Message

logger = logging.getLogger("org.apache.kafka.connect.runtime.WorkerSinkTask")

BATCH = 500
IDLE_MS = 200
RETRY_S = 1.0
DISCOVER_S = 10.0


class Supply(NamedTuple):
    """Reads a sink's messages from the brokers. ``share`` is (this task, number of tasks); the
    worker's tasks share ``cluster``."""

    key_converter: Converter
    value_converter: Converter
    endpoints: Sequence[Endpoint]
    cluster: ClusterClient
    config: SinkConfig
    consumer: ConsumerConfig
    share: tuple[int, int]
    flush_interval: float


def is_mine(tp: TopicPartition, share: tuple[int, int]) -> bool:
    """Whether the task reads a partition. It depends only on the partition and the number of
    tasks, so that a new partition does not move others."""
    number, tasks = share
    return (java_string_hash(tp.topic) + tp.partition) % tasks == number


class SinkRunner(Runner):
    _task: SinkTask

    def __init__(self, supply: Supply, *args: Any) -> None:
        super().__init__(*args)
        self._supply = supply
        self._cluster = supply.cluster
        brokers = [Broker(-1, host, port) for host, port in supply.endpoints]
        self._consumer = AssignedConsumer(
            supply.consumer,
            lambda: brokers,
            name=self.id,
            timeout_ms=IDLE_MS,
            stopping=self._context.stopping,
            runtime=self._runtime,
        )
        self._offsets: dict[TopicPartition, int] = {}
        self._uncommitted: dict[TopicPartition, int] = {}
        self._next_flush = self._next_discovery = 0.0

    # --- partitions

    def begin(self) -> None:
        topics = self._supply.config.topics
        if topics:
            await_topics(self._cluster, topics, "topics", self._context.stopping, self._runtime)
        self._consumer.start({})
        self._next_flush = self._now() + self._supply.flush_interval

    def _discover(self) -> None:
        """Begin to read new partitions."""
        try:
            found = [tp for tp in self._partitions() if is_mine(tp, self._supply.share)]
        except (OSError, KafkaError) as error:
            logger.warning("The topics of %s cannot be read now: %s", self.id, error)
            return
        added = sorted(set(found) - self._consumer.positions.keys())
        if not added:
            return
        committed = self._consumer.offsets.fetch(added)
        if committed is None:
            return  # stopped while looking for the coordinator
        better = self._task.open(added)
        self._consumer.add({tp: better.get(tp, committed.get(tp, -1)) for tp in added})
        logger.info("Task %s reads %s", self.id, ", ".join(map(str, added)))

    def _partitions(self) -> list[TopicPartition]:
        config = self._supply.config
        topics: Sequence[str] = config.topics
        metadata = self._cluster.refresh(topics)
        if config.topics_regex:
            pattern = re.compile(config.topics_regex)
            names = [each.topic for each in metadata.topics if each.topic not in INTERNAL_TOPICS]
            topics = [name for name in names if pattern.fullmatch(name)]
        return [
            TopicPartition(topic, each.partition)
            for topic in topics
            for each in self._cluster.partitions(topic)
        ]

    # --- messages

    def step(self) -> None:
        if self._now() >= self._next_discovery:
            self._discover()
            self._next_discovery = self._now() + DISCOVER_S
        messages = self._read()
        if messages:
            self._put([self._record(message) for message in messages])
        if self._now() >= self._next_flush:
            self._flush()
            self._next_flush = self._now() + self._supply.flush_interval

    def _read(self) -> list[Message]:
        messages: list[Message] = []
        deadline = self._now() + IDLE_MS / 1000
        try:
            while len(messages) < BATCH and self._now() < deadline:
                messages.append(next(self._consumer.stream))
        except ConsumerTimeoutError:
            pass
        return messages

    def _record(self, message: Message) -> SinkRecord:
        supply = self._supply
        try:
            key = supply.key_converter.from_bytes(message.key)
            value = supply.value_converter.from_bytes(message.value)
        except DataError as error:
            raise DataError(
                f"The message at offset {message.offset} of {message.topic}-{message.partition} "
                f"cannot be converted: {error}"
            ) from error
        return SinkRecord(message.topic, message.partition, message.offset, key, value)

    def _put(self, records: list[SinkRecord]) -> None:
        stopping = self._context.stopping
        while True:
            try:
                self._task.put(records)
                break
            except RetriableError as error:
                logger.warning("Task %s will retry its records: %s", self.id, error)
                if stopping.wait(RETRY_S):
                    return
        for record in records:
            self._offsets[TopicPartition(record.topic, record.partition)] = record.offset + 1

    # --- offsets

    def _flush(self) -> None:
        if self._offsets:
            self._task.flush(dict(self._offsets))
            self._uncommitted.update(self._offsets)
            self._offsets = {}
        if not self._uncommitted:
            return
        try:
            codes = self._consumer.offsets.commit(self._uncommitted)
            failed = {tp: code for tp, code in codes.items() if code != NO_ERROR}
            self._uncommitted = {tp: self._uncommitted[tp] for tp in failed}
            reason: object = failed
        except (OSError, KafkaError) as error:
            reason = error
        if reason:
            logger.warning(
                "The offsets of %s were not committed, trying again later: %s", self.id, reason
            )

    def finish(self) -> None:
        try:
            self._consumer.stop()
            if self.error is None:
                self._flush()
        finally:
            self._consumer.offsets.disconnect()
