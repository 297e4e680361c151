"""Python's clients of the years between, each in an environment of its own; Python 3.6 to 3.8.

Called as PACKAGE ACTION ADDRESS ...; programs.py describes the actions and what they print.
"""

import asyncio
import os
import sys


def texts(codec, count):
    return [(b"key %d" % n, b"%s %d" % (codec.encode(), n)) for n in range(count)]


def show(offset, key, value):
    print(offset, key.decode(), value.decode(), sep="\t")


class KafkaPython:
    def __init__(self, address):
        self.address = address

    def write(self, topic, codecs, count):
        from kafka import KafkaProducer

        for codec in codecs.split(","):
            chosen = None if codec == "none" else codec
            producer = KafkaProducer(
                bootstrap_servers=self.address, acks="all", compression_type=chosen, linger_ms=50
            )
            sent = [
                producer.send(topic, key=key, value=value, partition=0)
                for key, value in texts(codec, int(count))
            ]
            for each in sent:
                each.get(30)
            producer.close()

    def _consumer(self, group=None):
        from kafka import KafkaConsumer

        return KafkaConsumer(
            bootstrap_servers=self.address,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )

    def read(self, topic, count):
        from kafka import TopicPartition

        consumer = self._consumer()
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        self._take(consumer, int(count))
        consumer.close()

    def _take(self, consumer, count):
        for message in consumer:
            show(message.offset, message.key, message.value)
            count -= 1
            if not count:
                return

    def ends(self, topic):
        from kafka import TopicPartition

        consumer, partition = self._consumer(), TopicPartition(topic, 0)
        print(
            consumer.beginning_offsets([partition])[partition],
            consumer.end_offsets([partition])[partition],
        )
        consumer.close()

    def offsets(self, topic, group, offset):
        from kafka import TopicPartition
        from kafka.structs import OffsetAndMetadata

        consumer, partition = self._consumer(group), TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.commit({partition: OffsetAndMetadata(int(offset), "m")})
        print(consumer.committed(partition))
        consumer.close()

    def member(self, topic, group, count):
        consumer = self._consumer(group)
        consumer.subscribe([topic])
        self._take(consumer, int(count))
        consumer.commit()
        consumer.close()

    def admin(self, topic):
        from kafka.admin import KafkaAdminClient, NewTopic

        admin = KafkaAdminClient(bootstrap_servers=self.address)
        admin.create_topics([NewTopic(topic, 2, 1)])
        print(len(self._consumer().partitions_for_topic(topic)))
        admin.list_consumer_groups()
        admin.delete_topics([topic])
        admin.close()


class PyKafka:
    def __init__(self, address):
        from pykafka import KafkaClient

        self.client = KafkaClient(hosts=address, broker_version=os.environ.get("VERSION", "0.9.0"))

    def _topic(self, name):
        return self.client.topics[name.encode()]

    def write(self, topic, codecs, count):
        from pykafka.common import CompressionType

        for codec in codecs.split(","):
            kind = getattr(CompressionType, codec.upper())
            with self._topic(topic).get_producer(
                compression=kind,
                required_acks=-1,
                linger_ms=50,
                min_queued_messages=1,
                partitioner=lambda partitions, key: partitions[0],
            ) as producer:
                for key, value in texts(codec, int(count)):
                    producer.produce(value, partition_key=key)

    def read(self, topic, count):
        from pykafka.common import OffsetType

        found = self._topic(topic)
        consumer = found.get_simple_consumer(
            partitions=[found.partitions[0]],
            auto_offset_reset=OffsetType.EARLIEST,
        )
        self._take(consumer, int(count))

    def _take(self, consumer, count):
        for _ in range(count):
            message = consumer.consume()
            show(message.offset, message.partition_key, message.value)

    def ends(self, topic):
        found = self._topic(topic)
        print(
            found.earliest_available_offsets()[0].offset[0],
            found.latest_available_offsets()[0].offset[0],
        )

    def offsets(self, topic, group, offset):
        from pykafka.common import OffsetType

        found = self._topic(topic)

        def consumer():
            return found.get_simple_consumer(
                consumer_group=group.encode(),
                partitions=[found.partitions[0]],
                auto_offset_reset=OffsetType.EARLIEST,
            )

        first = consumer()
        for _ in range(int(offset)):
            first.consume()
        first.commit_offsets()
        first.stop()
        second = consumer()
        print(second.held_offsets[0] + 1)
        second.stop()

    def member(self, topic, group, count):
        from pykafka.common import OffsetType

        consumer = self._topic(topic).get_balanced_consumer(
            group.encode(), managed=True, auto_offset_reset=OffsetType.EARLIEST
        )
        self._take(consumer, int(count))
        consumer.commit_offsets()
        consumer.stop()


class AioKafka:
    def __init__(self, address):
        self.address = address

    def __getattribute__(self, name):
        found = object.__getattribute__(self, name)
        if name.startswith("_") or not asyncio.iscoroutinefunction(found):
            return found
        loop = asyncio.get_event_loop()
        return lambda *args: loop.run_until_complete(found(*args))

    async def write(self, topic, codecs, count):
        from aiokafka import AIOKafkaProducer

        for codec in codecs.split(","):
            producer = AIOKafkaProducer(
                loop=asyncio.get_event_loop(),
                bootstrap_servers=self.address,
                acks="all",
                linger_ms=50,
                compression_type=None if codec == "none" else codec,
            )
            await producer.start()
            sent = [
                await producer.send(topic, key=key, value=value, partition=0)
                for key, value in texts(codec, int(count))
            ]
            for each in sent:
                await each
            await producer.stop()

    async def _consumer(self, *topics, group=None):
        from aiokafka import AIOKafkaConsumer

        consumer = AIOKafkaConsumer(
            *topics,
            loop=asyncio.get_event_loop(),
            bootstrap_servers=self.address,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        return consumer

    async def _take(self, consumer, count):
        for _ in range(count):
            message = await consumer.getone()
            show(message.offset, message.key, message.value)

    async def read(self, topic, count):
        from aiokafka import TopicPartition

        consumer = await self._consumer()
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.seek_to_beginning()
        await self._take(consumer, int(count))
        await consumer.stop()

    async def ends(self, topic):
        from aiokafka import TopicPartition

        consumer, partition = await self._consumer(), TopicPartition(topic, 0)
        first = await consumer.beginning_offsets([partition])
        last = await consumer.end_offsets([partition])
        print(first[partition], last[partition])
        await consumer.stop()

    async def offsets(self, topic, group, offset):
        from aiokafka import TopicPartition

        consumer, partition = await self._consumer(group=group), TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.commit({partition: int(offset)})
        print(await consumer.committed(partition))
        await consumer.stop()

    async def member(self, topic, group, count):
        consumer = await self._consumer(topic, group=group)
        await self._take(consumer, int(count))
        await consumer.commit()
        await consumer.stop()


CLIENTS = {"kafka-python": KafkaPython, "pykafka": PyKafka, "aiokafka": AioKafka}

if __name__ == "__main__":
    package, action, address = sys.argv[1:4]
    getattr(CLIENTS[package](address), action)(*sys.argv[4:])
