"""API 1, Fetch: raw log bytes, waiting for them if asked to.

Answers at once when max_wait <= 0, nothing is asked, enough bytes are there or any partition
errs; else waits for the partitions to move until min_bytes or the time is up (``storage.reads``).
Wrapped sets leave for consumers with absolute inner offsets (see message.wrappers); followers get
the stored bytes. In versions from 4 on, which take stored bytes of every format, a consumer's bytes
end where messages are followed by batches, or the reverse.

Followers among kafka08 brokers use version 9 (ADR 42): they send the first offset that they would
serve and the leader epoch that they follow, and hear up to where the leader has deleted records.
"""

from __future__ import annotations

from typing import Final

from kafka08.common import TopicPartition
from kafka08.errors import NO_ERROR, InvalidTopicError, LaterCode
from kafka08.message.entry import BATCH
from kafka08.named import named
from kafka08.protocol.schemas import (
    READ_COMMITTED,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
    RequestHeader,
)
from kafka08.runtime import Runtime
from kafka08.server.quotas.replication import LeaderThrottle, ReplicationQuota
from kafka08.server.rebuild.view import ConsumerVersions, ConsumerView
from kafka08.server.requests.long_work import in_turns_if_many
from kafka08.server.storage.reads import Fetch, asked_partitions, failed
from kafka08.server.storage.replica_manager import ReplicaManager

# The senders of each version; those of later versions read as the last ones do.
_OLD: Final = ConsumerVersions(0, is_limited=False, refusal=InvalidTopicError.code)
_READERS: Final = (
    _OLD,
    _OLD,
    ConsumerVersions(1, is_limited=False, refusal=LaterCode.UNSUPPORTED_VERSION),
    ConsumerVersions(1, is_limited=True, refusal=LaterCode.UNSUPPORTED_VERSION),
    ConsumerVersions(BATCH, is_limited=True, refusal=LaterCode.UNSUPPORTED_VERSION),
)
_ALL_FORMATS_SINCE: Final = len(_READERS) - 1
_COMMITTED: Final = ConsumerVersions(
    BATCH, is_limited=True, refusal=LaterCode.UNSUPPORTED_VERSION, committed=True
)


class FetchApi:
    key = 1
    last_version = 11

    def __init__(
        self,
        runtime: Runtime,
        replicas: ReplicaManager,
        view: ConsumerView,
        quota: ReplicationQuota | None = None,
    ) -> None:
        """``quota``: the rate of what followers get of replicas that are throttled."""
        self._runtime = runtime
        self._replicas = replicas
        self._view = view
        self._quota = quota

    def handle(self, header: RequestHeader, request: FetchRequest) -> FetchResponse:
        throttle = None
        if request.replica_id >= 0 and self._quota is not None and self._quota.is_on:
            throttle = LeaderThrottle(self._quota, self._replicas, request.replica_id)
        reader = _READERS[max(min(header.api_version, _ALL_FORMATS_SINCE), 0)]
        if request.isolation_level == READ_COMMITTED:  # which versions before 4 do not have
            reader = _COMMITTED
        fetch = Fetch(self._runtime, self._replicas, self._view, request, reader, throttle)
        fetch.run()
        if fetch.failures:
            fetch.failures.tell(
                f"Fetch request with correlation id {header.correlation_id} "
                f"from client {header.client_id}",
            )
        if request.replica_id < 0:
            fetch.prepare()
        if throttle is not None:
            throttle.count(fetch.answers)
        self._count(fetch.answers, request.replica_id >= 0)
        return self._response(fetch.answers)

    def _count(
        self, answers: dict[TopicPartition, FetchPartitionResponse], is_follower: bool
    ) -> None:
        """Count the partitions that were read, and the bytes that are sent."""
        of = self._replicas.counts.topics.of
        for key, answer in in_turns_if_many(self._runtime, answers.items()):
            if answer.error != NO_ERROR:
                continue
            meters = of(key.topic)
            meters.total_fetch_requests.count += 1
            size = len(answer.message_set)
            if size:
                counted = meters.replication_bytes_out if is_follower else meters.bytes_out
                counted.count += size

    def failure(self, header: RequestHeader, request: FetchRequest, code: int) -> FetchResponse:
        asked = asked_partitions(self._runtime, request)
        return self._response({key: failed(each, code) for key, each in asked.items()})

    def _response(self, answers: dict[TopicPartition, FetchPartitionResponse]) -> FetchResponse:
        topics: dict[str, list[FetchPartitionResponse]] = {}
        for key, answer in in_turns_if_many(self._runtime, answers.items()):
            topics.setdefault(key.topic, []).append(answer)
        return FetchResponse([named(FetchTopicResponse, item) for item in topics.items()])
