"""Sessions of logins that end: by their lifetime, and by a change of the user's credential."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import kafka
import pytest

from integration import builds
from integration.harness import Tools, ZooKeeper, properties
from integration.later import programs
from integration.sasl import METADATA, SCRAM_MODULE, Raw, SaslBroker, authenticate, jaas
from integration.wire import entry, wait_until
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.security.mechanisms import LoginRefusedError
from kafka08.security.scram import ScramClient

LIFETIME_MS = 1500
SECONDS = 6  # of sending: some lifetimes
SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
BOTH = f"{SHA_256}=[password=pencil],{SHA_512}=[iterations=8192,password=pencil]"


@pytest.fixture(scope="module")
def our_tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools("ours", tmp_path_factory.mktemp("session-tools"))


@pytest.fixture(scope="module")
def broker(
    zookeeper: ZooKeeper, our_tools: Tools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SaslBroker]:
    broker = SaslBroker(
        tmp_path_factory.mktemp("sessions"),
        f"{zookeeper.connect}/sasl-sessions",
        connections_max_reauth_ms=LIFETIME_MS,
    )
    broker.start(240)
    broker.set_user(our_tools, "carol", "--add-config", BOTH)
    yield broker
    broker.kill()


def client(broker: SaslBroker, name: str = "carol", mechanism: str = SHA_512) -> dict[str, object]:
    return {
        "bootstrap.servers": broker.sasl_address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas(name, "pencil", SCRAM_MODULE),
    }


def test_java_goes_on_over_its_lifetime(broker: SaslBroker, tmp_path: Path) -> None:
    try:
        class_path = programs.tools_class_path()
    except programs.MissingError as error:
        pytest.skip(str(error))
    broker.create_topic("java")
    file = tmp_path / "client.properties"
    file.write_text(properties({**client(broker), "retries": 0}))
    done = subprocess.run(
        [
            "java", *builds.HEAP, "-cp", class_path,
            "org.apache.kafka.tools.ProducerPerformance", "--topic", "java", "--num-records", "600",
            "--record-size", "10", "--throughput", "100", "--producer.config", str(file),
        ],
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "xception" not in done.stdout + done.stderr
    with broker.wire() as wire:
        assert wire.offset("java", 0) == 600


def test_librdkafka_goes_on_over_its_lifetime(broker: SaslBroker) -> None:
    broker.create_topic("librdkafka")
    errors: list[object] = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.sasl_address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": SHA_256,
            "sasl.username": "carol",
            "sasl.password": "pencil",
            "error_cb": errors.append,
            "retries": 0,
        }
    )
    for _ in range(SECONDS * 10):
        producer.produce(
            "librdkafka", b"v", on_delivery=lambda error, _: error and errors.append(error)
        )
        producer.poll(0.1)
    assert producer.flush(30) == 0
    assert errors == []
    with broker.wire() as wire:
        assert wire.offset("librdkafka", 0) == SECONDS * 10


def test_clients_that_do_not_log_in_again_connect_again(broker: SaslBroker) -> None:
    broker.create_topic("ours")
    broker.create_topic("kafka-python")
    foreign = kafka.KafkaProducer(
        bootstrap_servers=broker.sasl_address,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=SHA_256,
        sasl_plain_username="carol",
        sasl_plain_password="pencil",
        retries=3,
    )
    with KafkaProducer({**client(broker), "retries": 3, "acks": "1"}) as ours:
        for _ in range(SECONDS):
            time.sleep(1)
            ours.send("ours", value=b"v").result(60)
            foreign.send("kafka-python", b"v").get(60)
    foreign.close()
    with broker.wire() as wire:
        assert wire.offset("ours", 0) == wire.offset("kafka-python", 0) == SECONDS


def test_brokers_replicate_over_their_lifetime(
    zookeeper: ZooKeeper, tmp_path: Path, our_tools: Tools
) -> None:
    chroot = f"{zookeeper.connect}/sasl-sessions-between"
    settings = {
        "security_inter_broker_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism_inter_broker_protocol": SHA_256,
        "listener_name_sasl__plaintext_scram-sha-256_sasl_jaas_config": jaas(
            "admin", "pencil", SCRAM_MODULE
        ),
        "connections_max_reauth_ms": LIFETIME_MS,
    }
    brokers = [SaslBroker(tmp_path / str(number), chroot, number, **settings) for number in (0, 1)]
    zk = zookeeper.client()
    try:
        zk.ensure_path("/sasl-sessions-between")
    finally:
        zk.stop()
        zk.close()
    brokers[0].set_user(our_tools, "admin", "--add-config", BOTH)
    try:
        for each in brokers:
            each.start()
        brokers[0].create_topic("replicated", replicas=[0, 1])
        with brokers[0].wire() as wire:
            for number in range(SECONDS):
                time.sleep(1)
                assert wire.produce("replicated", 0, entry(None, b"v"), acks=-1) == number
        brokers[1].create_topic("later", replicas=[1, 0])  # the controller's connections
        with brokers[1].wire() as wire:
            assert wire.produce("later", 0, entry(None, b"v"), acks=-1) == 0
        for each in brokers:
            assert "Traceback" not in each.log
            assert "Shrinking ISR" not in each.log
    finally:
        for each in brokers:
            each.kill()


# Credentials that change


def _logged_in(broker: SaslBroker, name: str, mechanism: str = SHA_256) -> Raw:
    """Raises LoginRefusedError."""
    raw = broker.raw()
    handshake = bytes.fromhex("0011 0001 00000002 0001 63".replace(" ", ""))
    raw.ask(handshake + len(mechanism).to_bytes(2, "big") + mechanism.encode())
    side = ScramClient(mechanism, name, "pencil", f"nonce{name}")
    token = side.answer(b"")
    while token is not None:
        answer = raw.ask(authenticate(token)) or b""
        if answer[4:6] != bytes(2):
            raw.close()
            raise LoginRefusedError("the broker refuses")
        token = side.answer(answer[12:])
    return raw


def test_a_changed_or_deleted_credential_ends_its_connections(
    broker: SaslBroker, our_tools: Tools
) -> None:
    broker.set_user(our_tools, "dave", "--add-config", BOTH)
    wait_until("the user", 10, lambda: _can_log_in(broker, "dave"))
    with (
        _logged_in(broker, "dave") as first,
        _logged_in(broker, "dave", SHA_512) as second,
        _logged_in(broker, "carol") as other,
    ):
        broker.set_user(our_tools, "dave", "--add-config", f"{SHA_256}=[password=eraser]")
        assert first.receive() is None
        broker.set_user(our_tools, "dave", "--delete-config", SHA_512)
        assert second.receive() is None
        other.sock.settimeout(0.5)
        with pytest.raises(TimeoutError):
            other.receive()


def _can_log_in(broker: SaslBroker, name: str) -> bool:
    try:
        with _logged_in(broker, name) as raw:
            return bool(raw.ask(METADATA))
    except LoginRefusedError:
        return False
