"""The producer's metadata of its topics: partitions and leaders, and when to refresh it.

One loop fetches metadata. ``send`` reads it, and waits only for a new topic. Mirrors
org.apache.kafka.clients.producer.internals.Metadata. Does not know records.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafka08.client.cluster import ClusterClient
from kafka08.common import TopicPartition
from kafka08.errors import NO_ERROR, KafkaError, for_code
from kafka08.producer.accumulator import Accumulator, PartitionQueue
from kafka08.producer.errors import MetadataTimeoutError
from kafka08.producer.kafka_config import KafkaProducerConfig, seconds
from kafka08.producer.partitioners import Unkeyed
from kafka08.protocol.schemas import NO_LEADER, PartitionMetadata, TopicMetadata
from kafka08.runtime import Loop, Runtime

logger = logging.getLogger("org.apache.kafka.clients.producer.internals.Metadata")

_LONGEST_WAIT_S = 3600.0


class Topic:
    """A topic's data for ``send``: ``queues`` by partition; ``available`` ones have a leader."""

    __slots__ = ("available", "name", "queues", "shown", "unkeyed")

    def __init__(self, name: str, unkeyed: Unkeyed) -> None:
        self.name = name
        self.unkeyed = unkeyed
        self.queues: dict[int, PartitionQueue] = {}
        self.available: list[int] = []
        self.shown: list[PartitionMetadata] = []


class Staleness:
    """Whether the metadata is known to be stale, which wakes the loop that refreshes it."""

    __slots__ = ("is_known", "wake")

    def __init__(self, runtime: Runtime) -> None:
        self.is_known = False
        self.wake = runtime.event()

    def report(self) -> None:
        if not self.is_known:
            self.is_known = True
            self.wake.set()


class MetadataKeeper:
    """``topics`` may be read without a lock; entries are added under the accumulator's lock.

    ``updated`` is called after each response, with the leaders that have an address.
    """

    def __init__(
        self,
        accumulator: Accumulator,
        cluster: ClusterClient,
        runtime: Runtime,
        staleness: Staleness,
        config: KafkaProducerConfig,
        *,
        make_unkeyed: Callable[[], Unkeyed],
        updated: Callable[[set[int]], None],
    ) -> None:
        self.topics: dict[str, Topic] = {}
        self.refreshed_at: float | None = None
        self._accumulator = accumulator
        self._cluster = cluster
        self._clock = runtime.clock
        self._retry_backoff = seconds(config.retry_backoff_ms)
        self._max_age = seconds(config.metadata_max_age_ms)
        self._make_unkeyed = make_unkeyed
        self._updated = updated
        self._lock = accumulator.lock
        self._changed = runtime.event()
        self._waiters: dict[str, int] = {}
        self._refused: dict[str, KafkaError] = {}
        self._staleness = staleness
        self._tried_at = float("-inf")
        self._trouble = "no broker has been asked yet"
        self._loop = Loop(runtime, "kafka-producer-metadata", self.work)

    def start(self) -> None:
        self._loop.start()

    def ask_stop(self) -> None:
        self._loop.stopping.set()
        self._staleness.wake.set()
        self._changed.set()

    # --- called by send

    def wait_for(self, name: str, timeout: float) -> Topic:
        """The topic, fetched if unknown. Raises MetadataTimeoutError after ``timeout`` s, or
        the error of a topic that cannot exist."""
        deadline = self._clock.monotonic() + timeout
        with self._lock:
            self._waiters[name] = self._waiters.get(name, 0) + 1
            self._refused.pop(name, None)
        try:
            return self._wait(name, deadline, timeout)
        finally:
            with self._lock:
                self._waiters[name] -= 1
                if not self._waiters[name]:
                    del self._waiters[name]

    def _wait(self, name: str, deadline: float, timeout: float) -> Topic:
        while True:
            with self._lock:
                topic = self.topics.get(name)
                if topic is not None:
                    return topic
                if name in self._refused:
                    raise self._refused[name]
                self._changed.clear()
                self._staleness.report()
            left = deadline - self._clock.monotonic()
            if left <= 0 or self._loop.stopping.is_set():
                raise MetadataTimeoutError(
                    f"No metadata arrived for topic {name} within {timeout * 1000:.0f} ms: "
                    f"{self._trouble}. Check bootstrap.servers, and that the topic exists or "
                    "may be created."
                )
            self._changed.wait(left)

    # --- the loop

    def work(self) -> None:
        """Refresh if it is due, else wait."""
        self._staleness.wake.clear()
        wait = self.due_in(self._clock.monotonic())
        if wait <= 0:
            self.refresh()
        elif not self._loop.stopping.is_set():  # a stop sets the event cleared above
            self._staleness.wake.wait(min(wait, _LONGEST_WAIT_S))

    def due_in(self, now: float) -> float:
        with self._lock:
            if not self.topics and not self._waiters:
                return _LONGEST_WAIT_S
        if self._staleness.is_known or self.refreshed_at is None:
            return self._tried_at + self._retry_backoff - now
        return self.refreshed_at + self._max_age - now

    def refresh(self) -> None:
        """Fetch metadata once. A failure is logged and retried after the backoff."""
        with self._lock:
            names = sorted({*self.topics, *self._waiters})
            self._staleness.is_known = False
        self._tried_at = self._clock.monotonic()
        try:
            response = self._cluster.refresh(names)
        except (OSError, KafkaError) as error:
            self._trouble = str(error)
            self._staleness.is_known = True
            return
        with self._lock:
            self._take(response.topics, {broker.node_id for broker in response.brokers})
            # Only set here, not cleared: another task may request a refresh at any time.
            if self._waiters.keys() - self.topics.keys() or self._accumulator.leaderless():
                self._staleness.is_known = True
            self.refreshed_at = self._clock.monotonic()
        leaders = {q.leader for topic in self.topics.values() for q in topic.queues.values()}
        self._updated(leaders - {NO_LEADER})
        self._changed.set()

    def _take(self, answers: list[TopicMetadata], brokers: set[int]) -> None:
        leaders: dict[TopicPartition, int] = {}
        for answer in answers:
            if answer.error != NO_ERROR:
                self._note(answer)
            for p in answer.partitions:
                tp = TopicPartition(answer.topic, p.partition)
                leaders[tp] = p.leader if p.leader in brokers else NO_LEADER
        self._accumulator.set_leaders(leaders)
        for answer in answers:
            if answer.partitions:
                self._install(answer)

    def _note(self, answer: TopicMetadata) -> None:
        error = for_code(answer.error)
        self._trouble = f"the brokers say: {error}"
        logger.warning("Error while fetching metadata for %s: %s", answer.topic, error.java_class)
        if not error.retriable:
            self._refused[answer.topic] = type(error)(f"Topic {answer.topic}: {error}")

    def _install(self, answer: TopicMetadata) -> None:
        topic = self.topics.get(answer.topic) or Topic(answer.topic, self._make_unkeyed())
        shown = sorted(answer.partitions, key=lambda p: p.partition)
        queues = {
            p.partition: self._accumulator.queue(TopicPartition(answer.topic, p.partition))
            for p in shown
        }
        led = [number for number, queue in queues.items() if queue.leader != NO_LEADER]
        topic.shown = shown
        topic.queues = queues
        topic.available = led or list(queues)
        topic.unkeyed.refreshed()
        self.topics[answer.topic] = topic
