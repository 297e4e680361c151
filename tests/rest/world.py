"""A REST application on a cluster without sockets, and a client of it."""

from __future__ import annotations

import json
from typing import Any

from werkzeug.test import Client, TestResponse

from kafka08.common import Broker, TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.simple import SimpleConsumer
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.rest.server import ClientMakers, RestParts
from kafka08.runtime import Runtime
from kafka08.security.users import Users
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from tests.producer.fake_producer import threaded
from tests.rest.conformance import Conformance
from zk import znodes

V1 = "application/vnd.kafka.v1+json"
BINARY_V1 = "application/vnd.kafka.binary.v1+json"
JSON_V1 = "application/vnd.kafka.json.v1+json"
V2 = "application/vnd.kafka.v2+json"
JSON_V2 = "application/vnd.kafka.json.v2+json"
BINARY_V2 = "application/vnd.kafka.binary.v2+json"
PLAIN = "application/json"
BROKER = Broker(0, "b0", 9090)
SETTINGS = {"simpleconsumer.pool.size.max": "2"}


class RestWorld:
    """``settings``: those of the proxy's file. ``call`` sends a request, with ``body`` as JSON.

    All that is sent and answered has to be as the proxy's OpenAPI document says.
    """

    def __init__(self, users: Users | None = None, **settings: str) -> None:
        given = {key.replace("__", "."): value for key, value in settings.items()}
        self.runtime = runtime = FakeRuntime(now=1000.0)
        self.ensemble = FakeZooKeeper()
        self.brokers = FakeCluster([BROKER])
        self.zk = Session(self.ensemble)
        registration = znodes.BrokerRegistration(BROKER.host, BROKER.port)
        self.ensemble.put("/brokers/ids/0", znodes.encode_broker(registration))
        self.ensemble.put("/brokers/topics")
        zk: Any = self.zk
        make = ClientMakers(
            self.simple_consumer, self._producer, self._connector, self.brokers.channel
        )
        parts = RestParts({**SETTINGS, **given}, zk, runtime, runtime, users=users, make=make)
        self.cluster, self.instances = parts.cluster, parts.instances
        self.application = parts.application
        self.document: Any = parts.description.document
        self._described = Conformance(self.application.routes, self.document)
        self.client = Client(self.application)
        self._fetching = False
        runtime.on_sleep = self._fetch

    def simple_consumer(self, host: str, port: int, **options: Any) -> SimpleConsumer:
        return SimpleConsumer(host, port, channel=self.brokers.channel, **options)

    def _producer(self, settings: dict[str, str], runtime: Runtime) -> KafkaProducer:
        versions = settings.get("api.versions.request") == "true"
        return threaded(self.brokers, metadata_fetch_timeout_ms=500, api_versions_request=versions)[
            0
        ]

    def _connector(self, config: ConsumerConfig, runtime: Runtime) -> ConsumerConnector:
        return ConsumerConnector(
            config, runtime=runtime, zk=Session(self.ensemble), channel=self.brokers.channel
        )

    def _fetch(self, seconds: float) -> None:
        """While something waits, consumers fetch, which takes no time."""
        if not self._fetching:
            self._fetching = True
            now = self.runtime.clock.now
            for word in ("watcher_executor", "leader-finder", "ConsumerFetcherThread"):
                self.runtime.step(word)
            self.runtime.clock.now = now
            self._fetching = False

    def topic(self, name: str, partitions: int = 1, leader: int = 0) -> None:
        for partition in range(partitions):
            tp = TopicPartition(name, partition)
            self.brokers.leaders[tp] = leader
            self.brokers.logs.setdefault(tp, [])
            state = znodes.PartitionStateNode(leader, 0, 1, (0,))
            path = znodes.partition_state_path(name, partition)
            self.ensemble.put(path, znodes.encode_partition_state(state))
        assignment = {partition: [0] for partition in range(partitions)}
        self.ensemble.put(znodes.topic_path(name), znodes.encode_topic(assignment))

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str | None = None,
        data: bytes | None = None,
        **headers: str,
    ) -> TestResponse:
        if body is not None:
            data = json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        response = self.client.open(
            path, method=method, data=data, content_type=content_type, headers=sent
        )
        self._described.check(response, data)
        return response

    def call(
        self, method: str, path: str, body: Any = None, type: str | None = None, **headers: str
    ) -> tuple[int, Any]:
        """Status and JSON of the answer; None without content."""
        response = self.send(method, path, body, type, **headers)
        text = response.get_data(as_text=True)
        return response.status_code, json.loads(text) if text else None

    def code(
        self, method: str, path: str, body: Any = None, type: str | None = None, **headers: str
    ) -> tuple[int, int]:
        """Status and error code."""
        status, found = self.call(method, path, body, type, **headers)
        return status, found["error_code"]

    def create(self, group: str = "g", type: str = V1, **fields: Any) -> str:
        """The path of a new consumer instance."""
        body = {key.replace("_", "."): value for key, value in fields.items()} or None
        status, found = self.call("POST", f"/consumers/{group}", body, type)
        assert status == 200, found
        return f"/consumers/{group}/instances/{found['instance_id']}"

    def offset(self, group: str, topic: str, partition: int = 0) -> str | None:
        path = znodes.consumer_offset_path(group, topic, partition)
        return self.ensemble.text(path) if path in self.ensemble.nodes else None
