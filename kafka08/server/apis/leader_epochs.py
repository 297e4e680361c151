"""API 23, OffsetForLeaderEpoch of later releases: where leader epochs end in the log.

A client that has read up to an offset of an epoch learns whether the log was cut below it. Only
logs with batches know epochs; others answer -1.
"""

from __future__ import annotations

from kafka08.common import TopicPartition
from kafka08.errors import NO_ERROR
from kafka08.protocol.later_schemas import (
    EpochPartition,
    EpochPartitionResponse,
    EpochTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka08.protocol.schemas import RequestHeader
from kafka08.runtime import Runtime
from kafka08.server.apis.failures import RequestFailures
from kafka08.server.requests.long_work import by_topic, in_topics, partitions_of
from kafka08.server.storage.replica_manager import ReplicaManager


class OffsetForLeaderEpochApi:
    key = 23
    last_version = 3

    def __init__(self, runtime: Runtime, replicas: ReplicaManager) -> None:
        self._runtime = runtime
        self._replicas = replicas

    def handle(
        self, header: RequestHeader, request: OffsetForLeaderEpochRequest
    ) -> OffsetForLeaderEpochResponse:
        failures = RequestFailures()
        asked = partitions_of(self._runtime, request)
        topics = by_topic((key, self._answer(key, each, failures)) for key, each in asked)
        failures.tell(f"Epochs asked for by client {header.client_id}")
        return OffsetForLeaderEpochResponse([EpochTopicResponse(*item) for item in topics])

    def failure(
        self, header: RequestHeader, request: OffsetForLeaderEpochRequest, code: int
    ) -> OffsetForLeaderEpochResponse:
        topics = in_topics(
            EpochTopicResponse,
            request.topics,
            lambda asked: EpochPartitionResponse(code, asked.partition, -1),
        )
        return OffsetForLeaderEpochResponse(topics)

    def _answer(
        self, key: TopicPartition, asked: EpochPartition, failures: RequestFailures
    ) -> EpochPartitionResponse:
        try:
            partition = self._replicas.partition(key)
            partition.check_epoch(asked.current_leader_epoch)
            log = partition.leader_log()
            if asked.leader_epoch > partition.leader_epoch:
                return EpochPartitionResponse(NO_ERROR, asked.partition, -1)
            epoch, end = log.epochs.end_of(asked.leader_epoch, log.log_end_offset)
        except Exception as error:
            return EpochPartitionResponse(failures.add(key, error), asked.partition, -1)
        return EpochPartitionResponse(NO_ERROR, asked.partition, end, epoch)
