"""The transactions that the brokers of a FakeCluster know."""

from __future__ import annotations

from typing import Any, NamedTuple

from kafka08.common import TopicPartition
from kafka08.protocol import schemas
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.later_schemas import InitProducerIdRequest, InitProducerIdResponse


class Begun(NamedTuple):
    """A transaction as its coordinator has it. ``starts``: its first offset in each partition;
    None where nothing was written."""

    id: str
    coordinator: int
    producer_id: int
    start_ms: int
    starts: dict[TopicPartition, int | None]
    state: str = "Ongoing"
    timeout_ms: int = 60_000
    epoch: int = 0


class KnownTransactions:
    """``known`` by coordinators. ``producers``: those with a transaction in a partition; ``stable``
    is the first offset of them. ``errors``: the wire code that a partition's leader answers."""

    def __init__(self) -> None:
        self.known: list[Begun] = []
        self.producers: dict[TopicPartition, list[t.ActiveProducer]] = {}
        self.errors: dict[TopicPartition, int] = {}
        self.marked: list[t.TxnMarker] = []
        self.fenced: list[InitProducerIdRequest] = []
        self.fence_code = 0

    def begin(self, begun: Begun) -> None:
        self.known.append(begun)
        for tp, start in begun.starts.items():
            if start is not None:
                self.write(tp, begun.producer_id, start, time_ms=begun.start_ms)

    def write(
        self, tp: TopicPartition, producer_id: int, start: int, *, time_ms: int = -1, epoch: int = 0
    ) -> None:
        found = t.ActiveProducer(producer_id, epoch, 0, time_ms, -1, start)
        self.producers.setdefault(tp, []).append(found)

    def end(self, producer_id: int) -> None:
        self.known = [each for each in self.known if each.producer_id != producer_id]
        for tp, found in self.producers.items():
            self.producers[tp] = [each for each in found if each.producer_id != producer_id]

    def stable(self, tp: TopicPartition, end: int) -> int:
        return min((each.transaction_start for each in self.producers.get(tp, ())), default=end)

    def answer(self, node: int, request: Any) -> Any:
        """None for a request that has nothing to do with transactions."""
        known = {each.id: each for each in self.known if each.coordinator == node}
        if isinstance(request, t.ListTransactionsRequest):
            listed = [
                t.ListedTransaction(each.id, each.producer_id, each.state)
                for each in known.values()
                if not request.states or each.state in request.states
            ]
            return t.ListTransactionsResponse(0, 0, [], listed)
        if isinstance(request, t.DescribeTransactionsRequest):
            described = [_described(known.get(id_), id_) for id_ in request.transactional_ids]
            return t.DescribeTransactionsResponse(0, described)
        if isinstance(request, t.DescribeProducersRequest):
            return t.DescribeProducersResponse(
                0,
                [
                    t.ProducersTopicResponse(
                        topic.topic,
                        [self._partition(topic.topic, each) for each in topic.partitions],
                    )
                    for topic in request.topics
                ],
            )
        if isinstance(request, t.WriteTxnMarkersRequest):
            return self._mark(request)
        if isinstance(request, InitProducerIdRequest):
            return self._fence(request, known)
        return None

    def _partition(self, topic: str, number: int) -> t.ProducersPartition:
        tp = TopicPartition(topic, number)
        found = self.producers.get(tp, [])
        return t.ProducersPartition(number, self.errors.get(tp, 0), None, found)

    def _mark(self, request: t.WriteTxnMarkersRequest) -> t.WriteTxnMarkersResponse:
        [marker] = request.markers
        self.marked.append(marker)
        self.end(marker.producer_id)
        topics = [
            t.MarkedTopicResponse(
                topic.topic, [t.MarkedPartition(each, 0) for each in topic.partitions]
            )
            for topic in marker.topics
        ]
        return t.WriteTxnMarkersResponse([t.WrittenTxnMarker(marker.producer_id, topics)])

    def _fence(
        self, request: InitProducerIdRequest, known: dict[str, Begun]
    ) -> InitProducerIdResponse:
        self.fenced.append(request)
        if self.fence_code == 0:
            self.end(known[request.transactional_id or ""].producer_id)
        return InitProducerIdResponse(0, self.fence_code, 1, 1)

    def offsets(self, request: schemas.ListOffsetsRequest, end_of: Any) -> schemas.OffsetsResponse:
        """The last stable offsets."""
        topics = []
        for topic in request.topics:
            tps = [TopicPartition(topic.topic, each.partition) for each in topic.partitions]
            entries = [
                schemas.OffsetsPartitionResponse(
                    tp.partition, 0, offset=self.stable(tp, end_of(tp))
                )
                for tp in tps
            ]
            topics.append(schemas.OffsetsTopicResponse(topic.topic, entries))
        return schemas.OffsetsResponse(topics)


def _described(found: Begun | None, id_: str) -> t.DescribedTransaction:
    if found is None:
        return t.DescribedTransaction(105, id_, "", 0, -1, -1, -1, [])
    topics: dict[str, list[int]] = {}
    for topic, number in found.starts:
        topics.setdefault(topic, []).append(number)
    return t.DescribedTransaction(
        *(0, id_, found.state, found.timeout_ms, found.start_ms, found.producer_id, found.epoch),
        [t.ProducersTopic(*each) for each in topics.items()],
    )
