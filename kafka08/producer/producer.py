"""The producer applications hold: send now, or queue and let a task send in batches.

Mirrors kafka.producer.Producer and ProducerSendThread. How a batch reaches brokers is
``event_handler``'s.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from kafka08.client.cluster import ClusterClient, parse_broker_list
from kafka08.network.channel import Channel
from kafka08.producer.config import SYNC, ProducerConfig
from kafka08.producer.errors import ProducerClosedError, QueueFullError
from kafka08.producer.event_handler import EventHandler, KeyedMessage
from kafka08.producer.partitioners import Partitioner
from kafka08.producer.scala_metrics import ScalaProducerMetrics
from kafka08.producer.serializers import Encoder, encoder_named, partitioner_named
from kafka08.runtime import Empty, Full, Queue, Runtime, Task, ThreadRuntime

logger = logging.getLogger("kafka.producer.Producer")
thread_logger = logging.getLogger("kafka.producer.async.ProducerSendThread")


class Batcher:
    """When a batch is complete: at ``max_messages``, or ``max_ms`` after the last one left.

    Pure: times are ms handed in.
    """

    def __init__(self, max_messages: int, max_ms: int, now_ms: int) -> None:
        self._max_messages = max_messages
        self._max_ms = max_ms
        self._sent_ms = now_ms
        self._batch: list[KeyedMessage] = []

    def patience_ms(self, now_ms: int) -> int:
        """How long to wait for another message."""
        return max(0, self._sent_ms + self._max_ms - now_ms)

    def add(self, message: KeyedMessage) -> bool:
        """Whether the batch is full now."""
        self._batch.append(message)
        return len(self._batch) >= self._max_messages

    def take(self) -> list[KeyedMessage]:
        batch, self._batch = self._batch, []
        return batch

    def sent(self, now_ms: int) -> None:
        self._sent_ms = now_ms


class Producer:
    """Sends KeyedMessages from any number of tasks; a context manager that closes.

    ``partitioner``, ``encoder`` and ``key_encoder`` take the place of those the settings name.
    """

    def __init__(
        self,
        config: ProducerConfig,
        *,
        partitioner: Partitioner | None = None,
        encoder: Encoder | None = None,
        key_encoder: Encoder | None = None,
        runtime: Runtime | None = None,
        channel: Any = Channel,
        handler: Any = None,
    ) -> None:
        self.config = config
        self._runtime = runtime or ThreadRuntime()
        self._lock = self._runtime.lock()
        self._metrics = ScalaProducerMetrics(self._runtime.clock.monotonic)
        self._closed = False
        self._cluster = ClusterClient(
            parse_broker_list(config.metadata_broker_list),
            client_id=config.client_id,
            timeout_ms=config.request_timeout_ms,
            runtime=self._runtime,
            channel=partial(channel, send_buffer_bytes=config.send_buffer_bytes),
        )
        encoding = config.serializer_encoding
        self._handler = handler or EventHandler(
            config,
            self._cluster,
            partitioner or partitioner_named(config.partitioner_class),
            encoder or encoder_named(config.serializer_class, encoding),
            key_encoder or encoder_named(config.key_serializer_class, encoding),
            self._runtime,
            metrics=self._metrics,
        )
        self._queue: Queue | None = None
        self._task: Task | None = None
        if config.producer_type != SYNC:
            self._queue = self._runtime.queue(config.queue_buffering_max_messages)
            self._task = self._runtime.spawn(
                f"ProducerSendThread-{config.client_id}", self._drain, self._queue
            )

    def send(self, *messages: KeyedMessage) -> None:
        """Sync: return once all are sent; async: once all are queued.

        Raises FailedToSendMessageError (sync), QueueFullError (async), ProducerClosedError,
        and what a partitioner's key or an encoder's value is refused with.
        """
        with self._lock:
            if self._closed:
                raise ProducerClosedError()
            for message in messages:
                if message.topic is None:
                    raise TypeError("Topic cannot be null.")
            if self._queue is None:
                self._handler.handle(messages)
                return
            for message in messages:
                self._enqueue(self._queue, message)

    def _enqueue(self, queue: Queue, message: KeyedMessage) -> None:
        timeout_ms = self.config.queue_enqueue_timeout_ms
        try:
            if timeout_ms < 0:
                queue.put(message)
            else:
                queue.put(message, timeout_ms != 0, timeout_ms / 1000)
        except Full:
            self._metrics.dropped_messages.mark()
            raise QueueFullError(
                f"Event queue is full of unsent messages, could not send event: {message}"
            ) from None

    def _drain(self, queue: Queue) -> None:
        """The sending task: until the end marker, which ``close`` puts behind the last message."""
        clock = self._runtime.clock
        batcher = Batcher(
            self.config.batch_num_messages, self.config.queue_buffering_max_ms, clock.millis()
        )
        while True:
            try:
                message = queue.get(timeout=batcher.patience_ms(clock.millis()) / 1000)
            except Empty:
                complete = True
            else:
                if message is None:
                    break
                complete = batcher.add(message)
            if complete:
                self._handle(batcher.take())
                batcher.sent(clock.millis())
        self._handle(batcher.take())

    def _handle(self, batch: list[KeyedMessage]) -> None:
        if not batch:
            return
        try:
            self._handler.handle(batch)
        except Exception:
            thread_logger.exception("Error in handling batch of %d events", len(batch))

    def metrics(self) -> dict[str, float]:
        """Numbers under the names of the original's beans, per second; the queue's size."""
        queue = self._queue
        return {
            **self._metrics.numbers(),
            "ProducerQueueSize": 0 if queue is None else queue.qsize(),
        }

    def close(self) -> None:
        """Send what is queued, then disconnect. May be repeated."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            logger.info("Shutting down producer")
            if self._queue is not None and self._task is not None:
                self._queue.put(None)
                self._task.join()
            self._cluster.close()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
