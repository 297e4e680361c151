"""A KafkaProducer on a runtime without time or tasks: the test says who runs when."""

from __future__ import annotations

import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from kafka08.common import Broker
from kafka08.errors import NO_ERROR
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.protocol import schemas
from kafka08.protocol.framing import FrameDecoder
from kafka08.protocol.later_schemas import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ServedVersions,
)
from kafka08.protocol.registry import APIS
from kafka08.protocol.requests import RequestDecoder, encode_response
from kafka08.runtime import Socket, ThreadRuntime
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime


class NothingYet(BaseException):
    """A reader that would wait."""


class Wire(Socket):
    """The producer's socket; a broker of the driver answers as soon as it is read. ``broken`` and
    ``refuse_write`` are raised by the next calls."""

    def __init__(self, driver: ProducerDriver, port: int) -> None:
        self._driver = driver
        self.port = port
        self.sent: list[schemas.ProduceRequest] = []
        self.broken: Exception | None = None
        self.refuse_write: Exception | None = None
        self.aborted = False
        self._asked: deque[tuple[schemas.RequestHeader, schemas.ProduceRequest]] = deque()
        self._answer = b""

    def sendall(self, data: bytes) -> None:
        if self.refuse_write is not None:
            raise self.refuse_write
        for frame in frames_of(data):
            header, request = decode_request(frame)
            if isinstance(request, ApiVersionsRequest):
                self._answer += framed(header, VERSIONS)
                continue
            self.sent.append(request)
            if request.acks:
                self._asked.append((header, request))
            else:
                self._driver.cluster.answer(self.port, request)

    def recv_into(self, buffer: memoryview) -> int:
        if self.broken is not None:
            raise self.broken
        if self.aborted:
            return 0
        if not self._answer:
            if self._driver.silent or not self._asked:
                raise NothingYet
            header, request = self._asked.popleft()
            self._answer = framed(header, self._driver.cluster.answer(self.port, request))
        count = min(len(buffer), len(self._answer))
        buffer[:count], self._answer = self._answer[:count], self._answer[count:]
        return count

    def shutdown(self, how: int) -> None:
        self.aborted = True


decode_request = RequestDecoder(APIS).decode
VERSIONS = ApiVersionsResponse(
    NO_ERROR, [ServedVersions(api.key, 0, api.last) for api in APIS.values()]
)


def framed(header: schemas.RequestHeader, answer: Any) -> bytes:
    return b"".join(encode_response(header.correlation_id, answer, header.api_version))


def frames_of(data: bytes) -> Iterator[memoryview]:
    """The whole frames in ``data``, as decoders want them: writable."""
    view = memoryview(bytearray(data))
    while view:
        (size,) = struct.unpack_from(">i", view)
        yield view[4 : 4 + size]
        view = view[4 + size :]


class ProducerDriver:
    """``silent`` brokers answer nothing. Broker n listens on port 9090 + n."""

    def __init__(self, *, brokers: int = 1, **settings: Any) -> None:
        self.runtime = FakeRuntime()
        self.cluster = FakeCluster(Broker(n, f"b{n}", 9090 + n) for n in range(brokers))
        self.cluster.create("t", 2)
        self.cluster.create("one", 1)
        self.connections: list[Wire] = []
        self.silent = False
        self.runtime.open_socket = self.connect
        self.runtime.on_sleep = lambda seconds: self.metadata.refresh()
        self.producer = KafkaProducer(
            {"bootstrap.servers": "b0:9090"},
            runtime=self.runtime,
            channel=self.cluster.channel,
            **settings,
        )

    def connect(self, host: str, port: int) -> Wire:
        if port in self.cluster.down:
            raise ConnectionRefusedError(f"port {port}")
        self.connections.append(Wire(self, port))
        return self.connections[-1]

    @property
    def metadata(self) -> Any:
        """The producer's task that keeps its metadata."""
        return self.producer._metadata

    @property
    def staleness(self) -> Any:
        """The reports of the producer's tasks about its metadata."""
        return self.producer._staleness

    @property
    def sender(self) -> Any:
        """The producer's task that ends what takes too long, and owns the lanes."""
        return self.producer._sender

    @property
    def lanes(self) -> dict[int, Any]:
        return dict(self.sender.lanes)

    @property
    def now_ms(self) -> int:
        return self.runtime.clock.now_ms

    def pass_time(self, ms: int) -> None:
        self.runtime.clock.now_ms += ms

    def write(self) -> None:
        """Let every lane send what it may."""
        for lane in self.lanes.values():
            self.sender.send_all(lane)

    def read(self, *nodes: int) -> None:
        """Let the readers of the connections to these brokers, or to all, take what there is."""
        for node, lane in self.lanes.items():
            if lane.link is None or (nodes and node not in nodes):
                continue
            try:
                self.sender.read(lane, lane.link)
            except NothingYet:
                # The reader is to go on later: it has not closed the connection.
                lane.link.connection._socket.aborted = False

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
        runtime=broker,
        channel=cluster.channel,
        **settings,
    )
    return producer, broker


class ThreadedBroker(ThreadRuntime):
    """Connections to threads that answer for the cluster; while ``mute``, nobody is answered."""

    def __init__(self, cluster: FakeCluster) -> None:
        super().__init__()
        self.cluster = cluster
        self.mute = False
        self.arrived = threading.Event()

    def connect(self, host: str, port: int, timeout: float) -> Socket:
        listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, args=(listening, port), daemon=True).start()
        host, listening_port = listening.getsockname()
        return super().connect(host, listening_port, timeout)

    def _serve(self, listening: socket.socket, port: int) -> None:
        with listening, listening.accept()[0] as sock:
            decoder = FrameDecoder(1 << 20)
            while count := sock.recv_into(decoder.get_buffer()):
                for frame in decoder.received(count):
                    header, request = decode_request(frame)
                    self.arrived.set()
                    if isinstance(request, ApiVersionsRequest):
                        sock.sendall(framed(header, VERSIONS))
                        continue
                    answer = self.cluster.answer(port, request)
                    if answer is not None and not self.mute:
                        sock.sendall(framed(header, answer))
