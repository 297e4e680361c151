"""Reads messages for a page: at most N, in bounded time and bytes. Commits nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from kafka08.client import log_offsets
from kafka08.client.cluster import ClusterClient
from kafka08.client.reading import Position
from kafka08.common import TopicPartition
from kafka08.console.config import BROWSER_ID, ConsoleConfig
from kafka08.consumer.simple import SimpleConsumer
from kafka08.errors import KafkaError, raise_for_code
from kafka08.message.entry import AnyMessage, Headers, TimedMessage
from kafka08.message.sets import iter_messages
from kafka08.network.channel import Connect
from kafka08.protocol.negotiation import NoApiVersionsError
from kafka08.runtime import Runtime
from kafka08.settings.settings import INT_MAX

_FETCH_BYTES = 256 << 10
_REFRESH_S = 1.0


class BusyError(KafkaError):
    """Too many reads of messages are in progress."""


class Look(NamedTuple):
    """``messages`` by offset. ``start`` and ``end`` are those of the log. The messages from
    ``first`` up to ``next`` have been read, ``read`` in number; ``bytes_read`` came for that.
    ``limit``: the limit that ended the reading before it was done, "" if none did."""

    messages: list[AnyMessage]
    start: int
    end: int
    first: int
    next: int
    read: int
    bytes_read: int
    limit: str


class _Budget:
    """The bytes and the time that one read may still use."""

    def __init__(self, config: ConsoleConfig, runtime: Runtime) -> None:
        self._config = config
        self._clock = runtime.clock
        self._end = runtime.clock.monotonic() + config.browse_timeout_ms / 1000
        self.bytes_read = 0

    @property
    def left(self) -> int:
        return max(self._config.browse_max_bytes - self.bytes_read, 0)

    def limit(self) -> str:
        """The limit that is reached, "" if none is."""
        if not self.left:
            return f"{self._config.browse_max_bytes} bytes (console.browse.max.bytes)"
        if self._clock.monotonic() >= self._end:
            return f"{self._config.browse_timeout_ms} ms (console.browse.timeout.ms)"
        return ""


@dataclass
class Browser:
    """The client finds leaders; each read has a connection of its own, which ends with it, so that
    others do not wait for it.

    Calls raise OSError and KafkaError.
    """

    _cluster: ClusterClient
    _config: ConsoleConfig
    _runtime: Runtime
    _channel: Connect
    _looks: int = 0
    _refreshed: float = -_REFRESH_S

    def forward(self, tp: TopicPartition, offset: int, count: int, needle: bytes = b"") -> Look:
        """Up to ``count`` messages from an offset on; with ``needle`` those that have these bytes
        in their key, value or headers. An offset below the log counts as its start."""
        with self._consumer(tp) as consumer:
            start, end = log_offsets.bounds(consumer.call, tp)
            first = position = min(max(offset, start), end)
            budget = _Budget(self._config, self._runtime)
            found: list[AnyMessage] = []
            read = 0
            for message in self._messages(consumer, tp, first, end, budget):
                read, position = read + 1, message.offset + 1
                if not needle or _has(message, needle):
                    found.append(message)
                if len(found) == count:
                    break
            else:
                position = position if budget.limit() else end
            limit = budget.limit() if position < end and len(found) < count else ""
            return Look(found, start, end, first, position, read, budget.bytes_read, limit)

    def backward(
        self, tp: TopicPartition, before: int | None, count: int, down_to: int = 0
    ) -> Look:
        """The last ``count`` messages below an offset, None for the log's end, and not below
        ``down_to``."""
        with self._consumer(tp) as consumer:
            start, end = log_offsets.bounds(consumer.call, tp)
            lowest = max(start, min(down_to, end))
            high = top = end if before is None else min(max(before, lowest), end)
            budget = _Budget(self._config, self._runtime)
            found: list[AnyMessage] = []
            read, step = 0, count
            # A compacted log has fewer messages than offsets: each step back is longer.
            while high > lowest and len(found) < count and not budget.limit():
                low = max(high - step, lowest)
                piece = list(self._messages(consumer, tp, low, high, budget))
                if budget.limit() and (not piece or piece[-1].offset < high - 1):
                    break
                read += len(piece)
                found = piece + found
                high, step = low, step * 2
            limit = budget.limit() if high > lowest and len(found) < count else ""
            found = found[-count:]
            first = found[0].offset if len(found) == count else high
            return Look(found, start, end, first, top, read, budget.bytes_read, limit)

    def one(self, tp: TopicPartition, offset: int) -> AnyMessage | None:
        """The message at exactly that offset."""
        found = self.forward(tp, offset, 1).messages
        return found[0] if found and found[0].offset == offset else None

    def call_leader(
        self, tp: TopicPartition, request: object, *, api_versions: bool = False
    ) -> Any:
        """One request to the leader of a partition, as ``ClusterClient.call``."""
        self._cluster.refresh()
        leader = self._cluster.known_leader(tp)
        return self._cluster.call(leader, request, api_versions=api_versions)

    def call_broker(self, broker_id: int, request: object, *, api_versions: bool = False) -> Any:
        """One request to a broker, as ``ClusterClient.call``. Raises KafkaError if the broker is
        not up."""
        self._cluster.refresh()
        broker = self._cluster.broker(broker_id)
        if broker is None:
            raise KafkaError(f"Broker {broker_id} is not up")
        return self._cluster.call(broker, request, api_versions=api_versions)

    @contextmanager
    def _consumer(self, tp: TopicPartition) -> Iterator[SimpleConsumer]:
        if self._looks >= self._config.browse_concurrent:
            raise BusyError(
                f"{self._looks} reads of messages are in progress (console.browse.concurrent)"
            )
        self._looks += 1
        try:
            self._refresh()
            with self._connected(tp) as consumer:
                yield consumer
        finally:
            self._looks -= 1

    def _refresh(self) -> None:
        """A page of all partitions asks once who leads them. A request that names a topic could
        create it, so all are asked for."""
        now = self._runtime.clock.monotonic()
        if now - self._refreshed >= _REFRESH_S:
            self._cluster.refresh()
            self._refreshed = now

    def _connected(self, tp: TopicPartition) -> SimpleConsumer:
        """To the leader. Brokers that report their versions send messages with their times."""
        leader = self._cluster.known_leader(tp)
        connected = partial(
            SimpleConsumer,
            leader.host,
            leader.port,
            client_id=BROWSER_ID,
            timeout_ms=self._config.request_timeout_ms,
            receive_buffer_bytes=0,
            runtime=self._runtime,
            channel=self._channel,
        )
        consumer = connected(api_versions=True)
        try:
            consumer.connect()
        except NoApiVersionsError:
            return connected()
        return consumer

    @staticmethod
    def _messages(
        consumer: SimpleConsumer, tp: TopicPartition, position: int, end: int, budget: _Budget
    ) -> Iterator[AnyMessage]:
        """Those from ``position`` below ``end``, until the budget is used up."""
        next_fetch = Position(position, _FETCH_BYTES, INT_MAX)
        while next_fetch.offset < end and not budget.limit():
            size = min(next_fetch.size, budget.left)
            entry = consumer.fetch({tp: next_fetch.offset}, size)[tp]
            raise_for_code(entry.error)
            data: Any = entry.message_set
            if not len(data):
                return
            budget.bytes_read += len(data)
            for message in iter_messages(data):
                if message.offset < position:
                    continue  # the beginning of a compressed set
                if message.offset >= end:
                    return
                position = message.offset + 1
                yield message
            next_fetch.advance(position)


def _has(message: AnyMessage, needle: bytes) -> bool:
    if needle in (message.key or b"") or needle in (message.value or b""):
        return True
    return any(
        needle in name.encode() or needle in (value or b"") for name, value in headers_of(message)
    )


def headers_of(message: AnyMessage) -> Headers:
    """Those of a message of any format; only format 2 has any."""
    return message.headers if isinstance(message, TimedMessage) else ()
