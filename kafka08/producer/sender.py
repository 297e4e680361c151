"""Sends drained batches to the brokers. Each broker has a task that writes, each connection a
task that reads, and one task checks timeouts.

Mirrors org.apache.kafka.clients.producer.internals.Sender and NetworkClient, with blocking
sockets instead of a selector, so that it runs on any Runtime, and so that a broker that hangs
does not delay the others. The accumulator decides what is sent, and when.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from kafka08.client.requests import Response, flatten
from kafka08.common import TopicPartition
from kafka08.errors import KafkaError, ProtocolError, RequestTimedOutError
from kafka08.producer.accumulator import Accumulator, PartitionBatches
from kafka08.producer.batch import ProducerBatch
from kafka08.producer.connection import Outstanding, PipelinedConnection
from kafka08.producer.encoding import Requests
from kafka08.producer.errors import DUPLICATE_SEQUENCE, DisconnectedError, answered
from kafka08.producer.kafka_config import KafkaProducerConfig, seconds
from kafka08.producer.metrics import ProducerMetrics
from kafka08.runtime import Event, Loop, Runtime, TaskHandle

logger = logging.getLogger("org.apache.kafka.clients.producer.internals.Sender")

_IDLE_S = 3600.0
_SWEEP_S = 0.5
_JOIN_S = 5.0
# The errors of a lost connection or a malformed response.
_LOST = (OSError, KafkaError)


class Link:
    """A connection in use, from which a lane reads responses."""

    __slots__ = ("connection", "reader")

    def __init__(self, connection: PipelinedConnection) -> None:
        self.connection = connection
        self.reader: TaskHandle | None = None


class Lane:
    """The traffic to one broker."""

    def __init__(self, sender: Sender, node: int, runtime: Runtime) -> None:
        self.node = node
        self.wake: Event = runtime.event()
        self.link: Link | None = None
        self.retry_at = float("-inf")
        self.loop = Loop(
            runtime, f"kafka-producer-network-thread-{node}", lambda: sender.serve(self)
        )


class Sender:
    """``requests`` builds what is sent. ``connect`` makes the connection to the broker with an id.
    ``stale`` is called when metadata proves wrong; ``room`` is set when memory was freed."""

    def __init__(
        self,
        accumulator: Accumulator,
        requests: Requests,
        runtime: Runtime,
        metrics: ProducerMetrics,
        config: KafkaProducerConfig,
        *,
        connect: Callable[[int], PipelinedConnection],
        stale: Callable[[], None],
        room: Event,
    ) -> None:
        self._accumulator = accumulator
        self._requests = requests
        self._lock = accumulator.lock
        self._runtime = runtime
        self._clock = runtime.clock
        self._metrics = metrics
        self._connect = connect
        self._stale = stale
        self._room = room
        self._acks = requests.acks
        self._max_in_flight = config.max_in_flight_requests_per_connection
        self._reconnect_backoff = seconds(config.reconnect_backoff_ms)
        self._request_timeout = seconds(config.request_timeout_ms)
        self._delivery_timeout = seconds(config.delivery_timeout_ms)
        self.lanes: dict[int, Lane] = {}
        self._stopped = False
        self._sweeper = Loop(runtime, "kafka-producer-timeouts", self.sweep_or_wait)
        self._sweep_wake = runtime.event()

    # --- start and stop

    def start(self) -> None:
        self._sweeper.start()

    def ensure_lanes(self, nodes: Iterable[int]) -> None:
        """Create a lane for each of these brokers, and wake all lanes."""
        with self._lock:
            if self._stopped:
                return
            for node in nodes:
                if node not in self.lanes:
                    self.lanes[node] = lane = Lane(self, node, self._runtime)
                    lane.loop.start()
        self.wake_all()

    def wake(self, node: int) -> None:
        """Wake the lane of this broker: there is a new batch."""
        lane = self.lanes.get(node)
        if lane is None:
            self._stale()
        elif not lane.wake.is_set():
            lane.wake.set()
        if not self._sweep_wake.is_set():
            self._sweep_wake.set()

    def wake_all(self) -> None:
        for lane in list(self.lanes.values()):
            lane.wake.set()

    def stop(self, *, join: bool) -> None:
        """End all tasks. Requests in flight stay unanswered."""
        with self._lock:
            self._stopped = True
            lanes = list(self.lanes.values())
        self._sweeper.stopping.set()
        self._sweep_wake.set()
        for lane in lanes:
            lane.loop.stopping.set()
            lane.wake.set()
            if lane.link is not None:
                lane.link.connection.abort()
        if join:
            self._sweeper.stop(_JOIN_S)
            for lane in lanes:
                lane.loop.stop(_JOIN_S)
                link = lane.link
                if link is not None and link.reader is not None:
                    link.reader.join(_JOIN_S)

    @property
    def in_flight(self) -> int:
        return sum(len(link.connection.outstanding) for link in self._links())

    @property
    def connections(self) -> int:
        return len(self._links())

    def _links(self) -> list[Link]:
        links = [lane.link for lane in list(self.lanes.values())]
        return [link for link in links if link is not None]

    # --- writing

    def serve(self, lane: Lane) -> None:
        """One round of a lane: send what is ready, then wait."""
        lane.wake.clear()
        began = self._clock.monotonic()
        wait = self.send_all(lane)
        sent = self._clock.monotonic()
        if wait > 0 and not lane.loop.stopping.is_set():
            lane.wake.wait(wait)
        now = self._clock.monotonic()
        self._metrics.round(sent - began, now - sent, now)

    def send_all(self, lane: Lane) -> float:
        """Send what is ready; returns the seconds to wait unless woken."""
        while not lane.loop.stopping.is_set():
            link = lane.link
            now = self._clock.monotonic()
            if link is None:
                with self._lock:
                    wait = self._accumulator.next_delay(lane.node, now)
                if wait != 0.0:
                    return _IDLE_S if wait is None else wait
                if now < lane.retry_at:
                    return lane.retry_at - now
                link = self._open(lane)
                if link is None:
                    continue
            if len(link.connection.outstanding) >= self._max_in_flight:
                return _IDLE_S
            with self._lock:
                drained = self._accumulator.drain(lane.node, now)
            if not drained.parts:
                return _IDLE_S if drained.wait is None else drained.wait
            self._send(lane, link, drained.parts)
        return 0.0

    def _open(self, lane: Lane) -> Link | None:
        try:
            connection = self._connect(lane.node)
        except _LOST as error:
            level = logging.DEBUG if isinstance(error, OSError) else logging.WARNING
            logger.log(level, "Error connecting to node %d: %s", lane.node, error)
            lane.retry_at = self._clock.monotonic() + max(self._reconnect_backoff, 0.001)
            self._stale()
            return None
        lane.link = link = Link(connection)
        self._metrics.opened(self._clock.monotonic())
        link.reader = self._runtime.spawn(
            f"kafka-producer-reader-{lane.node}", self.read, lane, link
        )
        if lane.loop.stopping.is_set():
            connection.abort()
        return link

    def _send(self, lane: Lane, link: Link, parts: list[PartitionBatches]) -> None:
        try:
            request = self._requests.build(parts)
        except KafkaError as error:
            self._end_parts(parts, error)
            return
        except Exception as error:
            logger.exception("Cannot encode a request for node %d", lane.node)
            self._end_parts(parts, KafkaError(f"Cannot encode the records: {error!r}"))
            return
        with self._lock:
            if lane.link is not link:
                self._accumulator.take_back(parts)
                return
            data = link.connection.encode(request, parts, answered=self._acks != 0)
        self._metrics.sent(lane.node, parts, request, len(data), self._clock.monotonic())
        try:
            link.connection.write(data)
        except _LOST as error:
            if self._acks == 0:
                self._end_parts(parts, DisconnectedError(f"Node {lane.node}: {error}"))
            self._lose(lane, link, error)
            return
        if self._acks == 0:
            self._succeed([(part, -1) for part in parts])

    # --- reading

    def read(self, lane: Lane, link: Link) -> None:
        """The task that reads one connection until it ends."""
        connection = link.connection
        try:
            while True:
                responses = connection.receive()
                size, connection.received = connection.received, 0
                self._metrics.received(lane.node, size, len(responses), self._clock.monotonic())
                for response, asked in responses:
                    entries = _entries_for(asked.context, response)
                    with self._lock:
                        if lane.link is not link:
                            return  # its requests have been given up
                        connection.outstanding.popleft()
                    self._answered(lane, entries, asked)
                lane.wake.set()
        except _LOST as error:
            self._lose(lane, link, error)
        except Exception as error:
            logger.exception("Uncaught error in kafka producer I/O thread")
            self._lose(lane, link, error)
        finally:
            connection.close()

    def _answered(
        self, lane: Lane, entries: dict[TopicPartition, Response], asked: Outstanding
    ) -> None:
        parts: list[PartitionBatches] = asked.context
        now = self._clock.monotonic()
        self._metrics.answered(lane.node, now - asked.sent, now)
        good = []
        for part in parts:
            entry = entries[part.queue.tp]
            if entry.error and entry.error != DUPLICATE_SEQUENCE:
                self._end_parts([part], answered(entry.error, part.queue.tp))
            else:
                good.append((part, entry.base_offset))
        self._succeed(good)

    def _succeed(self, parts: list[tuple[PartitionBatches, int]]) -> None:
        ended: list[ProducerBatch] = []
        with self._lock:
            for part, base_offset in parts:
                self._requests.stored(part)
                ended += self._accumulator.succeeded(part, base_offset)
        self.finish(ended)

    def _end_parts(self, parts: list[PartitionBatches], error: KafkaError) -> None:
        """Retry or fail."""
        now = self._clock.monotonic()
        ended: list[ProducerBatch] = []
        with self._lock:
            for part in parts:
                failed = self._accumulator.failed(part, error, now)
                self._metrics.failed(part, failed, now)
                ended += failed
            ended += self._also_failed(ended, now)
        if error.stale_metadata:
            self._stale()
        self.finish(ended)

    def _also_failed(self, ended: list[ProducerBatch], now: float) -> list[ProducerBatch]:
        """The batches that fail because others have."""
        others = self._requests.failed(ended) if ended else []
        self._metrics.expired(others, now)
        return others

    def finish(self, ended: Sequence[ProducerBatch]) -> None:
        """Report the end of batches. Called without the lock."""
        if ended and self._accumulator.waiting:
            self._room.set()
        for batch in ended:
            batch.finish()

    def _lose(self, lane: Lane, link: Link, cause: BaseException) -> None:
        """Close a failed connection and fail its requests."""
        with self._lock:
            if lane.link is not link:
                return
            lane.link = None
            lane.retry_at = self._clock.monotonic() + self._reconnect_backoff
            asked = list(link.connection.outstanding)
            link.connection.outstanding.clear()
        link.connection.abort()
        self._metrics.closed(self._clock.monotonic())
        if asked:
            error = DisconnectedError(
                f"The connection to broker {lane.node} was lost before it answered: {cause}"
            )
            self._end_parts([part for request in asked for part in request.context], error)
        if not lane.loop.stopping.is_set():
            logger.debug("Node %d disconnected: %s", lane.node, cause)
            self._stale()
        lane.wake.set()

    # --- time

    def sweep_or_wait(self) -> None:
        self._sweep_wake.clear()
        if self._accumulator.unfinished:
            self.sweep()
            self._sweeper.stopping.wait(_SWEEP_S)
        elif not self._sweeper.stopping.is_set():  # a stop sets the event cleared above
            self._sweep_wake.wait(_IDLE_S)

    def sweep(self) -> None:
        """Close connections whose broker does not answer, and fail records that waited too long."""
        now = self._clock.monotonic()
        for lane in list(self.lanes.values()):
            link = lane.link
            since = link.connection.waiting_since() if link is not None else None
            if link is not None and since is not None and now - since > self._request_timeout:
                self._lose(
                    lane,
                    link,
                    RequestTimedOutError(f"no answer for {self._request_timeout:g} s"),
                )
        with self._lock:
            ended = self._accumulator.expired(
                now - self._delivery_timeout,
                f"waited {self._delivery_timeout:g} s (delivery.timeout.ms) for its leader",
            )
            self._metrics.expired(ended, now)
            ended += self._also_failed(ended, now)
        self.finish(ended)


def _entries_for(
    parts: list[PartitionBatches], response: Response
) -> dict[TopicPartition, Response]:
    entries = flatten(response.topics)
    if any(part.queue.tp not in entries for part in parts):
        raise ProtocolError("a response without some of the requested partitions")
    return entries
