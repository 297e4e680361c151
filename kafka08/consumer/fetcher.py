"""Fetches the partitions a member owns: one loop finds leaders, one loop per broker fetches.

Mirrors kafka.consumer.ConsumerFetcherManager and ConsumerFetcherThread. The input is
PartitionPositions, the output chunks in the queues of their streams. Does not know ZooKeeper or
ownership. A stream whose queue is full stalls its whole fetcher, as in the original.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from kafka08.client import log_offsets, reading
from kafka08.client.cluster import ClusterClient, NoBrokerError, endpoints_of
from kafka08.client.meters import Requests, Ticker, TopicMeters
from kafka08.common import EARLIEST_TIME, Broker, TopicPartition, csv, fetcher_number
from kafka08.consumer.config import SMALLEST, ConsumerConfig
from kafka08.consumer.stream import Chunk, PartitionPosition, chunk_of
from kafka08.errors import (
    NO_ERROR,
    InvalidMessageError,
    KafkaError,
    OffsetOutOfRangeError,
    for_code,
)
from kafka08.network.channel import Channel, Connect
from kafka08.protocol.schemas import FetchPartitionResponse
from kafka08.runtime import Full, Loop, Runtime, ThreadRuntime

logger = logging.getLogger("kafka.consumer.ConsumerFetcherThread")
manager_logger = logging.getLogger("kafka.consumer.ConsumerFetcherManager")

IDLE_S = 0.2
PUT_S = 0.1
JOIN_S = 5.0
GiveBack = Callable[[Iterable[PartitionPosition]], None]


class Fetcher:
    """One connection to one broker; fetches all its partitions in one request at a time.

    ``give_back`` receives the positions it cannot continue with; it no longer fetches them.
    ``meter`` counts bytes, ``fetches`` times and sizes of fetches.
    """

    def __init__(
        self,
        name: str,
        broker: Broker,
        config: ConsumerConfig,
        give_back: GiveBack,
        runtime: Runtime,
        channel: Connect,
        meter: TopicMeters,
        fetches: Requests,
    ) -> None:
        self.broker = broker
        self._meter = meter
        self._fetches = fetches
        self._now = runtime.clock.monotonic
        self._config = config
        self._give_back = give_back
        self._lock = runtime.lock()
        self._added = runtime.event()
        self._positions: dict[TopicPartition, PartitionPosition] = {}
        self._channel = channel(
            broker.host,
            broker.port,
            client_id=config.client_id,
            timeout_ms=config.socket_timeout_ms,
            runtime=runtime,
            receive_buffer_bytes=config.socket_receive_buffer_bytes,
            api_versions=config.api_versions_request,
        )
        self._loop = Loop(runtime, name, self.work, backoff_ms=config.refresh_leader_backoff_ms)

    def start(self) -> Fetcher:
        self._loop.start()
        return self

    @property
    def idle(self) -> bool:
        return not self._positions

    def add(self, position: PartitionPosition) -> None:
        with self._lock:
            self._positions[position.tp] = position
        self._added.set()

    def ask_stop(self) -> None:
        """Stop the loop, and wake it if it waits for a response."""
        self._loop.stopping.set()
        self._added.set()
        self._channel.abort()

    def join(self) -> None:
        """After this no chunk reaches a stream, even if a broker answers late."""
        self._loop.stop(JOIN_S)
        self._channel.close()

    # --- one round

    def work(self) -> None:
        """Fetch once, or wait a moment if there is nothing to fetch."""
        with self._lock:
            positions = dict(self._positions)
            self._added.clear()
        if not positions:
            self._added.wait(IDLE_S)
            return
        unknown = [each for each in positions.values() if each.fetched_offset < 0]
        failed = {each.tp for each in unknown if not self._reset(each)}
        for tp in failed:
            del positions[tp]
        if positions:
            failed |= self._fetch(positions)
        if failed and not self._loop.stopping.is_set():
            self._drop(failed)

    def _drop(self, failed: Iterable[TopicPartition]) -> None:
        with self._lock:
            dropped = [self._positions.pop(tp) for tp in sorted(failed) if tp in self._positions]
        self._give_back(dropped)

    def _fetch(self, positions: dict[TopicPartition, PartitionPosition]) -> set[TopicPartition]:
        """Returns the partitions that failed."""
        asked = {tp: position.fetched_offset for tp, position in positions.items()}
        begin = self._now()
        try:
            entries = reading.fetch(
                self._channel.call,
                asked,
                self._config.fetch_message_max_bytes,
                max_wait_ms=self._config.fetch_wait_max_ms,
                min_bytes=self._config.fetch_min_bytes,
                committed=self._config.reads_committed,
            )
        except (OSError, KafkaError) as error:
            if not self._loop.stopping.is_set():
                logger.warning("Error in fetch from %s. Possible cause: %s", self.broker, error)
            return set(positions)
        size = sum(len(entry.message_set or b"") for entry in entries.values())
        self._fetches.record(self.broker.host, self.broker.port, self._now() - begin, size)
        failed = set()
        for tp, entry in entries.items():
            position = positions.get(tp)
            if position is None or position.fetched_offset != asked[tp]:
                continue
            if not self._take(position, entry):
                failed.add(tp)
        return failed

    def _take(self, position: PartitionPosition, entry: FetchPartitionResponse) -> bool:
        """Whether this fetcher can continue with the partition."""
        if entry.error == OffsetOutOfRangeError.code:
            return self._reset(position)
        if entry.error != NO_ERROR:
            logger.error(
                "Error for partition %s to broker %d:%s",
                position.tp,
                self.broker.id,
                for_code(entry.error).java_class,
            )
            return False
        position.high_watermark = entry.high_watermark
        if not entry.message_set:
            return True
        try:
            chunk = chunk_of(position, reading.message_set(entry), reading.shown(entry))
            if chunk.next_offset == chunk.fetch_offset:
                chunk = self._larger(chunk)
        except OSError as error:
            logger.warning("Error in fetch from %s. Possible cause: %s", self.broker, error)
            return False
        except InvalidMessageError as error:
            logger.error(
                "Found invalid messages during fetch for partition %s offset %d error %s",
                position.tp,
                position.fetched_offset,
                error,
            )
            # The original fetches again at once, a busy loop until the log changes.
            self._loop.stopping.wait(self._config.refresh_leader_backoff_ms / 1000)
            return True
        self._enqueue(chunk)
        return True

    def _larger(self, chunk: Chunk) -> Chunk:
        """Fetch the partition alone, with up to fetch.message.limit.bytes, until a message fits.

        Raises OSError and InvalidMessageError.
        """
        config, position = self._config, chunk.position
        size = config.fetch_message_max_bytes
        while chunk.next_offset == chunk.fetch_offset and size < config.fetch_message_limit_bytes:
            size = min(2 * size, config.fetch_message_limit_bytes)
            tp, offset = position.tp, chunk.fetch_offset
            committed = config.reads_committed
            entry = reading.fetch(self._channel.call, {tp: offset}, size, committed=committed)[tp]
            if entry.error != NO_ERROR or not entry.message_set:
                break
            chunk = chunk_of(position, reading.message_set(entry), reading.shown(entry))
        return chunk

    def _enqueue(self, chunk: Chunk) -> None:
        while not self._loop.stopping.is_set():
            try:
                # Queue first, then move the position: a chunk that was not queued is fetched again.
                chunk.position.stream.offer(chunk, PUT_S)
            except Full:
                continue
            chunk.position.fetched_offset = chunk.next_offset
            self._meter.mark(chunk.position.tp.topic, len(chunk.message_set))
            if chunk.next_offset == chunk.fetch_offset:
                # The message does not fit. Inform the reader once, not with each fetch.
                self._loop.stopping.wait(IDLE_S)
            return

    def _reset(self, position: PartitionPosition) -> bool:
        """Reset the position by auto.offset.reset; False if the broker returns no offset."""
        tp = position.tp
        call = self._channel.call
        try:
            if self._config.auto_offset_reset == SMALLEST:
                found = log_offsets.before(call, {tp: EARLIEST_TIME})
            else:
                found = log_offsets.ends(call, [tp], committed=self._config.reads_committed)
            offset = found.checked()[tp]
        except (OSError, KafkaError, LookupError) as error:
            if not self._loop.stopping.is_set():
                logger.error(
                    "Error getting offset for partition %s to broker %d: %s",
                    tp,
                    self.broker.id,
                    error,
                )
            return False
        if self._loop.stopping.is_set():
            return False
        if position.fetched_offset >= 0:
            logger.error(
                "Current offset %d for partition %s out of range; reset offset to %d",
                position.fetched_offset,
                tp,
                offset,
            )
        position.reset(offset)
        return True


class ConsumerFetcherManager:
    """The fetchers of one member. ``brokers`` returns the live brokers, read at each call.

    ``meter`` counts the bytes fetched, ``fetches`` times and sizes of fetches. ``cluster``: the
    metadata by which leaders are found, until the next ``start`` or ``stop``.
    """

    def __init__(
        self,
        consumer_id: str,
        config: ConsumerConfig,
        brokers: Callable[[], Sequence[Broker]],
        *,
        runtime: Runtime | None = None,
        channel: Connect = Channel,
        meter: TopicMeters | None = None,
        fetches: Requests | None = None,
    ) -> None:
        self._name = f"ConsumerFetcherThread-{consumer_id}"
        self._consumer_id = consumer_id
        self._config = config
        self._runtime = runtime or ThreadRuntime()
        now = self._runtime.clock.monotonic
        self._meter = meter or TopicMeters(Ticker(now))
        self._fetches = fetches or Requests(Ticker(now))
        self._channel = channel
        self._brokers = brokers
        self.cluster = self._new_cluster()
        self._lock = self._runtime.lock()
        self._wake = self._runtime.event()
        self._leaderless: dict[TopicPartition, PartitionPosition] = {}
        self._fetchers: dict[tuple[Broker, int], Fetcher] = {}
        self._finder: Loop | None = None

    def _new_cluster(self) -> ClusterClient:
        return ClusterClient(
            lambda: endpoints_of(self._brokers()),
            client_id=self._config.client_id,
            timeout_ms=self._config.socket_timeout_ms,
            runtime=self._runtime,
            channel=self._channel,
        )

    @property
    def addresses(self) -> set[tuple[str, int]]:
        """Host and port of the brokers that are fetched from."""
        return {(broker.host, broker.port) for broker, _ in list(self._fetchers)}

    def start(self, positions: Iterable[PartitionPosition]) -> None:
        """Begin to fetch. Call ``stop`` before starting again."""
        self.cluster = self._new_cluster()
        with self._lock:
            self._leaderless = {position.tp: position for position in positions}
        self._wake.set()
        self._finder = Loop(
            self._runtime,
            f"{self._consumer_id}-leader-finder-thread",
            self.find_leaders,
            backoff_ms=self._config.refresh_leader_backoff_ms,
        )
        self._finder.start()

    def stop(self) -> None:
        """Stop all fetchers. Afterwards no chunk is put on any stream."""
        finder, self._finder = self._finder, None
        if finder is not None:
            finder.stopping.set()
            self.cluster.abort()
            self._wake.set()
        self._stop_fetchers(list(self._fetchers))
        if finder is not None:
            finder.stop()
        # The leader finder may have started another fetcher before it ended.
        self._stop_fetchers(list(self._fetchers))
        self._leaderless.clear()
        self.cluster.close()

    def _stop_fetchers(self, keys: Iterable[tuple[Broker, int]]) -> None:
        popped = [self._fetchers.pop(key, None) for key in keys]
        fetchers = [fetcher for fetcher in popped if fetcher is not None]
        for fetcher in fetchers:
            fetcher.ask_stop()
        for fetcher in fetchers:
            fetcher.join()

    def give_back(self, positions: Iterable[PartitionPosition]) -> None:
        """Let the leader finder search for these partitions' leaders (again)."""
        with self._lock:
            self._leaderless.update((position.tp, position) for position in positions)
        self._wake.set()

    def find_leaders(self) -> None:
        """Search once for the leaders of all partitions without a fetcher, then pause."""
        finder = self._finder
        with self._lock:
            wanted = dict(self._leaderless)
            if not wanted:
                self._wake.clear()
        if not wanted:
            self._wake.wait(1.0)
            return
        try:
            self.cluster.refresh(sorted({tp.topic for tp in wanted}))
        except (NoBrokerError, KafkaError) as error:
            if finder is None or not finder.stopping.is_set():
                manager_logger.warning(
                    "Failed to find leader for %s: %s", csv(sorted(wanted)), error
                )
        else:
            self._hand_out(wanted, finder)
        idle = [key for key, fetcher in list(self._fetchers.items()) if fetcher.idle]
        self._stop_fetchers(idle)
        if finder is not None:
            finder.stopping.wait(self._config.refresh_leader_backoff_ms / 1000)

    def _hand_out(
        self, wanted: dict[TopicPartition, PartitionPosition], finder: Loop | None
    ) -> None:
        for tp, position in wanted.items():
            try:
                leader = self.cluster.known_leader(tp)
            except KafkaError as error:
                manager_logger.debug("No leader for %s yet: %s", tp, error)
                continue
            if finder is not None and finder.stopping.is_set():
                return
            with self._lock:
                self._leaderless.pop(tp, None)
            self._fetcher(leader, tp).add(position)

    def _fetcher(self, broker: Broker, tp: TopicPartition) -> Fetcher:
        number = fetcher_number(tp, self._config.num_consumer_fetchers)
        key = (broker, number)
        if key not in self._fetchers:
            self._fetchers[key] = Fetcher(
                f"{self._name}-{number}-{broker.id}",
                broker,
                self._config,
                self.give_back,
                self._runtime,
                self._channel,
                self._meter,
                self._fetches,
            ).start()
        return self._fetchers[key]
