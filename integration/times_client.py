"""Timestamps by today's Python clients: `times_client.py CLIENT ACTION ADDRESS TOPIC [ARG...]`.

Runs in an environment with the newest clients, apart from this project's. ``stamp CODEC TIME...``
writes a message with each of these timestamps (ms) into partition 0, and prints an error if there
is one. ``times TIME...`` prints the offset for each time, None or the code of an error, then the
first and the last offset.
"""

from __future__ import annotations

import sys
from typing import Any

WAIT_S = 60
VALUE = b"v" * 100


class Confluent:
    """librdkafka as confluent-kafka has it."""

    def __init__(self, address: str, topic: str) -> None:
        self.common = {"bootstrap.servers": address}
        self.topic = topic

    def write(self, codec: str, times: list[int]) -> None:
        from confluent_kafka import Producer

        failed: list[object] = []

        def delivered(error: object, message: Any) -> None:
            failed.extend([error] if error else [])

        producer = Producer({**self.common, "compression.type": codec, "linger.ms": 50})
        for time in times:
            producer.produce(
                self.topic, VALUE, b"k", partition=0, timestamp=time, on_delivery=delivered
            )
        assert not producer.flush(WAIT_S)
        if failed:
            raise RuntimeError(failed[0])

    def times(self, times: list[int]) -> list[object]:
        from confluent_kafka import OFFSET_END, Consumer, KafkaException, TopicPartition

        consumer = Consumer({**self.common, "group.id": f"{self.topic}-times"})
        found: list[object] = []
        for time in times:
            asked = TopicPartition(self.topic, 0, time)
            try:
                (answer,) = consumer.offsets_for_times([asked], WAIT_S)
            except KafkaException as error:
                found.append(error.args[0].code())
            else:
                found.append(None if answer.offset == OFFSET_END else answer.offset)
        found += consumer.get_watermark_offsets(TopicPartition(self.topic, 0), WAIT_S)
        consumer.close()
        return found


class KafkaPython:
    def __init__(self, address: str, topic: str) -> None:
        self.common = {"bootstrap_servers": address}
        self.topic = topic

    def write(self, codec: str, times: list[int]) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(
            **self.common,
            enable_idempotence=False,
            compression_type=None if codec == "none" else codec,
            linger_ms=50,
        )
        sent = [producer.send(self.topic, VALUE, b"k", [], 0, time) for time in times]
        for each in sent:
            each.get(WAIT_S)
        producer.close()

    def times(self, times: list[int]) -> list[object]:
        from kafka import KafkaConsumer, TopicPartition

        key = TopicPartition(self.topic, 0)
        consumer = KafkaConsumer(**self.common)
        answers = [consumer.offsets_for_times({key: time})[key] for time in times]
        found = [None if answer is None else answer.offset for answer in answers]
        found += [consumer.beginning_offsets([key])[key], consumer.end_offsets([key])[key]]
        consumer.close()
        return found


def main(name: str, action: str, address: str, topic: str, *args: str) -> None:
    client: Any = {"confluent-kafka": Confluent, "kafka-python": KafkaPython}[name](address, topic)
    if action == "times":
        print(*client.times([int(each) for each in args]))
        return
    codec, *times = args
    try:
        client.write(codec, [int(each) for each in times])
    except Exception as error:
        print(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
