"""API 1, Fetch: raw log bytes, waiting for them if asked to.

Answers at once when max_wait <= 0, nothing is asked, enough bytes are there or any partition
errs; else waits for the partitions to move until min_bytes or the time is up. Consumers
(replica -1, -2) read below the high watermark, followers to the log end. Plain bytes are not
looked at: slices of the log file travel to the socket. Wrapped sets leave for consumers with
absolute inner offsets (see message.wrappers); followers get the stored bytes. Bytes that are not in
the page cache are first read by another thread, because the event loop must not wait for a disk.
In versions from 4 on, which take stored bytes of every format, a consumer's bytes end where
messages are followed by batches, or the reverse.

Followers among kafka08 brokers use version 5 (ADR 42): they tell the first offset that they would
serve, and hear up to where the leader has deleted records. Version 5 does not limit their answers.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any, Final

from kafka08.cluster.partition import NO_EPOCH
from kafka08.common import TopicPartition
from kafka08.errors import (
    NO_ERROR,
    InvalidTopicError,
    LaterCode,
    NotLeaderForPartitionError,
    ReplicaNotAvailableError,
    UnknownTopicOrPartitionError,
)
from kafka08.message.entry import BATCH
from kafka08.protocol.schemas import (
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
    RequestHeader,
)
from kafka08.runtime import Runtime
from kafka08.server.apis.failures import Failures
from kafka08.server.quotas.leader_throttle import LeaderThrottle
from kafka08.server.quotas.replication import ReplicationQuota
from kafka08.server.rebuild.view import ConsumerView, with_first_whole
from kafka08.server.requests.long_work import are_many, in_turns, in_turns_if_many, partitions_of
from kafka08.server.storage.replica_manager import ReadResult, ReplicaManager

# The partition is served by another broker: these do not count as failures.
_ELSEWHERE = (
    UnknownTopicOrPartitionError,
    NotLeaderForPartitionError,
    ReplicaNotAvailableError,
)
# Versions: those that read messages of formats 1 and 2, and those with a limit for all partitions.
_FORMAT_1_SINCE, _FORMAT_2_SINCE, _LIMITED_SINCE = 2, 4, 3

# Makes a NamedTuple in half the time of its constructor: this is what each fetch passes.
_new: Final = tuple.__new__
_LAST_FIELDS: Final = FetchPartitionResponse(0, 0, 0, b"")[6:]

logger = logging.getLogger("kafka.server.KafkaApis")


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
        version = header.api_version
        fetch = _Fetch(self._runtime, self._replicas, self._view, request, version, throttle)
        fetch.read(fetch.wanted)
        if request.max_wait_ms > 0 and not fetch.is_complete():
            fetch.wait()
        if fetch.failures:
            fetch.failures.tell(
                logger,
                f"Fetch request with correlation id {header.correlation_id} "
                f"from client {header.client_id}",
            )
        if request.replica_id < 0:
            for key, answer in in_turns(self._runtime, fetch.answers.items()):
                if len(answer.message_set):
                    asked = fetch.wanted[key]
                    if not self._may_send(key, answer.message_set, fetch.target):
                        fetch.answers[key] = _failed(asked, _refusal(header.api_version))
                        continue
                    data = self._view.bytes_to_send(
                        answer.message_set,
                        asked.max_bytes,
                        offset=asked.offset,
                        target=fetch.target,
                    )
                    if data is not answer.message_set:
                        fetch.answers[key] = answer._replace(message_set=data)
        if throttle is not None:
            throttle.count(fetch.answers)
        self._count(fetch.answers, request.replica_id >= 0)
        return self._response(fetch.answers)

    def _count(
        self, answers: dict[TopicPartition, FetchPartitionResponse], is_follower: bool
    ) -> None:
        """Count the bytes that are sent."""
        of = self._replicas.counts.topics.of
        for key, answer in in_turns_if_many(self._runtime, answers.items()):
            size = len(answer.message_set)
            if size:
                meters = of(key.topic)
                counted = meters.replication_bytes_out if is_follower else meters.bytes_out
                counted.count += size

    def _may_send(self, key: TopicPartition, data: Any, target: int) -> bool:
        """Whether the topic allows to convert what is to be sent, or that is not needed."""
        partition = self._replicas.partitions.get(key)
        if target == BATCH or partition is None or partition.log is None:
            return True
        converts = partition.log.config.message_downconversion_enable
        return converts or not self._view.holds_later(data, target)

    def failure(self, header: RequestHeader, request: FetchRequest, code: int) -> FetchResponse:
        wanted = _wanted(self._runtime, request)
        return self._response({key: _failed(asked, code) for key, asked in wanted.items()})

    def _response(self, answers: dict[TopicPartition, FetchPartitionResponse]) -> FetchResponse:
        topics: dict[str, list[FetchPartitionResponse]] = {}
        for key, answer in in_turns_if_many(self._runtime, answers.items()):
            topics.setdefault(key.topic, []).append(answer)
        return FetchResponse([_new(FetchTopicResponse, item) for item in topics.items()])


class _Fetch:
    """One request under way: what it wants and what has been read for it so far."""

    __slots__ = (
        "_no_more", "_replicas", "_request", "_runtime", "_throttle", "_version", "_view",
        "answers", "failures", "target", "wanted",
    )  # fmt: skip

    def __init__(
        self,
        runtime: Runtime,
        replicas: ReplicaManager,
        view: ConsumerView,
        request: FetchRequest,
        version: int,
        throttle: LeaderThrottle | None,
    ) -> None:
        self._throttle = throttle
        self.target = 0 if version < _FORMAT_1_SINCE else 1 if version < _FORMAT_2_SINCE else BATCH
        self._version = version
        self.wanted = _wanted(runtime, request)
        self.answers: dict[TopicPartition, FetchPartitionResponse] = {}
        self.failures = Failures()
        self._runtime = runtime
        self._replicas = replicas
        self._view = view
        self._request = request
        # A partition that failed, or whose bytes are final, gains nothing by waiting.
        self._no_more = not self.wanted

    def is_complete(self) -> bool:
        if self._no_more:
            return True
        size = sum(len(answer.message_set) for answer in self.answers.values())
        return size >= self._request.min_bytes

    def wait(self) -> None:
        """Wait for enough bytes or the end of the time; read only partitions that moved."""
        replicas, request = self._replicas, self._request
        is_follower = request.replica_id >= 0
        purgatory = replicas.follower_purgatory if is_follower else replicas.fetch_purgatory
        with purgatory.watch(self.wanted, request.max_wait_ms) as watch:
            self.read(self.wanted)  # read again: from here on the watch sees every move
            while not self.is_complete():
                moved = watch.wait()
                if not moved:
                    if watch.is_over:
                        replicas.counts.fetch_expired(is_follower)
                    return
                self.read(moved)

    def read(self, keys: Collection[TopicPartition]) -> None:
        for key in in_turns(self._runtime, keys):
            self.answers[key] = self._read(key, self.wanted[key])

    def _read(self, key: TopicPartition, asked: FetchPartition) -> FetchPartitionResponse:
        try:
            result = self._read_what_counts(key, asked)
        except Exception as error:
            code = self.failures.add(key, error)
            if not isinstance(error, _ELSEWHERE):
                self._replicas.counts.topics.of(key.topic).failed_fetch_requests.mark()
        else:
            if result.is_final and len(result.data):
                self._no_more = True
            number, hw = asked.partition, result.high_watermark
            stable = start = -1
            if self._version >= _FORMAT_2_SINCE:
                log = self._replicas.partition(key).any_log()
                is_follower = self._request.replica_id >= 0
                stable, start = hw, log.deleted_until if is_follower else log.first_offset
            fields = number, NO_ERROR, hw, result.data, stable, start, *_LAST_FIELDS
            return _new(FetchPartitionResponse, fields)
        self._no_more = True
        return _failed(asked, code)

    def _read_what_counts(self, key: TopicPartition, asked: FetchPartition) -> ReadResult:
        """The stored bytes from the asked offset; for a consumer from the first entry on that has
        something to send: others count nothing, as it would ask for them without a pause."""
        replicas, replica_id = self._replicas, self._request.replica_id
        offset = asked.offset
        if asked.current_leader_epoch != NO_EPOCH:
            replicas.partition(key).check_epoch(asked.current_leader_epoch)
        while True:
            size = self._size(key, asked)
            result = replicas.read_message_set(
                key,
                offset,
                size,
                replica_id,
                modern=self.target > 0,
                first_offset=asked.log_start_offset,
            )
            if replica_id >= 0 or not len(result.data):
                return result
            following = self._view.offset_after_nothing(result.data, asked.offset, self.target)
            if following == asked.offset:
                return self._of_one_family(self._with_first_whole(key, result, size))
            offset = following

    def _size(self, key: TopicPartition, asked: FetchPartition) -> int:
        """The bytes to read, within the limit for all partitions that later versions have."""
        if self._throttle is not None and self._throttle.holds(key):
            return 0
        if self._version < _LIMITED_SINCE or self._request.replica_id >= 0:
            return asked.max_bytes
        return min(asked.max_bytes, max(self._request.max_bytes - self._bytes_besides(key), 0))

    def _bytes_besides(self, key: TopicPartition) -> int:
        return sum(len(each.message_set) for at, each in self.answers.items() if at != key)

    def _with_first_whole(self, key: TopicPartition, result: ReadResult, size: int) -> ReadResult:
        """In later versions the first entry of the answer is whole, whatever the limits are."""
        data = result.data
        if self._version < _LIMITED_SINCE or len(data) < size or self._bytes_besides(key):
            return result
        whole = with_first_whole(data)
        return result if whole is data else result._replace(data=whole)

    def _of_one_family(self, result: ReadResult) -> ReadResult:
        """In later versions all entries of an answer have formats 0 and 1, or all have format 2:
        many clients choose a parser by the first one. The next fetch begins with the rest."""
        if self.target < BATCH:
            return result
        data = result.data.of_one_family()
        return result if data is result.data else result._replace(data=data, is_final=True)


def _wanted(runtime: Runtime, request: FetchRequest) -> dict[TopicPartition, FetchPartition]:
    if are_many(request.topics):
        named = partitions_of(runtime, request)
        return {TopicPartition(topic, each.partition): each for topic, each in named}
    return {
        _new(TopicPartition, (topic.topic, partition.partition)): partition
        for topic in request.topics
        for partition in topic.partitions
    }


def _refusal(version: int) -> int:
    """The code for messages that are not converted; 0.8 clients do not know the later one."""
    if version < _FORMAT_1_SINCE:
        return InvalidTopicError.code
    return LaterCode.UNSUPPORTED_VERSION


def _failed(asked: FetchPartition, code: int) -> FetchPartitionResponse:
    return FetchPartitionResponse(asked.partition, code, -1, b"")
