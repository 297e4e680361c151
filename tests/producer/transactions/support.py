"""A coordinator beside the brokers of a producer's driver, which store batches as real ones do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka08.common import TopicPartition
from kafka08.errors import InvalidTxnStateError, LaterCode
from kafka08.message.batch import Batch, header_of
from kafka08.protocol import schemas as s
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.later_schemas import InitProducerIdRequest, InitProducerIdResponse
from tests.fakes.cluster import FakeCluster
from tests.producer.fake_producer import ProducerDriver

TRANSACTIONAL_ID = "orders"
ONE = TopicPartition("one", 0)


class Coordinated:
    """The knowledge of brokers about one transactional id, and of the producers of each partition.

    ``codes``: by class of request, the codes that the next ones get, 0 for the usual answer.
    ``ends`` of transactions: (committed, the partitions with their values, offsets).
    """

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.codes: dict[type, list[int]] = {}
        self.producer = (7, -1)
        self.partitions: set[TopicPartition] = set()
        self.offsets: dict[TopicPartition, int] = {}
        self.groups: list[str] = []
        self.ends: list[tuple[bool, set[TopicPartition], dict[TopicPartition, int]]] = []
        self.is_open = False
        self.batches: dict[TopicPartition, list[Batch]] = {}
        self.before_answer: Callable[[Any], object] = lambda request: None

    def script(self, port: int, request: Any) -> Any:
        self.before_answer(request)
        left = self.codes.get(type(request), [])
        code = left.pop(0) if left else 0
        handle = getattr(self, f"_{type(request).__name__}", None)
        return None if handle is None else handle(request, code)

    def _ConsumerMetadataRequest(self, request: Any, code: int) -> Any:
        return s.ConsumerMetadataResponse(code, -1, "", -1) if code else None

    def _InitProducerIdRequest(self, request: InitProducerIdRequest, code: int) -> Any:
        if code:
            return InitProducerIdResponse(0, code, -1, -1)
        if request.transactional_id is None:
            self.producer = (self.producer[0] + 1, 0)
        else:
            assert not self.is_open or request.producer_id == -1
            self.producer = (7, self.producer[1] + 1)
            self._end(False)
        return InitProducerIdResponse(0, 0, *self.producer)

    def _AddPartitionsToTxnRequest(self, request: Any, code: int) -> Any:
        named = [TopicPartition(each.topic, n) for each in request.topics for n in each.partitions]
        code = code or self._fenced(request)
        if not code:
            self.is_open = True
            self.partitions.update(named)
        return t.AddPartitionsToTxnResponse(0, topics=_errors(named, code))

    def _AddOffsetsToTxnRequest(self, request: Any, code: int) -> Any:
        code = code or self._fenced(request)
        if not code:
            self.is_open = True
            self.groups.append(request.group)
        return t.AddOffsetsToTxnResponse(0, code)

    def _TxnOffsetCommitRequest(self, request: Any, code: int) -> Any:
        found = {
            TopicPartition(each.topic, part.partition): part.offset
            for each in request.topics
            for part in each.partitions
        }
        if not code:
            self.offsets.update(found)
        return t.TxnOffsetCommitResponse(0, _errors(list(found), code))

    def _EndTxnRequest(self, request: Any, code: int) -> Any:
        code = code or self._fenced(request)
        if not code and self.is_open:
            self._end(request.committed)
        elif not code and (not self.ends or self.ends[-1][0] != request.committed):
            code = InvalidTxnStateError.code
        return t.EndTxnResponse(0, code)

    def _end(self, committed: bool) -> None:
        if self.is_open:
            self.ends.append((committed, set(self.partitions), dict(self.offsets)))
        self.is_open = False
        self.partitions.clear()
        self.offsets.clear()

    def _fenced(self, request: Any) -> int:
        same = (request.producer_id, request.producer_epoch) == self.producer
        return 0 if same else int(LaterCode.PRODUCER_FENCED)

    def _ProduceRequest(self, request: Any, code: int) -> Any:
        """None lets the cluster store the batches, as they are the next ones."""
        topics = [
            s.ProduceTopicResponse(topic.topic, [self._check(topic.topic, part, request, code)])
            for topic in request.topics
            for part in topic.partitions
        ]
        answers = [each for topic in topics for each in topic.partitions]
        if any(each.error or each.base_offset >= 0 for each in answers):
            return s.ProduceResponse(topics)
        return None

    def _check(self, topic: str, part: Any, request: Any, code: int) -> Any:
        tp = TopicPartition(topic, part.partition)
        batch = header_of(part.message_set)
        known = self.batches.setdefault(tp, [])
        if not code and request.transactional_id is not None and tp not in self.partitions:
            code = InvalidTxnStateError.code
        if code:
            return s.ProducePartitionResponse(part.partition, code, -1)
        for number, old in enumerate(known):
            if _life(old) == _life(batch) and old.base_sequence == batch.base_sequence:
                if old.count != batch.count:
                    return s.ProducePartitionResponse(part.partition, 45, -1)
                offset = sum(each.count for each in known[:number])
                return s.ProducePartitionResponse(part.partition, 0, offset)
        own = sum(each.count for each in known if _life(each) == _life(batch))
        if batch.base_sequence != own:
            return s.ProducePartitionResponse(part.partition, 45, -1)
        known.append(batch)
        return s.ProducePartitionResponse(part.partition, 0, -1)


def _life(batch: Batch) -> tuple[int, int]:
    return batch.producer_id, batch.producer_epoch


def _errors(partitions: list[TopicPartition], code: int) -> list[t.TxnTopicErrors]:
    return [
        t.TxnTopicErrors(tp.topic, [t.TxnPartitionError(tp.partition, code)]) for tp in partitions
    ]


class TransactionalDriver(ProducerDriver):
    """While the user's task waits, the tasks of the producer run."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("transactional_id", TRANSACTIONAL_ID)
        super().__init__(**settings)
        self.coordinator = Coordinated(self.cluster)
        self.cluster.script = self.coordinator.script
        self._runs = False
        self.runtime.world = self._go_on

    def _go_on(self, done: Callable[[], bool], timeout: float | None) -> None:
        clock = self.runtime.clock
        until = clock.now + (timeout or 0)
        if not self._runs:
            self._runs = True
            for _ in range(50):
                self.metadata.refresh()
                self.run()
                if done() or clock.now >= until:
                    break
                clock.advance(0.05)
            self._runs = False
        if not done():
            clock.advance(max(until - clock.now, 0))

    def begun(self) -> TransactionalDriver:
        self.producer.init_transactions()
        self.producer.begin_transaction()
        return self

    @property
    def kinds(self) -> list[str]:
        """The requests of transactions, in their order."""
        return [
            type(request).__name__.removesuffix("Request")
            for _, request in self.cluster.requests
            if not isinstance(request, s.MetadataRequest | s.ConsumerMetadataRequest)
        ]
