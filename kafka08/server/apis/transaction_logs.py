"""APIs 27 and 61: transactions in the partitions that are led here.

WriteTxnMarkers appends the markers that a coordinator sends, and answers when the whole isr has
them. A marker in ``__consumer_offsets`` makes the offsets of its transaction count, or drops them.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka08.common import OFFSETS_TOPIC, TopicPartition
from kafka08.errors import (
    NO_ERROR,
    NotLeaderForPartitionError,
    UnknownTopicOrPartitionError,
)
from kafka08.log import numbering
from kafka08.log.producer_state import ProducerState
from kafka08.message.markers import ABORT, COMMIT, encode_marker
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.schemas import RequestHeader
from kafka08.runtime import Runtime
from kafka08.server.apis.failures import RequestFailures
from kafka08.server.groups.pending_offsets import EndedTransaction
from kafka08.server.replication.acks import await_acks
from kafka08.server.storage.replica_manager import ReplicaManager
from kafka08.settings.broker import BrokerConfig

# Called with the number of the partition of __consumer_offsets.
Ended = Callable[[int, EndedTransaction], None]


class MarkerLog:
    """Writes markers into the partitions that are led here. ``ended`` is told of those in
    ``__consumer_offsets``."""

    def __init__(
        self, config: BrokerConfig, runtime: Runtime, replicas: ReplicaManager, ended: Ended
    ) -> None:
        self._timeout_ms = config.controller_socket_timeout_ms
        self._runtime = runtime
        self._replicas = replicas
        self._ended = ended

    def write(self, request: t.WriteTxnMarkersRequest) -> t.WriteTxnMarkersResponse:
        """Append all, and wait for their acks."""
        codes: list[dict[TopicPartition, int]] = []
        places: list[dict[TopicPartition, int]] = []
        required: dict[TopicPartition, int] = {}
        failures = RequestFailures()
        for marker in request.markers:
            written: dict[TopicPartition, int] = {}
            at: dict[TopicPartition, int] = {}
            for topic in marker.topics:
                for number in topic.partitions:
                    key = TopicPartition(topic.topic, number)
                    try:
                        at[key] = self._append(key, marker)
                        required[key] = at[key] + 1
                        written[key] = NO_ERROR
                    except Exception as error:
                        written[key] = failures.add(key, error)
            codes.append(written)
            places.append(at)
        if failures:
            failures.tell("Markers of transactions")
        acknowledged = await_acks(self._replicas, required, -1, self._timeout_ms)
        for marker, written, at in zip(request.markers, codes, places, strict=True):
            for key, code in written.items():
                written[key] = code or acknowledged[key]
                if not written[key] and key.topic == OFFSETS_TOPIC:
                    ended = EndedTransaction(marker.producer_id, marker.committed, at[key])
                    self._ended(key.partition, ended)
        return t.WriteTxnMarkersResponse(
            [
                t.WrittenTxnMarker(marker.producer_id, _topics(marker, written))
                for marker, written in zip(request.markers, codes, strict=True)
            ]
        )

    def _append(self, key: TopicPartition, marker: t.TxnMarker) -> int:
        """The offset of the marker."""
        kind = COMMIT if marker.committed else ABORT
        ids = marker.producer_id, marker.producer_epoch
        now = self._runtime.clock.millis()
        data = memoryview(bytearray(encode_marker(*ids, kind, marker.coordinator_epoch, now)))
        log = self._replicas.writable(key, -1).leader_log()
        numbered = numbering.of_coordinator(data, log.log_end_offset, log.rules, log.config)
        appended = self._replicas.append_messages(key, data, -1, numbered=numbered)
        return appended.last_offset


class WriteTxnMarkersApi:
    key = 27
    last_version = 1

    def __init__(self, log: MarkerLog) -> None:
        self._log = log

    def handle(
        self, header: RequestHeader, request: t.WriteTxnMarkersRequest
    ) -> t.WriteTxnMarkersResponse:
        return self._log.write(request)

    def failure(
        self, header: RequestHeader, request: t.WriteTxnMarkersRequest, code: int
    ) -> t.WriteTxnMarkersResponse:
        return t.WriteTxnMarkersResponse(
            [
                t.WrittenTxnMarker(
                    marker.producer_id,
                    _topics(marker, dict.fromkeys(_partitions(marker), code)),
                )
                for marker in request.markers
            ]
        )


class DescribeProducersApi:
    key = 61
    last_version = 0

    def __init__(self, replicas: ReplicaManager) -> None:
        self._replicas = replicas

    def handle(
        self, header: RequestHeader, request: t.DescribeProducersRequest
    ) -> t.DescribeProducersResponse:
        return t.DescribeProducersResponse(
            0,
            [
                t.ProducersTopicResponse(
                    topic.topic,
                    [self._one(TopicPartition(topic.topic, each)) for each in topic.partitions],
                )
                for topic in request.topics
            ],
        )

    def _one(self, key: TopicPartition) -> t.ProducersPartition:
        try:
            states = self._replicas.partition(key).leader_log().producers.states
        except (UnknownTopicOrPartitionError, NotLeaderForPartitionError) as error:
            return t.ProducersPartition(key.partition, error.code, str(error), [])
        found = [_active(id_, states[id_]) for id_ in states]
        return t.ProducersPartition(key.partition, NO_ERROR, None, found)

    def failure(
        self, header: RequestHeader, request: t.DescribeProducersRequest, code: int
    ) -> t.DescribeProducersResponse:
        return t.DescribeProducersResponse(
            0,
            [
                t.ProducersTopicResponse(
                    topic.topic,
                    [t.ProducersPartition(each, code, None, []) for each in topic.partitions],
                )
                for topic in request.topics
            ],
        )


def _active(producer_id: int, known: ProducerState) -> t.ActiveProducer:
    head = producer_id, known.epoch, known.last_sequence, known.timestamp
    return t.ActiveProducer(*head, known.coordinator_epoch, known.transaction_start)


def _partitions(marker: t.TxnMarker) -> list[TopicPartition]:
    topics = marker.topics
    return [TopicPartition(topic.topic, each) for topic in topics for each in topic.partitions]


def _topics(marker: t.TxnMarker, codes: dict[TopicPartition, int]) -> list[t.MarkedTopicResponse]:
    return [
        t.MarkedTopicResponse(
            topic.topic,
            [
                t.MarkedPartition(each, codes[TopicPartition(topic.topic, each)])
                for each in topic.partitions
            ],
        )
        for topic in marker.topics
    ]
