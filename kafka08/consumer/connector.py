"""A member of a consumer group: registers, takes its share of partitions, commits, leaves.

Mirrors kafka.consumer.ZookeeperConsumerConnector, and can share groups with it. ``group`` reads
the group's nodes, ``assignors`` assign partitions, ``fetcher`` fetches and ``offset_store`` stores
offsets. This module calls them in order, under one lock.

Differences from the original: a message counts as processed only when the next one is requested
(see ``stream``); a partition kept through a rebalance continues at its position; an event that
leaves the group unchanged does not cause a rebalance; the loss of one of our owner nodes does; and
a failed rebalance is tried again.
"""

from __future__ import annotations

import logging
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping

from kafka08.client.security import runtime_for
from kafka08.common import Closing, TopicPartition
from kafka08.consumer.assignors import Assignment, assignor_for, thread_ids
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.decoders import Decoder, decoder_named
from kafka08.consumer.errors import (
    ConsumerRebalanceFailedError,
    MessageStreamsExistError,
    PartitionNotOwnedError,
)
from kafka08.consumer.fetcher import ConsumerFetcherManager
from kafka08.consumer.filters import TopicFilter
from kafka08.consumer.group import GroupNodes, GroupView, share_of, zookeeper_session
from kafka08.consumer.metrics import ConsumerMetrics, NamedStream
from kafka08.consumer.offset_store import OffsetStore
from kafka08.consumer.stream import KafkaStream, PartitionPosition
from kafka08.errors import ConfigError, KafkaError
from kafka08.metrics.registry import Series
from kafka08.network.channel import Channel, Connect
from kafka08.runtime import Loop, Runtime, Scheduler
from zk.client import SessionState, ZkClient
from zk.znodes import STATIC, ConsumerRegistration

logger = logging.getLogger("kafka.consumer.ZookeeperConsumerConnector")

WAKE_UP_S = 1.0
_LEAST_PART = 1 / 20  # of the backoff, as which a shorter wait between two tries counts
Registry = dict[TopicPartition, PartitionPosition]


def generate_consumer_id(config: ConsumerConfig, now_ms: int) -> str:
    """``<group>_<host>-<ms>-<hex>``, or ``<group>_<consumer.id>``."""
    if config.consumer_id is not None:
        return f"{config.group_id}_{config.consumer_id}"
    digits = f"{uuid.uuid4().int >> 64:x}"[:8]
    return f"{config.group_id}_{socket.gethostname()}-{now_ms}-{digits}"


