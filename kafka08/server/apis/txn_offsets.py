"""API 28, TxnOffsetCommit: offsets that count once the transaction of their producer is committed.

The group's coordinator takes them. It is told before, by AddOffsetsToTxn, which partition of
``__consumer_offsets`` the transaction includes, and asks for that like any leader.
"""

from __future__ import annotations

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import TopicPartition
from kafka08.errors import (
    NO_ERROR,
    ConsumerCoordinatorNotAvailableError,
    KafkaError,
    LaterCode,
    OffsetMetadataTooLargeError,
    OffsetsLoadInProgressError,
    UnknownTopicOrPartitionError,
)
from kafka08.groups.records import Committed, GroupPartition
from kafka08.log.producer_state import NONE
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.schemas import RequestHeader
from kafka08.runtime import Runtime
from kafka08.server.apis.groups import AS_LATER_COORDINATOR, is_too_long
from kafka08.server.groups.coordinator import MemberId
from kafka08.server.groups.requests import GroupRequests
from kafka08.server.requests.long_work import by_topic, partitions_of
from kafka08.server.storage.replica_manager import ReplicaManager
from kafka08.server.storage.writes import TransactionGate
from kafka08.settings.broker import BrokerConfig


class TxnOffsetCommitApi:
    key = 28
    last_version = 3

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        replicas: ReplicaManager,
        cache: MetadataCache,
        members: GroupRequests,
        gate: TransactionGate,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._replicas = replicas
        self._cache = cache
        self._offsets = members.offsets
        self._groups = members.coordinator
        self._gate = gate

    def handle(
        self, header: RequestHeader, request: t.TxnOffsetCommitRequest
    ) -> t.TxnOffsetCommitResponse:
        if not self._cache.announced.is_set():
            return self.failure(header, request, OffsetsLoadInProgressError.code)
        member = MemberId(request.member_id, request.group_instance_id)
        refused = self._offsets.check_coordinator(
            request.group
        ) or self._groups.check_commit_in_transaction(request.group, request.generation, member)
        now = self._runtime.clock.millis()
        codes: dict[TopicPartition, int] = {}
        entries: dict[GroupPartition, Committed] = {}
        for key, commit in partitions_of(self._runtime, request):
            codes[key] = self._check(key, commit) or refused
            if not codes[key]:
                entries[GroupPartition(request.group, *key)] = Committed(
                    commit.offset, commit.metadata or "", now
                )
        if entries:
            code = self._commit(request, entries)
            for entry in entries:
                codes[TopicPartition(entry.topic, entry.partition)] = code
        return _response(codes)

    def _check(self, key: TopicPartition, commit: t.TxnOffsetCommitPartition) -> int:
        if not self._cache.has_partition(*key):
            return UnknownTopicOrPartitionError.code
        if is_too_long(commit.metadata, self._config.offset_metadata_max_bytes):
            return OffsetMetadataTooLargeError.code
        return NO_ERROR

    def _commit(
        self, request: t.TxnOffsetCommitRequest, entries: dict[GroupPartition, Committed]
    ) -> int:
        producer = request.producer_id, request.producer_epoch
        try:
            log = self._replicas.partition(self._offsets.partition_for(request.group)).leader_log()
            self._gate.verify(log, request.transactional_id, producer, NONE)
        except KafkaError as error:
            return AS_LATER_COORDINATOR.get(error.code, error.code)
        code = self._offsets.commit_in_transaction(request.group, entries, *producer)
        if code == LaterCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
            # A broker of 0.8.2.2 has a replica, and cannot store transactions.
            return ConsumerCoordinatorNotAvailableError.code
        return AS_LATER_COORDINATOR.get(code, code)

    def failure(
        self, header: RequestHeader, request: t.TxnOffsetCommitRequest, code: int
    ) -> t.TxnOffsetCommitResponse:
        return _response({key: code for key, _ in partitions_of(self._runtime, request)})


def _response(codes: dict[TopicPartition, int]) -> t.TxnOffsetCommitResponse:
    answers = ((key, t.TxnPartitionError(key.partition, code)) for key, code in codes.items())
    return t.TxnOffsetCommitResponse(0, [t.TxnTopicErrors(*item) for item in by_topic(answers)])
