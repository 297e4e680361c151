"""API 0, Produce: append message sets and wait for the acknowledgements asked for.

acks 0: no answer, an error closes the connection (after the other partitions were appended).
acks 1: answered after the local append. acks -1: once the high watermark has passed the set.
acks N > 1 (deprecated): once N members of the isr have it. Below -1 acts as -1 without the
check of min.insync.replicas before the append. Left out: nothing. Safer than 0.8.2.2: lost
leadership answers 6 at once, where the original lets the request time out.
"""

from __future__ import annotations

from typing import Final

from kafka08.common import TopicPartition
from kafka08.errors import (
    NO_ERROR,
    InvalidRecordError,
    InvalidTimestampError,
    UnsupportedForMessageFormatError,
)
from kafka08.named import named
from kafka08.network.server import ConnectionClosed
from kafka08.protocol.schemas import (
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResponse,
    RequestHeader,
)
from kafka08.runtime import Runtime
from kafka08.server.rebuild.view import ConsumerView
from kafka08.server.replication.acks import await_acks
from kafka08.server.requests.long_work import are_many, in_turns, in_turns_if_many, partitions_of
from kafka08.server.storage.appends import Appends
from kafka08.server.storage.replica_manager import ReplicaManager
from kafka08.server.storage.writes import Produce, ProducerVersions, TransactionGate

# The senders of each version; those of later versions write as the last ones do.
_OF_FORMAT_2 = (InvalidRecordError, UnsupportedForMessageFormatError)
_ONE_BATCH: Final = ProducerVersions(one_batch=True)
_SENDERS: Final = (
    ProducerVersions((*_OF_FORMAT_2, InvalidTimestampError), reads_start=False),
    ProducerVersions((*_OF_FORMAT_2, InvalidTimestampError)),
    ProducerVersions(_OF_FORMAT_2),
    _ONE_BATCH,
    _ONE_BATCH,
    _ONE_BATCH,
    _ONE_BATCH,
    ProducerVersions(one_batch=True, zstd=True),
)
_LAST: Final = len(_SENDERS) - 1


class ProduceApi:
    key = 0
    last_version = 8

    def __init__(
        self,
        runtime: Runtime,
        replicas: ReplicaManager,
        view: ConsumerView,
        gate: TransactionGate | None = None,
    ) -> None:
        self._runtime = runtime
        self._gate = gate or TransactionGate()
        self._replicas = replicas
        self._view = view
        self._appends = Appends(runtime, replicas, view.long_work)

    def handle(self, header: RequestHeader, request: ProduceRequest) -> ProduceResponse | None:
        acks = request.acks
        # A partition named twice counts once, as in the original's map: the last one.
        if are_many(request.topics):
            asked = partitions_of(self._runtime, request)
            sets = {key: partition.message_set for key, partition in asked}
        else:
            sets = {
                named(TopicPartition, (topic.topic, partition.partition)): partition.message_set
                for topic in request.topics
                for partition in topic.partitions
            }
        sender = _SENDERS[max(min(header.api_version, _LAST), 0)]
        produce = Produce(
            self._replicas, self._appends, self._view, sender, self._gate, sets, request
        )
        answers = {
            key: produce.append(key, data) for key, data in in_turns(self._runtime, sets.items())
        }
        failures = produce.failures
        if failures:
            failures.tell(
                f"Produce request with correlation id {header.correlation_id} "
                f"from client {header.client_id}",
            )
        if acks == 0:
            if failures:
                raise ConnectionClosed(f"produce with acks 0 failed for {failures}")
            return None
        if acks != 1:
            codes = await_acks(self._replicas, produce.required, acks, request.timeout_ms)
            for key, code in codes.items():
                if code != NO_ERROR:
                    answers[key] = answers[key]._replace(error=code)
        return self._response(answers)

    def failure(
        self, header: RequestHeader, request: ProduceRequest, code: int
    ) -> ProduceResponse | None:
        if request.acks == 0:
            raise ConnectionClosed("produce with acks 0 failed")
        asked = partitions_of(self._runtime, request)
        return self._response(
            {key: ProducePartitionResponse(key.partition, code, -1) for key, _ in asked}
        )

    def _response(self, answers: dict[TopicPartition, ProducePartitionResponse]) -> ProduceResponse:
        if len(answers) == 1:  # as most have
            key, answer = answers.popitem()
            return named(ProduceResponse, ([named(ProduceTopicResponse, (key.topic, [answer]))], 0))
        topics: dict[str, list[ProducePartitionResponse]] = {}
        for key, answer in in_turns_if_many(self._runtime, answers.items()):
            topics.setdefault(key.topic, []).append(answer)
        each_topic = [named(ProduceTopicResponse, item) for item in topics.items()]
        return named(ProduceResponse, (each_topic, 0))
