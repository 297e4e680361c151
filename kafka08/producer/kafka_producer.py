"""KafkaProducer: send returns a future at once, and records are sent in batches.

Mirrors org.apache.kafka.clients.producer.KafkaProducer of 0.8.2. It joins its parts:
``accumulator`` queues records, ``metadata`` finds leaders, ``sender`` sends batches.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from kafka08.client.cluster import ClusterClient, parse_broker_list
from kafka08.client.security import runtime_for
from kafka08.common import Closing, TopicPartition
from kafka08.errors import KafkaError, UnsupportedForMessageFormatError
from kafka08.message.entry import MIN_ENTRY
from kafka08.metrics.registry import Series
from kafka08.network.channel import Channel, Connect
from kafka08.producer.accumulator import Accumulator, PartitionQueue
from kafka08.producer.batch import (
    Callback,
    ProducerBatch,
    RecordFuture,
    RecordMetadata,
    in_callback,
)
from kafka08.producer.connection import PipelinedConnection
from kafka08.producer.dealing import Columns, dealt
from kafka08.producer.encoding import Requests, encode_headers
from kafka08.producer.errors import (
    BufferExhaustedError,
    DeliveryTimeoutError,
    ForkedProducerError,
    IllegalStateError,
    ProducerClosedError,
    RecordTooLargeError,
    WaitTimeoutError,
)
from kafka08.producer.kafka_config import FOREVER_S, KafkaProducerConfig, seconds, warn_of
from kafka08.producer.metadata import MetadataKeeper, Staleness, Topic
from kafka08.producer.metrics import ProducerMetrics
from kafka08.producer.partitioners import Partitioner, RoundRobin, Unkeyed, murmur2_partitioner
from kafka08.producer.sender import Sender
from kafka08.producer.serializers import Encoder, serialized, serializer_of
from kafka08.producer.transactions.calls import TransactionCalls
from kafka08.producer.transactions.coordinators import Coordinators
from kafka08.producer.transactions.idempotence import IdempotentRequests
from kafka08.producer.transactions.manager import (
    ConsumerGroupMetadata,
    Offsets,
    Refusal,
    TransactionManager,
)
from kafka08.protocol.schemas import PartitionMetadata
from kafka08.runtime import Runtime

__all__ = ["KafkaProducer", "RecordFuture", "RecordMetadata"]

logger = logging.getLogger("org.apache.kafka.clients.producer.KafkaProducer")

# How long the end of the interpreter may wait for a producer that was not closed.
AT_EXIT_S = 5.0
# If a broker does not answer metadata requests for so long, another one is asked.
METADATA_TIMEOUT_MS = 10000
# Names and values; a value may be None.
Headers = Sequence["tuple[str, bytes | None]"]
_numbers = itertools.count(1)
_alive: weakref.WeakSet[KafkaProducer] = weakref.WeakSet()


class KafkaProducer(Closing):
    """Sends records from any number of tasks; a context manager that closes.

    Settings come as a mapping of dotted names, as keywords (``linger_ms=5``), or both.
    ``key_serializer`` and ``value_serializer`` are callables to bytes or None; without them keys
    and values must be bytes. ``partitioner(key, n)`` returns the partition of a serialised key
    (of the original key with ``partition_on_raw_key``). ``unkeyed`` creates, per topic, the chooser
    of partitions for records without a key. ``channel`` creates the connections for metadata.

    Raises ConfigError.
    """

    def __init__(
        self,
        properties: Mapping[str, object] | None = None,
        *,
        key_serializer: Encoder | str | None = None,
        value_serializer: Encoder | str | None = None,
        partitioner: Partitioner = murmur2_partitioner,
        partition_on_raw_key: bool = False,
        unkeyed: Callable[[], Unkeyed] = RoundRobin,
        runtime: Runtime | None = None,
        channel: Connect = Channel,
        **settings: Any,
    ) -> None:
        given = {**(properties or {}), **settings}
        key_serializer = key_serializer or given.pop("key.serializer", None)
        value_serializer = value_serializer or given.pop("value.serializer", None)
        self.config = config = KafkaProducerConfig.of(given)
        warn_of(given, config)
        self.client_id = config.client_id or f"producer-{next(_numbers)}"
        self._runtime = runtime or runtime_for(config)
        self._clock = self._runtime.clock
        self._now = self._clock.monotonic
        self._serialize_key = serializer_of(key_serializer)
        self._serialize_value = serializer_of(value_serializer)
        self._partitioner = partitioner
        self._partition_on_raw_key = partition_on_raw_key
        self._closed: type[ProducerClosedError] | None = None
        # The error that send raises: asked for each record, so one value stands for all reasons.
        self._refusal: Refusal | None = None
        self._max_record = min(config.max_request_size, config.buffer_memory)
        self._timed = config.api_versions_request
        self._metrics = ProducerMetrics(
            self._now(), seconds(config.metrics_sample_window_ms), config.metrics_num_samples
        )
        self._room = self._runtime.event()
        self._lock = self._runtime.lock()
        self._accumulator = Accumulator(config, self._lock, self._runtime.event)
        self._cluster = self._make_cluster(channel)
        self._staleness = Staleness(self._runtime)
        self._coordinators = Coordinators(
            self._cluster, self._runtime, seconds(config.retry_backoff_ms)
        )
        self._transactions: TransactionCalls | None = None
        self._requests = self._make_requests()
        self._sender = self._make_sender()
        self._metadata = MetadataKeeper(
            self._accumulator,
            self._cluster,
            self._runtime,
            self._staleness,
            config,
            make_unkeyed=unkeyed,
            updated=self._sender.ensure_lanes,
        )
        self._topics = self._metadata.topics
        self._metadata.start()
        self._sender.start()
        _alive.add(self)

    def _make_cluster(self, channel: Connect) -> ClusterClient:
        config = self.config
        bootstrap = parse_broker_list(config.bootstrap_servers)
        return ClusterClient(
            bootstrap,
            ask_known=True,
            client_id=self.client_id,
            timeout_ms=min(config.request_timeout_ms, METADATA_TIMEOUT_MS),
            runtime=self._runtime,
            channel=channel,
        )

    def _make_requests(self) -> Requests:
        config = self.config
        if not config.enable_idempotence:
            return Requests(config)
        if config.transactional_id is None:
            return IdempotentRequests(config, self._coordinators)
        manager = TransactionManager(config, self._accumulator, self._coordinators, self._refuse)
        self._transactions = TransactionCalls(
            manager,
            self._clock,
            config.block_s,
            self._finish_all,
            lambda ended: self._sender.finish(ended),
        )
        return manager

    def _refuse(self, refusal: Refusal | None) -> None:
        with self._lock:
            self._refusal = refusal if self._closed is None else self._closed
        self._room.set()

    def _make_sender(self) -> Sender:
        config = self.config

        def connection(node: int) -> PipelinedConnection:
            broker = self._cluster.broker(node)
            if broker is None:
                raise ConnectionError("its address is not known")
            channel = Channel(
                broker.host,
                broker.port,
                runtime=self._runtime,
                client_id=self.client_id,
                timeout_ms=config.request_timeout_ms,
                send_buffer_bytes=config.send_buffer_bytes,
                receive_buffer_bytes=config.receive_buffer_bytes,
                api_versions=self._timed,
            )
            return PipelinedConnection(channel, self._runtime)

        return Sender(
            self._accumulator,
            self._requests,
            self._runtime,
            self._metrics,
            config,
            connect=connection,
            stale=self._staleness.report,
            room=self._room,
        )

    # --- sending

    def send(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        partition: int | None = None,
        callback: Callback | None = None,
        timestamp: int | None = None,
        headers: Headers | None = None,
    ) -> RecordFuture:
        """Queue one record. ``callback(metadata, error)`` is called when it is stored or failed.

        ``timestamp`` (ms of the epoch, by default now) and ``headers`` need api.versions.request;
        without it they raise UnsupportedForMessageFormatError.

        Waits for the metadata of a new topic, and for room. As in Java a record that is too large,
        or whose topic stays unknown, fails through its future. Raises SerializationError,
        BufferExhaustedError, ProducerClosedError, and ValueError for a partition that does not
        exist or a negative timestamp.
        """
        if self._refusal is not None:
            raise self._refusal()
        try:
            found = self._topics.get(topic) or self._learn(topic)
        except KafkaError as error:
            return self._failed(topic, partition, error, callback)
        raw_key = key
        if self._serialize_value is not None or (
            value.__class__ is not bytes and value is not None
        ):
            value = serialized("value", value, self._serialize_value)
        if key is not None:
            if self._serialize_key is not None or key.__class__ is not bytes:
                key = serialized("key", key, self._serialize_key)
            if partition is None and key is not None:
                hashed = raw_key if self._partition_on_raw_key else key
                partition = self._partitioner(hashed, len(found.queues))
        if partition is None:
            partition = found.unkeyed.choose(found.available)
        queue = found.queues.get(partition)
        if queue is None:
            raise _no_partition(found, partition)
        size = MIN_ENTRY + len(value or b"") + len(key or b"")
        stamp = None
        if self._timed or timestamp is not None or headers is not None:
            stamp = self._stamp(timestamp, headers)
            size += len(stamp[1] or b"")
        if size > self._max_record:
            return self._failed(topic, partition, self._too_large(size), callback)
        accumulator = self._accumulator
        with self._lock:
            if accumulator.used + size > accumulator.buffer_memory:
                self._await_room(size)
            if self._refusal is not None:
                raise self._refusal()
            future, news = accumulator.append(queue, key, value, size, callback, self._now, stamp)
        if news:
            self._sender.wake(queue.leader)
        return future

    def _stamp(self, timestamp: int | None, headers: Headers | None) -> tuple[int, bytes | None]:
        """The timestamp and headers to send with a record."""
        if not self._timed:
            raise UnsupportedForMessageFormatError(
                "Timestamps and headers are sent with api.versions.request=true only"
            )
        if timestamp is None:
            timestamp = self._clock.millis()
        elif timestamp < 0:
            raise ValueError(f"Invalid timestamp: {timestamp}. It should not be negative.")
        return timestamp, encode_headers(headers) if headers else None

    def _stamp_all(
        self,
        count: int,
        timestamps: Sequence[int | None] | None,
        headers: Sequence[Headers | None] | None,
    ) -> tuple[list[int], list[bytes | None] | None]:
        if timestamps is None and headers is None:
            return [self._stamp(None, None)[0]] * count, None
        no_cells = [None] * count
        pairs = zip(timestamps or no_cells, headers or no_cells, strict=True)
        stamped = [self._stamp(*pair) for pair in pairs]
        packed = None if headers is None else [each for _, each in stamped]
        return [time for time, _ in stamped], packed

    def send_many(
        self,
        topic: str,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        partitions: Sequence[int | None] | None = None,
        callback: Callback | None = None,
        timestamps: Sequence[int | None] | None = None,
        headers: Sequence[Headers | None] | None = None,
    ) -> None:
        """Queue records of bytes in order, each for the partition that ``send`` would choose.

        Does not serialise, and creates no futures: ``callback(metadata, error)`` is called for the
        last record of each run that is sent together. Raises as ``send`` does, and also the errors
        that ``send`` reports by futures (a record that is too large, an unknown topic).
        """
        if self._refusal is not None:
            raise self._refusal()
        found = self._topics.get(topic) or self._learn(topic)
        times: Sequence[int] = ()
        packed = None
        if self._timed or timestamps is not None or headers is not None:
            times, packed = self._stamp_all(len(values), timestamps, headers)
        for partition, records in dealt(
            Columns(values, keys, times, packed),
            partitions,
            found.unkeyed,
            found.available,
            len(found.queues),
            self._partitioner,
        ):
            queue = found.queues.get(partition)
            if queue is None:
                raise _no_partition(found, partition)
            self._queue_all(queue, records, callback)

    def _queue_all(
        self, queue: PartitionQueue, records: Columns, callback: Callback | None
    ) -> None:
        """Queue runs of records; each run is as long as fits into a batch."""
        sizes = records.sizes()
        if max(sizes) > self._max_record:
            self._metrics.refused(queue.tp.topic, self._now())
            raise self._too_large(max(sizes))
        ends = list(itertools.accumulate(sizes))
        accumulator = self._accumulator
        start = queued = 0
        while start < len(sizes):
            with self._lock:
                stop = bisect_right(ends, queued + accumulator.room(queue, sizes[start]), start)
                size = ends[stop - 1] - queued
                if accumulator.used + size > accumulator.buffer_memory:
                    self._await_room(size)
                    continue  # the batch may be full or sent by now
                if self._refusal is not None:
                    raise self._refusal()
                some = records.at(slice(start, stop))
                news = accumulator.append_all(queue, some, size, callback, self._now)
            if news:
                self._sender.wake(queue.leader)
            start, queued = stop, queued + size

    def _learn(self, topic: str) -> Topic:
        return self._metadata.wait_for(topic, self.config.block_s)

    def _too_large(self, size: int) -> RecordTooLargeError:
        config = self.config
        if size > config.max_request_size:
            limit, name = config.max_request_size, "max.request.size"
        else:
            limit, name = config.buffer_memory, "buffer.memory"
        return RecordTooLargeError(
            f"The message is {size} bytes when serialized which is larger than the {limit} bytes "
            f"of {name}. Raise it (and message.max.bytes of the brokers and fetch sizes of the "
            "consumers), or send less at once."
        )

    def _failed(
        self, topic: str, partition: int | None, error: KafkaError, callback: Callback | None
    ) -> RecordFuture:
        self._metrics.refused(topic, self._now())
        tp = TopicPartition(topic, -1 if partition is None else partition)
        batch = ProducerBatch(tp, 0, 0.0, self._lock, self._runtime.event)
        batch.end(-1, error)
        with self._lock:
            ended = self._requests.failed([batch])
        self._sender.finish(ended)
        if callback is not None:
            batch.add_callback(0, callback)
        return RecordFuture(batch, 0)

    def _await_room(self, size: int) -> None:
        """Wait for memory. The lock is held, and released during the wait. Raises
        BufferExhaustedError."""
        config = self.config
        accumulator = self._accumulator
        full = (
            f"buffer.memory ({config.buffer_memory} bytes) is full of records that no broker "
            "has acknowledged yet"
        )
        if in_callback.get():
            raise BufferExhaustedError(f"{full}, and a callback cannot wait for the task it is in")
        if not config.block_on_buffer_full:
            raise BufferExhaustedError(
                f"{full}, and block.on.buffer.full is false: send again later, or raise "
                "buffer.memory"
            )
        limit = seconds(config.max_block_ms) if config.max_block_ms >= 0 else FOREVER_S
        deadline = self._now() + limit
        accumulator.waiting += 1
        begin = self._now()
        try:
            while not accumulator.has_room(size) and self._refusal is None:
                left = deadline - self._now()
                if left <= 0:
                    raise BufferExhaustedError(
                        f"{full}, and no buffer space became free within {config.max_block_ms} ms "
                        "(max.block.ms)"
                    )
                self._room.clear()
                self._lock.release()
                try:
                    self._sender.wake_all()
                    self._room.wait(left)
                finally:
                    self._lock.acquire()
        finally:
            accumulator.waiting -= 1
            now = self._now()
            self._metrics.waited(now - begin, now)

    # --- transactions, for a producer with a transactional.id

    def init_transactions(self) -> None:
        """Register the transactional id. Call it once, before the first transaction.

        Former producers with the id are fenced, and what they have begun is aborted. This and the
        calls below wait for max.block.ms (a minute by default) and then raise WaitTimeoutError;
        the same call is to be made again then. Their other errors are IllegalStateError for a call
        that the state does not allow, FatalTransactionError (also ProducerFencedError) if this
        producer must be closed, and TransactionFailedError if the transaction must be aborted.
        """
        self._transactional("init_transactions").init()

    def begin_transaction(self) -> None:
        """All records sent from now on belong to the transaction, which one call ends."""
        self._transactional("begin_transaction").begin()

    def send_offsets_to_transaction(
        self, offsets: Offsets, group: str | ConsumerGroupMetadata
    ) -> None:
        """Commit offsets of a group if the transaction is committed: those of the next records to
        read. With a member's metadata they are refused if it is not a member any more. After a
        timeout the transaction must be aborted."""
        self._transactional("send_offsets_to_transaction").send_offsets(offsets, group)

    def commit_transaction(self) -> None:
        """Send all records, and commit them if each is stored. If one has failed this raises
        TransactionFailedError, and its cause is the error of the record."""
        self._transactional("commit_transaction").commit()

    def abort_transaction(self) -> None:
        """Abort the transaction. Records that were not sent yet fail with
        TransactionAbortedError."""
        self._transactional("abort_transaction").abort()

    def transaction(self) -> AbstractContextManager[None]:
        """Begin a transaction, and commit it at the end of the ``with`` block. It is aborted if the
        block raises, or the commit, unless the producer must be closed."""
        return self._transactional("begin_transaction").block()

    def _transactional(self, call: str) -> TransactionCalls:
        self._check_may_wait(call)
        if self._transactions is None:
            raise IllegalStateError(f"{call} needs a producer with a transactional.id")
        return self._transactions

    # --- metrics, flush, close

    def partitions_for(self, topic: str) -> list[PartitionMetadata]:
        """The topic's partitions by number. Raises the error of an unknown topic."""
        if self._closed is not None:
            raise self._closed()
        found = self._topics.get(topic) or self._learn(topic)
        return list(found.shown)

    def metrics(self) -> dict[str, float]:
        """The values of ``producer-metrics`` by name; in ms, bytes, per second."""
        now = self._now()
        gauges = {name: value or 0.0 for name, value in self._gauges(now).items()}
        return {**self._metrics.snapshot(now), **gauges}

    def series(self) -> Iterator[Series]:
        """The same for ``ClientCollector``, with those by topic and by node."""
        now = self._now()
        return self._metrics.series(self.client_id, self._gauges(now), now)

    def _gauges(self, now: float) -> dict[str, float | None]:
        refreshed = self._metadata.refreshed_at
        accumulator = self._accumulator
        return {
            "requests-in-flight": self._sender.in_flight,
            "connection-count": self._sender.connections,
            "buffer-total-bytes": accumulator.buffer_memory,
            "buffer-available-bytes": accumulator.buffer_memory - accumulator.used,
            "waiting-threads": accumulator.waiting,
            "metadata-age": None if refreshed is None else now - refreshed,
        }

    def flush(self, timeout: float | None = None) -> None:
        """Send all queued records now, and wait until each is stored or has failed.

        Raises WaitTimeoutError after ``timeout`` seconds.
        """
        self._check_may_wait("flush")
        if not self._finish_all(timeout):
            raise WaitTimeoutError(f"Not all records were acknowledged within {timeout} s")

    def _check_may_wait(self, call: str) -> None:
        if self._closed is not None:
            raise self._closed()
        if in_callback.get():
            raise KafkaError(f"{call} in a callback would wait for itself")

    def _finish_all(self, timeout: float | None) -> bool:
        deadline = None if timeout is None else self._now() + timeout
        with self._lock:
            batches = list(self._accumulator.unfinished)
            self._accumulator.flushing += 1
        self._sender.wake_all()
        try:
            for batch in batches:
                left = None if deadline is None else max(deadline - self._now(), 0.0)
                if not batch.wait(left):
                    return False
        finally:
            with self._lock:
                self._accumulator.flushing -= 1
        return True

    def close(self, timeout: float | None = None) -> None:
        """Send queued records for at most ``timeout`` seconds, fail the rest, and disconnect.

        May be repeated. Every future is done afterwards. In a callback it does not wait.
        """
        calling_back = in_callback.get()
        if calling_back:
            timeout = 0.0
        with self._lock:
            if self._closed is not None:
                return
            self._closed = self._refusal = ProducerClosedError
        self._room.set()
        _alive.discard(self)
        try:
            if self._transactions is not None and timeout != 0:
                timeout = self._transactions.close(timeout)
            self._finish_all(timeout)
        finally:
            self._end(timeout, join=not calling_back)

    def _end(self, timeout: float | None, *, join: bool) -> None:
        """Fail the remaining records and stop all tasks."""
        with self._lock:
            error = DeliveryTimeoutError(
                f"The producer was closed before this record was acknowledged ({timeout} s given)"
            )
            ended = self._accumulator.abandon(error)
        self._metadata.ask_stop()
        self._coordinators.stop()
        self._cluster.abort()
        self._sender.stop(join=join)
        self._cluster.close()
        for batch in ended:
            batch.finish()
        if ended:
            logger.warning("Closed with %d batches unsent or unacknowledged", len(ended))


def _no_partition(found: Topic, partition: int) -> ValueError:
    return ValueError(
        f"Invalid partition given with record: {partition} is not in the range "
        f"[0...{len(found.queues)}]."
    )


def _close_all() -> None:
    """Called at the end of the interpreter, while its threads still run."""
    for producer in list(_alive):
        producer.close(AT_EXIT_S)


def after_fork() -> None:
    """Called in a forked child. Does not use locks: threads of the parent may hold them."""
    for producer in list(_alive):
        producer._closed = producer._refusal = ForkedProducerError
    _alive.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=after_fork)
