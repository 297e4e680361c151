"""A cluster of one topic for planner and reader: brokers as values, failures as told."""

from __future__ import annotations

from typing import Any

from kafka08.client import requests
from kafka08.common import EARLIEST_TIME, Broker, TopicPartition
from kafka08.errors import (
    KafkaError,
    LeaderNotAvailableError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from kafka08.message.scan import iter_entries
from kafka08.protocol import schemas

T = TopicPartition("t", 0)
ONE, TWO = Broker(1, "one", 9092), Broker(2, "two", 9092)


class FakeCluster:
    """The part of ClusterClient that OffsetReader and RangeReader use.

    ``logs``: partition -> stored bytes; ``failures`` are raised by the next calls, first first.
    ``answers``: what the next metadata says instead of the truth, first first: the partitions
    known, or None from a broker that the controller has told nothing. ``others``: topics beside.
    ``marks``: high watermarks the next fetches tell instead of the log's end.
    """

    def __init__(self, logs: dict[TopicPartition, bytes], leader: Broker | None = ONE) -> None:
        self.logs = logs
        self.leader_now = leader
        self.earliest = dict.fromkeys(logs, 0)
        self.failures: list[Exception] = []
        self.marks: list[int] = []
        self.answers: list[list[TopicPartition] | None] = []
        self.others: list[str] = []
        self.told: list[TopicPartition] = list(logs)
        self.questions: list[list[str]] = []
        self.asked: list[Broker] = []
        self.refreshed = 0
        self.closed = False

    def refresh(self, topics: Any = ()) -> schemas.MetadataResponse:
        self.refreshed += 1
        names = list(topics)
        self.questions.append(names)
        known = self.answers.pop(0) if self.answers else list(self.logs)
        self.told = known or []
        brokers = [] if known is None else [schemas.BrokerEndpoint(*ONE)]
        held: dict[str, list[schemas.PartitionMetadata]] = {}
        for tp in known or ():
            held.setdefault(tp.topic, []).append(_metadata_of(tp))
        if known is not None:
            held.update({name: [_metadata_of(TopicPartition(name, 0))] for name in self.others})
        asked = names or list(held)
        code = UnknownTopicOrPartitionError.code
        return schemas.MetadataResponse(
            brokers,
            [
                schemas.TopicMetadata(0 if name in held else code, name, held.get(name, []))
                for name in asked
            ],
        )

    def partitions(self, topic: str) -> list[schemas.PartitionMetadata]:
        found = [tp.partition for tp in self.told if tp.topic == topic]
        if not found:
            raise UnknownTopicOrPartitionError(topic)
        return [_metadata_of(TopicPartition(topic, number)) for number in found]

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
        answers: dict[str, list[schemas.OffsetsPartitionResponse]] = {}
        for tp, asked in requests.flatten(request.topics).items():
            first = asked.time == EARLIEST_TIME
            if tp in self.logs:
                code, offsets = 0, [self.earliest.get(tp, 0) if first else self.end(tp)]
            else:
                code, offsets = UnknownTopicOrPartitionError.code, []
            entry = schemas.OffsetsPartitionResponse(tp.partition, code, offsets)
            answers.setdefault(tp.topic, []).append(entry)
        return schemas.OffsetsResponse(
            [schemas.OffsetsTopicResponse(*each) for each in answers.items()]
        )

    def end(self, tp: TopicPartition) -> int:
        return max(
            (e.offset + 1 for e in iter_entries(self.logs[tp])), default=self.earliest.get(tp, 0)
        )

    def _fetch(self, request: schemas.FetchRequest) -> schemas.FetchResponse:
        ((tp, asked),) = requests.flatten(request.topics).items()
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


def _metadata_of(tp: TopicPartition) -> schemas.PartitionMetadata:
    return schemas.PartitionMetadata(0, tp.partition, 1, [1], [1])


def refused() -> Exception:
    return ConnectionRefusedError("gone")


def not_leader() -> KafkaError:
    return LeaderNotAvailableError("not me")
