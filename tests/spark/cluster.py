"""A cluster of one topic for planner and reader: brokers as values, failures as told."""

from __future__ import annotations

from typing import Any

from kafka08.client import shapes
from kafka08.common import Broker, TopicPartition
from kafka08.errors import (
    KafkaError,
    LeaderNotAvailableError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from kafka08.message.message_set import iter_entries
from kafka08.protocol import schemas

T = TopicPartition("t", 0)
ONE, TWO = Broker(1, "one", 9092), Broker(2, "two", 9092)


class FakeCluster:
    """What OffsetReader and RangeReader ask of a ClusterClient.

    ``logs``: partition -> stored bytes; ``failures`` are raised by the next calls, first first.
    ``marks``: high watermarks the next fetches tell instead of the log's end.
    """

    def __init__(self, logs: dict[TopicPartition, bytes], leader: Broker | None = ONE) -> None:
        self.logs = logs
        self.leader_now = leader
        self.earliest = dict.fromkeys(logs, 0)
        self.failures: list[Exception] = []
        self.marks: list[int] = []
        self.asked: list[Broker] = []
        self.refreshed = 0
        self.closed = False

    def refresh(self, topics: Any = ()) -> schemas.MetadataResponse:
        self.refreshed += 1
        named = [schemas.TopicMetadata(0, tp.topic, []) for tp in self.logs if tp.partition == 0]
        return schemas.MetadataResponse([], named)

    def partitions(self, topic: str) -> list[schemas.PartitionMetadata]:
        found = [tp.partition for tp in self.logs if tp.topic == topic]
        if not found:
            raise UnknownTopicOrPartitionError(topic)
        return [schemas.PartitionMetadata(0, number, 1, [1], [1]) for number in found]

    def leader(self, tp: TopicPartition) -> Broker:
        if self.leader_now is None:
            raise LeaderNotAvailableError(str(tp))
        return self.leader_now

    known_leader = leader

    def call(self, broker: Broker, request: Any) -> Any:
        self.asked.append(broker)
        if self.failures:
            raise self.failures.pop(0)
        if isinstance(request, schemas.OffsetsRequest):
            return self._offsets(request)
        return self._fetch(request)

    def _offsets(self, request: schemas.OffsetsRequest) -> schemas.OffsetsResponse:
        answers = []
        for tp, asked in shapes.flatten(request.topics).items():
            first = asked.time == shapes.EARLIEST_TIME
            offset = self.earliest[tp] if first else self.end(tp)
            answers.append(schemas.OffsetsPartitionResponse(tp.partition, 0, [offset]))
        return schemas.OffsetsResponse([schemas.OffsetsTopicResponse("t", answers)])

    def end(self, tp: TopicPartition) -> int:
        return max((e.offset + 1 for e in iter_entries(self.logs[tp])), default=self.earliest[tp])

    def _fetch(self, request: schemas.FetchRequest) -> schemas.FetchResponse:
        ((tp, asked),) = shapes.flatten(request.topics).items()
        mark = self.marks.pop(0) if self.marks else self.end(tp)
        code, data = 0, b""
        if not self.earliest[tp] <= asked.offset <= self.end(tp):
            code = OffsetOutOfRangeError.code
        elif asked.offset < mark:
            data = self._from(tp, asked.offset)[: asked.max_bytes]
        answer = schemas.FetchPartitionResponse(tp.partition, code, mark, data)
        return schemas.FetchResponse([schemas.FetchTopicResponse("t", [answer])])

    def _from(self, tp: TopicPartition, offset: int) -> bytes:
        for entry in iter_entries(self.logs[tp]):
            if entry.offset >= offset:
                return self.logs[tp][entry.position :]
        return b""

    def close(self) -> None:
        self.closed = True


def refused() -> Exception:
    return ConnectionRefusedError("gone")


def not_leader() -> KafkaError:
    return LeaderNotAvailableError("not me")
