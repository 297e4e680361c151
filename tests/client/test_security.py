"""The settings by which clients connect."""

from __future__ import annotations

import pytest

from kafka08.client.security import ClientSecurity, SecuredRuntime, runtime_for, runtime_of
from kafka08.errors import ConfigError
from kafka08.producer.config import ProducerConfig
from kafka08.producer.kafka_config import KafkaProducerConfig
from kafka08.runtime import GeventRuntime, ThreadRuntime
from kafka08.security.jaas import SCRAM_MODULE

SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.jaas.config": f'{SCRAM_MODULE} required username="u" password="secret";',
}


def test_plain_connections_are_those_of_threads() -> None:
    assert type(runtime_of({})) is ThreadRuntime
    assert type(runtime_of({"security.protocol": "plaintext"})) is ThreadRuntime


def test_with_a_login() -> None:
    assert type(runtime_of(SASL)) is SecuredRuntime


def test_the_kind_of_the_runtime_stays() -> None:
    greenlets = GeventRuntime()
    try:
        assert runtime_for(ClientSecurity(), greenlets) is greenlets
        secured = runtime_for(ClientSecurity.from_properties(SASL), greenlets)
        assert isinstance(secured, GeventRuntime) and secured is not greenlets
        secured.close()
    finally:
        greenlets.close()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"security.protocol": "KERBEROS"}, "security.protocol KERBEROS is not one of PLAINTEXT"),
        ({"sasl.jaas.config": None}, "sasl.jaas.config has no value"),
        ({"sasl.jaas.config": "x"}, "sasl.jaas.config: a control flag"),
        ({"sasl.mechanism": "PLAIN"}, "and PLAIN needs"),
        ({"sasl.mechanism": "GSSAPI"}, "sasl.mechanism is GSSAPI"),
    ],
)
def test_settings_that_cannot_connect(changes: dict[str, str | None], error: str) -> None:
    given = {key: value for key, value in {**SASL, **changes}.items() if value is not None}
    with pytest.raises(ConfigError, match=error) as raised:
        runtime_of(given)
    assert "secret" not in str(raised.value)


@pytest.mark.scenario("security-54")
def test_producers_take_them_and_show_no_password() -> None:
    scala = ProducerConfig.from_properties({"metadata.broker.list": "h:1", **SASL})
    java = KafkaProducerConfig.of({"bootstrap.servers": "h:1", **SASL})
    for config in (scala, java):
        assert config.sasl_mechanism == "SCRAM-SHA-256"
        assert "secret" not in repr(config)
