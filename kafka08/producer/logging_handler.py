"""A logging.Handler that sends log records to a topic (kafka.producer.KafkaLog4jAppender).

It must not harm the program that logs: it does not raise, waits at most the configured time, and
drops and counts records that it cannot send. The count is sent when Kafka is back. The client's own
log records, and those logged while a record is being sent, are ignored.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextvars import ContextVar

from kafka08.errors import ConfigError
from kafka08.producer.kafka_config import KafkaProducerConfig
from kafka08.producer.kafka_producer import KafkaProducer

NAME = "kafka.producer.KafkaLog4jAppender"
_OWN_LOGGERS = ("kafka.client.", "kafka.producer.", "org.apache.kafka.clients.")
_OWN_TASKS = "kafka-producer-"
# After a failure this many times max_block_ms passes before another record may wait.
_REST_FACTOR = 10
_SHORTEST_REST_S = 1.0
_CLOSE_S = 5.0
# The appender's names of the options, and ours.
_OPTIONS = {
    "brokerList": "broker_list",
    "compressionType": "compression_type",
    "requiredNumAcks": "required_num_acks",
    "syncSend": "sync_send",
    "producer.type": "producer_type",
}

_emitting: ContextVar[bool] = ContextVar("emitting", default=False)
_alive: weakref.WeakSet[KafkaLoggingHandler] = weakref.WeakSet()


class KafkaLoggingHandler(logging.Handler):
    """Sends each formatted log record, as UTF-8 and without a key, to ``topic``.

    ``options``: compression_type, required_num_acks, sync_send and producer_type. The appender's
    names are also accepted: brokerList, compressionType, requiredNumAcks, syncSend.
    ``sync_send`` (or ``producer_type="sync"``) waits for each record's acknowledgement. A call may
    wait ``max_block_ms`` in total; after a call that timed out, records are dropped at once for ten
    times as long. ``properties`` are further settings of KafkaProducer. The producer is created
    with the first record, and again in a forked child. ``dropped`` counts records not sent.

    Raises ConfigError for invalid or missing settings.
    """

    def __init__(
        self,
        topic: str | None = None,
        broker_list: str | None = None,
        *,
        max_block_ms: int = 1000,
        properties: Mapping[str, object] | None = None,
        level: int | str = logging.NOTSET,
        make_producer: Callable[[dict[str, object]], KafkaProducer] = KafkaProducer,
        monotonic: Callable[[], float] = time.monotonic,
        **options: object,
    ) -> None:
        super().__init__(level)
        given: dict[str, object] = {**dict.fromkeys(_OPTIONS.values()), "broker_list": broker_list}
        for name, value in options.items():
            option = _OPTIONS.get(name, name)
            if option not in given:
                raise ConfigError(f"The Kafka appender has no option {name}")
            given[option] = value
        if not given["broker_list"]:
            raise ConfigError("The bootstrap servers property should be specified")
        if not topic:
            raise ConfigError("topic must be specified by the Kafka log4j appender")
        self.topic = topic
        self.dropped = 0
        self._sync = str(given["sync_send"]).lower() == "true" or given["producer_type"] == "sync"
        self._max_block = max_block_ms / 1000
        self._settings = {
            "bootstrap.servers": given["broker_list"],
            "compression.type": given["compression_type"],
            "acks": given["required_num_acks"],
            "max.block.ms": max_block_ms,
            **(properties or {}),
        }
        # Reject invalid settings now, not with the first record.
        KafkaProducerConfig.of(self._settings)
        self._make_producer = make_producer
        self._monotonic = monotonic
        self._unreported = 0
        self._resting_until = float("-inf")
        self._begin_anew()
        _alive.add(self)

    def _begin_anew(self) -> None:
        """Reset to a state without a producer and with new locks."""
        self._producer: KafkaProducer | None = None
        self._making = threading.Lock()
        self._counting = threading.Lock()

    def handle(self, record: logging.LogRecord) -> bool:
        """As in ``Handler``, but without its lock, which would make all callers wait in turn."""
        kept = self.filter(record)
        if kept:
            self.emit(kept if isinstance(kept, logging.LogRecord) else record)
        return bool(kept)

    def emit(self, record: logging.LogRecord) -> None:
        """Called from any number of tasks at once."""
        is_own = record.name.startswith(_OWN_LOGGERS)
        if is_own or (record.threadName or "").startswith(_OWN_TASKS) or _emitting.get():
            return
        token = _emitting.set(True)
        try:
            text = self.format(record)
            self._ship(text, record)
        except Exception:
            self.handleError(record)
        finally:
            _emitting.reset(token)

    def _ship(self, text: str, record: logging.LogRecord) -> None:
        if self._monotonic() < self._resting_until:
            self._drop(1)
            return
        try:
            if self._unreported and self._producer is not None:
                self._report(self._producer)
            self._send(text)
        except Exception:
            if not self._unreported:
                self.handleError(record)  # report only the first failure of an outage
            self._drop(1)
            rest = max(self._max_block * _REST_FACTOR, _SHORTEST_REST_S)
            self._resting_until = self._monotonic() + rest

    def _send(self, text: str) -> None:
        with self._making:
            if self._producer is None:
                self._producer = self._make_producer(self._settings)
            producer = self._producer
        deadline = self._monotonic() + self._max_block
        data = text.encode("utf-8", "backslashreplace")
        if self._sync:
            producer.send(self.topic, data).result(max(deadline - self._monotonic(), 0.0))
            return
        future = producer.send(self.topic, data, callback=self._ended)
        if future.done() and (error := future.exception(0)) is not None:
            raise error

    def _ended(self, metadata: object, error: BaseException | None) -> None:
        """A queued record failed. Called in one of the producer's tasks."""
        if error is not None and not _emitting.get():
            self._drop(1)

    def _drop(self, count: int) -> None:
        with self._counting:
            self.dropped += count
            self._unreported += count

    def _report(self, producer: KafkaProducer) -> None:
        """Send the number of dropped records; if that fails, the next call sends it."""
        with self._counting:
            count, self._unreported = self._unreported, 0

        def ended(metadata: object, error: BaseException | None) -> None:
            if error is not None:
                with self._counting:
                    self._unreported += count

        text = "%d log records were dropped: Kafka could not be reached in time"
        record = logging.LogRecord(NAME, logging.WARNING, __file__, 0, text, (count,), None)
        try:
            data = self.format(record).encode("utf-8", "backslashreplace")
            producer.send(self.topic, data, callback=ended)
        except Exception as error:
            ended(None, error)
            raise

    def flush(self) -> None:
        """Wait a short time for queued records."""
        producer = self._producer
        if producer is not None and not _emitting.get():
            try:
                producer.flush(max(self._max_block, 0.0))
            except Exception:
                logging.getLogger(NAME).debug("flush", exc_info=True)

    def close(self) -> None:
        """Send queued records, for some seconds at most."""
        with self._making:
            producer, self._producer = self._producer, None
        if producer is not None:
            producer.close(_CLOSE_S)
        super().close()


def after_fork() -> None:
    """Called in a forked child: the producer and the holders of locks are in the parent."""
    for handler in list(_alive):
        handler._begin_anew()


os.register_at_fork(after_in_child=after_fork)
