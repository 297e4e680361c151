"""Brokers, topics and leaders, read in ZooKeeper, offsets, asked from leaders, and clients of
brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypedDict

from kafka08 import admin
from kafka08.client import log_offsets
from kafka08.client.admin import AdminClient
from kafka08.client.cluster import listeners_of
from kafka08.client.routing import Answers, ask_leaders, by_leader
from kafka08.common import PLAINTEXT, Broker, TopicPartition
from kafka08.consumer.simple import SimpleConsumer
from kafka08.network.channel import Channel, Connect
from kafka08.rest.calls import Row
from kafka08.rest.config import RestConfig
from kafka08.rest.errors import (
    RestError,
    leader_not_available,
    partition_not_found,
    topic_not_found,
)
from kafka08.runtime import Empty, Queue, Runtime
from zk import registry
from zk.client import ZkClient

CLIENT_ID = "kafka-rest"
NO_LEADER = -1
_ADMIN_TIMEOUT_MS = 10_000
Opener = Callable[..., SimpleConsumer]


class ShownReplica(TypedDict):
    broker: int
    leader: bool
    in_sync: bool


class ShownPartition(TypedDict):
    """A partition as v1 and v2 show it; ``leader`` -1 if there is none."""

    partition: int
    leader: int
    replicas: list[ShownReplica]


class Cluster:
    """Reads ``zk`` at each call. ``open_consumer`` makes connections to leaders, of which the pool
    of ``config`` has some, ``channel`` those of administration. ``protocol``: that of the brokers'
    listeners to connect to."""

    def __init__(
        self,
        config: RestConfig,
        zk: ZkClient,
        runtime: Runtime,
        *,
        open_consumer: Opener = SimpleConsumer,
        channel: Connect = Channel,
        protocol: str = PLAINTEXT,
    ) -> None:
        self.zk = zk
        self._runtime = runtime
        self._patience_s = config.simpleconsumer_pool_timeout_ms / 1000
        self._open = open_consumer
        self._channel = channel
        self._protocol = protocol.upper()
        self._free: Queue[bool] = runtime.queue()
        for _ in range(config.simpleconsumer_pool_size_max):
            self._free.put(True)

    # --- brokers and topics

    def brokers(self) -> list[Broker]:
        return registry.live_brokers(self.zk, self._protocol)

    def racks(self) -> dict[int, str | None]:
        """By broker; without those whose registration is malformed."""
        found = registry.registrations(self.zk)
        return {number: each.location.rack for number, each in found.items() if each is not None}

    def broker_ids(self) -> list[int]:
        return registry.broker_ids(self.zk)

    def topics(self) -> list[str]:
        return admin.list_topics(self.zk)

    def assignment(self, topic: str) -> dict[int, tuple[int, ...]]:
        """Partition to replicas. Raises RestError 40401."""
        found = _assignment(self.zk, topic)
        if found is None:
            raise topic_not_found()
        return found

    def has_topic(self, topic: str) -> bool:
        return _assignment(self.zk, topic) is not None

    def check_partition(self, tp: TopicPartition) -> tuple[int, ...]:
        """Its replicas. Raises RestError 40401 or 40402."""
        assignment = self.assignment(tp.topic)
        if tp.partition not in assignment:
            raise partition_not_found()
        return assignment[tp.partition]

    def topic(self, topic: str) -> Row:
        """Name, settings and partitions. Raises RestError 40401."""
        partitions = self.partitions(topic)
        configs = admin.fetch_topic_config(self.zk, topic)
        return {"name": topic, "configs": configs, "partitions": partitions}

    def partitions(self, topic: str) -> list[ShownPartition]:
        """Raises RestError 40401."""
        assignment = self.assignment(topic)
        return [self._partition(topic, number, assignment[number]) for number in sorted(assignment)]

    def partition(self, tp: TopicPartition) -> ShownPartition:
        """Raises RestError 40401 or 40402."""
        return self._partition(*tp, self.check_partition(tp))

    def _partition(self, topic: str, number: int, replicas: tuple[int, ...]) -> ShownPartition:
        state = admin.fetch_partition_state(self.zk, topic, number)
        leader = NO_LEADER if state is None else state.leader
        isr = () if state is None else state.isr
        shown: list[ShownReplica] = [
            {"broker": broker, "leader": broker == leader, "in_sync": broker in isr}
            for broker in replicas
        ]
        return {"partition": number, "leader": leader, "replicas": shown}

    # --- leaders

    def leader(self, tp: TopicPartition) -> Broker:
        """Raises RestError 40401, 40402 or 40404."""
        self.check_partition(tp)
        state = admin.fetch_partition_state(self.zk, *tp)
        leader = NO_LEADER if state is None else state.leader
        if leader < 0 or registry.read_registration(self.zk, leader) is None:
            raise leader_not_available()
        broker = registry.read_broker(self.zk, leader, self._protocol)
        if broker is None or not broker.host:
            text = f"Broker {leader} has no listener of {self._protocol} (client.security.protocol)"
            raise RestError(500, 50101, text)
        return broker

    @contextmanager
    def consumer(self, broker: Broker, *, api_versions: bool = False) -> Iterator[SimpleConsumer]:
        """A connection to a broker, which negotiates versions if ``api_versions``. Raises RestError
        50301 if all are in use."""
        try:
            self._free.get(timeout=self._patience_s)
        except Empty:
            raise RestError(503, 50301, "No SimpleConsumer is available at the time.") from None
        try:
            with self._open(
                broker.host,
                broker.port,
                client_id=CLIENT_ID,
                runtime=self._runtime,
                api_versions=api_versions,
            ) as consumer:
                yield consumer
        finally:
            self._free.put(True)

    def admin(self) -> AdminClient:
        """A client for one request of administration. Raises NoBrokerError."""
        brokers = self.brokers()
        return AdminClient(
            listeners_of(brokers, self._protocol),
            client_id=CLIENT_ID,
            timeout_ms=_ADMIN_TIMEOUT_MS,
            runtime=self._runtime,
            channel=self._channel,
            brokers={each.id: (each.host, each.port) for each in brokers if each.host},
        )

    def end_offsets(self, tp: TopicPartition) -> tuple[int, int]:
        """The first offset and the log's end. Raises RestError and the errors of the leader."""
        with self.consumer(self.leader(tp)) as consumer:
            return log_offsets.bounds(consumer.call, tp)

    def offsets_at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The first offset (-2) or the log's end (-1) of each partition, by one request for each
        leader. Raises as above."""

        def ask(leader: Broker, times: Mapping[TopicPartition, int]) -> Answers:
            with self.consumer(leader) as consumer:
                return log_offsets.before(consumer.call, times)

        return ask_leaders(by_leader(times, self.leader), ask).checked()


def _assignment(zk: ZkClient, topic: str) -> dict[int, tuple[int, ...]] | None:
    # "." and ".." would be other nodes than the topic's.
    return None if topic in (".", "..") or "/" in topic else admin.fetch_assignment(zk, topic)