class ConsumerConnector(Closing):
    """Consume as a member of ``config.group_id``; a context manager that closes.

    Without ``zk`` (a started client, closed with the connector) it connects by itself and raises
    ZkConnectionError if that fails. ``channel`` makes broker connections. ``before_release``
    is called before partitions are released, and before the last commit. At that time streams
    return no more messages of them, and the callback may wait for messages still in work.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        *,
        runtime: Runtime | None = None,
        zk: ZkClient | None = None,
        channel: Connect = Channel,
        before_release: Callable[[], None] | None = None,
    ) -> None:
        self.config = config
        self._before_release = before_release
        self._runtime = runtime or runtime_for(config)
        self._metrics = ConsumerMetrics(self._runtime.clock.monotonic)
        self.consumer_id = generate_consumer_id(config, self._runtime.clock.millis())
        self._lock = self._runtime.lock()
        self._stopping = self._runtime.event()
        self._changed = self._runtime.event()
        self._session_lost = False
        self._zk = zk or zookeeper_session(config, self._runtime)
        self._group = GroupNodes(
            self._zk,
            config.group_id,
            self.consumer_id,
            self._on_change,
            exclude_internal=config.exclude_internal_topics,
            protocol=config.security_protocol,
        )
        self._store = OffsetStore(
            config,
            self._zk,
            self._group.brokers,
            runtime=self._runtime,
            stopping=self._stopping,
            channel=channel,
            meters=(self._metrics.kafka_commits, self._metrics.zookeeper_commits),
        )
        self._fetchers = ConsumerFetcherManager(
            self.consumer_id,
            config,
            self._group.brokers,
            runtime=self._runtime,
            channel=channel,
            meter=self._metrics.bytes,
            fetches=self._metrics.fetches,
        )
        self._assign = assignor_for(config.partition_assignment_strategy)
        self._streams: dict[str, dict[str | None, KafkaStream]] = {}
        self._registration: ConsumerRegistration | None = None
        self._registry: Registry = {}
        self._claimed: Assignment = {}
        self._view: GroupView | None = None
        self._worker: Loop | None = None
        self._scheduler = Scheduler(self._runtime)
        self._store.connect()
        if config.auto_commit_enable:
            interval = config.auto_commit_interval_ms
            logger.info("starting auto committer every %d ms", interval)
            self._scheduler.every(
                "kafka-consumer-autocommit", interval, self._auto_commit, delay_ms=interval
            )

    # --- streams

    def create_message_streams(
        self,
        topic_counts: Mapping[str, int],
        key_decoder: Decoder | str | None = None,
        value_decoder: Decoder | str | None = None,
    ) -> dict[str, list[KafkaStream]]:
        """Join the group for these topics: topic -> streams, topic -> number wanted.

        Decoders are callables, or named as in ``decoders``. Raises MessageStreamsExistError the
        second time, ConfigError for a number below 1, ConsumerRebalanceFailedError when the group
        does not let this member in.
        """
        for topic, streams in topic_counts.items():
            if streams < 1:
                raise ConfigError(f"{topic} wants {streams} streams, which is not at least 1")
        self._begin()
        made = {
            topic: self._new_streams(topic, streams, key_decoder, value_decoder)
            for topic, streams in topic_counts.items()
        }
        self._join(dict(topic_counts), STATIC)
        return made

    def create_message_streams_by_filter(
        self,
        topic_filter: TopicFilter,
        num_streams: int = 1,
        key_decoder: Decoder | str | None = None,
        value_decoder: Decoder | str | None = None,
    ) -> list[KafkaStream]:
        """Join the group for all topics that match, including topics created later.

        Raises as ``create_message_streams`` does.
        """
        if num_streams < 1:
            raise ConfigError(f"{num_streams} streams are wanted, which is not at least 1")
        self._begin()
        made = self._new_streams(None, num_streams, key_decoder, value_decoder)
        self._join({topic_filter.regex: num_streams}, topic_filter.pattern)
        return made

    def _begin(self) -> None:
        with self._lock:
            if self._registration is not None:
                raise MessageStreamsExistError()
            self._registration = ConsumerRegistration({})

    def _new_streams(
        self, topic: str | None, count: int, *decoders: Decoder | str | None
    ) -> list[KafkaStream]:
        """One for each thread. ``topic`` None: a filter's; ``decoders``: of key and value."""
        key_decoder, value_decoder = map(self._decoder, decoders)
        made = []
        for thread in thread_ids(self.consumer_id, count):
            stream = KafkaStream(
                self._runtime.queue(self.config.queued_max_message_chunks),
                timeout_ms=self.config.consumer_timeout_ms,
                key_decoder=key_decoder,
                value_decoder=value_decoder,
                commit_handed_out=self.config.commit_handed_out,
                meter=self._metrics.messages,
            )
            self._streams.setdefault(thread, {})[topic] = stream
            made.append(stream)
        return made

    def _decoder(self, given: Decoder | str | None) -> Decoder | None:
        if isinstance(given, str):
            return decoder_named(given, self.config.serializer_encoding)
        return given

    def _stream_of(self, tp: TopicPartition, thread: str) -> KafkaStream:
        """The stream of a partition. Filter streams serve any topic; their key is None."""
        streams = self._streams[thread]
        return streams[tp.topic] if tp.topic in streams else streams[None]

    def _all_streams(self) -> list[KafkaStream]:
        return [stream for streams in self._streams.values() for stream in streams.values()]

    def _join(self, subscription: dict[str, int], pattern: str) -> None:
        self._registration = ConsumerRegistration(subscription, pattern)
        self._zk.on_state(self._on_state)
        self._register()
        self._worker = Loop(
            self._runtime,
            f"{self.consumer_id}_watcher_executor",
            self._handle_changes,
        )
        self._synced_rebalance()
        self._worker.start()

    def _register(self) -> None:
        assert self._registration is not None
        logger.info("begin registering consumer %s in ZK", self.consumer_id)
        timestamp = str(self._runtime.clock.millis())
        self._registration = self._registration._replace(timestamp=timestamp)
        self._group.register(self._registration, self._stopping)
        logger.info("end registering consumer %s in ZK", self.consumer_id)

    # --- events: noted on ZooKeeper's task, handled on the worker

    def _on_change(self, event: object) -> None:
        self._changed.set()

    def _on_state(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED:
            self._session_lost = True
            self._changed.set()

    def _handle_changes(self) -> None:
        if not self._changed.wait(WAKE_UP_S):
            return
        self._changed.clear()
        try:
            if self._session_lost:
                self._rejoin()
            self._synced_rebalance()
        except KafkaError as error:
            logger.error("error during syncedRebalance: %s", error)
            # The original waits for the next event, which may never occur.
            self._stopping.wait(WAKE_UP_S)
            self._changed.set()

    def _rejoin(self) -> None:
        logger.info(
            "ZK expired; release old broker partition ownership; re-register consumer %s",
            self.consumer_id,
        )
        with self._lock:
            # Another member may own these partitions by now: do not commit their offsets.
            self._stop_fetching()
            self._settle()
            self._forget_partitions()
        self._session_lost = False
        try:
            self._register()
        except BaseException:
            self._session_lost = True
            self._changed.set()
            raise

    # --- rebalance

    def _synced_rebalance(self) -> None:
        """Take our share of the group's partitions. Raises ConsumerRebalanceFailedError."""
        cause: Exception | None = None
        with self._lock:
            for attempt, _ in enumerate(self._tries()):
                if self._stopping.is_set() or self._session_lost:
                    self._changed.set()  # the worker registers again first
                    return
                logger.info("begin rebalancing consumer %s try #%d", self.consumer_id, attempt)
                try:
                    if self._rebalance():
                        return
                except Exception as error:
                    _log_failure("exception during rebalance", error)
                    cause = error
                logger.info("end rebalancing consumer %s try #%d", self.consumer_id, attempt)
                self._release_quietly()
            if self._stopping.is_set():
                return
        text = (
            f"{self.consumer_id} can't rebalance after {self.config.rebalance_max_retries} retries"
        )
        raise ConsumerRebalanceFailedError(f"{text}: {cause}" if cause else text) from cause

    def _tries(self) -> Iterator[None]:
        """The tries of a rebalance, each after the backoff or as soon as the group has changed.
        The original always waits for the backoff, 2 s, though most owners release their partitions
        in some ms. All waits together are as long as the original's."""
        backoff, spent = self.config.rebalance_backoff_ms / 1000, 0.0
        while spent < self.config.rebalance_max_retries:
            self._changed.clear()  # what has changed so far is in the view of this try
            yield
            begin = self._runtime.clock.monotonic()
            if self._changed.wait(backoff) and backoff:
                waited = self._runtime.clock.monotonic() - begin
                spent += max(waited / backoff, _LEAST_PART)
            else:
                spent += 1

    def _rebalance(self) -> bool:
        """One attempt; False if the connector is closing.

        Raises PartitionOwnedError if another member still owns a partition assigned to us.
        """
        if not self._group.is_registered():
            # kafka-console-consumer --delete-consumer-offsets deletes a group with all its members.
            self._register()
        view = self._group.view()
        if view == self._view and self._group.owns(self._claimed):
            return True
        if not self._group.brokers() and not self._group.watch_brokers():
            logger.warning("no brokers found when trying to rebalance.")
            return True
        begin = self._runtime.clock.monotonic()
        before = self._registry
        self._release_partition_ownership()
        share = share_of(self._streams, self._assign(view.consumers, view.partitions))
        offsets = self._store.fetch(share)
        if offsets is None:
            return False
        self._group.claim(share)
        self._claimed = share
        self._registry = {
            tp: self._position(tp, thread, offsets[tp], before.get(tp))
            for tp, thread in share.items()
        }
        self._view = view
        owned = ",".join(repr(position) for _, position in sorted(self._registry.items()))
        logger.info("Consumer %s selected partitions : %s", self.consumer_id, owned)
        self._fetchers.start(self._registry.values())
        self._metrics.rebalances.record(self._runtime.clock.monotonic() - begin)
        return True

    def _release_partition_ownership(self) -> None:
        """Release all partitions: stop fetching, commit, remove the owner nodes."""
        self._stop_fetching()
        self._settle()
        if self.config.auto_commit_enable:
            self._store.commit(self._processed())
        self._group.release(list(self._registry))
        self._forget_partitions()

    def _release_quietly(self) -> None:
        try:
            self._release_partition_ownership()
        except Exception as error:
            _log_failure("exception while releasing partitions", error)
            self._forget_partitions()

    def _position(
        self, tp: TopicPartition, thread: str, stored: int, before: PartitionPosition | None
    ) -> PartitionPosition:
        """Where to continue: at the stored offset, or after the message our reader still holds."""
        stream = self._stream_of(tp, thread)
        auto = self.config.auto_commit_enable
        if before and auto and before.stream is stream and before.processed_offset == stored:
            before.fetched_offset = before.consumed_offset
            before.owned = True
            return before
        return PartitionPosition(tp, stored, stream)

    def _stop_fetching(self) -> None:
        self._fetchers.stop()
        for stream in self._all_streams():
            stream.clear()

    def _settle(self) -> None:
        if self._before_release is not None:
            for position in self._registry.values():
                position.owned = False
            self._before_release()

    def _forget_partitions(self) -> None:
        for position in self._registry.values():
            position.owned = False
        self._registry = {}
        self._claimed = {}
        self._view = None

    # --- offsets

    def _processed(self) -> dict[TopicPartition, int]:
        return {tp: position.processed_offset for tp, position in self._registry.items()}

    def commit_offsets(self, offsets: Mapping[TopicPartition, int] | None = None) -> bool:
        """Commit now, including the last message that each stream returned.

        For callers who have processed that message; background commits leave it out. ``offsets``
        are committed in place of the positions. False if Kafka did not store all offsets.
        ZooKeeper's errors are raised.
        """
        with self._lock:
            if offsets is not None:
                return self._store.commit(offsets)
            for position in self._registry.values():
                position.processed_offset = position.consumed_offset
            return self._store.commit(self._processed())

    def _auto_commit(self) -> None:
        try:
            # Under the lock: a rebalance may be handing partitions to another member.
            with self._lock:
                self._store.commit(self._processed())
        except KafkaError as error:  # the session expired, or ZooKeeper cannot be reached
            logger.warning("The offsets were not committed: %s", error)
        except Exception:
            logger.exception("exception during autoCommit")

    # --- positions

    def assignment(self) -> list[TopicPartition]:
        """The partitions that this member owns, sorted."""
        return sorted(self._registry)

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Continue at these offsets. No other task may read the streams meanwhile.

        Raises PartitionNotOwnedError, and then nothing has changed.
        """
        with self._lock:
            for tp in offsets:
                if tp not in self._registry:
                    raise PartitionNotOwnedError(f"No current assignment for partition {tp}")
            self._stop_fetching()
            before = self._registry
            self._registry = {tp: _moved(each, offsets.get(tp)) for tp, each in before.items()}
            for position in before.values():
                position.owned = False
            self._fetchers.start(self._registry.values())

    def metrics(self) -> dict[str, float]:
        """The metrics under the names of the original's beans; see ``ConsumerMetrics.numbers``."""
        return self._metrics.numbers(self._all_streams(), list(self._registry.values()))

    def series(self) -> Iterator[Series]:
        """The same for ``ClientCollector``, by topic, partition and broker too."""
        sources = [
            NamedStream(thread, topic or "", stream)
            for thread, streams in list(self._streams.items())
            for topic, stream in list(streams.items())
        ]
        config = self.config
        return self._metrics.series(
            config.client_id,
            config.group_id,
            sources,
            list(self._registry.values()),
            self._fetchers.addresses,
        )

    # --- the end

    def close(self, zookeeper_timeout_s: float | None = None) -> bool:
        """Leave the group: commit (if auto.commit.enable), end the streams, the session last.

        The nodes of this member are deleted with its session. False if ZooKeeper did not answer:
        then they stay until the session times out. ``zookeeper_timeout_s`` limits the wait for
        ZooKeeper's answers. May be repeated, and called while streams are created.
        """
        if self._stopping.is_set():
            return True
        if zookeeper_timeout_s is not None:
            self._zk.hurry(zookeeper_timeout_s)
        logger.info("ZKConsumerConnector shutting down")
        self._stopping.set()
        self._changed.set()
        if self._worker is not None:
            self._worker.stop()
        self._scheduler.stop()
        with self._lock:
            self._fetchers.stop()
            for stream in self._all_streams():
                stream.end()
            self._settle()
            if self.config.auto_commit_enable:
                self._final_commit()
            self._group.forget_watches()
            self._store.close()
            left = self._zk.close()
        logger.info("ZKConsumerConnector shutdown completed")
        return left

    def _final_commit(self) -> None:
        try:
            self._store.commit(self._processed(), tries=1 + self.config.offsets_commit_max_retries)
        except KafkaError as error:
            logger.error("The last offsets were not committed: %s", error)
        except Exception:
            logger.critical("error during consumer connector shutdown", exc_info=True)


def _moved(position: PartitionPosition, offset: int | None) -> PartitionPosition:
    """The same partition at ``offset``, or after the last message that was returned."""
    moved = PartitionPosition(position.tp, position.consumed_offset, position.stream)
    if offset is None:
        moved.processed_offset = position.processed_offset
    else:
        moved.reset(offset)
    return moved


def _log_failure(what: str, error: Exception) -> None:
    """Log an error that is tried again; with a traceback if it is not a known one."""
    logger.info("%s: %s", what, error, exc_info=not isinstance(error, KafkaError))
