"""Logins against a broker: the bytes of Kafka 2.8.2, today's clients, and hostile peers."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import kafka
import kafka.errors
import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from integration import builds
from integration.harness import Tools, ZooKeeper, properties
from integration.later import programs
from integration.sasl import (
    DELAY_S,
    HANDSHAKE_0,
    HANDSHAKE_1,
    METADATA,
    PLAIN_MODULE,
    SCRAM_MODULE,
    USERS,
    VERSIONS_0,
    Raw,
    SaslBroker,
    authenticate,
    jaas,
    plain_token,
)
from integration.wire import entry, produce_frame, wait_until
from kafka08.network.client_login import LoginError, SaslConnector
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.runtime import ThreadRuntime
from kafka08.security import jaas as jaas_text
from kafka08.security.sides import client_side

TREE = Path(__file__).parents[1]
CONFIGS = "kafka.admin.ConfigCommand"
_PATIENCE_S = 240
RIGHT = plain_token("alice", USERS["alice"])
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
PENCIL = "SCRAM-SHA-256=[password=pencil],SCRAM-SHA-512=[iterations=8192,password=pencil]"


@pytest.fixture(scope="module")
def chroot(zookeeper: ZooKeeper) -> str:
    return f"{zookeeper.connect}/sasl"


@pytest.fixture(scope="module")
def broker(
    chroot: str, our_tools: Tools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SaslBroker]:
    broker = SaslBroker(tmp_path_factory.mktemp("sasl"), chroot)
    broker.start(_PATIENCE_S)
    broker.set_user(our_tools, "carol", "--add-config", PENCIL)
    yield broker
    broker.kill()


@pytest.fixture(scope="module")
def our_tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools("ours", tmp_path_factory.mktemp("sasl-tools"))


def log_in(broker: SaslBroker, mechanism: str, name: str, password: str) -> None:
    """With the client of this project. Raises LoginError."""
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    text = jaas_text.parse(jaas(name, password, module))
    side = client_side(mechanism, text, "sasl.jaas.config")
    connector = SaslConnector(ThreadRuntime(), mechanism, side)
    connector.connect("127.0.0.1", broker.sasl_port, 30).close()


def refused(broker: SaslBroker, mechanism: str, name: str, password: str) -> bool:
    try:
        log_in(broker, mechanism, name, password)
    except LoginError:
        return True
    return False


# The bytes of Kafka 2.8.2 for the same frames


@pytest.mark.scenario("security-17")
def test_raw_token(broker: SaslBroker) -> None:
    with broker.raw() as raw:
        assert raw.ask(VERSIONS_0)
        assert (raw.ask(HANDSHAKE_0) or b"")[:6] == bytes.fromhex("000000020000")
        assert raw.ask(RIGHT) == b""
        assert (raw.ask(METADATA) or b"")[:4] == bytes.fromhex("00000009")


@pytest.mark.scenario("security-17")
@pytest.mark.parametrize(
    "token",
    [
        plain_token("alice", "wrong"),
        plain_token("", USERS["alice"]),
        plain_token("alice", USERS["alice"], "bob"),
        b"alice",
    ],
)
def test_wrong_raw_tokens(broker: SaslBroker, token: bytes) -> None:
    with broker.raw() as raw:
        raw.ask(HANDSHAKE_0)
        begin = time.monotonic()
        assert raw.ask(token) is None
        assert time.monotonic() - begin >= DELAY_S


@pytest.mark.scenario("security-17")
def test_a_token_of_600_kb(broker: SaslBroker) -> None:
    with broker.raw() as raw:
        raw.ask(HANDSHAKE_0)
        with contextlib.suppress(ConnectionError):
            raw.send(b"x" * 600_000)
        assert raw.receive() is None


@pytest.mark.scenario("security-18")
@pytest.mark.parametrize("name", ["alice", "eve"])
def test_a_wrong_password_in_sasl_authenticate(broker: SaslBroker, name: str) -> None:
    with broker.raw() as raw:
        raw.ask(HANDSHAKE_1)
        assert raw.ask(authenticate(plain_token(name, "wrong"))) == (
            bytes.fromhex("00000003 003a 0033")
            + b"Authentication failed: Invalid username or password"
            + bytes(4)
        )
        assert raw.receive() is None


def test_large_requests_after_the_login(broker: SaslBroker) -> None:
    broker.create_topic("large")
    with broker.raw() as raw, broker.wire() as wire:
        raw.ask(HANDSHAKE_1)
        raw.ask(authenticate(RIGHT))
        raw.ask(produce_frame("large", 0, b"x" * 900_000, 1)[4:])  # refused, but read
        assert wire.offset("large", 0) == 0


@pytest.mark.scenario("security-23")
def test_nothing_is_executed_before_the_login(broker: SaslBroker) -> None:
    broker.create_topic("locked")
    for acks in (0, 1):
        frame = produce_frame("locked", 0, entry(None, b"v"), acks)
        for before in ([], [VERSIONS_0], [HANDSHAKE_0], [HANDSHAKE_1]):
            with broker.raw() as raw:
                for each in before:
                    raw.ask(each)
                raw.sock.sendall(frame)
                assert raw.receive() is None
    with broker.wire() as wire:
        assert wire.offset("locked", 0) == 0


@pytest.mark.scenario("security-23")
def test_the_plain_port_knows_no_login(broker: SaslBroker) -> None:
    with Raw(broker.port, 30, "127.0.0.1") as raw:
        assert raw.ask(HANDSHAKE_0) is None


# Users that kafka-configs made


@pytest.mark.scenario("security-19")
@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram(broker: SaslBroker, mechanism: str) -> None:
    log_in(broker, mechanism, "carol", "pencil")
    for name, password in (("carol", "wrong"), ("eve", "pencil")):
        with pytest.raises(LoginError, match="due to invalid credentials"):
            log_in(broker, mechanism, name, password)


@pytest.mark.scenario("security-19")
def test_users_are_changed_through_a_broker(broker: SaslBroker, our_tools: Tools) -> None:
    """By librdkafka and by our tool: both see what the other did, and logins follow."""

    def logs_in(password: str) -> bool:
        return not refused(broker, "SCRAM-SHA-512", "erin", password)

    admin = AdminClient(confluent(broker, "PLAIN", "admin", USERS["admin"]))
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    new = UserScramCredentialUpsertion("erin", info, b"pencil")
    [made] = admin.alter_user_scram_credentials([new]).values()
    assert made.result(60) is None
    wait_until("the first password", 10, lambda: logs_in("pencil"))
    command = ("--bootstrap-server", broker.address, "--entity-type", "users")
    command += ("--entity-name", "erin")
    line = "SCRAM credential configs for user-principal 'erin' are SCRAM-SHA-512=iterations="
    assert our_tools.run(CONFIGS, *command, "--describe").lines == [f"{line}8192"]
    added = ("--add-config", "SCRAM-SHA-512=[password=eraser]")
    done = our_tools.run(CONFIGS, *command, "--alter", *added)
    assert done.lines == ["Completed updating config for user erin."], done.err
    wait_until("the second password", 10, lambda: logs_in("eraser"))
    assert not logs_in("pencil")
    [found] = admin.describe_user_scram_credentials(["erin"]).values()
    [told] = found.result(60).scram_credential_infos
    assert (told.mechanism, told.iterations) == (ScramMechanism.SCRAM_SHA_512, 4096)
    gone = UserScramCredentialDeletion("erin", ScramMechanism.SCRAM_SHA_512)
    [deleted] = admin.alter_user_scram_credentials([gone]).values()
    assert deleted.result(60) is None
    wait_until("nobody", 10, lambda: not logs_in("eraser"))
    [again] = admin.alter_user_scram_credentials([gone]).values()
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        again.result(60)
    assert caught.value.args[0].name() == "RESOURCE_NOT_FOUND"


@pytest.mark.scenario("security-22")
def test_changes_count_within_a_second_on_every_broker(
    broker: SaslBroker, chroot: str, our_tools: Tools, tmp_path: Path
) -> None:
    other = SaslBroker(tmp_path, chroot, 1)
    other.start(_PATIENCE_S)
    brokers = (broker, other)
    try:
        with broker.raw() as raw:
            raw.ask(HANDSHAKE_1)
            raw.ask(authenticate(RIGHT))
            for password in ("one", "two"):
                added = f"SCRAM-SHA-256=[password={password}]"
                broker.set_user(our_tools, "dave", "--add-config", added)
                end = time.monotonic() + 1
                for each in brokers:
                    _until(end, lambda: not refused(each, SCRAM[0], "dave", password))  # noqa: B023
            assert refused(other, SCRAM[0], "dave", "one")
            broker.set_user(our_tools, "dave", "--delete-config", "SCRAM-SHA-256")
            end = time.monotonic() + 1
            for each in brokers:
                _until(end, lambda: refused(each, SCRAM[0], "dave", "two"))  # noqa: B023
            assert raw.ask(METADATA)  # who is in stays in
    finally:
        other.kill()


def _until(end: float, probe: Callable[[], bool]) -> None:
    while not probe():
        assert time.monotonic() < end, "not within a second"


LOGINS = [
    ("PLAIN", "alice", USERS["alice"]),
    ("SCRAM-SHA-256", "carol", "pencil"),
    ("SCRAM-SHA-512", "carol", "pencil"),
]


def confluent(broker: SaslBroker, mechanism: str, name: str, password: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.sasl_address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
        "log_level": 0,
    }


def kafka_python(broker: SaslBroker, mechanism: str, name: str, password: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": broker.sasl_address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": name,
        "sasl_plain_password": password,
    }


# Unmodified clients of today, which are told the listener that they came in on


@pytest.mark.scenario("security-19")
@pytest.mark.parametrize(("mechanism", "name", "password"), LOGINS)
def test_confluent_kafka(broker: SaslBroker, mechanism: str, name: str, password: str) -> None:
    topic = f"confluent-{mechanism.lower()}"
    broker.create_topic(topic)
    config = confluent(broker, mechanism, name, password)
    producer = confluent_kafka.Producer(config)
    producer.produce(topic, b"value")
    assert producer.flush(60) == 0
    group = {"group.id": f"g-{mechanism}", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**config, **group})
    try:
        consumer.subscribe([topic])
        message = consumer.poll(60)
        assert message is not None
        assert (message.error(), message.value()) == (None, b"value")
    finally:
        consumer.close()


def test_confluent_kafka_with_a_wrong_password(broker: SaslBroker) -> None:
    errors: list[confluent_kafka.KafkaError] = []
    config = confluent(broker, "PLAIN", "alice", "wrong")
    producer = confluent_kafka.Producer({**config, "error_cb": errors.append})
    end = time.monotonic() + 30
    while not errors and time.monotonic() < end:
        producer.poll(0.5)
    assert errors[0].code() == confluent_kafka.KafkaError._AUTHENTICATION
    assert "Authentication failed: Invalid username or password" in errors[0].str()


@pytest.mark.scenario("security-19")
@pytest.mark.parametrize(("mechanism", "name", "password"), LOGINS)
def test_kafka_python(broker: SaslBroker, mechanism: str, name: str, password: str) -> None:
    topic = f"kafka-python-{mechanism.lower()}"
    broker.create_topic(topic)
    config = kafka_python(broker, mechanism, name, password)
    producer = kafka.KafkaProducer(**config)
    producer.send(topic, b"value").get(60)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, **config, auto_offset_reset="earliest", consumer_timeout_ms=60_000
    )
    assert next(consumer).value == b"value"
    consumer.close()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_kafka_python_with_a_wrong_password(broker: SaslBroker, mechanism: str) -> None:
    config = kafka_python(broker, mechanism, "carol", "wrong")
    with pytest.raises(kafka.errors.KafkaError):
        kafka.KafkaProducer(**config, api_version_auto_timeout_ms=10_000)


@pytest.mark.parametrize(("mechanism", "name", "password"), LOGINS)
def test_our_producers_and_tools(
    broker: SaslBroker, our_tools: Tools, tmp_path: Path,
    mechanism: str, name: str, password: str,
) -> None:  # fmt: skip
    topic = f"ours-{mechanism.lower()}"
    module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    config = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas(name, password, module),
    }
    (tmp_path / "client.properties").write_text(properties(config))
    topics = (
        "kafka.admin.TopicCommand", "--bootstrap-server", broker.sasl_address,
        "--command-config", str(tmp_path / "client.properties"),
    )  # fmt: skip
    created = our_tools.run(*topics, "--create", "--topic", topic)
    assert created.code == 0, created.out
    with KafkaProducer({"bootstrap.servers": broker.sasl_address, **config}) as producer:
        assert producer.send(topic, value=b"value").result(60).offset == 0
    assert topic in our_tools.run(*topics, "--list").lines


@pytest.mark.scenario("security-19")
def test_java(broker: SaslBroker, tmp_path: Path) -> None:
    try:
        class_path = programs.tools_class_path()
    except builds.MissingError as error:
        pytest.skip(str(error))
    topic = "java"
    broker.create_topic(topic)
    address = ("--bootstrap-server", broker.sasl_address, "--topic", topic)

    def run(name: str, password: str, tool: str, *args: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "client.properties"
        file.write_text(
            properties(
                {
                    "security.protocol": "SASL_PLAINTEXT",
                    "sasl.mechanism": "SCRAM-SHA-512",
                    "sasl.jaas.config": jaas(name, password, SCRAM_MODULE),
                    "max.block.ms": 20000,
                }
            )
        )
        return subprocess.run(
            ["java", *builds.HEAP, "-cp", class_path, tool, *address, *args, str(file)],
            input="value\n", capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip

    producer = "org.apache.kafka.tools.ConsoleProducer"
    done = run("carol", "pencil", producer, "--command-config")
    assert done.returncode == 0, done.stderr
    consumer = ("--from-beginning", "--max-messages", "1", "--command-config")
    done = run("carol", "pencil", "org.apache.kafka.tools.consumer.ConsoleConsumer", *consumer)
    assert done.stdout.splitlines() == ["value"], done.stderr
    run("carol", "wrong", producer, "--command-config")  # its log goes nowhere
    with broker.wire() as wire:
        assert wire.offset(topic, 0) == 1


@pytest.mark.scenario("security-54")
def test_brokers_log_in_at_each_other(
    zookeeper: ZooKeeper, tmp_path: Path, our_tools: Tools
) -> None:
    chroot = f"{zookeeper.connect}/sasl-between"
    users = {
        "security_inter_broker_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism_inter_broker_protocol": "SCRAM-SHA-256",
        "listener_name_sasl__plaintext_scram-sha-256_sasl_jaas_config": jaas(
            "admin", "broker-secret", SCRAM_MODULE
        ),
    }
    brokers = [SaslBroker(tmp_path / str(number), chroot, number, **users) for number in (0, 1)]
    added = ("--add-config", "SCRAM-SHA-256=[password=broker-secret]")
    client = zookeeper.client()
    try:
        client.ensure_path("/sasl-between")
    finally:
        client.stop()
        client.close()
    brokers[0].set_user(our_tools, "admin", *added)
    try:
        for each in brokers:
            each.start()
        brokers[0].create_topic("replicated", replicas=[0, 1])
        with brokers[0].wire() as wire:
            assert wire.produce("replicated", 0, entry(None, b"v"), acks=-1) == 0
        assert all("Failed authentication" not in each.log for each in brokers)
        assert all("broker-secret" not in each.log for each in brokers)
    finally:
        for each in brokers:
            each.kill()


# Others are served meanwhile, memory and log stay bounded


@pytest.mark.scenario("security-27")
def test_a_login_that_never_ends(broker: SaslBroker) -> None:
    begin = time.monotonic()
    with broker.raw(timeout=20) as raw:
        raw.sock.sendall((1000).to_bytes(4, "big"))
        raw.sock.settimeout(1)
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - begin < 20:
                raw.sock.sendall(b"\0")
                with contextlib.suppress(TimeoutError):
                    if raw.sock.recv(1) == b"":
                        break
    assert 8 < time.monotonic() - begin < 16


@pytest.mark.scenario("security-27")
def test_many_half_open_connections_with_large_tokens(broker: SaslBroker) -> None:
    before = broker.memory()
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            raw = stack.enter_context(broker.raw())
            raw.sock.setblocking(False)
            raw.sock.send((500_000).to_bytes(4, "big") + bytes(150_000))
        log_in(broker, "PLAIN", "bob", USERS["bob"])
        assert broker.memory() - before < 120 << 20
        time.sleep(13)
        log_in(broker, "PLAIN", "bob", USERS["bob"])


@pytest.mark.scenario("security-25")
def test_a_flood_of_wrong_logins(broker: SaslBroker) -> None:
    lines = broker.log.count("Failed authentication with")
    stopping, tried = threading.Event(), [0]
    memory = broker.memory()

    def flood() -> None:
        while not stopping.is_set():
            with contextlib.suppress(OSError), broker.raw(5, "127.0.0.2") as raw:
                raw.send(HANDSHAKE_1)
                raw.send(authenticate(plain_token(f"user{tried[0]}", "wrong")))
                tried[0] += 1
                raw.receive()
                raw.receive()
                raw.receive()

    threads = [threading.Thread(target=flood) for _ in range(60)]
    for thread in threads:
        thread.start()
    try:
        wait_until("a flood", 60, lambda: tried[0] > 300)
        took = []
        for _ in range(5):
            begin = time.monotonic()
            log_in(broker, "PLAIN", "bob", USERS["bob"])
            took.append(time.monotonic() - begin)
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    assert min(took) < 1
    assert broker.log.count("Failed authentication with") - lines < 5
    assert broker.memory() - memory < 64 << 20
    assert "alice-secret" not in broker.log


@pytest.mark.scenario("security-25")
@pytest.mark.slow
def test_25_ten_thousand_wrong_logins_as_fast_as_two_processes_send_them(
    broker: SaslBroker, our_tools: Tools
) -> None:
    """Most end at the door, where the rate of new connections of an address is limited."""

    def limit(*words: str) -> None:
        kind = ("--alter", "--entity-type", "ips", "--entity-default")
        done = our_tools.run(CONFIGS, "--zookeeper", broker.zookeeper, *kind, *words)
        assert done.code == 0, done.err

    def logged_in() -> float:
        begin = time.monotonic()
        log_in(broker, "PLAIN", "bob", USERS["bob"])
        return time.monotonic() - begin

    undisturbed = statistics.median(logged_in() for _ in range(5))
    limit("--add-config", "connection_creation_rate=50")
    lines, memory = broker.log.count("Failed authentication with"), broker.memory()
    command = [sys.executable, "-m", "integration.login_flood", str(broker.sasl_port)]
    began, took = time.monotonic(), list[float]()
    floods = [subprocess.Popen([*command, "127.0.0.3", "5000"], cwd=TREE) for _ in range(2)]
    try:
        while any(each.poll() is None for each in floods):
            took.append(logged_in())
            time.sleep(0.05)
    finally:
        for each in floods:
            each.kill()
            each.wait()
        limit("--delete-config", "connection_creation_rate")
    seconds = time.monotonic() - began
    grown, written = broker.memory() - memory, broker.log.count("Failed authentication with")
    print(
        f"10,000 wrong logins in {seconds:.1f} s: {len(took)} right ones took "
        f"{statistics.median(took):.2f} s, {max(took):.2f} s at most, {undisturbed:.2f} s before; "
        f"{grown / 1e6:+.0f} MB of memory, {written - lines} lines in the log"
    )
    assert [each.returncode for each in floods] == [0, 0]
    assert len(took) > 1
    assert statistics.median(took) < max(1, 20 * undisturbed)  # where the processor is busy
    assert written - lines <= 3 + seconds / 60
    assert grown < 64 << 20
