"""Logins as a broker's settings have them; failed ones are answered late and told briefly."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kafka08.errors import ConfigError
from kafka08.network.client_login import SaslConnector
from kafka08.network.failures import Failures
from kafka08.network.login import LoginFailed
from kafka08.network.peer import Peer
from kafka08.security.jaas import PLAIN_MODULE, SCRAM_MODULE
from kafka08.server.access.logins import LoginSettings
from kafka08.settings.broker import BrokerConfig
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from tests.network.test_login import HANDSHAKE_1, RIGHT, WRONG, authenticate, raw

USERS = f'{PLAIN_MODULE} required username="admin" password="a" user_alice="alice-secret";'
LISTENERS = {
    "broker.id": "0",
    "zookeeper.connect": "z:1",
    "listeners": "PLAINTEXT://:9092,SASL_PLAINTEXT://:9093",
}


def settings(**more: str) -> LoginSettings:
    return LoginSettings(config(**more))


def config(**more: str) -> BrokerConfig:
    given = {key.replace("_", "."): value for key, value in more.items()}
    return BrokerConfig.from_properties({**LISTENERS, **given})


def test_each_listener_has_mechanisms_and_users() -> None:
    given = {
        **LISTENERS,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,A:SASL_PLAINTEXT,B:SASL_PLAINTEXT",
        "listeners": "PLAINTEXT://:9092,A://:9093,B://:9094",
        "sasl.enabled.mechanisms": "scram-sha-512",
        "listener.name.b.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.b.plain.sasl.jaas.config": USERS,
    }
    found = LoginSettings(BrokerConfig.from_properties(given))
    assert found.mechanisms == {"A": ("SCRAM-SHA-512",), "B": ("PLAIN",)}
    assert found.users["A"] == {}
    assert found.users["B"] == {"alice": "alice-secret"}
    assert found.credentials(Session(FakeZooKeeper()), list) is not None


def test_lifetimes_of_listeners_and_mechanisms() -> None:
    given = {
        **LISTENERS,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,A:SASL_PLAINTEXT,B:SASL_PLAINTEXT",
        "listeners": "PLAINTEXT://:9092,A://:9093,B://:9094",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "connections.max.reauth.ms": "1000",
        "listener.name.b.connections.max.reauth.ms": "2000",
        "listener.name.b.scram-sha-512.connections.max.reauth.ms": "3000",
    }
    found = LoginSettings(BrokerConfig.from_properties(given))
    assert found.lifetimes_ms == {
        "A": {"SCRAM-SHA-256": 1000, "SCRAM-SHA-512": 1000},
        "B": {"SCRAM-SHA-256": 2000, "SCRAM-SHA-512": 3000},
    }
    given["listener.name.b.scram-sha-512.connections.max.reauth.ms"] = "-1"
    with pytest.raises(ConfigError, match=r"listener\.name\.b\.scram-sha-512\.connections\.max"):
        LoginSettings(BrokerConfig.from_properties(given))


def test_a_listener_for_plain_alone_needs_no_credentials_of_zookeeper() -> None:
    found = settings(sasl_enabled_mechanisms="PLAIN", sasl_jaas_config=USERS)
    assert found.credentials(Session(FakeZooKeeper()), list) is None


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({}, "sasl.enabled.mechanisms has no value, and the listener SASL_PLAINTEXT needs one"),
        ({"sasl_enabled_mechanisms": "GSSAPI"}, "sasl.enabled.mechanisms has GSSAPI"),
        (
            {"sasl_enabled_mechanisms": "PLAIN"},
            "listener.name.sasl_plaintext.plain.sasl.jaas.config has no value",
        ),
        (
            {"sasl_enabled_mechanisms": "PLAIN", "sasl_jaas_config": "x"},
            "listener.name.sasl_plaintext.plain.sasl.jaas.config: a control flag",
        ),
        (
            {
                "sasl_enabled_mechanisms": "PLAIN",
                "sasl_jaas_config": f"{SCRAM_MODULE} required;",
            },
            "and PLAIN needs",
        ),
        (
            {
                "sasl_enabled_mechanisms": "SCRAM-SHA-256",
                "security_inter_broker_protocol": "SASL_PLAINTEXT",
            },
            "sasl.mechanism.inter.broker.protocol is PLAIN, and sasl.enabled.mechanisms",
        ),
        (
            {
                "sasl_enabled_mechanisms": "PLAIN",
                "security_inter_broker_protocol": "SASL_PLAINTEXT",
                "sasl_jaas_config": f'{PLAIN_MODULE} required user_a="b";',
            },
            "no username or no password",
        ),
    ],
)
def test_settings_that_make_no_sense_are_named(more: dict[str, str], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        settings(**more)


def test_the_delay_is_below_the_idle_limit() -> None:
    with pytest.raises(ConfigError, match=r"connection\.failed\.authentication\.delay\.ms"):
        config(connections_max_idle_ms="100")


def test_brokers_log_in_at_each_other() -> None:
    found = settings(
        sasl_enabled_mechanisms="PLAIN",
        security_inter_broker_protocol="SASL_PLAINTEXT",
        sasl_jaas_config=USERS,
    )
    assert isinstance(found.connector(FakeRuntime()), SaslConnector)


class LoginRig:
    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.zk: Any = Session(FakeZooKeeper())
        given = config(sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-256", sasl_jaas_config=USERS)
        self.failures = Failures(self.runtime.clock)
        found = LoginSettings(given)
        self.logins = found.by_listener(
            self.runtime, found.credentials(self.zk, list), list, self.failures
        )
        self.served: list[bytes] = []

    def connect(self, host: str = "10.0.0.1") -> tuple[Peer, Any]:
        peer = Peer(f"{host}:7")
        handle = self.logins["SASL_PLAINTEXT"](peer, self._serve)
        return peer, lambda frame: handle(memoryview(bytearray(frame)), peer.address)

    def _serve(self, frame: memoryview, address: str) -> list[Any] | None:
        self.served.append(bytes(frame))
        return None

    def fail(self, host: str = "10.0.0.1") -> None:
        _, send = self.connect(host)
        send(raw(HANDSHAKE_1))
        with pytest.raises(LoginFailed):
            send(authenticate(WRONG))


def test_a_login_and_a_request() -> None:
    rig = LoginRig()
    peer, send = rig.connect()
    send(raw(HANDSHAKE_1))
    send(authenticate(RIGHT))
    assert peer.principal == "User:alice"
    send(b"\0\3")
    assert rig.served == [b"\0\3"]
    assert rig.runtime.slept == []


def test_a_failed_login_is_answered_after_a_delay() -> None:
    rig = LoginRig()
    rig.fail()
    assert rig.runtime.slept == [0.1]
    assert rig.served == []


@pytest.mark.scenario("security-25")
def test_a_line_per_address_and_minute(caplog: pytest.LogCaptureFixture) -> None:
    rig = LoginRig()
    with caplog.at_level(logging.INFO):
        for _ in range(500):
            rig.fail()  # 50 seconds of delays
        rig.fail("10.0.0.2")
        for _ in range(98):
            rig.fail()
        rig.runtime.clock.advance(0.2)
        rig.failures.flush()
    lines = [record.getMessage() for record in caplog.records]
    reason = "(PLAIN: Authentication failed: Invalid username or password)"
    assert lines == [
        f"Failed authentication with /10.0.0.1 {reason}",
        f"Failed authentication with /10.0.0.2 {reason}",
        f"Failed authentication with /10.0.0.1 {reason}, 597 times in 60 seconds",
    ]
