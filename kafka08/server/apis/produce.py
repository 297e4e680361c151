"""API 0, Produce: append message sets and wait for the acknowledgements asked for.

acks 0: no answer, an error closes the connection (after the other partitions were appended).
acks 1: answered after the local append. acks -1: once the high watermark has passed the set.
acks N > 1 (deprecated): once N members of the isr have it. Below -1 acts as -1 without the
check of min.insync.replicas before the append. Left out: nothing. Safer than 0.8.2.2: lost
leadership answers 6 at once, where the original lets the request time out.
"""

from __future__ import annotations

import logging

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
from kafka08.server.rebuild import ConsumerView
from kafka08.server.replica_manager import ReplicaManager

logger = logging.getLogger("kafka.server.KafkaApis")


# Makes a NamedTuple in half the time of its constructor: this is what each produce passes.
_new = tuple.__new__


class ProduceApi:
    key = 0

    def __init__(self, replicas: ReplicaManager, view: ConsumerView) -> None:
        self._replicas = replicas
        self._view = view

    def handle(self, header: RequestHeader, request: ProduceRequest) -> ProduceResponse | None:
        acks = request.acks
        # A partition named twice counts once, as in the original's map: the last one.
        sets = {
            _new(TopicPartition, (topic.topic, partition.partition)): partition.message_set
            for topic in request.topics
            for partition in topic.partitions
        }
        required: dict[TopicPartition, int] = {}
        answers = {
            key: self._append(key, data, header, acks, required) for key, data in sets.items()
        }
        if acks == 0:
            failed = [str(key) for key, answer in answers.items() if answer.error]
            if failed:
                raise ConnectionClosed(f"produce with acks 0 failed for {', '.join(failed)}")
            return None
        if acks != 1:
            for key, code in await_acks(self._replicas, required, acks, request.timeout_ms).items():
                answers[key] = answers[key]._replace(error=code)
        return _response(answers)

    def failure(
        self, header: RequestHeader, request: ProduceRequest, code: int
    ) -> ProduceResponse | None:
        if request.acks == 0:
            raise ConnectionClosed("produce with acks 0 failed")
        return _response(
            {
                TopicPartition(topic.topic, partition.partition): ProducePartitionResponse(
                    partition.partition, code, -1
                )
                for topic in request.topics
                for partition in topic.partitions
            }
        )

    def _append(
        self,
        key: TopicPartition,
        data: memoryview,
        header: RequestHeader,
        acks: int,
        required: dict[TopicPartition, int],
    ) -> ProducePartitionResponse:
        """Append one set; where its end is to be acknowledged goes into ``required``."""
        code, base_offset = NO_ERROR, -1
        try:
            if key.topic == OFFSETS_TOPIC:
                raise InvalidTopicError(f"Cannot append to internal topic {key.topic}")
            appended = self._replicas.append(key, data, acks)
            if appended.count:
                base_offset = appended.first_offset
                required[key] = appended.last_offset + 1
            if appended.prepared is not None:
                self._view.remember(appended.prepared)
        except KafkaError as error:
            if not isinstance(error.__cause__, OSError):  # disks are spoken of elsewhere, once
                logger.warning(
                    "Produce request with correlation id %d from client %s on partition %s "
                    "failed due to %s", header.correlation_id, header.client_id, key, error,
                )  # fmt: skip
            code = error.code
        except Exception as error:
            logger.exception("Error processing produce request on partition %s", key)
            code = code_of(error)
        return _new(ProducePartitionResponse, (key.partition, code, base_offset))


def _response(answers: dict[TopicPartition, ProducePartitionResponse]) -> ProduceResponse:
    topics: dict[str, list[ProducePartitionResponse]] = {}
    for key, answer in answers.items():
        topics.setdefault(key.topic, []).append(answer)
    return _new(ProduceResponse, ([_new(ProduceTopicResponse, item) for item in topics.items()],))
