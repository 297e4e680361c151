"""The requests of an idempotent producer: its batches have an id and a sequence, so that brokers
store none twice, whatever is sent again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafka08.errors import InvalidProducerEpochError, OutOfOrderSequenceError
from kafka08.producer.accumulator import PartitionBatches
from kafka08.producer.batch import ProducerBatch
from kafka08.producer.encoding import Requests, record_batch
from kafka08.producer.errors import UnknownProducerIdError
from kafka08.producer.kafka_config import KafkaProducerConfig, seconds
from kafka08.producer.transactions.coordinators import Coordinators
from kafka08.producer.transactions.sequences import NO_ID, ProducerId, Sequences
from kafka08.protocol.later_schemas import InitProducerIdRequest
from kafka08.protocol.schemas import ProduceRequest

# The broker expects another sequence, or another epoch.
_LOST_COUNT = (InvalidProducerEpochError, OutOfOrderSequenceError, UnknownProducerIdError)
_NO_TIMEOUT_MS = 2**31 - 1


class IdempotentRequests(Requests):
    """``build`` may be called by several tasks; one of them asks a broker at a time."""

    def __init__(self, config: KafkaProducerConfig, coordinators: Coordinators) -> None:
        super().__init__(config)
        self._coordinators = coordinators
        self._asking = coordinators.lock()
        self._patience = seconds(config.delivery_timeout_ms)
        self.sequences = Sequences()

    def build(self, parts: Sequence[PartitionBatches]) -> ProduceRequest:
        """Waits while the producer gets its id. Raises KafkaError."""
        self._admit(parts)
        return super().build(parts)

    def _admit(self, parts: Sequence[PartitionBatches]) -> None:
        if self.sequences.producer != NO_ID:
            return
        with self._asking:
            if self.sequences.producer == NO_ID:  # no other task has got it meanwhile
                request = InitProducerIdRequest(None, _NO_TIMEOUT_MS)
                answer = self._coordinators.call_any(request, self._patience)
                self.sequences.producer = ProducerId(answer.producer_id, answer.producer_epoch)

    def _encode(self, part: PartitionBatches) -> bytes:
        queue, batches = part
        sender = self.sequences.sender(queue.tp, is_sent=batches[0].attempts > 0)
        return record_batch(batches, queue.codec, sender)

    def stored(self, part: PartitionBatches) -> None:
        self.sequences.stored(part.queue.tp, sum(len(batch.values) for batch in part.batches))

    def failed(self, batches: Iterable[ProducerBatch]) -> list[ProducerBatch]:
        """Records that come after one that may be stored need another epoch."""
        if any(batch.attempts or isinstance(batch.error, _LOST_COUNT) for batch in batches):
            self.sequences.begin_again()
        return []
