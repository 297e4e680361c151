"""API 0, Produce: append message sets and wait for the acknowledgements asked for.

acks 0: no answer, an error closes the connection (after the other partitions were appended).
acks 1: answered after the local append. acks -1: once the high watermark has passed the set.
acks N > 1 (deprecated): once N members of the isr have it. Below -1 acts as -1 without the
check of min.insync.replicas before the append. Left out: nothing. Safer than 0.8.2.2: lost
leadership answers 6 at once, where the original lets the request time out.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from kafka08.common import OFFSETS_TOPIC, TopicPartition
from kafka08.errors import (
    NO_ERROR,
    InvalidTopicError,
    KafkaError,
    code_of,
)
from kafka08.network.server import ConnectionClosed
from kafka08.protocol.schemas import (
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResponse,
    RequestHeader,
)
from kafka08.server.acks import await_acks
from kafka08.server.replica_manager import ReplicaManager

logger = logging.getLogger("kafka.server.KafkaApis")


class Outcome(NamedTuple):
    """What became of one partition's set: wire code, first offset, end of the set (or 0)."""

    error: int
    base_offset: int
    required: int


class ProduceApi:
    key = 0

    def __init__(self, replicas: ReplicaManager) -> None:
        self._replicas = replicas

    def handle(self, header: RequestHeader, request: ProduceRequest) -> ProduceResponse | None:
        acks = request.acks
        # A partition named twice counts once, as in the original's map: the last one.
        sets = {
            TopicPartition(topic.topic, partition.partition): partition.message_set
            for topic in request.topics
            for partition in topic.partitions
        }
        outcomes = {key: self._append(key, data, acks, header) for key, data in sets.items()}
        if acks == 0:
            failed = [str(key) for key, outcome in outcomes.items() if outcome.error]
            if failed:
                raise ConnectionClosed(f"produce with acks 0 failed for {', '.join(failed)}")
            return None
        if acks != 1:
            required = {key: each.required for key, each in outcomes.items() if each.required}
            for key, code in await_acks(self._replicas, required, acks, request.timeout_ms).items():
                outcomes[key] = outcomes[key]._replace(error=code)
        return _response(outcomes)

    def failure(
        self, header: RequestHeader, request: ProduceRequest, code: int
    ) -> ProduceResponse | None:
        if request.acks == 0:
            raise ConnectionClosed("produce with acks 0 failed")
        return _response(
            {
                TopicPartition(topic.topic, partition.partition): Outcome(code, -1, 0)
                for topic in request.topics
                for partition in topic.partitions
            }
        )

    def _append(
        self, key: TopicPartition, data: memoryview, acks: int, header: RequestHeader
    ) -> Outcome:
        try:
            if key.topic == OFFSETS_TOPIC:
                raise InvalidTopicError(f"Cannot append to internal topic {key.topic}")
            appended = self._replicas.append(key, data, acks)
        except KafkaError as error:
            logger.warning(
                "Produce request with correlation id %d from client %s on partition %s "
                "failed due to %s", header.correlation_id, header.client_id, key, error,
            )  # fmt: skip
            return Outcome(error.code, -1, 0)
        except Exception as error:
            logger.exception("Error processing produce request on partition %s", key)
            return Outcome(code_of(error), -1, 0)
        if not appended.count:
            return Outcome(NO_ERROR, -1, 0)
        return Outcome(NO_ERROR, appended.first_offset, appended.last_offset + 1)


def _response(outcomes: dict[TopicPartition, Outcome]) -> ProduceResponse:
    topics: dict[str, list[ProducePartitionResponse]] = {}
    for (topic, partition), outcome in outcomes.items():
        topics.setdefault(topic, []).append(
            ProducePartitionResponse(partition, outcome.error, outcome.base_offset)
        )
    return ProduceResponse([ProduceTopicResponse(*item) for item in topics.items()])
