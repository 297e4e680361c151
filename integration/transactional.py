"""A partition with transactions, committed, aborted and open, that librdkafka wrote."""

from __future__ import annotations

import uuid
from typing import Any

from integration.wire import wait_until

WAIT_S = 180
# By offset. Between them are markers, aborted messages, and then a message that is committed
# behind the open transaction.
COMMITTED = {0: b"plain", 3: b"committed-1", 4: b"committed-2", 7: b"committed-3"}
ALL = {**COMMITTED, 1: b"aborted-1", 2: b"aborted-2", 9: b"aborted-3", 11: b"open", 12: b"behind"}
STABLE, END = 11, 13
# When the open transaction is committed: its marker is at END.
LATER = {11: b"open", 12: b"behind"}


def producer(address: str, **settings: Any) -> Any:
    """Of transactions, with an id of its own."""
    from confluent_kafka import Producer

    made = Producer(
        {
            "bootstrap.servers": address,
            "transactional.id": uuid.uuid4().hex,
            "transaction.timeout.ms": 600_000,
            "log_level": 0,
            **settings,
        }
    )
    made.init_transactions(WAIT_S)
    return made


def fill(address: str, topic: str, **settings: Any) -> Any:
    """Write to partition 0 of a new topic; the producer whose transaction is open."""
    from confluent_kafka import Producer

    plain = Producer({"bootstrap.servers": address, "log_level": 0})
    one, two, three = (producer(address, **settings) for _ in range(3))

    def send(made: Any, *values: str) -> None:
        for value in values:
            made.produce(topic, value, partition=0)
        assert made.flush(WAIT_S) == 0

    def ended(at: int) -> None:
        """The marker at the offset before is written."""
        wait_until("a marker", WAIT_S, lambda: stable_offset(address, topic) == at)

    send(plain, "plain")
    one.begin_transaction()
    send(one, "aborted-1", "aborted-2")
    two.begin_transaction()
    send(two, "committed-1", "committed-2")
    one.abort_transaction(WAIT_S)
    ended(3)
    two.commit_transaction(WAIT_S)
    ended(7)
    one.begin_transaction()
    send(one, "committed-3")
    one.commit_transaction(WAIT_S)
    ended(9)
    two.begin_transaction()
    send(two, "aborted-3")
    two.abort_transaction(WAIT_S)
    ended(STABLE)
    three.begin_transaction()
    send(three, "open")
    send(plain, "behind")
    assert stable_offset(address, topic) == STABLE
    return three


def commit(made: Any, address: str, topic: str) -> None:
    """End the open transaction."""
    made.commit_transaction(WAIT_S)
    wait_until("the marker", WAIT_S, lambda: stable_offset(address, topic) == END + 1)


def stable_offset(address: str, topic: str) -> int:
    """The last stable offset of partition 0."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": uuid.uuid4().hex,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    try:
        _, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), WAIT_S)
        return int(high)
    finally:
        consumer.close()


def read(address: str, topic: str) -> list[bytes | None]:
    """The values of all messages in partition 0."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": uuid.uuid4().hex,
            "isolation.level": "read_uncommitted",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes | None] = []
    while True:
        message = consumer.poll(WAIT_S)
        assert message is not None
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            consumer.close()
            return found
        found.append(message.value())
