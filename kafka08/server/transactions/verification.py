"""Asks the coordinator, before a transaction begins in a partition that is led here, whether it
includes the partition.

Without this a batch that comes late, after its transaction was ended, would begin one that nobody
ends, and hold back all readers of committed transactions.
"""

from __future__ import annotations

import logging

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import TRANSACTIONS_TOPIC, TopicPartition, offsets_partition_for
from kafka08.errors import (
    NO_ERROR,
    ConsumerCoordinatorNotAvailableError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaError,
    LaterCode,
    NotCoordinatorForConsumerError,
    NotEnoughReplicasError,
    OffsetsLoadInProgressError,
)
from kafka08.log.log import Log
from kafka08.metrics.meters import Histogram, Meter
from kafka08.protocol.transaction_schemas import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    TxnToAdd,
    TxnTopic,
)
from kafka08.runtime import Clock
from kafka08.server.transactions.coordinator import Producer, TransactionCoordinator
from kafka08.server.transactions.peers import Peers
from kafka08.settings.broker import BrokerConfig

logger = logging.getLogger("kafka.server.AddPartitionsToTxnManager")

_VERSION = 4
# The coordinator could not say: the producer asks again.
_NOT_NOW = (
    LaterCode.CONCURRENT_TRANSACTIONS,
    OffsetsLoadInProgressError.code,
    ConsumerCoordinatorNotAvailableError.code,
    NotCoordinatorForConsumerError.code,
)


class TransactionRefusedError(KafkaError):
    """The coordinator's code for a transaction that may not go on."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[misc]  # of the instance


class Verifier:
    """This broker's ids are ``coordinator``'s; other brokers are asked by ``peers``. ``times`` (ms)
    and ``failures`` are those of questions to coordinators."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        cache: MetadataCache,
        peers: Peers,
        coordinator: TransactionCoordinator,
    ) -> None:
        self.times = Histogram()
        self.failures = Meter()
        self._config = config
        self._clock = clock
        self._cache = cache
        self._peers = peers
        self._coordinator = coordinator

    def verify(self, log: Log, id_: str, of: tuple[int, int], sequence: int) -> None:
        """Have a batch of the producer's transaction be taken by the log. May wait. ``sequence``:
        the batch's first, or -1 for offsets, which have none.

        Raises InvalidTxnStateError if the transaction does not include the partition,
        NotEnoughReplicasError if the coordinator cannot say, InvalidProducerEpochError and
        TransactionRefusedError.
        """
        producer = Producer(*of)
        now = self._clock.millis()
        asked = log.producers.verification(producer.id, producer.epoch, sequence, now)
        if asked is None:
            return
        code = NO_ERROR
        if self._config.transaction_partition_verification_enable:
            begun = self._clock.monotonic()
            code = self._ask(id_, producer, log.topic_partition)
            self.times.update(round(1000 * (self._clock.monotonic() - begun)))
        if not code:
            log.producers.confirm(producer.id, asked)
            return
        self.failures.mark()
        raise _refusal(code, id_, log.topic_partition)

    def _ask(self, id_: str, producer: Producer, key: TopicPartition) -> int:
        count = self._config.transaction_state_log_num_partitions
        partition = TopicPartition(TRANSACTIONS_TOPIC, offsets_partition_for(id_, count))
        leader = self._cache.leader_of(partition)
        if leader is None:
            return ConsumerCoordinatorNotAvailableError.code
        if leader.id == self._config.broker_id:
            found = self._coordinator.verify(id_, producer, [key])
            return found if isinstance(found, int) else found[key]
        topics = [TxnTopic(key.topic, [key.partition])]
        one = TxnToAdd(id_, *producer, verify_only=True, topics=topics)
        request = AddPartitionsToTxnRequest(transactions=[one])
        try:
            answer: AddPartitionsToTxnResponse = self._peers.call(leader, request, _VERSION)
            return answer.error or answer.transactions[0].topics[0].partitions[0].error
        except (OSError, KafkaError, IndexError) as error:
            logger.warning("Broker %d did not verify %s: %s", leader.id, id_, error)
            return ConsumerCoordinatorNotAvailableError.code


def _refusal(code: int, id_: str, key: TopicPartition) -> KafkaError:
    if code in _NOT_NOW:
        return NotEnoughReplicasError(f"The coordinator of {id_} does not answer (code {code})")
    if code == LaterCode.INVALID_TXN_STATE:
        return InvalidTxnStateError(f"The transaction of {id_} does not include {key}")
    if code in (LaterCode.PRODUCER_FENCED, LaterCode.INVALID_PRODUCER_EPOCH):
        return InvalidProducerEpochError(f"A newer producer uses {id_}")
    return TransactionRefusedError(code, f"The coordinator of {id_} answered code {code}")
