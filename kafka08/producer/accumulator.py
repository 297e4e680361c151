"""Queued records: batches per partition, and the memory they use.

Mirrors org.apache.kafka.clients.producer.internals.RecordAccumulator. Pure: does not use sockets or
tasks; times are arguments in monotonic seconds. Every method is called with ``lock`` held. Batches
that ended are returned as a list, to be finished after the lock is released.

The original sends at most one batch of a partition per request. Here a request takes as many as it
has room for: the sets of several batches back to back are one set, and with ``timed``, where a set
must be one record batch, their records are. If a broker refuses a set for its size, it is sent
again batch by batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from kafka08.common import TopicPartition
from kafka08.errors import (
    KafkaError,
    MessageSetSizeTooLargeError,
    MessageSizeTooLargeError,
)
from kafka08.message.entry import MIN_ENTRY
from kafka08.producer.batch import Callback, ProducerBatch, RecordFuture
from kafka08.producer.dealing import Columns
from kafka08.producer.errors import DeliveryTimeoutError
from kafka08.producer.kafka_config import KafkaProducerConfig, seconds
from kafka08.protocol.schemas import NO_LEADER
from kafka08.runtime import Event, Lock

# A broker that repacks a compressed set makes one message of it, which has its own size limit. So
# has a record batch.
ONE_ENTRY_BYTES = 512 * 1024
_TOO_LARGE = (MessageSizeTooLargeError.code, MessageSetSizeTooLargeError.code)


class PartitionQueue:
    """Batches of one partition, oldest first; ``open`` is the last one while it may grow.

    ``in_flight`` counts requests. ``not_before``: monotonic seconds, after an error. ``one_by_one``
    is how many batches must be sent alone. ``accepted``: bytes of the largest set the broker has
    accepted. ``on_trial``: a set of several batches is in flight that the broker may refuse for its
    size; no other set may overtake it. ``together``: of an idempotent producer, the number of
    batches that were sent as one and may be stored; they are the first ones unless in flight.
    """

    __slots__ = (
        "accepted", "batches", "codec", "in_flight", "leader", "not_before", "on_trial",
        "one_by_one", "open", "together", "tp",
    )  # fmt: skip

    def __init__(self, tp: TopicPartition, codec: int) -> None:
        self.tp = tp
        self.codec = codec
        self.leader = NO_LEADER
        self.batches: deque[ProducerBatch] = deque()
        self.open: ProducerBatch | None = None
        self.in_flight = 0
        self.not_before = 0.0
        self.one_by_one = 0
        self.accepted = 0
        self.on_trial = False
        self.together = 0

    @property
    def to_repeat(self) -> int:
        """How many of the first batches must be sent again as one."""
        return 0 if self.in_flight else self.together

    def pop(self) -> ProducerBatch:
        """Take out the oldest batch."""
        batch = self.batches.popleft()
        if batch is self.open:
            self.open = None
        return batch


class PartitionBatches(NamedTuple):
    """The part of a request for one partition."""

    queue: PartitionQueue
    batches: list[ProducerBatch]


class Drained(NamedTuple):
    """``wait``: seconds until there may be more to send; None: not before a new record."""

    parts: list[PartitionBatches]
    wait: float | None


class Accumulator:
    """With retries and guarantee.message.order one request at a time is sent for a partition. With
    api.versions.request records have timestamps, and may have headers. With enable.idempotence
    what was sent as one is sent again as one."""

    def __init__(
        self, config: KafkaProducerConfig, lock: Lock, make_event: Callable[[], Event]
    ) -> None:
        self.lock = lock
        self.used = 0
        self.buffer_memory = config.buffer_memory
        self.waiting = 0  # tasks that wait for memory
        self.flushing = 0  # tasks that wait until all records are sent
        self.unfinished: dict[ProducerBatch, None] = {}
        self._make_event = make_event
        self._codec_of = config.codec_of
        self._batch_size = min(config.batch_size, config.max_request_size)
        self._linger = seconds(config.linger_ms)
        self._max_request_size = config.max_request_size
        self._retries = config.retries
        self._retry_backoff = seconds(config.retry_backoff_ms)
        self._timed = config.api_versions_request
        self._one_at_a_time = config.guarantee_message_order and config.retries > 0
        self._idempotent = config.enable_idempotence
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._led: dict[int, list[PartitionQueue]] = {}
        self._turn = 0
        self._number = 0

    # --- partitions

    def queue(self, tp: TopicPartition) -> PartitionQueue:
        if tp not in self._queues:
            self._queues[tp] = PartitionQueue(tp, self._codec_of(tp.topic))
        return self._queues[tp]

    def set_leaders(self, leaders: dict[TopicPartition, int]) -> None:
        for tp, leader in leaders.items():
            self.queue(tp).leader = leader
        self._led = {}
        for queue in self._queues.values():
            self._led.setdefault(queue.leader, []).append(queue)

    def leaderless(self) -> bool:
        """Whether there are records for partitions without a leader."""
        return any(queue.batches for queue in self._led.get(NO_LEADER, ()))

    # --- in

    def has_room(self, size: int) -> bool:
        return self.used + size <= self.buffer_memory

    def append(
        self,
        queue: PartitionQueue,
        key: bytes | None,
        value: bytes | None,
        size: int,
        callback: Callback | None,
        now: Callable[[], float],
        stamp: tuple[int, bytes | None] | None = None,
    ) -> tuple[RecordFuture, bool]:
        """Add a record; also says whether to wake the leader's task: a batch began or is full."""
        self.used += size
        batch = queue.open
        news = False
        if batch is None or batch.size + size > self._batch_size:
            batch = self._begin(queue, now)
            news = True
        values = batch.values
        index = len(values)
        values.append(value)
        if key is not None:
            if batch.keys is None:
                batch.keys = [None] * index
            batch.keys.append(key)
        elif batch.keys is not None:
            batch.keys.append(None)
        if stamp is not None:
            time, headers = stamp
            batch.stamp((time,), None if headers is None else (headers,))
        batch.size += size
        if callback is not None:
            batch.callbacks.append((index, callback))
        if batch.size + MIN_ENTRY > self._batch_size and queue.open is batch:
            queue.open = None
            news = True
        return RecordFuture(batch, index), news

    def room(self, queue: PartitionQueue, first: int) -> int:
        """The free bytes of the batch that a record of ``first`` bytes would be added to."""
        left = self._batch_size - (0 if queue.open is None else queue.open.size)
        return min(left if left >= first else max(self._batch_size, first), self.buffer_memory)

    def append_all(
        self,
        queue: PartitionQueue,
        records: Columns,
        size: int,
        callback: Callback | None,
        now: Callable[[], float],
    ) -> bool:
        """Add records of ``size`` bytes in total, which must fit ``room``. The callback belongs to
        the last one."""
        self.used += size
        batch = queue.open
        news = False
        if batch is None or batch.size + size > self._batch_size:
            batch = self._begin(queue, now)
            news = True
        values, keys, times, headers = records
        index = len(batch.values)
        batch.values += values
        if keys is not None:
            batch.keys = [None] * index if batch.keys is None else batch.keys
            batch.keys += keys
        elif batch.keys is not None:
            batch.keys += [None] * len(values)
        if times:
            batch.stamp(times, headers)
        batch.size += size
        if callback is not None:
            batch.callbacks.append((len(batch.values) - 1, callback))
        if batch.size + MIN_ENTRY > self._batch_size and queue.open is batch:
            queue.open = None
            news = True
        return news

    def _begin(self, queue: PartitionQueue, now: Callable[[], float]) -> ProducerBatch:
        self._number += 1
        batch = ProducerBatch(queue.tp, self._number, now(), self.lock, self._make_event)
        queue.batches.append(batch)
        queue.open = batch
        self.unfinished[batch] = None
        return batch

    # --- out

    def drain(self, leader: int, now: float) -> Drained:
        """Remove the batches of one request to ``leader``; partitions take turns to be first."""
        queues = self._led.get(leader, ())
        parts: list[PartitionBatches] = []
        room = self._max_request_size
        wait: float | None = None
        self._turn += 1
        for number in range(len(queues)):
            queue = queues[(number + self._turn) % len(queues)]
            delay = self._delay(queue, now)
            if delay == 0.0:
                batches = self._take(queue, room, not parts)
                if batches:
                    parts.append(PartitionBatches(queue, batches))
                    room -= sum(batch.size for batch in batches)
                delay = self._delay(queue, now)
            if delay is not None:
                wait = delay if wait is None else min(wait, delay)
        return Drained(parts, wait)

    def next_delay(self, leader: int, now: float) -> float | None:
        """Seconds until ``drain`` would return a batch, as ``Drained.wait``."""
        delays = [self._delay(queue, now) for queue in self._led.get(leader, ())]
        return min((delay for delay in delays if delay is not None), default=None)

    def _delay(self, queue: PartitionQueue, now: float) -> float | None:
        """Seconds until a batch of the queue may be sent; None: not before another event."""
        if not queue.batches or (self._one_at_a_time and queue.in_flight) or queue.on_trial:
            return None
        delay = queue.not_before - now
        first = queue.batches[0]
        if first is queue.open and not (self.flushing or self.waiting):
            delay = max(delay, first.created + self._linger - now)
        return max(delay, 0.0)

    def _take(self, queue: PartitionQueue, room: int, first: bool) -> list[ProducerBatch]:
        if queue.together:
            return self._take_again(queue, room, first)
        taken: list[ProducerBatch] = []
        limit = min(room, ONE_ENTRY_BYTES) if queue.codec or self._timed else room
        size = 0
        while queue.batches:
            # A single batch is always sent, or one above the limit would never be.
            if size + queue.batches[0].size > limit and (taken or not first):
                break
            batch = queue.pop()
            taken.append(batch)
            size += batch.size
            if queue.one_by_one:
                queue.one_by_one -= 1
                break
        if taken:
            queue.in_flight += 1
        if len(taken) > 1 and (queue.codec or size > queue.accepted):
            # The size of a compressed set after repacking is not known: it depends on its content.
            queue.on_trial = True
        return taken

    def _take_again(self, queue: PartitionQueue, room: int, first: bool) -> list[ProducerBatch]:
        again = [queue.batches[number] for number in range(queue.together)]
        if not first and sum(batch.size for batch in again) > room:
            return []
        for _ in again:
            queue.pop()
        queue.in_flight += 1
        return again

    # --- the end of a request

    def succeeded(self, part: PartitionBatches, base_offset: int) -> list[ProducerBatch]:
        """``base_offset`` is -1 if the broker did not return one."""
        queue = part.queue
        self._landed(queue)
        queue.together = 0
        queue.accepted = max(queue.accepted, sum(batch.size for batch in part.batches))
        for batch in part.batches:
            count = len(batch.values)
            self._end(batch, base_offset, None)
            if base_offset >= 0:
                base_offset += count
        return part.batches

    def failed(self, part: PartitionBatches, error: KafkaError, now: float) -> list[ProducerBatch]:
        """The batches that must not be sent again."""
        queue, batches = part
        self._landed(queue)
        queue.together = 0
        if error.code in _TOO_LARGE and len(batches) > 1:
            queue.one_by_one += len(batches)
            self._put_back(queue, batches)
            return []
        again = []
        ended = []
        for batch in batches:
            if batch.done:
                continue  # it has expired meanwhile
            if error.retriable and batch.attempts < self._retries:
                batch.attempts += 1
                again.append(batch)
            else:
                self._end(batch, -1, error)
                ended.append(batch)
        if again:
            queue.together = len(again) if self._idempotent else 0
            queue.not_before = now + self._retry_backoff
            self._put_back(queue, again)
        return ended

    def take_back(self, parts: Iterable[PartitionBatches]) -> None:
        """Put back batches that were drained but not sent."""
        for queue, batches in parts:
            self._landed(queue)
            self._put_back(queue, [batch for batch in batches if not batch.done])

    def _landed(self, queue: PartitionQueue) -> None:
        queue.in_flight -= 1
        if not queue.in_flight:  # the set on trial was sent last
            queue.on_trial = False

    def _put_back(self, queue: PartitionQueue, batches: Iterable[ProducerBatch]) -> None:
        """Put batches at the front, in their original order, even if several requests fail."""
        merged = sorted([*batches, *queue.batches], key=lambda batch: batch.number)
        queue.batches = deque(merged)

    def expired(self, created_before: float, why: str) -> list[ProducerBatch]:
        """Fail batches that have waited since before that time and are not in a request."""
        ended = []
        for queue in self._queues.values():
            while queue.batches and queue.batches[0].created < created_before:
                for _ in range(queue.to_repeat or 1):
                    batch = queue.pop()
                    self._end(batch, -1, DeliveryTimeoutError(f"{queue.tp}: {why}"))
                    ended.append(batch)
                if not queue.in_flight:
                    queue.together = 0
        return ended

    def give_up_unsent(self, error: KafkaError) -> list[ProducerBatch]:
        """Fail all batches that no broker can have stored."""
        ended = []
        for queue in self._queues.values():
            while len(queue.batches) > queue.to_repeat:
                batch = queue.batches.pop()
                self._end(batch, -1, error)
                ended.append(batch)
            queue.open = None
        return ended[::-1]

    def abandon(self, error: KafkaError) -> list[ProducerBatch]:
        """Fail all batches, including those in flight, as answers are no longer read."""
        for queue in self._queues.values():
            queue.batches.clear()
            queue.open = None
            queue.together = 0
        ended = list(self.unfinished)
        for batch in ended:
            self._end(batch, -1, error)
        return ended

    def _end(self, batch: ProducerBatch, base_offset: int, error: KafkaError | None) -> None:
        if batch.done:
            return
        batch.end(base_offset, error)
        self.used -= batch.size
        del self.unfinished[batch]
