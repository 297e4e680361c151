"""The requests of a transactional producer, one at a time and in any version, on a connection.

The layouts are the project's own: Kafka 3.9.1, which is asked too, judges them.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Sequence
from typing import Any

from integration.wire import Wire, wait_until
from kafka08.message.batch import TRANSACTIONAL
from kafka08.message.record_sets import Sender, encode_records
from kafka08.protocol import schemas as s
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.later_schemas import InitProducerIdRequest
from kafka08.protocol.registry import APIS, api_of
from kafka08.protocol.requests import decode_response, encode_request
from kafka08.protocol.types import Struct

TIMEOUT_MS = 60_000
WAIT_S = 60
NO_PRODUCER = (-1, -1)

# The id and the epoch of a producer.
Ids = tuple[int, int]


def ask(wire: Wire, request: Any, version: int) -> Any:
    reply = wire.call(b"".join(encode_request(request, 7, "me", version)))
    layout = Struct(APIS[api_of(request)[0]].response, version)
    return decode_response(layout, struct.pack(">i", 7) + reply)[1]


def by_topic(topics: Iterable[Any]) -> dict[str, int]:
    """Codes of topics with one partition each."""
    return {topic.topic: part.error for topic in topics for part in topic.partitions}


def coordinator_code(wire: Wire, id_: str) -> int:
    return int(ask(wire, s.ConsumerMetadataRequest(id_, 1), 1).error)


def begun(wire: Wire, id_: str, timeout_ms: int = TIMEOUT_MS) -> Ids:
    """A new producer of the id."""
    wait_until("a coordinator", WAIT_S, lambda: coordinator_code(wire, id_) == 0)
    found: list[Ids] = []

    def has_begun() -> bool:
        answer = ask(wire, InitProducerIdRequest(id_, timeout_ms), 1)
        if answer.error == 0:
            found.append((answer.producer_id, answer.producer_epoch))
        return bool(found)

    wait_until("a producer", WAIT_S, has_begun)
    return found[0]


def add(wire: Wire, id_: str, made: Ids, *topics: str, version: int = 2) -> dict[str, int]:
    """The code of each topic's partition 0."""
    asked = [t.TxnTopic(topic, [0]) for topic in topics]
    request = t.AddPartitionsToTxnRequest(id_, *made, asked)
    return by_topic(ask(wire, request, version).topics)


def batch(
    made: Ids, sequence: int, attributes: int = TRANSACTIONAL, values: Sequence[bytes] = (b"x",)
) -> memoryview:
    sender = Sender(*made, sequence, attributes)
    times = [round(1000 * time.time())] * len(values)
    return memoryview(bytearray(encode_records(values, None, times, None, sender=sender)))


def produce(wire: Wire, topic: str, data: memoryview, id_: str | None) -> int:
    """The code for partition 0."""
    topics = [s.ProduceTopic(topic, [s.ProducePartition(0, data)])]
    answer = ask(wire, s.ProduceRequest(-1, 10_000, topics, id_), 8)
    return int(answer.topics[0].partitions[0].error)


def end(wire: Wire, id_: str, made: Ids, *, commit: bool, version: int = 2) -> int:
    return int(ask(wire, t.EndTxnRequest(id_, *made, committed=commit), version).error)


def state(wire: Wire, id_: str) -> str:
    return str(ask(wire, t.DescribeTransactionsRequest([id_]), 0).transactions[0].state)
