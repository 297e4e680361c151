"""Logins against a broker: the bytes of Kafka 2.8.2, today's clients, and hostile peers."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.harness import Tools, ZooKeeper
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
from kafka08.network.login import LoginError, SaslConnector
from kafka08.runtime import ThreadRuntime
from kafka08.security import jaas as jaas_text
from kafka08.security.sides import client_side

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
    broker.start()
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


class TestBytes:
    """What Kafka 2.8.2 answered to the same frames."""

    def test_raw_token(self, broker: SaslBroker) -> None:
        with broker.raw() as raw:
            assert raw.ask(VERSIONS_0)
            assert (raw.ask(HANDSHAKE_0) or b"")[:6] == bytes.fromhex("000000020000")
            assert raw.ask(RIGHT) == b""
            assert (raw.ask(METADATA) or b"")[:4] == bytes.fromhex("00000009")

    @pytest.mark.parametrize(
        "token",
        [
            plain_token("alice", "wrong"),
            plain_token("", USERS["alice"]),
            plain_token("alice", USERS["alice"], "bob"),
            b"alice",
        ],
    )
    def test_wrong_raw_tokens(self, broker: SaslBroker, token: bytes) -> None:
        with broker.raw() as raw:
            raw.ask(HANDSHAKE_0)
            begin = time.monotonic()
            assert raw.ask(token) is None
            assert time.monotonic() - begin >= DELAY_S

    def test_a_token_of_600_kb(self, broker: SaslBroker) -> None:
        with broker.raw() as raw:
            raw.ask(HANDSHAKE_0)
            with contextlib.suppress(ConnectionError):
                raw.send(b"x" * 600_000)
            assert raw.receive() is None

    @pytest.mark.parametrize("name", ["alice", "eve"])
    def test_a_wrong_password_in_sasl_authenticate(self, broker: SaslBroker, name: str) -> None:
        with broker.raw() as raw:
            raw.ask(HANDSHAKE_1)
            assert raw.ask(authenticate(plain_token(name, "wrong"))) == (
                bytes.fromhex("00000003 003a 0033")
                + b"Authentication failed: Invalid username or password"
                + bytes(4)
            )
            assert raw.receive() is None

    def test_large_requests_after_the_login(self, broker: SaslBroker) -> None:
        broker.create_topic("large")
        with broker.raw() as raw, broker.wire() as wire:
            raw.ask(HANDSHAKE_1)
            raw.ask(authenticate(RIGHT))
            raw.ask(produce_frame("large", 0, b"x" * 900_000, 1)[4:])  # refused, but read
            assert wire.offset("large", 0) == 0

    def test_nothing_is_executed_before_the_login(self, broker: SaslBroker) -> None:
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

    def test_the_plain_port_knows_no_login(self, broker: SaslBroker) -> None:
        raw = Raw(broker.port, 30, "127.0.0.1")
        assert raw.ask(HANDSHAKE_0) is None


class TestUsers:
    """Users that kafka-configs made."""

    @pytest.mark.parametrize("mechanism", SCRAM)
    def test_scram(self, broker: SaslBroker, mechanism: str) -> None:
        log_in(broker, mechanism, "carol", "pencil")
        for name, password in (("carol", "wrong"), ("eve", "pencil")):
            with pytest.raises(LoginError, match="due to invalid credentials"):
                log_in(broker, mechanism, name, password)

    def test_changes_count_within_a_second_on_every_broker(
        self, broker: SaslBroker, chroot: str, our_tools: Tools, tmp_path: Path
    ) -> None:
        other = SaslBroker(tmp_path, chroot, 1)
        other.start()
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


class TestHostile:
    """Others are served meanwhile, memory and log stay bounded."""

    def test_a_login_that_never_ends(self, broker: SaslBroker) -> None:
        begin = time.monotonic()
        with broker.raw(timeout=20) as raw:
            raw.sock.settimeout(1)
            with contextlib.suppress(ConnectionError):
                while time.monotonic() - begin < 20:
                    raw.sock.sendall(b"\0")
                    with contextlib.suppress(TimeoutError):
                        if raw.sock.recv(1) == b"":
                            break
        assert 8 < time.monotonic() - begin < 16

    def test_many_half_open_connections_with_large_tokens(self, broker: SaslBroker) -> None:
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

    def test_a_flood_of_wrong_logins(self, broker: SaslBroker) -> None:
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
