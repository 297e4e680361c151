"""API 2, Offsets (ListOffsets): offsets of segments by file time; -1 latest, -2 earliest.

Consumers (replica -1) see no offset above the high watermark: those are dropped and the high
watermark stands in their place. Replica -2 asks any local replica. 0.8.2.2 leaves some failures
unanswered; here they answer -1.
"""

from __future__ import annotations

import logging

from kafka08.common import EARLIEST_TIME, LATER_FORMATS_TIME, LATEST_TIME, TopicPartition
from kafka08.errors import (
    NO_ERROR,
    ReplicaNotAvailableError,
    UnknownError,
    UnknownTopicOrPartitionError,
)
from kafka08.protocol.schemas import (
    CONSUMER_REPLICA_ID,
    DEBUG_REPLICA_ID,
    OffsetsPartition,
    OffsetsPartitionResponse,
    OffsetsRequest,
    OffsetsResponse,
    OffsetsTopicResponse,
    RequestHeader,
)
from kafka08.runtime import Runtime
from kafka08.server.apis.failures import Failures
from kafka08.server.long_work import in_turns, partitions_of
from kafka08.server.replica_manager import ReplicaManager

logger = logging.getLogger("kafka.server.KafkaApis")


class OffsetsApi:
    key = 2
    last_version = 0

    def __init__(self, runtime: Runtime, replicas: ReplicaManager) -> None:
        self._runtime = runtime
        self._replicas = replicas

    def handle(self, header: RequestHeader, request: OffsetsRequest) -> OffsetsResponse:
        wanted = {
            TopicPartition(topic, partition.partition): partition
            for topic, partition in partitions_of(self._runtime, request)
        }
        topics: dict[str, list[OffsetsPartitionResponse]] = {}
        failures = Failures()
        for key, asked in in_turns(self._runtime, wanted.items()):
            answer = self._answer(key, asked, request.replica_id, failures)
            topics.setdefault(key.topic, []).append(answer)
        if failures:
            failures.tell(
                logger,
                f"Offset request with correlation id {header.correlation_id} "
                f"from client {header.client_id}",
            )
        return OffsetsResponse([OffsetsTopicResponse(*item) for item in topics.items()])

    def failure(self, header: RequestHeader, request: OffsetsRequest, code: int) -> OffsetsResponse:
        return OffsetsResponse(
            [
                OffsetsTopicResponse(
                    topic.topic,
                    [
                        OffsetsPartitionResponse(partition.partition, code, [])
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _answer(
        self, key: TopicPartition, asked: OffsetsPartition, replica_id: int, failures: Failures
    ) -> OffsetsPartitionResponse:
        try:
            if asked.time == LATER_FORMATS_TIME and replica_id == DEBUG_REPLICA_ID:
                until = self._replicas.later_formats_until(key)
                return OffsetsPartitionResponse(asked.partition, NO_ERROR, [until])
            if asked.time not in (LATEST_TIME, EARLIEST_TIME):
                self._replicas.stat_files(key)  # may wait; nothing below does
            offsets = self._offsets(key, asked, replica_id)
        except Exception as error:
            return OffsetsPartitionResponse(asked.partition, failures.add(key, error), [])
        return OffsetsPartitionResponse(asked.partition, NO_ERROR, offsets)

    def _offsets(self, key: TopicPartition, asked: OffsetsPartition, replica_id: int) -> list[int]:
        if asked.max_num_offsets < 0:
            raise UnknownError(f"{asked.max_num_offsets} offsets asked for")
        if replica_id == DEBUG_REPLICA_ID:
            try:
                log = self._replicas.partition(key).any_log()
            except UnknownTopicOrPartitionError:
                raise ReplicaNotAvailableError() from None
            return log.offsets_before(asked.time, asked.max_num_offsets)
        partition = self._replicas.partition(key)
        try:
            offsets = partition.leader_log().offsets_before(asked.time, asked.max_num_offsets)
        except OSError as error:
            raise self._replicas.disk_error(partition, error) from error
        if replica_id != CONSUMER_REPLICA_ID:
            return offsets
        hw = partition.high_watermark
        if any(offset > hw for offset in offsets):
            return [hw, *(offset for offset in offsets if offset <= hw)]
        return offsets
