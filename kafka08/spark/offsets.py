"""What a driver asks of the brokers: which partitions there are, from where to where they reach.

Every question is asked again after a failure, with metadata fetched anew: a leader that has just
died is no reason to end a query.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from kafka08.client import shapes
from kafka08.client.cluster import ClusterClient, Endpoint
from kafka08.client.shapes import EARLIEST_TIME, LATEST_TIME
from kafka08.common import Broker, TopicPartition
from kafka08.errors import (
    KafkaError,
    ProtocolError,
    UnknownTopicOrPartitionError,
    raise_for_code,
)
from kafka08.runtime import Runtime, ThreadRuntime
from kafka08.spark.errors import naming_leader

T = TypeVar("T")

logger = logging.getLogger("kafka08.spark.offsets")

# How often a topic is asked for that no broker knows, and latest offsets that went back.
DOUBT_RETRIES = 3


class OffsetReader:
    """Metadata and offsets of a cluster. ``retries`` tries after the first, ``backoff_ms`` apart.

    ``unknown_retries`` are for a topic that no broker knows; None: as many as for the rest.
    Not to be pickled: make one where it is used.
    """

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        *,
        client_id: str = "kafka08-spark-driver",
        retries: int = 3,
        unknown_retries: int | None = None,
        backoff_ms: int = 1000,
        timeout_ms: int = 30000,
        runtime: Runtime | None = None,
        cluster: Any = None,
    ) -> None:
        self._runtime = runtime or ThreadRuntime()
        self._retries = retries
        self._unknown_retries = retries if unknown_retries is None else unknown_retries
        self._backoff = backoff_ms / 1000
        self._cluster = cluster or ClusterClient(
            list(endpoints), client_id=client_id, timeout_ms=timeout_ms, runtime=self._runtime
        )

    def topics(self) -> list[str]:
        """All topics of the cluster, sorted."""
        response = self._retrying(self._cluster.refresh)
        return sorted(topic.topic for topic in response.topics)

    def partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        """All partitions of ``topics``, sorted. Raises UnknownTopicOrPartitionError for a topic
        that does not exist (a broker may create it, and then it is found on the next try)."""
        names = list(topics)

        def ask() -> list[TopicPartition]:
            self._cluster.refresh(names)
            return sorted(
                TopicPartition(name, each.partition)
                for name in names
                for each in self._cluster.partitions(name)
            )

        return self._retrying(ask)

    def leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Broker]:
        """The leaders as of now; partitions without one are left out."""
        found = {}
        for tp in partitions:
            try:
                found[tp] = self._cluster.leader(tp)
            except KafkaError:
                continue
        return found

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition. Raises OSError or KafkaError after all tries."""
        return self._offsets(partitions, EARLIEST_TIME)

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last readable message of each partition."""
        return self._offsets(partitions, LATEST_TIME)

    def latest_since(
        self,
        start: Mapping[TopicPartition, int],
        partitions: Iterable[TopicPartition],
        doubts: int = DOUBT_RETRIES,
    ) -> dict[TopicPartition, int]:
        """As ``latest``; a log that ends before ``start`` is asked ``doubts`` times more, as a
        leader that has just been elected may not know yet how far it may serve."""
        found = self.latest(partitions)
        for _ in range(doubts):
            late = behind(found, start)
            if not late:
                break
            self._runtime.sleep(self._backoff)
            found.update(self.latest(late))
        return found

    def _offsets(
        self, partitions: Iterable[TopicPartition], time: int
    ) -> dict[TopicPartition, int]:
        missing = dict.fromkeys(partitions)
        found: dict[TopicPartition, int] = {}

        def ask() -> dict[TopicPartition, int]:
            by_leader: dict[Broker, dict[TopicPartition, int]] = {}
            for tp in missing:
                by_leader.setdefault(self._cluster.leader(tp), {})[tp] = time
            for leader, times in by_leader.items():
                with naming_leader(leader, times):
                    answer = self._cluster.call(leader, shapes.offsets_request(times))
                for tp, entry in shapes.flatten(answer.topics).items():
                    raise_for_code(entry.error, f"No offset of {tp}: code {entry.error}")
                    found[tp] = entry.offsets[0]
                    missing.pop(tp, None)
            return found

        return self._retrying(ask, [tp.topic for tp in missing])

    def _retrying(self, ask: Callable[[], T], topics: Iterable[str] = ()) -> T:
        for attempt in range(self._retries + 1):
            try:
                if attempt and topics:
                    self._cluster.refresh(topics)
                return ask()
            except (OSError, ProtocolError, KafkaError) as error:
                unknown = isinstance(error, UnknownTopicOrPartitionError)
                if attempt >= (self._unknown_retries if unknown else self._retries):
                    raise
                logger.warning("Asking again in %.1f s: %s", self._backoff, error)
                self._runtime.sleep(self._backoff)
        raise AssertionError("unreachable")

    def close(self) -> None:
        self._cluster.close()

    def __enter__(self) -> OffsetReader:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def resolve(
    wanted: Mapping[TopicPartition, int], reader: OffsetReader
) -> dict[TopicPartition, int]:
    """Offsets with -2 and -1 replaced by the earliest and latest of their partitions."""
    early = [tp for tp, offset in wanted.items() if offset == EARLIEST_TIME]
    late = [tp for tp, offset in wanted.items() if offset == LATEST_TIME]
    found = dict(wanted)
    if early:
        found.update(reader.earliest(early))
    if late:
        found.update(reader.latest(late))
    return found


def behind(
    latest: Mapping[TopicPartition, int], start: Mapping[TopicPartition, int]
) -> list[TopicPartition]:
    """Partitions whose log ends before ``start``."""
    return [tp for tp, offset in latest.items() if offset < start.get(tp, 0)]
