from __future__ import annotations

import pytest

from kafka08.errors import ConfigError
from kafka08.rest.config import Listener, RestConfig, parse_listener, producer_properties


def test_the_default_is_loopback_without_anything_else() -> None:
    config = RestConfig()
    assert config.parsed_listeners() == [Listener("http", "127.0.0.1", 8082)]
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
    assert parse_listener("http://[::1]:80") == Listener("http", "::1", 80)


def test_other_settings_go_to_the_producer() -> None:
    given = {"acks": "all", "id": "x", "metadata.fetch.timeout.ms": "1", "group.id": "g"}
    expected = {"acks": "all", "metadata.fetch.timeout.ms": "1", "delivery.timeout.ms": "30000"}
    assert producer_properties(given) == expected
