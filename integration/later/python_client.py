"""Unmodified clients of today at work: `modern_client.py CLIENT ACTION ADDRESS TOPIC [COUNT]`.

Runs in an environment with the newest clients, apart from this project's. The action `work` makes a
topic with two partitions, writes to partition 0 and reads it back, `read` prints the values of
partition 0. Fails with an assertion.
"""

from __future__ import annotations

import sys
import time
from typing import Any

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TIME = 1_600_000_000_000
WAIT_S = 60
COUNT = 20


def written() -> list[tuple[bytes, bytes, list[tuple[str, bytes]], int]]:
    """(key, value, headers, timestamp) of each message that a client writes, before the last."""
    return [
        (b"key %d" % n, f"{codec} {n}".encode(), [("codec", codec.encode())], TIME + n)
        for codec in CODECS
        for n in range(COUNT)
    ]


class Confluent:
    """librdkafka as confluent-kafka has it."""

    def __init__(self, address: str, topic: str) -> None:
        self.common = {"bootstrap.servers": address}
        self.topic = topic

    def create(self) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient(self.common)  # gives up what it was asked when it is collected
        admin.create_topics([NewTopic(self.topic, 2, 1)])[self.topic].result(WAIT_S)

    def write(self, codec: str, messages: list[Any]) -> None:
        from confluent_kafka import Producer

        failed: list[object] = []
        producer = Producer({**self.common, "compression.type": codec, "linger.ms": 50})
        for key, value, headers, timestamp in messages:
            producer.produce(
                self.topic,
                value,
                key,
                partition=0,
                headers=headers,
                timestamp=timestamp,
                on_delivery=lambda error, message: failed.append(error) if error else None,
            )
        assert not producer.flush(WAIT_S) and not failed, failed

    def consumer(self, group: str) -> Any:
        from confluent_kafka import Consumer

        values = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        return Consumer({**self.common, **values})

    def assign(self, consumer: Any) -> None:
        from confluent_kafka import TopicPartition

        consumer.assign([TopicPartition(self.topic, 0, 0)])

    def subscribe(self, consumer: Any) -> None:
        consumer.subscribe([self.topic])

    def poll(self, consumer: Any) -> list[Any]:
        found = consumer.consume(1000, 0.2)
        assert not [each.error() for each in found if each.error()]
        return [(m.key(), m.value(), m.headers() or [], m.timestamp()[1]) for m in found]

    def commit(self, consumer: Any) -> None:
        consumer.commit(asynchronous=False)


class KafkaPython:
    def __init__(self, address: str, topic: str) -> None:
        self.common = {"bootstrap_servers": address}
        self.topic = topic

    def create(self) -> None:
        from kafka.admin import KafkaAdminClient, NewTopic

        KafkaAdminClient(**self.common).create_topics([NewTopic(self.topic, 2, 1)])

    def write(self, codec: str, messages: list[Any]) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(
            **self.common,
            enable_idempotence=False,
            compression_type=None if codec == "none" else codec,
            linger_ms=50,
        )
        sent = [
            producer.send(self.topic, value, key, headers, 0, timestamp)
            for key, value, headers, timestamp in messages
        ]
        for each in sent:
            each.get(WAIT_S)
        producer.close()

    def consumer(self, group: str) -> Any:
        from kafka import KafkaConsumer

        values = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
        return KafkaConsumer(**self.common, **values)

    def assign(self, consumer: Any) -> None:
        from kafka import TopicPartition

        consumer.assign([TopicPartition(self.topic, 0)])

    def subscribe(self, consumer: Any) -> None:
        consumer.subscribe([self.topic])

    def poll(self, consumer: Any) -> list[Any]:
        found = [each for part in consumer.poll(200).values() for each in part]
        return [(m.key, m.value, list(m.headers), m.timestamp) for m in found]

    def commit(self, consumer: Any) -> None:
        consumer.commit()


def read(client: Any, consumer: Any, count: int) -> list[Any]:
    found: list[Any] = []
    end = time.monotonic() + WAIT_S
    while len(found) < count:
        assert time.monotonic() < end, f"{len(found)} of {count} messages"
        found += client.poll(consumer)
    return found


def work(client: Any) -> None:
    messages = written()
    client.create()
    for n, codec in enumerate(CODECS):
        client.write(codec, messages[n * COUNT : (n + 1) * COUNT])
    consumer = client.consumer(f"{client.topic}-assigned")
    client.assign(consumer)
    assert read(client, consumer, len(messages)) == messages
    consumer.close()

    group = f"{client.topic}-group"
    first, second = client.consumer(group), client.consumer(group)
    client.subscribe(first)
    assert read(client, first, len(messages)) == messages
    assert len(first.assignment()) == 2
    client.commit(first)
    client.subscribe(second)
    end = time.monotonic() + WAIT_S
    while [len(each.assignment()) for each in (first, second)] != [1, 1]:
        assert time.monotonic() < end, "two members do not share two partitions"
        assert not client.poll(first) and not client.poll(second)
    first.close()
    second.close()
    client.write("none", [(b"key", b"last", [], TIME)])
    third = client.consumer(group)
    client.subscribe(third)
    assert [value for _, value, _, _ in read(client, third, 1)] == [b"last"]
    third.close()


def main(name: str, action: str, address: str, topic: str, count: str = "0") -> None:
    client = {"confluent-kafka": Confluent, "kafka-python": KafkaPython}[name](address, topic)
    if action == "work":
        work(client)
        return
    consumer = client.consumer(f"{topic}-reader")
    client.assign(consumer)
    for _, value, _, _ in read(client, consumer, int(count)):
        print(value.decode())
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
