"""Topics as a client of today fills them and sees them, at any broker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from integration.wire import wait_until

WAIT_S = 60
_NO_LEADER_YET = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)


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


def read(address: str, topic: str, *, committed: bool = True) -> list[tuple[str, str]]:
    """(key, value) of all messages, partition after partition; a missing one is an empty text.
    ``committed``: not those of transactions that are open or aborted."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": f"reader-{uuid.uuid4().hex}",
            "enable.partition.eof": "true",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
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
            end = _end(consumer, place)
            consumer.assign([place])
            offset = 0
            while offset < end:
                for message in consumer.consume(1000, 0.2):
                    if message.error() is not None:  # the end of the partition
                        offset = end
                        continue
                    pair = (message.key() or b"", message.value() or b"")
                    messages.append((pair[0].decode(), pair[1].decode()))
                    offset = message.offset() + 1
        return messages
    finally:
        consumer.close()


def _end(consumer: Consumer, place: TopicPartition) -> int:
    """The end of a log, from its leader as soon as there is one: the topic may be new."""
    ends: list[int] = []

    def asked() -> bool:
        try:
            ends.append(consumer.get_watermark_offsets(place, WAIT_S)[1])
        except KafkaException as error:
            if error.args[0].code() not in _NO_LEADER_YET:
                raise
        return bool(ends)

    wait_until(f"a leader of {place.topic} {place.partition}", WAIT_S, asked)
    return ends[0]


def consume(address: str, topic: str, group: str, wanted: set[tuple[str, str]]) -> None:
    """A group goes on until it has read each ``wanted`` (key, value), and commits."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    try:
        missing = set(wanted)
        deadline = time.monotonic() + WAIT_S
        while missing:
            assert time.monotonic() < deadline, f"{group} read none of {sorted(missing)}"
            for message in consumer.consume(100, 0.2):
                assert message.error() is None, message.error()
                missing.discard((message.key().decode(), message.value().decode()))
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()


def committed(address: str, topic: str, group: str, partitions: int) -> list[int]:
    """The offset of each partition; below 0 is none."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": group, "log_level": 0})
    try:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        return [place.offset for place in consumer.committed(places, WAIT_S)]
    finally:
        consumer.close()


def set_config(address: str, topic: str, values: Mapping[str, str]) -> None:
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in values.items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)


def config(address: str, topic: str, *names: str) -> dict[str, str]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    found = admin.describe_configs([resource])[resource].result(WAIT_S)
    return {name: found[name].value for name in names}
