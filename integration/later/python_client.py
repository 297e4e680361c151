"""Python's clients at work: `python_client.py CLIENT ACTION ADDRESS ...`; see ``programs``.

Runs in an environment of its own with the newest clients, apart from this project.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import sys
from collections.abc import Callable, Iterable
from typing import Any

TIME = 1_600_000_000_000
WAIT_S = 60
RETENTION = {"retention.ms": "123456"}
ISOLATION = {"read": "read_uncommitted", "committed": "read_committed"}


def show(*words: object) -> None:
    print(*words, flush=True)


def to_write(codec: str, count: int) -> list[tuple[bytes, bytes, list[tuple[str, bytes]], int]]:
    """(key, value, headers, timestamp) of each message."""
    headers = [("codec", codec.encode()), ("empty", b"")]
    return [(b"key %d" % n, f"{codec} {n}".encode(), headers, TIME + n) for n in range(count)]


def aborts(number: int) -> bool:
    return number % 3 == 2


def text(data: bytes | None) -> str:
    return "null" if data is None else data.decode()


def show_record(
    topic: str,
    offset: int,
    timestamp: int | None,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes | None]] | None,
) -> None:
    shown = ",".join(f"{name}={text(value)}" for name, value in headers or ())
    time = -1 if timestamp is None else timestamp
    print(topic, offset, time, text(key), text(value), shown, sep="\t", flush=True)


def over() -> bool:
    """Whether standard input has ended."""
    return bool(select.select([sys.stdin], [], [], 0)[0])


def show_assigned(partitions: Iterable[int]) -> None:
    show("assigned", ",".join(map(str, sorted(partitions))))


def listener_of(base: type) -> Any:
    """A listener to rebalances, of the library that has ``base``."""

    class Listener(base):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Any) -> None:
            show_assigned(each.partition for each in assigned)

        def on_partitions_revoked(self, revoked: Any) -> None:
            show("revoked", len(revoked))

    return Listener()


def member_settings(config: dict[str, str]) -> dict[str, Any]:
    """Keywords for a consumer in a group."""
    named = {name.replace(".", "_"): value for name, value in config.items()}
    return {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000, **named}


class Confluent:
    """librdkafka as confluent-kafka has it."""

    def __init__(self, address: str) -> None:
        self.common = {"bootstrap.servers": address}

    def write(self, topic: str, codec: str, count: int, idempotent: bool) -> None:
        from confluent_kafka import Producer

        def delivered(error: object, message: Any) -> None:
            assert error is None, error
            show(message.offset())

        config = {"compression.type": codec, "linger.ms": 50, "enable.idempotence": idempotent}
        producer = Producer({**self.common, **config})
        for key, value, headers, timestamp in to_write(codec, count):
            producer.produce(
                topic,
                value,
                key,
                partition=0,
                headers=headers,
                timestamp=timestamp,
                on_delivery=delivered,
            )
        assert not producer.flush(WAIT_S)

    def transactions(self, id_: str, topic: str, group: str, count: int) -> None:
        from confluent_kafka import Producer, TopicPartition

        producer = Producer({**self.common, "transactional.id": id_})
        producer.init_transactions(WAIT_S)
        members = self.consumer(group).consumer_group_metadata()
        for n in range(count):
            producer.begin_transaction()
            producer.produce(topic, f"{id_} {n}", partition=0)
            offsets = [TopicPartition(topic, 0, n + 1)]
            producer.send_offsets_to_transaction(offsets, members, WAIT_S)
            if aborts(n):
                producer.flush(WAIT_S)
                producer.abort_transaction(WAIT_S)
            else:
                producer.commit_transaction(WAIT_S)
        show("done")

    def consumer(self, group: str, **config: object) -> Any:
        from confluent_kafka import Consumer

        values = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        return Consumer({**self.common, **values, **config})

    def read(self, topic: str, count: int, isolation: str) -> None:
        from confluent_kafka import TopicPartition

        consumer = self.consumer("unused", **{"isolation.level": isolation})
        consumer.assign([TopicPartition(topic, 0, 0)])
        while count > 0:
            for m in consumer.consume(100, 0.2):
                assert m.error() is None, m.error()
                time = m.timestamp()[1] if m.timestamp()[0] else -1
                show_record(topic, m.offset(), time, m.key(), m.value(), m.headers())
                count -= 1
        consumer.close()

    def times(self, topic: str, *asked: str) -> None:
        from confluent_kafka import TopicPartition

        consumer = self.consumer("unused")
        for offset in consumer.get_watermark_offsets(TopicPartition(topic, 0), WAIT_S):
            show(offset)
        for time in asked:
            wanted = [TopicPartition(topic, 0, int(time))]
            show(consumer.offsets_for_times(wanted, WAIT_S)[0].offset)
        consumer.close()

    def member(self, group: str, topic: str, **config: str) -> None:
        consumer = self.consumer(group, **{"session.timeout.ms": 6000, **config})
        consumer.subscribe(
            [topic],
            on_assign=lambda _, found: show_assigned(each.partition for each in found),
            on_revoke=lambda _, found: show("revoked", len(found)),
        )
        while not over():
            found = consumer.consume(100, 0.1)
            for message in found:
                assert message.error() is None, message.error()
                show("message", message.partition(), message.offset())
            if found:
                consumer.commit(asynchronous=False)
        consumer.close()
        show("closed")

    def admin(self, topic: str) -> None:
        from confluent_kafka.admin import (
            AdminClient,
            AlterConfigOpType,
            ConfigEntry,
            ConfigResource,
            NewPartitions,
            NewTopic,
        )

        def done(futures: dict[Any, Any]) -> Any:
            return next(iter(futures.values())).result(WAIT_S)

        admin = AdminClient(self.common)
        done(admin.create_topics([NewTopic(topic, 2, 1)]))
        show("listed", topic in admin.list_topics(timeout=WAIT_S).topics)
        ((name, value),) = RETENTION.items()
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        done(admin.incremental_alter_configs([resource]))
        found = done(admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]))
        show("retention", found[name].value)
        done(admin.create_partitions([NewPartitions(topic, 3)]))
        show("partitions", len(admin.list_topics(topic, WAIT_S).topics[topic].partitions))
        done(admin.delete_topics([topic]))
        show("listed", topic in admin.list_topics(timeout=WAIT_S).topics)


class KafkaPython:
    def __init__(self, address: str) -> None:
        self.common = {"bootstrap_servers": address}

    def write(self, topic: str, codec: str, count: int, idempotent: bool) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(
            **self.common,
            enable_idempotence=idempotent,
            compression_type=None if codec == "none" else codec,
            linger_ms=50,
        )
        sent = [
            producer.send(topic, value, key, headers, 0, timestamp)
            for key, value, headers, timestamp in to_write(codec, count)
        ]
        for each in sent:
            show(each.get(WAIT_S).offset)
        producer.close()

    def transactions(self, id_: str, topic: str, group: str, count: int) -> None:
        from kafka import KafkaProducer, OffsetAndMetadata, TopicPartition

        producer = KafkaProducer(**self.common, transactional_id=id_)
        producer.init_transactions()
        for n in range(count):
            producer.begin_transaction()
            producer.send(topic, f"{id_} {n}".encode(), partition=0).get(WAIT_S)
            offsets = {TopicPartition(topic, 0): OffsetAndMetadata(n + 1, "", -1)}
            producer.send_offsets_to_transaction(offsets, group)
            if aborts(n):
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        producer.close()
        show("done")

    def consumer(self, group: str | None, **config: object) -> Any:
        from kafka import KafkaConsumer

        values = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
        return KafkaConsumer(**self.common, **values, **config)

    def read(self, topic: str, count: int, isolation: str) -> None:
        from kafka import TopicPartition

        consumer = self.consumer(None, isolation_level=isolation)
        consumer.assign([TopicPartition(topic, 0)])
        while count > 0:
            for m in [each for part in consumer.poll(200).values() for each in part]:
                show_record(topic, m.offset, m.timestamp, m.key, m.value, m.headers)
                count -= 1
        consumer.close()

    def times(self, topic: str, *asked: str) -> None:
        from kafka import TopicPartition

        consumer, partition = self.consumer(None), TopicPartition(topic, 0)
        show(consumer.beginning_offsets([partition])[partition])
        show(consumer.end_offsets([partition])[partition])
        for time in asked:
            found = consumer.offsets_for_times({partition: int(time)})[partition]
            show(-1 if found is None else found.offset)
        consumer.close()

    def member(self, group: str, topic: str, **config: str) -> None:
        from kafka import ConsumerRebalanceListener

        consumer = self.consumer(group, **member_settings(config))
        consumer.subscribe([topic], listener=listener_of(ConsumerRebalanceListener))
        while not over():
            found = [each for part in consumer.poll(100).values() for each in part]
            for message in found:
                show("message", message.partition, message.offset)
            if found:
                consumer.commit()
        consumer.close()
        show("closed")

    def admin(self, topic: str) -> None:
        from kafka.admin import (
            ConfigResource,
            ConfigResourceType,
            KafkaAdminClient,
            NewPartitions,
            NewTopic,
        )

        admin = KafkaAdminClient(**self.common)
        admin.create_topics([NewTopic(topic, 2, 1)])
        show("listed", topic in admin.list_topics())
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, RETENTION)])
        found = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        show("retention", found["topic"][topic]["retention.ms"]["value"])
        admin.create_partitions({topic: NewPartitions(3)})
        show("partitions", len(admin.describe_topics([topic])[0]["partitions"]))
        admin.delete_topics([topic])
        show("listed", topic in admin.list_topics())


class AioKafka:
    def __init__(self, address: str) -> None:
        self.common = {"bootstrap_servers": address}

    def write(self, topic: str, codec: str, count: int, idempotent: bool) -> None:
        asyncio.run(self._write(topic, codec, count, idempotent))

    async def _write(self, topic: str, codec: str, count: int, idempotent: bool) -> None:
        from aiokafka import AIOKafkaProducer

        producer = AIOKafkaProducer(
            **self.common,
            acks="all",
            enable_idempotence=idempotent,
            compression_type=None if codec == "none" else codec,
            linger_ms=50,
        )
        async with producer:
            sent = [
                await producer.send(topic, value, key, 0, timestamp, headers)
                for key, value, headers, timestamp in to_write(codec, count)
            ]
            for each in await asyncio.gather(*sent):
                show(each.offset)

    def transactions(self, id_: str, topic: str, group: str, count: int) -> None:
        asyncio.run(self._transactions(id_, topic, group, count))

    async def _transactions(self, id_: str, topic: str, group: str, count: int) -> None:
        from aiokafka import AIOKafkaProducer, TopicPartition

        async with AIOKafkaProducer(**self.common, transactional_id=id_) as producer:
            for n in range(count):
                await producer.begin_transaction()
                await producer.send_and_wait(topic, f"{id_} {n}".encode(), partition=0)
                offsets = {TopicPartition(topic, 0): n + 1}
                await producer.send_offsets_to_transaction(offsets, group)
                if aborts(n):
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()
        show("done")

    def consumer(self, group: str | None, **config: object) -> Any:
        from aiokafka import AIOKafkaConsumer

        values = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
        return AIOKafkaConsumer(**self.common, **values, **config)

    def read(self, topic: str, count: int, isolation: str) -> None:
        asyncio.run(self._read(topic, count, isolation))

    async def _read(self, topic: str, count: int, isolation: str) -> None:
        from aiokafka import TopicPartition

        async with self.consumer(None, isolation_level=isolation) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            while count > 0:
                found = await consumer.getmany(timeout_ms=200)
                for m in [each for part in found.values() for each in part]:
                    show_record(topic, m.offset, m.timestamp, m.key, m.value, m.headers)
                    count -= 1

    def times(self, topic: str, *asked: str) -> None:
        asyncio.run(self._times(topic, asked))

    async def _times(self, topic: str, asked: Iterable[str]) -> None:
        from aiokafka import TopicPartition

        partition = TopicPartition(topic, 0)
        async with self.consumer(None) as consumer:
            show((await consumer.beginning_offsets([partition]))[partition])
            show((await consumer.end_offsets([partition]))[partition])
            for time in asked:
                found = (await consumer.offsets_for_times({partition: int(time)}))[partition]
                show(-1 if found is None else found.offset)

    def member(self, group: str, topic: str, **config: str) -> None:
        asyncio.run(self._member(group, topic, config))

    async def _member(self, group: str, topic: str, config: dict[str, str]) -> None:
        from aiokafka import ConsumerRebalanceListener

        consumer = self.consumer(group, **member_settings(config))
        consumer.subscribe([topic], listener=listener_of(ConsumerRebalanceListener))
        async with consumer:
            while not over():
                parts = await consumer.getmany(timeout_ms=100)
                found = [each for part in parts.values() for each in part]
                for message in found:
                    show("message", message.partition, message.offset)
                if found:
                    await consumer.commit()
        show("closed")

    def admin(self, topic: str) -> None:
        asyncio.run(self._admin(topic))

    async def _admin(self, topic: str) -> None:
        from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
        from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

        admin = AIOKafkaAdminClient(**self.common)
        await admin.start()
        with contextlib.suppress(asyncio.CancelledError):
            await admin.create_topics([NewTopic(topic, 2, 1)])
            show("listed", topic in await admin.list_topics())
            resource = ConfigResource(ConfigResourceType.TOPIC, topic, RETENTION)
            await admin.alter_configs([resource])
            asked = [ConfigResource(ConfigResourceType.TOPIC, topic)]
            (answer,) = await admin.describe_configs(asked)
            entries = {entry[0]: entry[1] for entry in answer.resources[0][4]}
            show("retention", entries["retention.ms"])
            await admin.create_partitions({topic: NewPartitions(3)})
            show("partitions", len((await admin.describe_topics([topic]))[0]["partitions"]))
            await admin.delete_topics([topic])
            show("listed", topic in await admin.list_topics())
        await admin.close()


CLIENTS: dict[str, Callable[[str], Any]] = {
    "confluent-kafka": Confluent,
    "kafka-python": KafkaPython,
    "aiokafka": AioKafka,
}


def main(name: str, action: str, address: str, *args: str) -> None:
    client = CLIENTS[name](address)
    if action == "write":
        topic, codecs, count, idempotent = args
        for codec in codecs.split(","):
            client.write(topic, codec, int(count), idempotent == "true")
    elif action in ISOLATION:
        for topic, count in zip(args[::2], args[1::2], strict=True):
            client.read(topic, int(count), ISOLATION[action])
    elif action == "transactions":
        *names, count = args
        client.transactions(*names, int(count))
    elif action == "member":
        group, topic, *config = args
        client.member(group, topic, **dict(each.split("=", 1) for each in config))
    else:
        getattr(client, action)(*args)


if __name__ == "__main__":
    main(*sys.argv[1:])
