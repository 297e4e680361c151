"""Topics as a client of today fills them and sees them, at any broker."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

WAIT_S = 60


class Sent(NamedTuple):
    key: str
    value: str
    time: int = 0  # ms; 0 is now
    partition: int = -1


def write(address: str, topic: str, messages: Iterable[Sent]) -> None:
    """Returns once all are stored."""
    producer = Producer({"bootstrap.servers": address, "acks": "all", "partitioner": "murmur2"})
    for each in messages:
        producer.produce(topic, each.value, each.key, each.partition, timestamp=each.time)
    assert producer.flush(WAIT_S) == 0


def read(address: str, topic: str) -> list[tuple[str, str]]:
    """(key, value) of all messages, partition after partition; a missing one is an empty text."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": f"reader-{uuid.uuid4().hex}",
            "enable.partition.eof": "true",
            "log_level": 0,
        }
    )
    try:
        found = consumer.list_topics(topic, WAIT_S).topics[topic]
        if found.error is not None:
            return []
        messages: list[tuple[str, str]] = []
        for number in sorted(found.partitions):
            place = TopicPartition(topic, number, 0)
            _, end = consumer.get_watermark_offsets(place, WAIT_S)
            consumer.assign([place])
            offset = 0
            while offset < end:
                for message in consumer.consume(1000, 0.2):
                    if message.error() is not None:  # the end; markers are no messages
                        offset = end
                        continue
                    pair = (message.key() or b"", message.value() or b"")
                    messages.append((pair[0].decode(), pair[1].decode()))
                    offset = message.offset() + 1
        return messages
    finally:
        consumer.close()
