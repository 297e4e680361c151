"""API 21, DeleteRecords of later releases: the records below an offset go.

The leader hides them from consumers at once; retention removes segments that hold no others. The
answer comes when that is on disk here and at the live followers, which learn of it from their
fetches (ADR 42), or with code 7 at the timeout: followers may then still hear of it. Followers of
0.8.2.2 cannot be told. They are not waited for.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import INTERNAL_TOPICS, TopicPartition
from kafka08.errors import (
    NO_ERROR,
    InvalidTopicError,
    KafkaError,
    LaterCode,
    NotLeaderForPartitionError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from kafka08.protocol import admin_schemas as a
from kafka08.protocol.schemas import RequestHeader
from kafka08.runtime import Runtime
from kafka08.server.apis.failures import RequestFailures
from kafka08.server.requests.long_work import by_topic, in_turns, partitions_of
from kafka08.server.storage.replica_manager import ReplicaManager

_NO_WATERMARK = -1


class DeleteRecordsApi:
    key = 21
    last_version = 1

    def __init__(self, runtime: Runtime, replicas: ReplicaManager, cache: MetadataCache) -> None:
        self._runtime = runtime
        self._replicas = replicas
        self._cache = cache

    def handle(
        self, header: RequestHeader, request: a.DeleteRecordsRequest
    ) -> a.DeleteRecordsResponse:
        deletion = _Deletion(self._replicas, self._cache)
        # A partition named twice counts once, the last one.
        wanted = dict(partitions_of(self._runtime, request))
        for key, asked in in_turns(self._runtime, wanted.items()):
            deletion.begin(key, asked.offset)
        deletion.store()
        deletion.wait(request.timeout_ms)
        deletion.failures.tell(f"Deletion of records for client {header.client_id}")
        return _response(deletion.answers[key] for key in wanted)

    def failure(
        self, header: RequestHeader, request: a.DeleteRecordsRequest, code: int
    ) -> a.DeleteRecordsResponse:
        return _response(_failed(key, code) for key, _ in partitions_of(self._runtime, request))


_Answer = tuple[TopicPartition, a.DeleteRecordsPartitionResponse]


class _Deletion:
    """One request under way. ``answers`` has all partitions once ``wait`` has returned."""

    def __init__(self, replicas: ReplicaManager, cache: MetadataCache) -> None:
        self.answers: dict[TopicPartition, _Answer] = {}
        self.failures = RequestFailures()
        self._replicas = replicas
        self._cache = cache
        self._required: dict[TopicPartition, int] = {}

    def begin(self, key: TopicPartition, offset: int) -> None:
        """Hide the records from consumers."""
        try:
            if key.topic in INTERNAL_TOPICS:
                raise InvalidTopicError(f"Cannot delete records of internal topic {key.topic}")
            self._required[key] = self._replicas.delete_records(key, offset)
        except UnknownTopicOrPartitionError as error:
            known = self._cache.has_partition(*key)
            self._fail(key, NotLeaderForPartitionError() if known else error)
        except Exception as error:
            self._fail(key, error)

    def store(self) -> None:
        """Make the deletions durable."""
        for key in self._replicas.store_deletions(self._required):
            del self._required[key]
            self.answers[key] = _failed(key, LaterCode.KAFKA_STORAGE_ERROR)

    def wait(self, timeout_ms: int) -> None:
        """Wait for the followers."""
        waiting = {key for key in self._required if not self._settle(key)}
        if waiting:
            waiting = self._replicas.produce_purgatory.wait(waiting, timeout_ms, self._settle)
        for key in waiting:
            if not self._settle(key):  # there is no event when a follower dies
                low = self.answers[key][1].low_watermark
                self.answers[key] = _answer(key, low, RequestTimedOutError.code)

    def _settle(self, key: TopicPartition) -> bool:
        """Bring the answer up to date; False while the partition waits for followers."""
        try:
            low = self._replicas.low_watermark(key, self._cache.brokers)
        except KafkaError as error:
            self._fail(key, error)
            return True
        self.answers[key] = _answer(key, low)
        return low >= self._required[key]

    def _fail(self, key: TopicPartition, error: Exception) -> None:
        self.answers[key] = _failed(key, self.failures.add(key, error))


def _answer(key: TopicPartition, low_watermark: int, code: int = NO_ERROR) -> _Answer:
    return key, a.DeleteRecordsPartitionResponse(key.partition, low_watermark, code)


def _failed(key: TopicPartition, code: int) -> _Answer:
    return _answer(key, _NO_WATERMARK, code)


def _response(answers: Iterable[_Answer]) -> a.DeleteRecordsResponse:
    topics = [a.DeleteRecordsTopicResponse(*item) for item in by_topic(answers)]
    return a.DeleteRecordsResponse(0, topics)
