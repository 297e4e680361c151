"""A transaction that hangs: a partition has it, and no coordinator knows it.

Brokers refuse to begin one unless ``transaction.partition.verification.enable`` is false.
"""

from __future__ import annotations

from kafka08.message.batch import TRANSACTIONAL
from kafka08.message.record_sets import Sender, encode_records
from kafka08.network.channel import Channel
from kafka08.protocol import schemas

UNVERIFIED = {"transaction.partition.verification.enable": "false"}
PRODUCER_ID = 4711


def begin(port: int, topic: str, value: str, time_ms: int) -> None:
    """In partition 0, which the broker leads, by a message of that time."""
    sender = Sender(PRODUCER_ID, 0, 0, TRANSACTIONAL)
    data = encode_records([value.encode()], None, [time_ms], None, sender=sender)
    part = schemas.ProducePartition(0, memoryview(bytearray(data)))
    request = schemas.ProduceRequest(-1, 10_000, [schemas.ProduceTopic(topic, [part])], "lost")
    with Channel("127.0.0.1", port) as channel:
        answer = channel.call(request, 8)
    assert answer.topics[0].partitions[0].error == 0
