"""Listeners and TLS with real clients: beside the plain port, between brokers, with originals."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import confluent_kafka
import kafka
import pytest

from integration.harness import (
    Broker,
    Process,
    Tools,
    ZooKeeper,
    free_port,
    isr,
    partition_state,
    zookeeper_text,
)
from integration.wire import wait_until

TLS = Path(__file__).parents[1] / "tests" / "golden" / "tls"
PRODUCER = "kafka.tools.ConsoleProducer"
CONSUMER = "kafka.tools.ConsoleConsumer"
WAIT_S = 60
# kafka-python asks for any version of TLS, which Python calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:ssl.PROTOCOL_TLS:DeprecationWarning")
LIBRDKAFKA = {
    "security.protocol": "ssl",
    "ssl.ca.location": str(TLS / "ca.pem"),
    "ssl.certificate.location": str(TLS / "client.pem"),
    "ssl.key.location": str(TLS / "client.pem"),
}


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """The broker's own copy, which others cannot read."""
    path = tmp_path / "server.pem"
    path.write_bytes((TLS / "server.pem").read_bytes())
    path.chmod(0o600)
    return path


Launch = Callable[[Process], None]


class Secure:
    """A kafka08 broker with a plain port and one for TLS."""

    def __init__(self, directory: Path, chroot: str, keys: Path, number: int, **props: str) -> None:
        self.tls_port = free_port()
        port = free_port()
        listeners = f"PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{self.tls_port}"
        given = {
            "listeners": listeners,
            "ssl.keystore.location": str(keys),
            "ssl.truststore.location": str(TLS / "ca.pem"),
            "ssl.client.auth": "required",
            "offsets.topic.replication.factor": "1",
            "group.initial.rebalance.delay.ms": "0",
            **{key.replace("_", "."): value for key, value in props.items()},
        }
        self.broker = Broker(
            "ours", directory / f"b{number}", chroot, broker_id=number, port=port, props=given
        )

    @property
    def tls_address(self) -> str:
        return f"127.0.0.1:{self.tls_port}"


