from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.client.security import ClientSecurity
from kafka08.errors import ConfigError
from kafka08.rest.config import (
    CLIENT,
    RestConfig,
    RestListener,
    consumer_properties,
    parse_listener,
    producer_properties,
)
from kafka08.settings.docs import _table
from kafka08.settings.properties import with_prefix


def test_the_default_is_loopback_without_anything_else() -> None:
    config = RestConfig()
    assert config.parsed_listeners() == [RestListener("http", "127.0.0.1", 8082)]
    assert not config.access_control_allow_origin
    assert not config.users_file


@pytest.mark.parametrize(
    "text", ["8082", "ftp://h:1", "http://h", "http://h:x", "http://:1", "http://h:1/path"]
)
def test_listeners_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match="listeners has value"):
        parse_listener(text)
    with pytest.raises(ConfigError, match="listeners has value"):
        RestConfig.from_properties({"listeners": text})


def test_tls_needs_a_certificate() -> None:
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location"):
        RestConfig.from_properties({"listeners": "https://h:1"})
    assert parse_listener("http://[::1]:80") == RestListener("http", "::1", 80)


def test_the_guide_lists_every_setting() -> None:
    """Replace the table in docs/rest.md with this one when settings change."""
    table = _table(RestConfig, ["Key", "Type", "Default", "Range", "Meaning"])
    assert table in (Path(__file__).parents[2] / "docs" / "rest.md").read_text()


def test_settings_of_zookeepers_sessions_go_to_consumers() -> None:
    given = {
        "offsets.storage": "kafka",
        "zookeeper.ssl.client.enable": "true",
        "ssl.keystore.location": "of the listener",
        "security.protocol": "SSL",
    }
    expected = {"offsets.storage": "kafka", "zookeeper.ssl.client.enable": "true"}
    assert consumer_properties(given) == expected


def test_listeners_and_connections_to_brokers_have_settings_of_their_own() -> None:
    given = {
        "ssl.truststore.location": "of the listener",
        "client.security.protocol": "SASL_SSL",
        "client.ssl.truststore.location": "of the brokers",
        "client.id": "x",
    }
    security = ClientSecurity.from_properties(with_prefix(given, CLIENT))
    assert security.security_protocol == "SASL_SSL"
    assert security.ssl_truststore_location == "of the brokers"
    assert RestConfig.from_properties(given).ssl_truststore_location == "of the listener"
    assert consumer_properties(given)["security.protocol"] == "SASL_SSL"
    assert producer_properties(given).keys() >= {"client.id"}


def test_other_settings_go_to_the_producer() -> None:
    given = {"acks": "all", "id": "x", "metadata.fetch.timeout.ms": "1", "group.id": "g"}
    expected = {"acks": "all", "metadata.fetch.timeout.ms": "1", "delivery.timeout.ms": "30000"}
    assert producer_properties(given) == expected
