"""API 0, Produce: append message sets and wait for the acknowledgements asked for.

acks 0: no answer, an error closes the connection (after the other partitions were appended).
acks 1: answered after the local append. acks -1: once the high watermark has passed the set.
acks N > 1 (deprecated): once N members of the isr have it. Below -1 acts as -1 without the
check of min.insync.replicas before the append. Left out: nothing. Safer than 0.8.2.2: lost
leadership answers 6 at once, where the original lets the request time out.
"""

from __future__ import annotations

import logging
from typing import Final

from kafka08.common import OFFSETS_TOPIC, TopicPartition
from kafka08.errors import (
    NO_ERROR,
    InvalidMessageError,
    InvalidRecordError,
    InvalidTimestampError,
    InvalidTopicError,
    MessageSetSizeTooLargeError,
    MessageSizeTooLargeError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    UnknownTopicOrPartitionError,
    UnsupportedForMessageFormatError,
)
from kafka08.message.batch import NO_TIMESTAMP
from kafka08.message.sets import require_batch
from kafka08.network.server import ConnectionClosed
from kafka08.protocol.schemas import (
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResponse,
    RequestHeader,
)
from kafka08.runtime import Runtime
from kafka08.server.apis.failures import Failures
from kafka08.server.rebuild.view import ConsumerView
from kafka08.server.replication.acks import await_acks
from kafka08.server.requests.long_work import are_many, in_turns, in_turns_if_many, partitions_of
from kafka08.server.storage.appends import Appends, Room
from kafka08.server.storage.replica_manager import ReplicaManager

logger = logging.getLogger("kafka.server.KafkaApis")


# Makes a NamedTuple in half the time of its constructor: this is what each produce passes.
_new: Final = tuple.__new__
# These do not count as failures of this broker.
_REFUSED = (
    InvalidTopicError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    UnknownTopicOrPartitionError,
)
# Versions of the request.
_TIMES_SINCE: Final = 2
_ONE_BATCH_SINCE: Final = 3
_ZSTD_SINCE: Final = 7
# Errors that older clients do not know, and since which version they are sent.
_NEWER = (
    (InvalidRecordError, _ONE_BATCH_SINCE),
    (UnsupportedForMessageFormatError, _ONE_BATCH_SINCE),
    (InvalidTimestampError, _TIMES_SINCE),
)
_NO_RECORD_ERRORS: Final = ProducePartitionResponse(0, 0, 0)[5:]


class ProduceApi:
    key = 0
    last_version = 8

    def __init__(self, runtime: Runtime, replicas: ReplicaManager, view: ConsumerView) -> None:
        self._runtime = runtime
        self._replicas = replicas
        self._view = view
        self._appends = Appends(runtime, replicas, view.long_work)

    def handle(self, header: RequestHeader, request: ProduceRequest) -> ProduceResponse | None:
        acks = request.acks
        # A partition named twice counts once, as in the original's map: the last one.
        if are_many(request.topics):
            named = partitions_of(self._runtime, request)
            sets = {_new(TopicPartition, (t, p.partition)): p.message_set for t, p in named}
        else:
            sets = {
                _new(TopicPartition, (topic.topic, partition.partition)): partition.message_set
                for topic in request.topics
                for partition in topic.partitions
            }
        required: dict[TopicPartition, int] = {}
        failures = Failures()
        room = Room(sets)
        answers = {
            key: self._append(key, data, room, acks, header.api_version, required, failures)
            for key, data in in_turns(self._runtime, sets.items())
        }
        if failures:
            failures.tell(
                logger,
                f"Produce request with correlation id {header.correlation_id} "
                f"from client {header.client_id}",
            )
        if acks == 0:
            if failures:
                raise ConnectionClosed(f"produce with acks 0 failed for {failures}")
            return None
        if acks != 1:
            for key, code in await_acks(self._replicas, required, acks, request.timeout_ms).items():
                answers[key] = answers[key]._replace(error=code)
        return self._response(answers)

    def failure(
        self, header: RequestHeader, request: ProduceRequest, code: int
    ) -> ProduceResponse | None:
        if request.acks == 0:
            raise ConnectionClosed("produce with acks 0 failed")
        return self._response(
            {
                TopicPartition(topic, partition.partition): ProducePartitionResponse(
                    partition.partition, code, -1
                )
                for topic, partition in partitions_of(self._runtime, request)
            }
        )

    def _append(
        self,
        key: TopicPartition,
        data: memoryview,
        room: Room,
        acks: int,
        version: int,
        required: dict[TopicPartition, int],
        failures: Failures,
    ) -> ProducePartitionResponse:
        """Append one set; where its end is to be acknowledged goes into ``required``."""
        code, base_offset, append_time = NO_ERROR, -1, NO_TIMESTAMP
        try:
            if key.topic == OFFSETS_TOPIC:
                raise InvalidTopicError(f"Cannot append to internal topic {key.topic}")
            if version >= _ONE_BATCH_SINCE:
                require_batch(data, zstd=version >= _ZSTD_SINCE)
            appended = self._appends.append(key, data, acks, room)
            if appended.count:
                meters = self._replicas.counts.topics.of(key.topic)
                meters.messages_in.count += appended.count
                meters.bytes_in.count += len(data)
                base_offset, append_time = appended.first_offset, appended.append_time
                if acks != 1:
                    required[key] = appended.last_offset + 1
            if appended.rebuilt is not None:
                self._view.remember(appended.rebuilt)
        except Exception as error:
            code = failures.add(key, error)
            if not isinstance(error, _REFUSED):
                self._count_failure(key, error, len(data))
            if any(isinstance(error, each) and version < since for each, since in _NEWER):
                code = InvalidMessageError.code
        start = -1
        if code != NO_ERROR:
            append_time = NO_TIMESTAMP
        elif version:
            log = self._replicas.partition(key).log
            start = -1 if log is None else log.first_offset
        fields = key.partition, code, base_offset, append_time, start, *_NO_RECORD_ERRORS
        return _new(ProducePartitionResponse, fields)

    def _count_failure(self, key: TopicPartition, error: Exception, size: int) -> None:
        meters = self._replicas.counts.topics.of(key.topic)
        meters.failed_produce_requests.mark()
        if isinstance(error, (MessageSizeTooLargeError, MessageSetSizeTooLargeError)):
            meters.bytes_rejected.mark(size)

    def _response(self, answers: dict[TopicPartition, ProducePartitionResponse]) -> ProduceResponse:
        topics: dict[str, list[ProducePartitionResponse]] = {}
        for key, answer in in_turns_if_many(self._runtime, answers.items()):
            topics.setdefault(key.topic, []).append(answer)
        named = [_new(ProduceTopicResponse, item) for item in topics.items()]
        return _new(ProduceResponse, (named, 0))
