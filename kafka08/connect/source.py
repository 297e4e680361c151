"""Runs a source task: sends the records it polls, and stores the offsets of acknowledged ones.

Offsets are written only up to the first record that is not acknowledged yet. After a kill the
task continues from there, so records may be sent twice but none is lost. Mirrors
org.apache.kafka.connect.runtime.WorkerSourceTask.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka08.connect.converters import Converter
from kafka08.connect.interface import ConnectError, DataError, Place, SourceRecord, SourceTask
from kafka08.connect.offsets import OffsetFile
from kafka08.connect.runner import Runner
from kafka08.producer.batch import RecordFuture
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.settings.settings import INT_MAX

logger = logging.getLogger("org.apache.kafka.connect.runtime.WorkerSourceTask")

IDLE_S = 0.1
# Records wait even if brokers are unavailable for days. The order of records is kept.
PRODUCER = {"acks": "all", "retries": INT_MAX, "delivery.timeout.ms": INT_MAX}


class Delivery(NamedTuple):
    """Sends a source's records to the brokers."""

    key_converter: Converter
    value_converter: Converter
    make_producer: Callable[[], KafkaProducer]
    offsets: OffsetFile
    flush_interval: float
    flush_timeout: float


class SourceRunner(Runner):
    _task: SourceTask

    def __init__(self, connector: str, delivery: Delivery, *args: Any) -> None:
        super().__init__(*args)
        self._connector = connector
        self._delivery = delivery
        self._producer: KafkaProducer | None = None
        self._sent: deque[tuple[RecordFuture, str, Place]] = deque()
        self._acknowledged: dict[str, Place] = {}
        self._source: tuple[Place, str] = ({}, "{}")
        self._next_flush = 0.0

    def begin(self) -> None:
        self._producer = self._delivery.make_producer()
        self._next_flush = self._now() + self._delivery.flush_interval

    def step(self) -> None:
        records = self._task.poll()
        for record in records:
            self._send(record)
        self._reap()
        if self._now() >= self._next_flush:
            self._remember()
            self._next_flush = self._now() + self._delivery.flush_interval
        if not records:
            self._context.stopping.wait(IDLE_S)

    def _send(self, record: SourceRecord) -> None:
        try:
            key = self._delivery.key_converter.to_bytes(record.key)
            value = self._delivery.value_converter.to_bytes(record.value)
        except DataError as error:
            raise DataError(f"A record for {record.topic} cannot be converted: {error}") from error
        assert self._producer is not None
        future = self._producer.send(record.topic, value, key, record.partition)
        if record.source is not self._source[0]:
            self._source = (record.source, json.dumps(dict(record.source), sort_keys=True))
        self._sent.append((future, self._source[1], record.offset))

    def _reap(self) -> None:
        """Record acknowledged offsets. Raises ConnectError for a record that failed."""
        sent = self._sent
        while sent and sent[0][0].done():
            future, source, offset = sent.popleft()
            error = future.exception()
            if error is not None:
                sent.clear()  # offsets after it must not be stored
                raise ConnectError(f"A record was not stored: {error}") from error
            self._acknowledged[source] = offset

    def _remember(self) -> None:
        if self._acknowledged:
            try:
                self._delivery.offsets.write(self._connector, self._acknowledged)
            except OSError as error:
                logger.error(
                    "The offsets of %s were not written, trying again later: %s", self.id, error
                )
                return
            self._acknowledged = {}
        if not self._sent:
            self._task.commit()

    def finish(self) -> None:
        if self._producer is None:
            return
        try:
            self._producer.close(self._delivery.flush_timeout)
            self._reap()
        finally:
            self._remember()