@pytest.mark.scenario("security-2", "security-9")
def test_brokers_replicate_over_tls_and_clients_use_it(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Launch, keys: Path
) -> None:
    chroot = f"{zookeeper.connect}/tls"
    between = {"security_inter_broker_protocol": "SSL"}
    both = [Secure(tmp_path, chroot, keys, number, **between) for number in (0, 1)]
    for each in both:
        launch(each.broker)
        each.broker.start()
        node = json.loads(zookeeper_text(chroot, f"/brokers/ids/{each.broker.broker_id}") or "{}")
        assert (node["version"], node["port"]) == (2, each.broker.port)
        assert node["endpoints"][1] == f"SSL://127.0.0.1:{each.tls_port}"
    both[0].broker.create_topic("t", replicas=[0, 1])
    wait_until("both in sync", WAIT_S, lambda: isr(chroot, "t") == [0, 1])

    addresses = ",".join(each.tls_address for each in both)
    producer = confluent_kafka.Producer(
        {**LIBRDKAFKA, "bootstrap.servers": addresses, "acks": "all"}
    )
    listed = producer.list_topics("t", timeout=WAIT_S).brokers.values()
    assert {each.port for each in listed} == {each.tls_port for each in both}
    sent = [os.urandom(100_000) for _ in range(100)]
    for value in sent:
        producer.produce("t", value)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0

    both[0].broker.stop()
    wait_until("the other leads", WAIT_S, lambda: partition_state(chroot, "t").get("leader") == 1)
    consumer = confluent_kafka.Consumer(
        {**LIBRDKAFKA, "bootstrap.servers": addresses, "group.id": "g"}
        | {"auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["t"])
    digest, found = sha256(), 0
    while found < len(sent):
        message = consumer.poll(WAIT_S)
        assert message is not None and message.error() is None, message
        digest.update(message.value())
        found += 1
    consumer.close()
    assert digest.digest() == sha256(b"".join(sent)).digest()

    old = kafka.KafkaConsumer(
        "t",
        bootstrap_servers=both[1].tls_address,
        api_version=(0, 8, 2),
        security_protocol="SSL",
        ssl_cafile=str(TLS / "ca.pem"),
        ssl_certfile=str(TLS / "client.pem"),
        ssl_keyfile=str(TLS / "client.pem"),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        group_id=None,
        consumer_timeout_ms=WAIT_S * 1000,
        max_partition_fetch_bytes=1 << 20,
    )
    values = [next(old).value for _ in sent]
    old.close()
    assert values == sent


@pytest.mark.scenario("security-8")
def test_clients_without_a_certificate_are_refused(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Launch, keys: Path
) -> None:
    secure = Secure(tmp_path, f"{zookeeper.connect}/refused", keys, 0)
    launch(secure.broker)
    secure.broker.start()
    without = {key: LIBRDKAFKA[key] for key in ("security.protocol", "ssl.ca.location")}
    errors: list[str] = []
    client = confluent_kafka.Producer(
        {**without, "bootstrap.servers": secure.tls_address}
        | {"error_cb": lambda error: errors.append(str(error))}
    )
    with pytest.raises(confluent_kafka.KafkaException):
        client.list_topics(timeout=5)
    client.poll(1)
    assert any("SSL" in each for each in errors), errors
    assert "Failed authentication with /127.0.0.1 (SSL handshake failed" in secure.broker.log


@pytest.mark.scenario("security-14")
def test_half_open_handshakes_do_not_hold_others_up(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Launch, keys: Path
) -> None:
    secure = Secure(tmp_path, f"{zookeeper.connect}/half", keys, 0)
    launch(secure.broker)
    secure.broker.start()
    begun = [socket.create_connection(("127.0.0.1", secure.tls_port), 10) for _ in range(500)]
    for each in begun:
        each.sendall(b"\x16\x03\x01")
    client = confluent_kafka.Producer({**LIBRDKAFKA, "bootstrap.servers": secure.tls_address})
    assert client.list_topics(timeout=10).brokers

    def closed(sock: socket.socket) -> bool:
        sock.settimeout(20)
        try:
            return sock.recv(1) == b""
        except ConnectionResetError:
            return True

    assert all(map(closed, begun))
    for each in begun:
        each.close()


@pytest.mark.scenario("security-3", "security-9")
@pytest.mark.original
def test_an_original_broker_beside_listeners(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Launch, keys: Path
) -> None:
    chroot = f"{zookeeper.connect}/mixed"
    secure = Secure(tmp_path, chroot, keys, 0)
    original = Broker("original", tmp_path / "original", chroot, broker_id=1)
    for broker in (secure.broker, original):  # ours is the controller
        launch(broker)
        broker.start()
    secure.broker.create_topic("t", replicas=[0, 1])
    wait_until("both in sync", WAIT_S, lambda: isr(chroot, "t") == [0, 1])
    tools = Tools("original", tmp_path / "tools")
    brokers = f"127.0.0.1:{secure.broker.port},127.0.0.1:{original.port}"
    produce = PRODUCER, "--broker-list", brokers, "--topic", "t", "--request-required-acks", "-1"
    assert tools.run(*produce, stdin="one\ntwo\n").code == 0

    client = confluent_kafka.Producer(
        {**LIBRDKAFKA, "bootstrap.servers": secure.tls_address, "api.version.request": False}
        | {"broker.version.fallback": "0.8.2.2"}
    )
    listed = client.list_topics("t", timeout=WAIT_S)
    assert [each.port for each in listed.brokers.values()] == [secure.tls_port]

    secure.broker.stop()  # the original becomes controller and leader
    wait_until(
        "the original leads", WAIT_S, lambda: partition_state(chroot, "t").get("leader") == 1
    )
    assert tools.run(*produce, stdin="three\n").code == 0
    secure.broker.start()
    wait_until("ours is back", WAIT_S, lambda: isr(chroot, "t") == [0, 1])
    consume = CONSUMER, "--zookeeper", chroot, "--topic", "t", "--from-beginning"
    found = tools.run(*consume, "--max-messages", "3")
    assert found.lines == ["one", "two", "three"], found
