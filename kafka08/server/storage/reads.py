"""A fetch under way: reads its partitions, waits for enough bytes, decides what its sender is sent.

Consumers (replica -1, -2) read below the high watermark, followers to the log end. Followers get
the stored bytes; ``rebuild.view`` decides what consumers get of them. Plain bytes are not looked
at: slices of the log file travel to the socket. Bytes that are not in the page cache are first read
by another thread, because the event loop must not wait for a disk. Does not know versions of
requests.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kafka08.cluster.partition import NO_EPOCH, Partition
from kafka08.common import TopicPartition
from kafka08.errors import (
    NO_ERROR,
    NotLeaderForPartitionError,
    ReplicaNotAvailableError,
    UnknownTopicOrPartitionError,
)
from kafka08.log.segments.file_slice import FileSlice
from kafka08.message.entry import BATCH
from kafka08.named import named
from kafka08.protocol.schemas import (
    AbortedTransaction,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
)
from kafka08.runtime import Runtime
from kafka08.server.apis.failures import RequestFailures
from kafka08.server.quotas.replication import LeaderThrottle
from kafka08.server.rebuild.view import REFUSE, SEND_NOW, SKIP, ConsumerVersions, ConsumerView
from kafka08.server.requests.long_work import are_many, in_turns, partitions_of
from kafka08.server.storage.committed_reads import hides_transactions, up_to_aborted
from kafka08.server.storage.replica_manager import ReadResult, ReplicaManager

# The partition is served by another broker: these do not count as failures.
_ELSEWHERE = (
    UnknownTopicOrPartitionError,
    NotLeaderForPartitionError,
    ReplicaNotAvailableError,
)

_LAST_FIELDS: Final = FetchPartitionResponse(0, 0, 0, b"")[7:]


class Fetch:
    """One request: what it asks for, and the answers so far."""

    __slots__ = (
        "_has_waited", "_is_complete", "_is_follower", "_reader", "_refused", "_replicas",
        "_request", "_runtime", "_throttle", "_view", "answers", "asked", "failures",
    )  # fmt: skip

    def __init__(
        self,
        runtime: Runtime,
        replicas: ReplicaManager,
        view: ConsumerView,
        request: FetchRequest,
        reader: ConsumerVersions,
        throttle: LeaderThrottle | None,
    ) -> None:
        self._runtime = runtime
        self._replicas = replicas
        self._view = view
        self._request = request
        self._reader = reader
        self._throttle = throttle
        self._is_follower = request.replica_id >= 0
        self._has_waited = False
        self.asked = asked_partitions(runtime, request)
        self.answers: dict[TopicPartition, FetchPartitionResponse] = {}
        self.failures = RequestFailures()
        self._refused: set[TopicPartition] = set()
        # A partition that failed, or whose bytes are final, gains nothing by waiting.
        self._is_complete = not self.asked

    def run(self) -> None:
        """Read, and wait if that is asked for. Followers are sent the ``answers`` as they are."""
        self._read(self.asked)
        if self._request.max_wait_ms > 0 and not self._has_enough():
            self._wait()

    def prepare(self) -> None:
        """Replace the stored bytes in the answers by those that a consumer must get."""
        for key, answer in in_turns(self._runtime, self.answers.items()):
            stored = answer.message_set
            if not len(stored):
                continue
            asked = self.asked[key]
            if key in self._refused:
                self.answers[key] = failed(asked, self._reader.refusal)
                continue
            data = self._view.bytes_to_send(
                stored, asked.max_bytes, offset=asked.offset, target=self._reader.target
            )
            if data is not stored:
                self.answers[key] = answer._replace(message_set=data)

    def _has_enough(self) -> bool:
        if self._is_complete:
            return True
        size = sum(len(answer.message_set) for answer in self.answers.values())
        return size >= self._request.min_bytes

    def _wait(self) -> None:
        """Wait for enough bytes or the end of the time; read only partitions that moved."""
        replicas = self._replicas
        purgatory = replicas.follower_purgatory if self._is_follower else replicas.fetch_purgatory
        self._has_waited = True
        with purgatory.watch(self.asked, self._request.max_wait_ms) as watch:
            self._read(self.asked)  # read again: from here on the watch sees every move
            while not self._has_enough():
                moved = watch.wait()
                if not moved:
                    if watch.is_over:
                        replicas.counts.fetch_expired(self._is_follower)
                    return
                self._read(moved)

    def _read(self, keys: Collection[TopicPartition]) -> None:
        for key in in_turns(self._runtime, keys):
            asked = self.asked[key]
            try:
                self.answers[key] = self._answer(key, asked)
            except Exception as error:
                code = self.failures.add(key, error)
                if not isinstance(error, _ELSEWHERE):
                    self._replicas.counts.topics.of(key.topic).failed_fetch_requests.mark()
                self._is_complete = True
                self.answers[key] = failed(asked, code)

    def _answer(self, key: TopicPartition, asked: FetchPartition) -> FetchPartitionResponse:
        data, hw, is_final = self._stored(key, asked)
        if is_final and len(data):
            self._is_complete = True
        stable = start = -1
        aborted = None
        if self._reader.target == BATCH:
            partition = self._replicas.partition(key)
            log = partition.any_log()
            stable = partition.last_stable_offset
            start = log.deleted_until if self._is_follower else log.first_offset
            if self._reader.committed:
                aborted = self._aborted(partition, data, asked.offset)
        fields = asked.partition, NO_ERROR, hw, data, stable, start, aborted, *_LAST_FIELDS
        return named(FetchPartitionResponse, fields)

    def _aborted(
        self, partition: Partition, data: FileSlice, offset: int
    ) -> list[AbortedTransaction]:
        """The transactions whose messages the reader leaves out."""
        if not len(data):
            return []
        try:
            log = partition.any_log()
            found = log.aborted.in_slice(data, offset, log.log_end_offset)
        except OSError as error:
            raise self._replicas.disk_error(partition, error) from error
        return [AbortedTransaction(each.producer_id, each.first_offset) for each in found]

    def _stored(self, key: TopicPartition, asked: FetchPartition) -> ReadResult:
        """The stored bytes from the asked offset; for a consumer from the first entry on that has
        something to send: others count nothing, as it would ask for them without a pause."""
        replicas, reader, offset = self._replicas, self._reader, asked.offset
        hides = reader.target < BATCH and not self._is_follower and self._hides(key)
        if asked.current_leader_epoch != NO_EPOCH:
            replicas.partition(key).check_epoch(asked.current_leader_epoch)
        while True:
            size = self._size(key, asked)
            result = replicas.read_message_set(
                key,
                offset,
                size,
                self._request.replica_id,
                later=reader.target > 0,
                committed=reader.committed or hides,
                first_offset=asked.log_start_offset,
                is_new=not self._has_waited,
            )
            stored = result.data
            if self._is_follower or not len(stored):
                return result
            if hides and stored.end > stored.file.sendable_until:
                stored, following = self._up_to_aborted(key, stored, offset)
                if following != offset:
                    offset = following
                    continue
                if stored is not result.data:
                    result = result._replace(data=stored, is_final=True)
            is_cut = reader.is_limited and len(stored) >= size and not self._bytes_besides(key)
            is_plain = stored.end <= stored.file.sendable_until
            converts = is_plain or reader.target == BATCH or self._converts(key)
            outcome, part, following = self._view.decide(
                stored, asked.offset, reader, is_cut=is_cut, converts=converts
            )
            if outcome != SKIP:
                break
            offset = following
        if outcome == REFUSE:
            self._refused.add(key)
        elif self._refused:
            self._refused.discard(key)
        if part is stored:
            return result
        return result._replace(data=part, is_final=result.is_final or outcome == SEND_NOW)

    def _hides(self, key: TopicPartition) -> bool:
        partition = self._replicas.partitions.get(key)
        log = None if partition is None else partition.log
        return log is not None and hides_transactions(log)

    def _up_to_aborted(
        self, key: TopicPartition, stored: FileSlice, offset: int
    ) -> tuple[FileSlice, int]:
        partition = self._replicas.partition(key)
        try:
            return up_to_aborted(partition.any_log(), stored, offset)
        except OSError as error:
            raise self._replicas.disk_error(partition, error) from error

    def _converts(self, key: TopicPartition) -> bool:
        log = self._replicas.partition(key).log
        return log is None or log.config.message_downconversion_enable

    def _size(self, key: TopicPartition, asked: FetchPartition) -> int:
        """The bytes to read, within the limit for all partitions that a consumer may set."""
        if self._throttle is not None and self._throttle.holds(key):
            return 0
        if self._is_follower or not self._reader.is_limited:
            return asked.max_bytes
        return min(asked.max_bytes, max(self._request.max_bytes - self._bytes_besides(key), 0))

    def _bytes_besides(self, key: TopicPartition) -> int:
        return sum(len(each.message_set) for at, each in self.answers.items() if at != key)


def asked_partitions(
    runtime: Runtime, request: FetchRequest
) -> dict[TopicPartition, FetchPartition]:
    if are_many(request.topics):
        return dict(partitions_of(runtime, request))
    return {
        named(TopicPartition, (topic.topic, partition.partition)): partition
        for topic in request.topics
        for partition in topic.partitions
    }


def failed(asked: FetchPartition, code: int) -> FetchPartitionResponse:
    return FetchPartitionResponse(asked.partition, code, -1, b"")
