"""API 2, Offsets (ListOffsets): the offset of a time; -1 is the latest, -2 the earliest.

Version 0 answers with offsets of segments, by file time. Consumers (replica -1) see no offset above
the high watermark: those are dropped and the high watermark stands in their place. Replica -2 asks
any local replica; with the time -1008 it asks a leader up to where its log holds what brokers of
0.8.2.2 cannot read (ADR 36). 0.8.2.2 leaves some failures unanswered; here they answer -1.

Versions from 1 on answer with one offset: of the first message whose timestamp is at least the
time. If there is none, offset and timestamp are -1; if no message has a timestamp, code 43. The
latest offset for a consumer is the high watermark, or the last stable offset if it reads committed
transactions only. Versions from 4 on compare the leader epoch that
the client knows, and name that of the offset. While a new leader may still have one that is
too low, the code is 78, before version 5 it is 5. Times below -2 are of later versions: code 35.
"""

from __future__ import annotations

from kafka08.cluster.partition import NO_EPOCH
from kafka08.common import EARLIEST_TIME, LATER_FORMATS_TIME, LATEST_TIME, TopicPartition
from kafka08.errors import (
    NO_ERROR,
    LaterCode,
    LeaderNotAvailableError,
    ReplicaNotAvailableError,
    UnknownError,
    UnknownTopicOrPartitionError,
    UnsupportedForMessageFormatError,
)
from kafka08.log.offsets_before import offsets_before
from kafka08.protocol.schemas import (
    CONSUMER_REPLICA_ID,
    DEBUG_REPLICA_ID,
    READ_COMMITTED,
    OffsetsPartition,
    OffsetsPartitionResponse,
    OffsetsRequest,
    OffsetsResponse,
    OffsetsTopicResponse,
    RequestHeader,
)
from kafka08.runtime import Runtime
from kafka08.server.apis.failures import RequestFailures
from kafka08.server.requests.long_work import LongWork, by_topic, in_topics, in_turns, partitions_of
from kafka08.server.storage.committed_reads import hides_transactions
from kafka08.server.storage.offsets_by_time import BehindLeadershipError, OffsetsByTime, start_of
from kafka08.server.storage.replica_manager import ReplicaManager

_ISOLATION_SINCE, _OFFSET_NOT_AVAILABLE_SINCE = 2, 5  # versions


class OffsetsApi:
    key = 2
    last_version = 5

    def __init__(self, runtime: Runtime, replicas: ReplicaManager, long_work: LongWork) -> None:
        self._runtime = runtime
        self._replicas = replicas
        self._by_time = OffsetsByTime(replicas, long_work)

    def handle(self, header: RequestHeader, request: OffsetsRequest) -> OffsetsResponse:
        wanted = dict(partitions_of(self._runtime, request))
        failures = RequestFailures()
        answers: dict[TopicPartition, OffsetsPartitionResponse] = {}
        for key, asked in in_turns(self._runtime, wanted.items()):
            try:
                if header.api_version:
                    answer = self._one(key, asked, request, header.api_version)
                else:
                    answer = self._answer(key, asked, request.replica_id)
            except Exception as error:
                answer = OffsetsPartitionResponse(asked.partition, failures.add(key, error))
            answers[key] = answer
        failures.tell(
            f"Offset request with correlation id {header.correlation_id} "
            f"from client {header.client_id}"
        )
        return OffsetsResponse([OffsetsTopicResponse(*item) for item in by_topic(answers.items())])

    def failure(self, header: RequestHeader, request: OffsetsRequest, code: int) -> OffsetsResponse:
        topics = in_topics(
            OffsetsTopicResponse,
            request.topics,
            lambda asked: OffsetsPartitionResponse(asked.partition, code, []),
        )
        return OffsetsResponse(topics)

    def _one(
        self, key: TopicPartition, asked: OffsetsPartition, request: OffsetsRequest, version: int
    ) -> OffsetsPartitionResponse:
        """The answer of versions from 1 on."""
        if asked.time < EARLIEST_TIME:
            return OffsetsPartitionResponse(asked.partition, LaterCode.UNSUPPORTED_VERSION)
        try:
            if asked.current_leader_epoch != NO_EPOCH:
                self._replicas.partition(key).check_epoch(asked.current_leader_epoch)
            committed = None
            if version >= _ISOLATION_SINCE:
                committed = request.isolation_level == READ_COMMITTED
            found = self._by_time.find(key, asked.time, request.replica_id, committed=committed)
            epoch = self._replicas.partition(key).any_log().epochs.epoch_at(found.offset)
        except UnsupportedForMessageFormatError as error:
            code = error.code
        except BehindLeadershipError:
            known = version >= _OFFSET_NOT_AVAILABLE_SINCE
            code = LaterCode.OFFSET_NOT_AVAILABLE if known else LeaderNotAvailableError.code
        else:
            return OffsetsPartitionResponse(
                asked.partition,
                NO_ERROR,
                timestamp=found.timestamp,
                offset=found.offset,
                leader_epoch=epoch,
            )
        return OffsetsPartitionResponse(asked.partition, code)

    def _answer(
        self, key: TopicPartition, asked: OffsetsPartition, replica_id: int
    ) -> OffsetsPartitionResponse:
        if asked.time == LATER_FORMATS_TIME and replica_id == DEBUG_REPLICA_ID:
            offsets = [self._replicas.later_formats_until(key)]
        else:
            if asked.time not in (LATEST_TIME, EARLIEST_TIME):
                self._replicas.stat_files(key)  # may wait; nothing below does
            offsets = self._offsets(key, asked, replica_id)
        return OffsetsPartitionResponse(asked.partition, NO_ERROR, offsets)

    def _offsets(self, key: TopicPartition, asked: OffsetsPartition, replica_id: int) -> list[int]:
        if asked.max_num_offsets < 0:
            raise UnknownError(f"{asked.max_num_offsets} offsets asked for")
        now = self._runtime.clock.millis()
        if replica_id == DEBUG_REPLICA_ID:
            try:
                log = self._replicas.partition(key).any_log()
            except UnknownTopicOrPartitionError:
                raise ReplicaNotAvailableError() from None
            start = start_of(log, replica_id)
            return offsets_before(log, asked.time, asked.max_num_offsets, start=start, now=now)
        partition = self._replicas.partition(key)
        try:
            log = partition.leader_log()
            start = start_of(log, replica_id)
            offsets = offsets_before(log, asked.time, asked.max_num_offsets, start=start, now=now)
        except OSError as error:
            raise self._replicas.disk_error(partition, error) from error
        if replica_id != CONSUMER_REPLICA_ID:
            return offsets
        end = partition.last_stable_offset if hides_transactions(log) else partition.high_watermark
        if any(offset > end for offset in offsets):
            return [end, *(offset for offset in offsets if offset <= end)]
        return offsets
