"""Settings as kafka-configs reads and checks them, and passwords that become credentials."""

from __future__ import annotations

import re

import pytest

from kafka08.admin import InvalidArgumentError
from kafka08.errors import KafkaError
from kafka08.security.scram import credential_of, decode_credential
from tools.admin import config_values


def asked(mechanism: str) -> str:
    return f"asked for {mechanism}"


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("a=1", {"a": "1"}),
        (" a = 1 ,b=2", {"a": "1", "b": "2"}),
        ("a=[1,2],b=3", {"a": "1,2", "b": "3"}),
        ("a=", {"a": ""}),
        (
            "SCRAM-SHA-256=[iterations=8192,password=pw],producer_byte_rate=1",
            {"SCRAM-SHA-256": "iterations=8192,password=pw", "producer_byte_rate": "1"},
        ),
    ],
)
def test_pairs(text: str, settings: dict[str, str]) -> None:
    assert config_values.parse(text) == settings


@pytest.mark.parametrize("text", ["", "a", "a=b=c", "a=1,,b=2", "a=1,"])
def test_what_is_not_pairs(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="format"):
        config_values.parse(text)


def test_a_file_has_values_with_and_without_brackets() -> None:
    text = "# c\nSCRAM-SHA-256=[iterations=8192,password=p=w]\nSCRAM-SHA-512=password=x y\na=1\n"
    assert config_values.parse_file(text) == {
        "SCRAM-SHA-256": "iterations=8192,password=p=w",
        "SCRAM-SHA-512": "password=x y",
        "a": "1",
    }


@pytest.mark.parametrize(
    ("value", "password", "iterations"),
    [
        ("iterations=8192,password=p,w", "p,w", 8192),
        ("password=p", "p", 4096),
        ("iterations=4096", "asked for SCRAM-SHA-512", 4096),
        ("", "asked for SCRAM-SHA-512", 4096),
    ],
)
def test_passwords_become_credentials(value: str, password: str, iterations: int) -> None:
    made = config_values.with_credentials({"SCRAM-SHA-512": value, "a": "password=x"}, asked)
    found = decode_credential("SCRAM-SHA-512", made["SCRAM-SHA-512"])
    assert found == credential_of("SCRAM-SHA-512", password, found.salt, iterations)
    assert re.fullmatch(rb"[0-9a-z]{20,26}", found.salt)
    assert made["a"] == "password=x"


def test_each_credential_has_a_salt_of_its_own() -> None:
    made = [
        config_values.with_credentials({"SCRAM-SHA-256": "password=p"}, asked)["SCRAM-SHA-256"]
        for _ in range(2)
    ]
    assert made[0] != made[1]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("iterations=4095,password=secret", "Iterations 4095 is less than the minimum 4096"),
        ("iterations=999999999,password=secret", "is more than the maximum"),
        ("password=", "The password for SCRAM-SHA-256 is empty"),
        ("salt=secret,stored_key=x", "Invalid credential property SCRAM-SHA-256"),
        ("secret", "Invalid credential property SCRAM-SHA-256"),
    ],
)
def test_bad_credentials_are_refused_and_not_shown(value: str, error: str) -> None:
    with pytest.raises(InvalidArgumentError, match=error) as raised:
        config_values.with_credentials({"SCRAM-SHA-256": value}, asked)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "nested", "settings"),
    [
        ("topics", False, {"retention.ms": "1"}),
        ("users", False, {"SCRAM-SHA-256": "x", "producer_byte_rate": "1024"}),
        ("users", False, {"consumer_byte_rate": "1024.0", "request_percentage": "0.5"}),
        ("users", True, {"producer_byte_rate": "1"}),
        ("clients", False, {"controller_mutation_rate": "1"}),
        ("ips", False, {"connection_creation_rate": "50"}),
        ("brokers", False, {"leader.replication.throttled.rate": "1", "log.retention.ms": "1"}),
        ("brokers", False, {"listener.name.tls.ssl.keystore.location": "/x"}),
    ],
)
def test_known_settings(kind: str, nested: bool, settings: dict[str, str]) -> None:
    config_values.check(kind, nested, settings)


@pytest.mark.parametrize(
    ("kind", "nested", "settings"),
    [
        ("topics", False, {"retention": "1"}),
        ("topics", False, {"retention.ms": "x"}),
        ("users", False, {"retention.ms": "1"}),
        ("users", True, {"SCRAM-SHA-256": "x"}),
        ("clients", False, {"SCRAM-SHA-256": "x"}),
        ("clients", False, {"producer_byte_rate": "0"}),
        ("clients", False, {"producer_byte_rate": "-1"}),
        ("clients", False, {"producer_byte_rate": "many"}),
        ("clients", False, {"request_percentage": "0"}),
        ("ips", False, {"connection_creation_rate": "0"}),
        ("ips", False, {"producer_byte_rate": "1"}),
        ("brokers", False, {"no.such": "1"}),
        ("brokers", False, {"listener.name.tls.ssl.keystore.password": "x"}),
    ],
)
def test_others_are_refused(kind: str, nested: bool, settings: dict[str, str]) -> None:
    with pytest.raises(KafkaError):
        config_values.check(kind, nested, settings)


@pytest.mark.scenario("security-54")
def test_secrets_are_not_shown() -> None:
    credential = "salt=a,stored_key=b,server_key=c,iterations=8192"
    assert config_values.shown("SCRAM-SHA-256", credential) == "SCRAM-SHA-256=iterations=8192"
    assert config_values.shown("ssl.key.password", "x") == "ssl.key.password=[hidden]"
    assert config_values.shown("retention.ms", "1") == "retention.ms=1"
