"""APIs 22, 24 to 26, 65 and 66: producers and their transactions, as their coordinator sees them.

The oldest versions do not know PRODUCER_FENCED (90): their clients get 47, which means the same to
them. Without ZooKeeper no new block of ids can be claimed. Clients are asked to try again (14): the
general -1 is final to some of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import INTERNAL_TOPICS, TopicPartition
from kafka08.errors import (
    NO_ERROR,
    LaterCode,
    OffsetsLoadInProgressError,
    UnknownTopicOrPartitionError,
    UnsupportedForMessageFormatError,
)
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.later_schemas import InitProducerIdRequest, InitProducerIdResponse
from kafka08.protocol.schemas import RequestHeader
from kafka08.runtime import Runtime
from kafka08.server.cluster_view.originals import Originals
from kafka08.server.cluster_view.producer_ids import ProducerIds
from kafka08.server.groups.offset_manager import OffsetManager
from kafka08.server.transactions.coordinator import NOBODY, Producer, TransactionCoordinator
from kafka08.server.transactions.records import Transaction
from kafka08.server.transactions.states import BY_NAME, ONGOING, PREPARED
from zk.errors import ZkError

logger = logging.getLogger("kafka.server.KafkaApis")

_FENCED_SINCE = {22: 4, 24: 2, 25: 2, 26: 2}  # versions
_BETWEEN_BROKERS_SINCE = 4


def _told(header: RequestHeader, code: int) -> int:
    """The code, as the version of the request knows it."""
    if code == LaterCode.PRODUCER_FENCED and header.api_version < _FENCED_SINCE[header.api_key]:
        return LaterCode.INVALID_PRODUCER_EPOCH
    return code


class StoresTransactions:
    """Which partitions a transaction may include: not those with a replica on a broker of 0.8.2.2,
    which takes neither its batches nor its markers."""

    def __init__(self, cache: MetadataCache, originals: Originals) -> None:
        self.cache = cache
        self._originals = originals

    def check(self, key: TopicPartition) -> int:
        """The wire code."""
        if self._originals.can_store_later(self.cache.replicas_of(*key)):
            return NO_ERROR
        return UnsupportedForMessageFormatError.code


class InitProducerIdApi:
    key = 22
    last_version = 4

    def __init__(
        self, ids: ProducerIds, coordinator: TransactionCoordinator, originals: Originals
    ) -> None:
        self._ids = ids
        self._coordinator = coordinator
        self._originals = originals

    def handle(
        self, header: RequestHeader, request: InitProducerIdRequest
    ) -> InitProducerIdResponse:
        try:
            if request.transactional_id is None:
                return InitProducerIdResponse(0, NO_ERROR, self._ids.take(), 0)
            return self._transactional(header, request, request.transactional_id)
        except ZkError as error:
            logger.warning("No producer id for %s: %s", header.client_id, error)
            return self.failure(header, request, OffsetsLoadInProgressError.code)

    def _transactional(
        self, header: RequestHeader, request: InitProducerIdRequest, id_: str
    ) -> InitProducerIdResponse:
        expected = Producer(request.producer_id, request.producer_epoch)
        if not id_ or (expected.id < 0) != (expected.epoch < 0):
            return self.failure(header, request, LaterCode.INVALID_REQUEST)
        if self._originals.are_registered():
            logger.warning(
                "No transactions for %s while a broker of 0.8.2.2 is registered, which cannot "
                "store them",
                id_,
            )
            return self.failure(header, request, LaterCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
        if expected.id < 0:
            expected = NOBODY
        timeout_ms = request.transaction_timeout_ms
        code, producer = self._coordinator.init_producer(id_, timeout_ms, expected)
        return InitProducerIdResponse(0, _told(header, code), *producer)

    def failure(
        self, header: RequestHeader, request: InitProducerIdRequest, code: int
    ) -> InitProducerIdResponse:
        return InitProducerIdResponse(0, code, -1, -1)


class AddPartitionsToTxnApi:
    key = 24
    last_version = 5

    def __init__(self, coordinator: TransactionCoordinator, stores: StoresTransactions) -> None:
        self._coordinator = coordinator
        self._stores = stores

    def handle(
        self, header: RequestHeader, request: t.AddPartitionsToTxnRequest
    ) -> t.AddPartitionsToTxnResponse:
        if header.api_version >= _BETWEEN_BROKERS_SINCE:
            return t.AddPartitionsToTxnResponse(
                0,
                transactions=[
                    t.AddedToTxn(one.transactional_id, _topics(one.topics, self._one(header, one)))
                    for one in request.transactions
                ],
            )
        one = t.TxnToAdd(*request[:3], verify_only=False, topics=request.topics)
        return t.AddPartitionsToTxnResponse(
            0, topics=_topics(request.topics, self._one(header, one))
        )

    def _one(self, header: RequestHeader, one: t.TxnToAdd) -> dict[TopicPartition, int]:
        """The code of each partition. If one is refused, none is added."""
        keys = _partitions(one.topics)
        producer = Producer(one.producer_id, one.producer_epoch)
        if one.verify_only:
            found = self._coordinator.verify(one.transactional_id, producer, keys)
            return dict.fromkeys(keys, found) if isinstance(found, int) else found
        codes = {key: self._check(key) for key in keys}
        if any(codes.values()):
            not_tried = LaterCode.OPERATION_NOT_ATTEMPTED
            return {key: code or not_tried for key, code in codes.items()}
        code = self._coordinator.add_partitions(one.transactional_id, producer, keys)
        return dict.fromkeys(keys, _told(header, code))

    def _check(self, key: TopicPartition) -> int:
        if key.topic in INTERNAL_TOPICS:
            return LaterCode.TOPIC_AUTHORIZATION_FAILED
        if not self._stores.cache.has_partition(*key):
            return UnknownTopicOrPartitionError.code
        return self._stores.check(key)

    def failure(
        self, header: RequestHeader, request: t.AddPartitionsToTxnRequest, code: int
    ) -> t.AddPartitionsToTxnResponse:
        if header.api_version >= _BETWEEN_BROKERS_SINCE:
            return t.AddPartitionsToTxnResponse(0, code)
        codes = dict.fromkeys(_partitions(request.topics), code)
        return t.AddPartitionsToTxnResponse(0, topics=_topics(request.topics, codes))


class AddOffsetsToTxnApi:
    key = 25
    last_version = 3

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        offsets: OffsetManager,
        stores: StoresTransactions,
    ) -> None:
        self._coordinator = coordinator
        self._offsets = offsets
        self._stores = stores

    def handle(
        self, header: RequestHeader, request: t.AddOffsetsToTxnRequest
    ) -> t.AddOffsetsToTxnResponse:
        producer = Producer(request.producer_id, request.producer_epoch)
        key = self._offsets.partition_for(request.group)
        code = self._stores.check(key) or self._coordinator.add_partitions(
            request.transactional_id, producer, [key]
        )
        return t.AddOffsetsToTxnResponse(0, _told(header, code))

    def failure(
        self, header: RequestHeader, request: t.AddOffsetsToTxnRequest, code: int
    ) -> t.AddOffsetsToTxnResponse:
        return t.AddOffsetsToTxnResponse(0, code)


class EndTxnApi:
    key = 26
    last_version = 3

    def __init__(self, coordinator: TransactionCoordinator) -> None:
        self._coordinator = coordinator

    def handle(self, header: RequestHeader, request: t.EndTxnRequest) -> t.EndTxnResponse:
        producer = Producer(request.producer_id, request.producer_epoch)
        commit = request.committed
        code = self._coordinator.end(request.transactional_id, producer, commit=commit)
        return t.EndTxnResponse(0, _told(header, code))

    def failure(
        self, header: RequestHeader, request: t.EndTxnRequest, code: int
    ) -> t.EndTxnResponse:
        return t.EndTxnResponse(0, code)


class DescribeTransactionsApi:
    key = 65
    last_version = 0

    def __init__(self, coordinator: TransactionCoordinator) -> None:
        self._coordinator = coordinator

    def handle(
        self, header: RequestHeader, request: t.DescribeTransactionsRequest
    ) -> t.DescribeTransactionsResponse:
        ids = dict.fromkeys(request.transactional_ids)
        return t.DescribeTransactionsResponse(0, [self._one(id_) for id_ in ids])

    def _one(self, id_: str) -> t.DescribedTransaction:
        if not id_:
            return _unknown(id_, LaterCode.INVALID_REQUEST)
        led = self._coordinator.store.led(id_)
        if isinstance(led, int):
            return _unknown(id_, led)
        entry = led.entries.get(id_)
        if entry is None or entry.is_new:
            return _unknown(id_, LaterCode.TRANSACTIONAL_ID_NOT_FOUND)
        found = entry.current
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(found.partitions):
            topics.setdefault(topic, []).append(partition)
        head = NO_ERROR, id_, found.state.value, found.timeout_ms, found.start_ms
        listed = [t.ProducersTopic(*item) for item in topics.items()]
        return t.DescribedTransaction(*head, found.producer_id, found.epoch, listed)

    def failure(
        self, header: RequestHeader, request: t.DescribeTransactionsRequest, code: int
    ) -> t.DescribeTransactionsResponse:
        return t.DescribeTransactionsResponse(
            0, [_unknown(id_, code) for id_ in dict.fromkeys(request.transactional_ids)]
        )


class ListTransactionsApi:
    key = 66
    last_version = 1

    def __init__(self, runtime: Runtime, coordinator: TransactionCoordinator) -> None:
        self._runtime = runtime
        self._coordinator = coordinator

    def handle(
        self, header: RequestHeader, request: t.ListTransactionsRequest
    ) -> t.ListTransactionsResponse:
        if self._coordinator.store.is_loading:
            return self.failure(header, request, OffsetsLoadInProgressError.code)
        unknown = [name for name in request.states if name not in BY_NAME]
        if unknown and len(unknown) == len(request.states):
            return t.ListTransactionsResponse(0, NO_ERROR, unknown, [])
        now = self._runtime.clock.millis()
        found = [
            t.ListedTransaction(each.id, each.producer_id, each.state.value)
            for each in (entry.current for _, entry in self._coordinator.store.all())
            if (not request.states or each.state.value in request.states)
            and (not request.producer_ids or each.producer_id in request.producer_ids)
            and _took(each, now) > request.longer_than_ms
        ]
        return t.ListTransactionsResponse(0, NO_ERROR, unknown, found)

    def failure(
        self, header: RequestHeader, request: t.ListTransactionsRequest, code: int
    ) -> t.ListTransactionsResponse:
        return t.ListTransactionsResponse(0, code, [], [])


def _took(found: Transaction, now: int) -> int:
    """How long a transaction has been under way (ms); 0 without one."""
    under_way = found.state is ONGOING or found.state in PREPARED
    return now - found.start_ms if under_way else 0


def _unknown(id_: str, code: int) -> t.DescribedTransaction:
    return t.DescribedTransaction(code, id_, "", 0, -1, -1, -1, [])


def _partitions(topics: Iterable[t.TxnTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.topic, each) for topic in topics for each in topic.partitions]


def _topics(
    asked: Iterable[t.TxnTopic], codes: dict[TopicPartition, int]
) -> list[t.TxnTopicErrors]:
    return [
        t.TxnTopicErrors(
            topic.topic,
            [
                t.TxnPartitionError(each, codes[TopicPartition(topic.topic, each)])
                for each in topic.partitions
            ],
        )
        for topic in asked
    ]
