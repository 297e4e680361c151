"""A driver's requests to the brokers: partitions and their first and last offsets.

After a failure metadata is fetched again and the request is repeated: a leader that has just died
must not end a query. The same holds for a broker that does not know a topic: one that has just
started does not know topics until the controller sends them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from kafka08.client import requests
from kafka08.client.cluster import ClusterClient, Endpoint
from kafka08.common import EARLIEST_TIME, LATEST_TIME, Broker, TopicPartition
from kafka08.errors import (
    KafkaError,
    ProtocolError,
    UnknownTopicOrPartitionError,
    raise_for_code,
)
from kafka08.network.channel import Channel
from kafka08.protocol import schemas
from kafka08.runtime import Runtime, ThreadRuntime
from kafka08.spark.errors import UnreachableError, naming_leader

T = TypeVar("T")

logger = logging.getLogger("kafka08.spark.offsets")

# How often latest offsets that went back are asked for again.
DOUBT_RETRIES = 3
# So many answers of brokers that know other topics prove that a topic does not exist.
PROOF = 2


class OffsetReader:
    """Metadata and offsets of a cluster. ``retries`` tries after the first, ``backoff_ms`` apart.

    With ``api_versions`` brokers must answer ApiVersions; ``since`` needs it.
    Not to be pickled: make one where it is used.
    """

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        *,
        client_id: str = "kafka08-spark-driver",
        retries: int = 3,
        backoff_ms: int = 1000,
        timeout_ms: int = 30000,
        api_versions: bool = False,
        runtime: Runtime | None = None,
        cluster: Any = None,
    ) -> None:
        self._runtime = runtime or ThreadRuntime()
        self._retries = retries
        self._backoff = backoff_ms / 1000
        self._cluster = cluster or ClusterClient(
            list(endpoints),
            client_id=client_id,
            timeout_ms=timeout_ms,
            runtime=self._runtime,
            channel=partial(Channel, api_versions=api_versions),
        )

    def partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        """All partitions of ``topics``, sorted. Raises UnknownTopicOrPartitionError for a topic
        that does not exist (a broker may create it, and then it is found on the next try)."""
        names = list(topics)
        found = self.find(names, lambda there: set(names) - {tp.topic for tp in there})
        missing = sorted(set(names) - {tp.topic for tp in found})
        if missing:
            raise UnknownTopicOrPartitionError(", ".join(missing))
        return found

    def find(
        self,
        names: Collection[str],
        lacks: Callable[[Collection[TopicPartition]], Collection[str]],
    ) -> list[TopicPartition]:
        """The partitions there are of ``names``, or of all topics when none is named; sorted.

        ``lacks`` says of which topics something is missing. While it names any, the brokers are
        asked again, until PROOF answers know other topics but not these. Where no other topic
        exists, or is whole, the last of all tries decides. Raises UnreachableError when that
        comes from brokers that the controller has told nothing, and the error of a topic that
        has not been created yet.
        """
        wanted, question = set(names), list(names)
        proofs = 0
        # One answer proves nothing, however few retries were asked for.
        last = max(self._retries, PROOF - 1)
        for attempt in range(last + 1):
            try:
                answer = self._cluster.refresh(question)
                found = _partitions_in(answer, wanted)
                missing = set(lacks(found))
                if answer.brokers and not missing:
                    return found
                if not answer.brokers:
                    raise UnreachableError(
                        "the brokers that answer know of no broker and no topic: they have just "
                        "started and wait for the controller, or the cluster has no topics"
                    )
                _raise_unless_unknown(answer)
                proofs += any(t.partitions and t.topic not in missing for t in answer.topics)
                if proofs == PROOF or attempt == last:
                    return found
                # Only the whole list shows whether who answers knows any other topic.
                question = []
                logger.warning("Not known to a broker: %s", ", ".join(sorted(missing)))
            except (OSError, ProtocolError, KafkaError) as error:
                if attempt == last:
                    raise
                logger.warning("Asking again in %.1f s: %s", self._backoff, error)
            self._runtime.sleep(self._backoff)
        raise AssertionError("unreachable")

    def gone(self, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Those that do not exist, proved as ``find`` does."""
        asked = set(partitions)

        def lacks(there: Collection[TopicPartition]) -> set[str]:
            return {tp.topic for tp in asked.difference(there)}

        return asked.difference(self.find(sorted(lacks(())), lacks))

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
        return self._offsets(dict.fromkeys(partitions, EARLIEST_TIME), _first_offset)

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last readable message of each partition."""
        return self._offsets(dict.fromkeys(partitions, LATEST_TIME), _first_offset)

    def since(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The first message of each partition since its time (ms of the epoch), by the messages'
        timestamps; NO_OFFSET where no message is that late."""
        return self._offsets(times, requests.message_offset, requests.times_request)

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
        self,
        asked: Mapping[TopicPartition, int],
        offset_of: Callable[[schemas.OffsetsPartitionResponse], int],
        request_of: Callable[[Mapping[TopicPartition, int]], Any] = requests.offsets_request,
    ) -> dict[TopicPartition, int]:
        missing = dict(asked)
        found: dict[TopicPartition, int] = {}

        def ask() -> dict[TopicPartition, int]:
            by_leader: dict[Broker, dict[TopicPartition, int]] = {}
            for tp, time in missing.items():
                by_leader.setdefault(self._cluster.leader(tp), {})[tp] = time
            for leader, times in by_leader.items():
                with naming_leader(leader, times):
                    answer = self._cluster.call(leader, request_of(times))
                for tp, entry in requests.flatten(answer.topics).items():
                    found[tp] = offset_of(entry)
                    missing.pop(tp, None)
            return found

        for attempt in range(self._retries + 1):
            try:
                if attempt:
                    self._cluster.refresh(sorted({tp.topic for tp in missing}))
                return ask()
            except (OSError, ProtocolError, KafkaError) as error:
                # A leader that has just started does not know its partitions either.
                unknown = isinstance(error, UnknownTopicOrPartitionError)
                if unknown and (gone := self.gone(missing)):
                    text = ", ".join(map(str, sorted(gone)))
                    raise UnknownTopicOrPartitionError(text) from None
                if attempt == self._retries:
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


def _first_offset(entry: schemas.OffsetsPartitionResponse) -> int:
    raise_for_code(entry.error, f"No offset of partition {entry.partition}: code {entry.error}")
    return entry.offsets[0]


def _partitions_in(
    answer: schemas.MetadataResponse, wanted: Collection[str]
) -> list[TopicPartition]:
    return sorted(
        TopicPartition(topic.topic, each.partition)
        for topic in answer.topics
        if not wanted or topic.topic in wanted
        for each in topic.partitions
    )


def _raise_unless_unknown(answer: schemas.MetadataResponse) -> None:
    """A topic's own error, such as that it is being created; not that it is unknown."""
    for topic in answer.topics:
        if not topic.partitions and topic.error != UnknownTopicOrPartitionError.code:
            raise_for_code(topic.error, f"No metadata for topic {topic.topic}: code {topic.error}")


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
