"""A group of high-level consumers: one ZooKeeper, one broker, any number of members."""

from __future__ import annotations

from typing import Any

from kafka08.common import Broker, TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.errors import (
    ConsumerTimeoutError,
)
from kafka08.consumer.filters import TopicFilter
from kafka08.consumer.stream import KafkaStream
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import znodes

BROKER = Broker(0, "b0", 9090)


class GroupWorld:
    """One ZooKeeper, one broker, any number of members."""

    def __init__(self) -> None:
        self.runtime = FakeRuntime(now=1000.0)
        self.ensemble = FakeZooKeeper()
        self.cluster = FakeCluster([BROKER])
        self.broker_up()

    def broker_up(self) -> None:
        registration = znodes.BrokerRegistration(BROKER.host, BROKER.port)
        self.ensemble.put("/brokers/ids/0", znodes.encode_broker(registration))

    def topic(self, name: str, partitions: int) -> None:
        for partition in range(partitions):
            tp = TopicPartition(name, partition)
            if tp not in self.cluster.logs:
                self.cluster.leaders[tp] = 0
                self.cluster.logs[tp] = []
        assignment = {partition: [0] for partition in range(partitions)}
        self.ensemble.put(f"/brokers/topics/{name}", znodes.encode_topic(assignment))

    def owners(self, topic: str = "t") -> dict[int, str]:
        path = f"/consumers/g/owners/{topic}"
        return {
            int(name): self.ensemble.text(f"{path}/{name}") for name in self.ensemble.below(path)
        }

    def offset(self, topic: str, partition: int) -> str | None:
        path = f"/consumers/g/offsets/{topic}/{partition}"
        return self.ensemble.text(path) if path in self.ensemble.nodes else None


class ConnectorMember:
    def __init__(self, world: GroupWorld, name: str = "c", **settings: Any) -> None:
        self.world = world
        self.zk = Session(world.ensemble)
        defaults = {"consumer_id": name, "consumer_timeout_ms": 0, "auto_offset_reset": "smallest"}
        config = ConsumerConfig(group_id="g", zookeeper_connect="z", **{**defaults, **settings})
        self.connector = ConsumerConnector(
            config, runtime=world.runtime, zk=self.zk, channel=world.cluster.channel
        )
        self.streams: list[KafkaStream] = []

    def join(self, topics: dict[str, int] | TopicFilter | None = None) -> ConnectorMember:
        if isinstance(topics, TopicFilter):
            self.streams = self.connector.create_message_streams_by_filter(topics)
        else:
            made = self.connector.create_message_streams(topics or {"t": 1})
            self.streams = [stream for streams in made.values() for stream in streams]
        return self

    def handle_events(self) -> None:
        name = f"{self.connector.consumer_id}_watcher_executor"
        assert self.world.runtime.step(name) == 1

    def fetch(self) -> None:
        self.world.runtime.step(f"{self.connector.consumer_id}-leader-finder")
        self.world.runtime.step(f"ConsumerFetcherThread-{self.connector.consumer_id}")
        self.world.runtime.step(f"ConsumerFetcherThread-{self.connector.consumer_id}")

    def read(self, maximum: int = 1000) -> list[tuple[str, int, int]]:
        self.fetch()
        found: list[tuple[str, int, int]] = []
        for stream in self.streams:
            try:
                while len(found) < maximum:
                    message = next(stream)
                    found.append((message.topic, message.partition, message.offset))
            except ConsumerTimeoutError:
                continue
        return found


def settle(*members: ConnectorMember) -> None:
    for _ in range(4):
        for member in members:
            member.handle_events()
