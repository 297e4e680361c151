"""The Scala-style producer: sends at once, or queues messages for a task that sends batches.

Mirrors kafka.producer.Producer and ProducerSendThread. ``event_handler`` sends a batch to
brokers.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import weakref
from collections.abc import Iterator
from functools import partial

from kafka08.client.cluster import ClusterClient, parse_broker_list
from kafka08.client.security import runtime_for
from kafka08.common import Closing
from kafka08.metrics.registry import Series
from kafka08.network.channel import Channel, Connect
from kafka08.producer.config import SYNC, ProducerConfig
from kafka08.producer.errors import ForkedProducerError, ProducerClosedError, QueueFullError
from kafka08.producer.event_handler import EventHandler, KeyedMessage
from kafka08.producer.metrics import ScalaProducerMetrics
from kafka08.producer.partitioners import Partitioner
from kafka08.producer.serializers import Encoder, encoder_named, partitioner_named
from kafka08.runtime import Empty, Full, Queue, Runtime, TaskHandle

logger = logging.getLogger("kafka.producer.Producer")
thread_logger = logging.getLogger("kafka.producer.async.ProducerSendThread")


AT_EXIT_S = 5.0
_POLL_S = 0.01
_queueing: weakref.WeakSet[Producer] = weakref.WeakSet()


class Batcher:
    """When a batch is complete: at ``max_messages``, or ``max_ms`` after the last one left.

    Pure: times are arguments in ms.
    """

    def __init__(self, max_messages: int, max_ms: int, now_ms: int) -> None:
        self._max_messages = max_messages
        self._max_ms = max_ms
        self._sent_ms = now_ms
        self._batch: list[KeyedMessage] = []

    def patience_ms(self, now_ms: int) -> int:
        """Time in ms to wait for another message."""
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


class Producer(Closing):
    """Sends KeyedMessages from any number of tasks; a context manager that closes.

    ``partitioner``, ``encoder`` and ``key_encoder`` replace those that the settings name. It can
    be used only in the process that created it. When the interpreter ends, queued messages are
    sent for up to ``AT_EXIT_S`` seconds.
    """

    def __init__(
        self,
        config: ProducerConfig,
        *,
        partitioner: Partitioner | None = None,
        encoder: Encoder | None = None,
        key_encoder: Encoder | None = None,
        runtime: Runtime | None = None,
        channel: Connect = Channel,
        handler: EventHandler | None = None,
    ) -> None:
        self.config = config
        self._runtime = runtime or runtime_for(config)
        self._lock = self._runtime.lock()
        self._metrics = ScalaProducerMetrics(self._runtime.clock.monotonic)
        self._closed = False
        self._abandoned = False
        self._pid = os.getpid()
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
        self._queue: Queue[KeyedMessage | None] | None = None
        self._task: TaskHandle | None = None
        if config.producer_type != SYNC:
            self._queue = self._runtime.queue(config.queue_buffering_max_messages)
            self._task = self._runtime.spawn(
                f"ProducerSendThread-{config.client_id}", self._drain, self._queue
            )
            _queueing.add(self)

    def send(self, *messages: KeyedMessage) -> None:
        """Send messages. Returns when all are sent (sync) or queued (async).

        Raises FailedToSendMessageError (sync), QueueFullError (async), ProducerClosedError,
        and the errors of the partitioner and the encoders.
        """
        if self._pid != os.getpid():
            raise ForkedProducerError()
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

    def _enqueue(self, queue: Queue[KeyedMessage | None], message: KeyedMessage) -> None:
        if self._abandoned:
            raise ProducerClosedError()
        timeout_ms = self.config.queue_enqueue_timeout_ms
        try:
            if timeout_ms < 0:
                queue.put(message)
            else:
                queue.put(message, timeout_ms != 0, timeout_ms / 1000)
        except Full:
            self._metrics.dropped_messages.mark(message.topic)
            raise QueueFullError(
                f"Event queue is full of unsent messages, could not send event: {message}"
            ) from None

    def _drain(self, queue: Queue[KeyedMessage | None]) -> None:
        """The sending task. It ends at the marker that ``close`` puts after the last message."""
        clock = self._runtime.clock
        batcher = Batcher(
            self.config.batch_num_messages, self.config.queue_buffering_max_ms, clock.millis()
        )
        while not self._abandoned:
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
        """The metrics under the names of the original's beans, per second; the queue's size."""
        queue = self._queue
        return {
            **self._metrics.numbers(),
            "ProducerQueueSize": 0 if queue is None else queue.qsize(),
        }

    def series(self) -> Iterator[Series]:
        """The same for ``ClientCollector``, by topic and broker too."""
        queue = self._queue
        return self._metrics.series(self.config.client_id, None if queue is None else queue.qsize())

    def close(self, timeout: float | None = None) -> None:
        """Send queued messages for at most ``timeout`` seconds, then disconnect.

        The remaining messages are dropped and their number is logged. May be repeated.
        """
        if self._pid != os.getpid():
            return
        deadline = None if timeout is None else self._runtime.clock.monotonic() + timeout
        self._wait_for_senders(deadline)
        try:
            if self._closed:
                return
            self._closed = True
            _queueing.discard(self)
            logger.info("Shutting down producer")
            if self._queue is not None and self._task is not None:
                self._finish(self._queue, self._task, deadline)
            self._cluster.close()
        finally:
            self._lock.release()

    def _wait_for_senders(self, deadline: float | None) -> None:
        """Take the lock. Its holder may be waiting for room in the queue."""
        if deadline is None or self._queue is None:
            self._lock.acquire()
            return
        while not self._lock.acquire(False):
            if self._runtime.clock.monotonic() >= deadline:
                self._abandon(self._queue)
            self._runtime.sleep(_POLL_S)

    def _finish(
        self, queue: Queue[KeyedMessage | None], task: TaskHandle, deadline: float | None
    ) -> None:
        """End the sending task, after the last message if there is time."""
        if deadline is None:
            queue.put(None)
            task.join()
            return
        clock = self._runtime.clock
        with contextlib.suppress(Full):
            queue.put(None, True, max(deadline - clock.monotonic(), 0.0))
            if task.join(max(deadline - clock.monotonic(), 0.0)):
                return
        self._abandon(queue)
        queue.put(None)

    def _abandon(self, queue: Queue[KeyedMessage | None]) -> None:
        self._abandoned = True
        dropped = 0
        with contextlib.suppress(Empty):
            while True:
                message = queue.get(block=False)
                if message is not None:
                    dropped += 1
                    self._metrics.dropped_messages.mark(message.topic)
        if dropped:
            logger.warning("Closed with %d messages unsent", dropped)


def _close_all() -> None:
    """Called at the end of the interpreter, while its threads still run."""
    for producer in list(_queueing):
        producer.close(AT_EXIT_S)


atexit.register(_close_all)
