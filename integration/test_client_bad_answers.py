"""Every client against peers that hang, lie and talk nonsense: a typed error in time, no hang.

Consumers of a group among such brokers are in test_consumer_bad_input.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import struct
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from integration.harness import Broker, ZooKeeper, free_port
from integration.proxy import BAD_MODES, Proxy
from integration.wire import entry
from kafka08.client.admin import AdminClient
from kafka08.client.cluster import ClusterClient, NoBrokerError
from kafka08.common import TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.errors import ConsumerTimeoutError
from kafka08.consumer.simple import SimpleConsumer
from kafka08.consumer.standalone import StandaloneConsumer
from kafka08.errors import ConfigError, InvalidTopicError, KafkaError
from kafka08.producer.config import ProducerConfig
from kafka08.producer.errors import (
    DisconnectedError,
    FailedToSendMessageError,
    MetadataTimeoutError,
)
from kafka08.producer.event_handler import KeyedMessage
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.producer.logging_handler import KafkaLoggingHandler
from kafka08.producer.producer import Producer
from kafka08.protocol import schemas
from zk import znodes

TIMEOUT_MS = 200
LONGEST_S = 20


def numbers(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


# --- a server that is not a broker


def says_nothing(connection: socket.socket) -> None:
    """Reads, and never answers."""
    while connection.recv(1 << 16):
        pass


def closes_at_once(connection: socket.socket) -> None:
    """Not even a request is read."""


def talks_first(connection: socket.socket) -> None:
    connection.sendall(b"220 mail.example.org ESMTP ready\r\n")
    connection.recv(1 << 16)


def speaks_http(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")


def sends_zeros(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    connection.sendall(bytes(1 << 16))


def sends_noise(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    noise = bytes(number * 7919 % 251 for number in range(4096))
    connection.sendall(struct.pack(">i", len(noise)) + noise)


def echoes(connection: socket.socket) -> None:
    while data := connection.recv(1 << 16):
        connection.sendall(data)


def drips(connection: socket.socket) -> None:
    """A frame that begins well and never ends."""
    connection.recv(1 << 16)
    connection.sendall(struct.pack(">ii", 1 << 20, 1))
    connection.recv(1 << 16)


SERVERS = [says_nothing, closes_at_once, talks_first, speaks_http]
SERVERS += [sends_zeros, sends_noise, echoes, drips]


@pytest.fixture(params=SERVERS, ids=[server.__name__ for server in SERVERS])
def impostor(request: pytest.FixtureRequest) -> Iterator[int]:
    """Its port."""
    listener = socket.create_server(("127.0.0.1", free_port()))
    open_ones: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            request.param(connection)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection = listener.accept()[0]
                open_ones.append(connection)
                threading.Thread(target=serve, args=[connection], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    with contextlib.suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)  # or the port stays open while accept waits
    listener.close()
    for connection in open_ones:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def with_kafka_producer(port: int) -> None:
    settings = {"metadata_fetch_timeout_ms": TIMEOUT_MS, "request_timeout_ms": TIMEOUT_MS}
    with KafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", **settings) as producer:
        producer.send("t", b"v").result(LONGEST_S)


def with_producer(port: int) -> None:
    config = ProducerConfig(
        metadata_broker_list=(f"127.0.0.1:{port}",),
        request_timeout_ms=TIMEOUT_MS,
        message_send_max_retries=1,
        retry_backoff_ms=1,
    )
    with Producer(config) as producer:
        producer.send(KeyedMessage("t", b"v"))


def with_simple_consumer(port: int) -> None:
    with SimpleConsumer("127.0.0.1", port, timeout_ms=TIMEOUT_MS) as consumer:
        consumer.offsets_before(TopicPartition("t", 0), -1)


def with_cluster(port: int) -> None:
    with ClusterClient([("127.0.0.1", port)], timeout_ms=TIMEOUT_MS) as cluster:
        cluster.leader(TopicPartition("t", 0))


def with_coordinator(port: int) -> None:
    with ClusterClient([("127.0.0.1", port)], timeout_ms=TIMEOUT_MS) as cluster:
        cluster.coordinator("g")


def with_admin(port: int) -> None:
    with AdminClient([("127.0.0.1", port)], timeout_ms=TIMEOUT_MS) as admin:
        admin.create_topic("t")


CLIENTS = [with_kafka_producer, with_producer, with_simple_consumer]
CLIENTS += [with_cluster, with_coordinator, with_admin]


@pytest.mark.parametrize("client", CLIENTS, ids=[client.__name__[5:] for client in CLIENTS])
def test_what_is_no_broker(impostor: int, client: Callable[[int], None]) -> None:
    begin = time.monotonic()
    with pytest.raises((KafkaError, OSError)) as caught:
        client(impostor)
    assert time.monotonic() - begin < LONGEST_S
    assert str(caught.value)


def test_the_log_handler_before_what_is_no_broker(impostor: int) -> None:
    handler = KafkaLoggingHandler("logs", f"127.0.0.1:{impostor}", max_block_ms=200)
    handler.handleError = lambda record: None  # type: ignore[method-assign]
    record = logging.LogRecord("app", logging.INFO, __file__, 1, "text", None, None)
    begin = time.monotonic()
    for _ in range(50):
        handler.handle(record)
    assert time.monotonic() - begin < 2
    handler.close()
    assert handler.dropped == 50


def test_a_group_member_before_what_is_no_broker(impostor: int, zookeeper: ZooKeeper) -> None:
    chroot = f"/impostor-{uuid.uuid4().hex[:8]}"
    zk = zookeeper.client()
    topic = znodes.encode_topic({0: [0]})
    zk.create(f"{chroot}/brokers/topics/t", topic, makepath=True)
    broker = znodes.encode_broker(znodes.BrokerRegistration("127.0.0.1", impostor))
    zk.create(f"{chroot}/brokers/ids/0", broker, makepath=True)
    config = ConsumerConfig(
        group_id="g",
        zookeeper_connect=zookeeper.connect + chroot,
        refresh_leader_backoff_ms=20,
        consumer_timeout_ms=500,
    )
    begin = time.monotonic()
    with ConsumerConnector(config) as connector:
        [stream] = connector.create_message_streams({"t": 1})["t"]
        assert zk.get_children(f"{chroot}/consumers/g/owners/t") == ["0"]
        with pytest.raises(ConsumerTimeoutError):
            next(stream)
        assert connector.commit_offsets()
        assert connector.metrics()["MaxLag"] == -1
    assert time.monotonic() - begin < LONGEST_S
    assert not zk.exists(f"{chroot}/consumers/g/offsets")
    zk.stop()
    zk.close()


# --- a broker whose answers are spoilt


class World:
    def __init__(self, broker: Broker, proxy: Proxy) -> None:
        self.broker = broker
        self.proxy = proxy
        self.topic = ""

    def new_topic(self) -> None:
        self.topic = f"answers-{uuid.uuid4().hex[:8]}"
        self.broker.create_topic(self.topic)

    def stored(self) -> list[bytes | None]:
        with self.broker.wire() as wire:
            return [entry.value for entry in wire.read_all(self.topic, 0)]

    def kafka_producer(self, **settings: Any) -> KafkaProducer:
        values = {"request_timeout_ms": 1000, "metadata_fetch_timeout_ms": 5000, **settings}
        return KafkaProducer(bootstrap_servers=self.proxy.address, **values)

    def producer(self, **settings: Any) -> Producer:
        values = {"request_required_acks": 1, "request_timeout_ms": 1000, **settings}
        values = {"message_send_max_retries": 1, "retry_backoff_ms": 20, **values}
        return Producer(ProducerConfig(metadata_broker_list=(self.proxy.address,), **values))


@pytest.fixture(scope="module")
def one_world(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    proxy = Proxy()
    props = {"advertised.port": proxy.port, "auto.create.topics.enable": "false"}
    chroot = f"{zookeeper.connect}/bad-answers"
    broker = Broker("ours", tmp_path_factory.mktemp("bad-answers"), chroot, props=props)
    proxy.target = broker.port
    broker.start()
    yield World(broker, proxy)
    broker.kill()
    proxy.close()


@pytest.fixture
def world(one_world: World) -> Iterator[World]:
    one_world.new_topic()
    yield one_world
    one_world.proxy.mode = "pass"
    one_world.proxy.intercept = None


# Consumers and the new producer meet all of them in the quick round.
SHARE = [
    mode if mode in ("cut", "another's answer") else pytest.param(mode, marks=pytest.mark.slow)
    for mode in BAD_MODES
]


@pytest.mark.parametrize("mode", SHARE)
def test_the_new_producer_without_retries(world: World, mode: str) -> None:
    with world.kafka_producer() as producer:
        assert producer.send(world.topic, b"before").result(LONGEST_S).offset == 0
        world.proxy.mode = mode
        with pytest.raises(DisconnectedError, match="before it answered"):
            producer.send(world.topic, b"unsure").result(LONGEST_S)
        world.proxy.mode = "pass"
        deadline = time.monotonic() + LONGEST_S
        while True:
            try:
                producer.send(world.topic, b"after").result(LONGEST_S)
                break
            except KafkaError:
                assert time.monotonic() < deadline
    assert world.stored()[0] == b"before" and world.stored()[-1] == b"after"


@pytest.mark.parametrize("mode", BAD_MODES)
def test_the_new_producer_with_retries(world: World, mode: str) -> None:
    """Answers are lost, so there are repetitions; nothing is lost or out of order."""
    with world.kafka_producer(retries=1000, linger_ms=1) as producer:
        futures = []
        for number in range(300):
            futures.append(producer.send(world.topic, b"%d" % number))
            if number in (100, 200):
                futures[-1].result(LONGEST_S)
                world.proxy.mode = mode if number == 100 else "pass"
            if number == 150:
                threading.Timer(0.3, lambda: setattr(world.proxy, "mode", "pass")).start()
        producer.flush(LONGEST_S)
        values = world.stored()
        assert [values[future.result(0).offset] for future in futures] == numbers(300)
        assert list(dict.fromkeys(values)) == numbers(300)


@pytest.mark.parametrize("mode", SHARE)
def test_the_old_producer(world: World, mode: str) -> None:
    with world.producer() as producer:
        producer.send(KeyedMessage(world.topic, b"before"))
        world.proxy.mode = mode
        begin = time.monotonic()
        with pytest.raises(FailedToSendMessageError, match=r"1 of 1 failed at the last try: 127\."):
            producer.send(KeyedMessage(world.topic, b"unsure"))
        assert time.monotonic() - begin < LONGEST_S
        world.proxy.mode = "pass"
        producer.send(KeyedMessage(world.topic, b"after"))
    assert world.stored()[0] == b"before" and world.stored()[-1] == b"after"


@pytest.mark.parametrize("mode", SHARE)
def test_a_consumer_without_a_group(world: World, mode: str) -> None:
    config = ConsumerConfig(
        group_id="unused",
        zookeeper_connect="",
        socket_timeout_ms=1000,
        auto_offset_reset="smallest",
        consumer_timeout_ms=100,
    )
    with world.producer() as producer:
        producer.send(*[KeyedMessage(world.topic, value) for value in numbers(10)])
    found = []
    with StandaloneConsumer([("127.0.0.1", world.proxy.port)], config) as consumer:
        stream = consumer.stream(world.topic)
        found += [next(stream).value]
        world.proxy.mode = mode
        with world.broker.wire() as wire:
            for value in numbers(10, 10):
                wire.produce(world.topic, 0, entry(None, value))
        end = time.monotonic() + 1
        deadline = end + LONGEST_S
        while len(found) < 20:
            assert time.monotonic() < deadline, f"only {found}"
            if time.monotonic() > end:
                world.proxy.mode = "pass"
            with contextlib.suppress(ConsumerTimeoutError):
                found.append(next(stream).value)
        with pytest.raises(ConsumerTimeoutError):
            next(stream)
    assert found == numbers(20)


# --- error codes without end


def produce_refused(code: int) -> Callable[[Any], Any]:
    def answer(request: Any) -> Any:
        if not isinstance(request, schemas.ProduceRequest):
            return None
        refused = schemas.ProducePartitionResponse
        return schemas.ProduceResponse(
            [
                schemas.ProduceTopicResponse(
                    t.topic, [refused(p.partition, code, -1) for p in t.partitions]
                )
                for t in request.topics
            ]
        )

    return answer


def metadata_refused(code: int) -> Callable[[Any], Any]:
    def answer(request: Any) -> Any:
        if not isinstance(request, schemas.MetadataRequest):
            return None
        return schemas.MetadataResponse(
            [], [schemas.TopicMetadata(code, topic, []) for topic in request.topics]
        )

    return answer


# Every code of 0.8.2.2 that a produce request may meet, one unknown, and one of later days.
CODES = [-1, 1, 2, 3, 5, 6, 7, 10, 17, 18, 19, 20, 21, 42, 32767]


@pytest.mark.parametrize("code", CODES)
def test_a_code_for_every_record(world: World, code: int) -> None:
    with world.kafka_producer(retries=2, retry_backoff_ms=5) as producer:
        producer.partitions_for(world.topic)
        world.proxy.intercept = produce_refused(code)
        error = producer.send(world.topic, b"v").exception(LONGEST_S)
        assert isinstance(error, KafkaError) and not isinstance(error, DisconnectedError)
        assert world.topic in str(error)
    with world.producer() as old:
        expected = f"1 of 1 failed at the last try: .{world.topic},0."
        with pytest.raises(FailedToSendMessageError, match=expected):
            old.send(KeyedMessage(world.topic, b"v"))
    world.proxy.intercept = None
    assert world.stored() == []


@pytest.mark.parametrize("code", [3, 5, 17, -1, 42])
def test_a_code_for_every_topic(world: World, code: int) -> None:
    world.proxy.intercept = metadata_refused(code)
    with world.kafka_producer(metadata_fetch_timeout_ms=300) as producer:
        expected = InvalidTopicError if code == 17 else KafkaError
        error = producer.send(world.topic, b"v").exception(LONGEST_S)
        assert isinstance(error, expected)
        assert world.topic in str(error)
        if code in (3, 5):
            assert isinstance(error, MetadataTimeoutError)
    with world.producer() as old, pytest.raises(FailedToSendMessageError, match="1 of 1"):
        old.send(KeyedMessage(world.topic, b"v"))
    world.proxy.intercept = None


@pytest.mark.parametrize("code", [-1, 2, 3, 5, 6, 9, 14, 42])
def test_a_code_for_every_fetch(world: World, code: int) -> None:
    """It goes on where it was as soon as it may."""
    asked = []

    def refuse(request: Any) -> Any:
        if not isinstance(request, schemas.FetchRequest):
            return None
        asked.append(request)
        topics = [
            schemas.FetchTopicResponse(
                t.topic,
                [schemas.FetchPartitionResponse(p.partition, code, -1, b"") for p in t.partitions],
            )
            for t in request.topics
        ]
        return schemas.FetchResponse(topics)

    with world.producer() as producer:
        producer.send(*[KeyedMessage(world.topic, value) for value in numbers(10)])
    config = ConsumerConfig(
        group_id="unused",
        zookeeper_connect="",
        auto_offset_reset="smallest",
        consumer_timeout_ms=300,
        refresh_leader_backoff_ms=20,
    )
    world.proxy.intercept = refuse
    with StandaloneConsumer([("127.0.0.1", world.proxy.port)], config) as consumer:
        stream = consumer.stream(world.topic)
        with pytest.raises(ConsumerTimeoutError):
            next(stream)
        assert 1 < len(asked) < 50, "neither given up nor without a pause"
        world.proxy.intercept = None
        found = []
        deadline = time.monotonic() + LONGEST_S
        while len(found) < 10:
            assert time.monotonic() < deadline
            with contextlib.suppress(ConsumerTimeoutError):
                found.append(next(stream).value)
    assert found == numbers(10)


# --- what callers do wrong


def test_the_old_producer_says_what_is_wrong(world: World) -> None:
    with world.producer() as producer:
        with pytest.raises(TypeError, match="int is not bytes; name an encoder"):
            producer.send(KeyedMessage(world.topic, 5))
        with pytest.raises(FailedToSendMessageError, match=r"maximum|max|large|size"):
            producer.send(KeyedMessage(world.topic, b"x" * 2_000_000))
        with pytest.raises(FailedToSendMessageError, match="no-such-topic"):
            producer.send(KeyedMessage("no-such-topic", b"v"))
        with pytest.raises(FailedToSendMessageError, match="a topic!"):
            producer.send(KeyedMessage("a topic!", b"v"))
        producer.send(KeyedMessage(world.topic, b"good"))
    assert world.stored() == [b"good"]


@pytest.mark.parametrize("servers", ["", "host", "host:", ":1", "host:port", "a:1,b"])
def test_addresses_that_are_none(servers: str) -> None:
    with pytest.raises(ConfigError, match="host"):
        KafkaProducer(bootstrap_servers=servers)
    with pytest.raises(ConfigError, match="host"):
        Producer(ProducerConfig.from_properties({"metadata.broker.list": servers}))


def test_nobody_there() -> None:
    with pytest.raises(NoBrokerError, match="Connection refused"):
        with_cluster(1)


# --- a broker that hangs, or dies in the middle


def test_the_old_producer_and_a_broker_that_hangs(world: World) -> None:
    with world.producer(message_send_max_retries=0) as producer:
        producer.send(KeyedMessage(world.topic, b"before"))
        world.broker.pause()
        try:
            begin = time.monotonic()
            with pytest.raises(FailedToSendMessageError, match="timed out"):
                producer.send(KeyedMessage(world.topic, b"unsure"))
            assert time.monotonic() - begin < LONGEST_S
        finally:
            world.broker.resume()
        world.broker.wait_for_leader(world.topic)
        producer.send(KeyedMessage(world.topic, b"after"))
    assert world.stored()[-1] == b"after"


def test_the_old_producer_and_a_broker_that_dies(world: World) -> None:
    """Messages are stored in order if ``send`` returned; if it raised, they may be stored."""
    acknowledged = []
    deadline = time.monotonic() + 3 * LONGEST_S
    with world.producer(message_send_max_retries=3, retry_backoff_ms=100) as producer:
        number = 0
        while len(acknowledged) < 300:
            assert time.monotonic() < deadline
            if number == 150:
                world.broker.kill()
                threading.Thread(target=world.broker.start).start()
            batch = [KeyedMessage(world.topic, b"%d" % n) for n in (number, number + 1)]
            number += 2
            with contextlib.suppress(FailedToSendMessageError):
                producer.send(*batch)
                acknowledged += [message.value for message in batch]
    found = [value for value in dict.fromkeys(world.stored()) if value in set(acknowledged)]
    assert found == acknowledged
