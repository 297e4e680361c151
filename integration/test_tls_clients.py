"""Clients over TLS: kcat, Java of today, and the original's JVM tools behind stunnel."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import kafka
import pytest

from integration import builds
from integration.certificates import PASSWORD, Authority, as_pkcs12
from integration.harness import Broker, Process, Tools, ZooKeeper, free_port, properties
from integration.later import programs
from integration.rest_proxy import RestProxy
from integration.sasl import PLAIN_MODULE, SCRAM_MODULE, USERS, jaas
from integration.tls_wire import TlsWire
from integration.wire import entry, wait_until

WAIT_S = 120
PRODUCER, CONSUMER = "kafka.tools.ConsoleProducer", "kafka.tools.ConsoleConsumer"
JAVA_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
JAVA_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
# kafka-python asks for any version of TLS, which Python calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:ssl.PROTOCOL_TLS:DeprecationWarning")


class Secure:
    """A broker with ports for TLS with client certificates, and for logins over TLS."""

    def __init__(self, directory: Path, connect: str) -> None:
        self.authority = Authority(directory / "authority")
        self.client = self.authority.issue("client")
        self.tls_port, self.sasl_port, port = free_port(), free_port(), free_port()
        users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
        self.broker = Broker(
            "ours",
            directory / "broker",
            connect,
            port=port,
            props={
                "listeners": f"PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{self.tls_port},"
                f"SASL_SSL://127.0.0.1:{self.sasl_port}",
                "ssl.keystore.location": self.authority.issue("broker"),
                "ssl.truststore.location": self.authority.path,
                "listener.name.ssl.ssl.client.auth": "required",
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
                "sasl.jaas.config": f"{PLAIN_MODULE} required {users};",
                "num.partitions": 1,
                "message.max.bytes": 2 << 20,
                "replica.fetch.max.bytes": 4 << 20,
                "offsets.topic.num.partitions": 1,
                "offsets.topic.replication.factor": 1,
                "group.initial.rebalance.delay.ms": 0,
            },
        )

    @property
    def tls_address(self) -> str:
        return f"127.0.0.1:{self.tls_port}"


@pytest.fixture(scope="module")
def secure(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    found = Secure(tmp_path_factory.mktemp("secure"), f"{zookeeper.connect}/tls-clients")
    found.broker.start()
    yield found
    found.broker.kill()


@pytest.mark.scenario("security-9")
@pytest.mark.parametrize("settings", [(), ("broker.version.fallback=0.8.2.2",)], ids=["new", "old"])
def test_9_kcat(secure: Secure, settings: tuple[str, ...]) -> None:
    """kafka-python reads the lines that it writes, and the reverse; offsets are committed."""
    program = shutil.which("kcat") or shutil.which("kafkacat")
    if program is None:
        pytest.skip("no kcat on PATH")
    topic = f"kcat{len(settings)}"
    secure.broker.create_topic(topic)
    wanted = [*settings, *(["api.version.request=false"] if settings else [])]
    wanted += [
        "security.protocol=ssl",
        f"ssl.ca.location={secure.authority.path}",
        f"ssl.certificate.location={secure.client}",
        f"ssl.key.location={secure.client}",
    ]
    options = [word for each in wanted for word in ("-X", each)]
    command = [program, "-b", secure.tls_address, "-t", topic, *options]
    lines = [f"line {number} ä" for number in range(100)]
    written = subprocess.run(
        [*command, "-P"], input="\n".join(lines), text=True, timeout=WAIT_S, capture_output=True
    )
    assert written.returncode == 0, written.stderr
    tls = {
        "bootstrap_servers": secure.tls_address,
        "api_version": (0, 8, 2),
        "security_protocol": "SSL",
        "ssl_cafile": str(secure.authority.path),
        "ssl_certfile": str(secure.client),
        "ssl_keyfile": str(secure.client),
    }
    reader = kafka.KafkaConsumer(
        topic, **tls, group_id=f"g{topic}", auto_offset_reset="earliest",
        consumer_timeout_ms=WAIT_S * 1000, enable_auto_commit=False,
    )  # fmt: skip
    assert [next(reader).value.decode() for _ in lines] == lines
    reader.commit()
    reader.close()
    with secure.broker.wire() as wire:
        assert wire.committed(f"g{topic}", topic, 0) == (100, 0)
    writer = kafka.KafkaProducer(**tls)
    writer.send(topic, b"from kafka-python").get(WAIT_S)
    writer.close()
    read = subprocess.run(
        [*command, "-C", "-o", "beginning", "-e", "-q"], capture_output=True, timeout=WAIT_S
    )
    assert read.stdout.decode().splitlines() == [*lines, "from kafka-python"]


@pytest.mark.scenario("security-9")
@pytest.mark.parametrize("version", programs.JAVA)
def test_9_java(secure: Secure, version: str, our_tools: Tools, tmp_path: Path) -> None:
    """The console tools, with a certificate, and with a login over TLS."""
    try:
        class_path = programs.tools_class_path(version)
    except builds.MissingError as error:
        pytest.skip(str(error))
    user = ("--alter", "--entity-type", "users", "--entity-name", "carol")
    done = our_tools.run(
        "kafka.admin.ConfigCommand",
        *("--zookeeper", secure.broker.zookeeper, *user),
        *("--add-config", "SCRAM-SHA-512=[password=pencil]"),
    )
    assert done.code == 0, done.err
    trusted = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": secure.authority.path,
    }
    scram = {"sasl.mechanism": "SCRAM-SHA-512", **trusted, "security.protocol": "SASL_SSL"}
    ways: dict[str, tuple[int, dict[str, object]]] = {
        "ssl": (
            secure.tls_port,
            {
                "security.protocol": "SSL",
                **trusted,
                "ssl.keystore.type": "PKCS12",
                "ssl.keystore.location": as_pkcs12(secure.client),
                "ssl.keystore.password": PASSWORD,
            },
        ),
        "plain": (
            secure.sasl_port,
            {
                **trusted,
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": jaas("alice", USERS["alice"]),
            },
        ),
        "scram": (
            secure.sasl_port,
            {**scram, "sasl.jaas.config": jaas("carol", "pencil", SCRAM_MODULE)},
        ),
    }
    for way, (port, settings) in ways.items():
        topic = f"java-{version}-{way}"
        secure.broker.create_topic(topic)
        config = tmp_path / f"{way}.properties"
        config.write_text(properties(settings))
        is_old = version.startswith("3.")
        producer = PRODUCER if is_old else JAVA_PRODUCER
        options = (
            ("--producer.config", "--consumer.config") if is_old else ("--command-config",) * 2
        )

        def run(tool: str, *words: str, stdin: str = "") -> str:
            done = subprocess.run(
                ["java", *builds.HEAP, "-cp", class_path, tool, *words],
                input=stdin, capture_output=True, text=True, timeout=WAIT_S, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            return done.stdout

        where = ("--bootstrap-server", f"127.0.0.1:{port}", "--topic", topic)
        run(producer, *where, options[0], str(config), stdin="one\ntwo\n")
        read = ("--from-beginning", "--max-messages", "2", options[1], str(config))
        assert run(JAVA_CONSUMER, *where, *read).splitlines() == ["one", "two"], way


def _stunnel() -> str | None:
    return shutil.which("stunnel") or shutil.which("stunnel4")


class Stunnel(Process):
    """Plain connections in, TLS connections with a certificate out."""

    def __init__(self, program: str, directory: Path, config: str) -> None:
        directory.mkdir()
        path = directory / "stunnel.conf"
        path.write_text(config)
        super().__init__("stunnel", [program, str(path)], directory)


@pytest.mark.scenario("security-10")
@pytest.mark.original
def test_10_the_originals_console_tools_behind_stunnel(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """Brokers are at one address, and clients are sent to another, where stunnel listens."""
    program = _stunnel()
    if program is None:
        pytest.skip("no stunnel on PATH")
    connect = f"{zookeeper.connect}/stunnel"
    authority = Authority(tmp_path / "authority")
    client = authority.issue("client")
    plain, tls, internal = free_port(), free_port(), free_port()
    names = {"PLAINTEXT": plain, "STUNNEL": tls, "INTERNAL": internal}
    seen = {"PLAINTEXT": "127.0.0.2", "STUNNEL": "127.0.0.2", "INTERNAL": "127.0.0.1"}
    broker = Broker(
        "ours",
        tmp_path / "broker",
        connect,
        port=plain,
        props={
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in names.items()),
            "advertised.listeners": ",".join(
                f"{name}://{seen[name]}:{port}" for name, port in names.items()
            ),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,STUNNEL:SSL,INTERNAL:SSL",
            "inter.broker.listener.name": "INTERNAL",
            "ssl.keystore.location": authority.issue("broker"),
            "ssl.truststore.location": authority.path,
            "listener.name.stunnel.ssl.client.auth": "required",
        },
    )
    launch(broker)
    broker.start()
    broker.create_topic("t")
    service = (
        f"client = yes\nconnect = 127.0.0.1:{tls}\ncert = {client}\nCAfile = {authority.path}\n"
        "verifyChain = yes\ncheckIP = 127.0.0.1\n"
    )
    stunnel = Stunnel(
        program,
        tmp_path / "stunnel",
        "foreground = yes\npid =\n"
        f"[by-metadata]\naccept = 127.0.0.2:{tls}\n{service}"
        f"[by-zookeeper]\naccept = 127.0.0.2:{plain}\n{service}",
    )
    launch(stunnel)
    stunnel.spawn()
    stunnel.wait_for("Configuration successful")
    tools = Tools("original", tmp_path / "tools")
    produce = ("--broker-list", f"127.0.0.2:{tls}", "--topic", "t", "--sync")
    produce += ("--request-required-acks", "1")
    lines = [f"line {number}" for number in range(200)]
    sent = tools.run(PRODUCER, *produce, stdin="".join(f"{line}\n" for line in lines))
    assert "Exception" not in sent.out + sent.err
    consume = ("--zookeeper", connect, "--topic", "t", "--from-beginning", "--max-messages", "200")
    assert tools.run(CONSUMER, *consume).lines == lines
    assert stunnel.log.count("connected remote server") >= 3
    stunnel.kill()
    refused = tools.run(
        PRODUCER, *produce, "--message-send-max-retries", "0", stdin="not by another way\n"
    )
    assert "FailedToSendMessageException" in refused.out + refused.err
    with broker.wire() as wire:
        assert wire.offset("t", 0) == 200


MESSAGE_BYTES = 1 << 20
MESSAGES, ROUNDS = 100, 10


@pytest.mark.scenario("security-11")
@pytest.mark.slow
def test_11_large_fetches(secure: Secure) -> None:
    """1,000 fetches of 1 MiB: the right bytes, level memory, and the processor time."""
    broker = secure.broker
    broker.create_topic("large")
    sent = [os.urandom(MESSAGE_BYTES) for _ in range(MESSAGES)]
    with broker.wire() as wire:
        for value in sent:
            wire.produce("large", 0, entry(None, value))
    with TlsWire(secure.tls_port, secure.authority.path, secure.client) as wire:
        _read_round(wire, sent)
        memory, cpu, began = broker.memory(), broker.cpu_seconds(), time.monotonic()
        for _ in range(ROUNDS):
            _read_round(wire, sent)
        seconds = time.monotonic() - began
    megabytes = ROUNDS * MESSAGES * MESSAGE_BYTES / 1e6
    per_mb = (broker.cpu_seconds() - cpu) / megabytes * 1000
    grown = broker.memory() - memory
    print(
        f"{megabytes / seconds:.0f} MB/s, {per_mb:.2f} ms of processor time per MB, "
        f"{grown / 1e6:+.0f} MB of memory"
    )
    assert grown < 32 << 20
    assert per_mb < 4


def _read_round(wire: TlsWire, sent: list[bytes]) -> None:
    for offset, value in enumerate(sent):
        whole = entry(None, value)
        _, data = wire.fetch("large", 0, offset, len(whole))
        assert data[8:] == whole[8:]  # behind the offset


def test_a_wire_without_a_certificate_is_refused(secure: Secure) -> None:
    def refused() -> bool:
        try:
            with TlsWire(secure.tls_port, secure.authority.path) as wire:
                wire.offset("none", 0)
        except OSError:
            return True
        return False

    wait_until("a refusal", WAIT_S, refused)


def test_the_rest_proxy(secure: Secure, zookeeper: ZooKeeper, tmp_path: Path) -> None:
    """It writes and reads by TLS with its certificate, and by a login. With another authority it
    cannot: nothing goes to the plain port."""
    topic = "rest"
    secure.broker.create_topic(topic)
    tls = {
        "client.security.protocol": "SSL",
        "client.ssl.truststore.location": secure.authority.path,
        "client.ssl.keystore.location": secure.client,
    }
    login = {
        "client.security.protocol": "SASL_SSL",
        "client.ssl.truststore.location": secure.authority.path,
        "client.sasl.mechanism": "PLAIN",
        "client.sasl.jaas.config": jaas("alice", USERS["alice"]),
    }
    other = Authority(tmp_path / "other")
    connect = f"{zookeeper.connect}/tls-clients"
    body = {"records": [{"value": "aGVsbG8="}]}
    binary = "application/vnd.kafka.binary.v1+json"
    for number, settings in enumerate((tls, login)):
        proxy = RestProxy(tmp_path / f"proxy{number}", connect, settings).start()
        try:
            written = proxy.ask("POST", f"/topics/{topic}", body, binary)
            assert written.body["offsets"][0]["offset"] == number, written
            read = proxy.ask("GET", f"/topics/{topic}/partitions/0/messages?offset=0&count=9")
            assert [each["value"] for each in read.body] == ["aGVsbG8="] * (number + 1)
            made = proxy.ask("POST", f"/consumers/g{number}", {"auto.offset.reset": "smallest"})
            found: list[object] = []
            deadline = time.monotonic() + WAIT_S
            while not found and time.monotonic() < deadline:
                found = proxy.ask("GET", f"{made.body['base_uri']}/topics/{topic}").body
            assert found
        finally:
            assert proxy.stop() == 143
    wrong = {**tls, "client.ssl.truststore.location": other.path}
    proxy = RestProxy(tmp_path / "wrong", connect, wrong).start()
    try:
        answered = proxy.ask("GET", f"/topics/{topic}/partitions/0/messages?offset=0")
        assert answered.status == 500, answered
    finally:
        proxy.stop()
