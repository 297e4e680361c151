"""A KafkaProducer on a runtime without time or tasks: the test says who runs when."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from kafka08.common import Broker
from kafka08.producer.connection import Connection, Outstanding
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.protocol import requests, schemas
from kafka08.runtime import ThreadRuntime
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime


class NothingYet(BaseException):
    """A reader that would wait."""


class FakeConnection:
    """A connection of the Driver. ``broken``: raised by the next call."""

    def __init__(self, driver: Driver, port: int) -> None:
        self._driver = driver
        self.port = port
        self.outstanding: deque[Outstanding] = deque()
        self.requests: deque[schemas.ProduceRequest] = deque()
        self.sent: list[schemas.ProduceRequest] = []
        self.broken: Exception | None = None
        self.refuse_write: Exception | None = None
        self.aborted = False
        self._number = 0

    def encode(self, request: Any, context: Any, *, answered: bool = True) -> bytes:
        self._number += 1
        if answered:
            now = self._driver.runtime.clock.monotonic()
            kind = schemas.ProduceResponse
            self.outstanding.append(Outstanding(self._number, kind, context, now))
        self.requests.append(request)
        self.sent.append(request)
        return b""

    def write(self, data: bytes) -> None:
        if self.refuse_write is not None:
            raise self.refuse_write
        if not self.outstanding:
            self._driver.cluster.answer(self.port, self.requests.popleft())

    def receive(self) -> list[tuple[Any, Outstanding]]:
        if self.broken is not None:
            raise self.broken
        if self._driver.silent or not self.requests:
            raise NothingYet
        request = self.requests.popleft()
        return [(self._driver.cluster.answer(self.port, request), self.outstanding[0])]

    def waiting_since(self) -> float | None:
        return self.outstanding[0].sent if self.outstanding else None

    def abort(self) -> None:
        self.aborted = True

    def close(self) -> None: ...


class Driver:
    """``silent`` brokers answer nothing. Broker n listens on port 9090 + n."""

    def __init__(self, *, brokers: int = 1, **settings: Any) -> None:
        self.runtime = FakeRuntime()
        self.cluster = FakeCluster(Broker(n, f"b{n}", 9090 + n) for n in range(brokers))
        self.cluster.create("t", 2)
        self.cluster.create("one", 1)
        self.connections: list[FakeConnection] = []
        self.silent = False
        self.runtime.on_sleep = lambda seconds: self.producer._metadata.refresh()
        self.producer = KafkaProducer(
            {"bootstrap.servers": "b0:9090"},
            runtime=self.runtime,
            connect=self.connect,
            channel=self.cluster.channel,
            **settings,
        )

    def connect(self, host: str, port: int, **options: Any) -> FakeConnection:
        if port in self.cluster.down:
            raise ConnectionRefusedError(f"port {port}")
        self.connections.append(FakeConnection(self, port))
        return self.connections[-1]

    @property
    def now_ms(self) -> int:
        return self.runtime.clock.now_ms

    def pass_time(self, ms: int) -> None:
        self.runtime.clock.now_ms += ms

    def write(self) -> None:
        """Let every lane send what it may."""
        for lane in list(self.producer._sender._lanes.values()):
            self.producer._sender._send_all(lane)

    def read(self) -> None:
        """Let every connection's reader take what there is."""
        for lane in list(self.producer._sender._lanes.values()):
            if lane.link is not None:
                try:
                    self.producer._sender.read(lane, lane.link)
                except NothingYet:
                    pass

    def run(self) -> None:
        self.write()
        self.read()

    @property
    def produced(self) -> list[schemas.ProduceRequest]:
        return [request for connection in self.connections for request in connection.sent]


def failing(*codes: int) -> Callable[[int, Any], Any]:
    """A script whose produce requests get these codes for all partitions, then good answers."""
    left = list(codes)

    def script(port: int, request: Any) -> Any:
        if not isinstance(request, schemas.ProduceRequest) or not left:
            return None
        code = left.pop(0)
        if not code:
            return None
        return schemas.ProduceResponse(
            [
                schemas.ProduceTopicResponse(
                    topic.topic,
                    [
                        schemas.ProducePartitionResponse(p.partition, code, -1)
                        for p in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return script


def threaded(cluster: FakeCluster, **settings: Any) -> tuple[KafkaProducer, ThreadedBroker]:
    broker = ThreadedBroker(cluster)
    producer = KafkaProducer(
        bootstrap_servers="b0:9090",
        runtime=ThreadRuntime(),
        connect=broker.connect,
        channel=cluster.channel,
        **settings,
    )
    return producer, broker


class ThreadedBroker:
    """Connections whose readers wait; ``mute`` ones never hear anything."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.mute = False
        self.arrived = threading.Event()

    def connect(self, host: str, port: int, **options: Any) -> Any:
        broker = self

        class Socket:
            def __init__(self) -> None:
                self.data = bytearray()
                self.there = threading.Condition()
                self.closed = False

            def setsockopt(self, *args: Any) -> None: ...

            def sendall(self, data: bytes) -> None:
                with self.there:
                    if self.closed:
                        raise BrokenPipeError
                    broker.arrived.set()
                    header, request = requests.decode_request(memoryview(bytearray(data[4:])))
                    answer = broker.cluster.answer(port, request)
                    if answer is not None and not broker.mute:
                        parts = requests.encode_response(header.correlation_id, answer)
                        self.data += b"".join(parts)
                        self.there.notify_all()

            def recv_into(self, buffer: memoryview) -> int:
                with self.there:
                    while not self.data and not self.closed:
                        self.there.wait()
                    count = min(len(buffer), len(self.data))
                    buffer[:count] = self.data[:count]
                    del self.data[:count]
                    return count

            def shutdown(self, how: int) -> None:
                with self.there:
                    self.closed = True
                    self.there.notify_all()

            def close(self) -> None: ...

        class Runtime(ThreadRuntime):
            def connect(self, host: str, port: int, timeout: float) -> Any:
                return Socket()

        return Connection(host, port, **{**options, "runtime": Runtime()})
