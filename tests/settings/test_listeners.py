"""The listeners of a broker as its settings have them, and the refusals."""

from __future__ import annotations

import pytest

from kafka08.common import Endpoint
from kafka08.errors import ConfigError
from kafka08.settings.broker import BrokerConfig

MINIMAL = {"broker.id": "0", "zookeeper.connect": "localhost:2181"}
PLAIN_AND_SSL = "PLAINTEXT://:9092,SSL://:9093"


def config(**changes: str) -> BrokerConfig:
    properties = {key.replace("_", "."): value for key, value in changes.items()}
    return BrokerConfig.from_properties(MINIMAL | properties)


def bound(**changes: str) -> list[str]:
    return [str(each) for each in config(**changes).resolved_listeners().bound]


def told(**changes: str) -> list[str]:
    found = config(**changes).resolved_listeners()
    ports = [each.port or 50000 + number for number, each in enumerate(found.bound)]
    return [str(each) for each in found.named(lambda: "box").announced(ports)]


def test_the_settings_of_0_8() -> None:
    assert bound() == ["PLAINTEXT://:9092"]
    assert bound(host_name="h", port="7") == ["PLAINTEXT://h:7"]
    assert told() == ["PLAINTEXT://box:9092"]
    assert told(port="0") == ["PLAINTEXT://box:50000"]
    assert told(host_name="h", advertised_port="9") == ["PLAINTEXT://h:9"]
    assert told(advertised_host_name="a", port="7") == ["PLAINTEXT://a:7"]
    assert config(host_name=" [::1] ").resolved_listeners().advertised[0].host == "::1"
    assert told(host_name=" ") == ["PLAINTEXT://box:9092"]
    assert config().resolved_listeners().is_plain


def test_several_listeners() -> None:
    assert bound(listeners=PLAIN_AND_SSL) == ["PLAINTEXT://:9092", "SSL://:9093"]
    assert told(listeners=PLAIN_AND_SSL) == ["PLAINTEXT://box:9092", "SSL://box:9093"]
    found = config(listeners="PLAINTEXT://0.0.0.0:0,SSL://[::1]:0").resolved_listeners()
    assert found.bound == (
        Endpoint("PLAINTEXT", "PLAINTEXT", "", 0),
        Endpoint("SSL", "SSL", "::1", 0),
    )
    assert not found.is_plain
    assert [str(each) for each in found.named(lambda: "box").announced([5, 6])] == [
        "PLAINTEXT://box:5",
        "SSL://[::1]:6",
    ]


def test_the_advertised_host_and_port_of_0_8_are_those_of_plaintext() -> None:
    old = {"advertised_host_name": "a", "advertised_port": "1"}
    assert told(listeners=PLAIN_AND_SSL, **old) == ["PLAINTEXT://a:1", "SSL://box:9093"]


def test_advertised_listeners() -> None:
    given = "SSL://far:443, PLAINTEXT://:0"
    assert told(listeners=PLAIN_AND_SSL, advertised_listeners=given) == [
        "SSL://far:443",
        "PLAINTEXT://box:9092",
    ]


def test_free_names() -> None:
    names = "client:ssl, INTERNAL : PLAINTEXT"
    found = config(
        listeners="CLIENT://:1,internal://:2",
        listener_security_protocol_map=names,
        inter_broker_listener_name="internal",
    ).resolved_listeners()
    assert [each.protocol for each in found.bound] == ["SSL", "PLAINTEXT"]
    assert found.inter_broker == Endpoint("INTERNAL", "PLAINTEXT", "", 2)


def test_the_listener_between_brokers() -> None:
    assert config().resolved_listeners().inter_broker.listener == "PLAINTEXT"
    found = config(listeners=PLAIN_AND_SSL, security_inter_broker_protocol="SSL")
    assert found.resolved_listeners().inter_broker == Endpoint("SSL", "SSL", "", 9093)


@pytest.mark.scenario("security-5")
@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"listeners": "9092"}, "listeners has 9092, which is not NAME://host:port."),
        ({"listeners": "SSL://h:65536"}, "listeners has SSL://h:65536, which is not NAME"),
        ({"listeners": "SSL://h/:1"}, "listeners has SSL://h/:1, which is not NAME"),
        ({"listeners": " , "}, "listeners has no listener."),
        (
            {"listeners": "PLAINTEXT://a:1,PLAINTEXT://b:2"},
            "listeners has two listeners with the name PLAINTEXT.",
        ),
        (
            {"listeners": "PLAINTEXT://a:1,SSL://b:1"},
            "listeners has two listeners with the port 1.",
        ),
        (
            {"listeners": "TLS://a:1"},
            "listeners has the listener TLS, for which listener.security.protocol.map names no",
        ),
        (
            {"listeners": "A://a:1", "listener_security_protocol_map": "A:TLS"},
            "listener.security.protocol.map has A:TLS, which is not NAME:PROTOCOL",
        ),
        (
            {"listener_security_protocol_map": "A:SSL,a:PLAINTEXT"},
            "listener.security.protocol.map has A twice.",
        ),
        (
            {"advertised_listeners": "PLAINTEXT://0.0.0.0:1"},
            "advertised.listeners has PLAINTEXT://0.0.0.0:1, to which no client can connect.",
        ),
        (
            {"advertised_listeners": "PLAINTEXT://h:1,SSL://h:2"},
            "advertised.listeners has SSL://h:2, and listeners has no such listener.",
        ),
        (
            {"listeners": PLAIN_AND_SSL, "inter_broker_listener_name": "INNER"},
            "inter.broker.listener.name is INNER, and the advertised listeners are PLAINTEXT, SSL.",
        ),
        (
            {"listeners": "SSL://:1"},
            "security.inter.broker.protocol is PLAINTEXT, and the advertised listeners",
        ),
        (
            {"security_inter_broker_protocol": "TLS"},
            "security.inter.broker.protocol has value TLS which is not one of PLAINTEXT, SSL,",
        ),
        (
            {"inter_broker_listener_name": "A", "security_inter_broker_protocol": "SSL"},
            "Only one of inter.broker.listener.name and security.inter.broker.protocol may be set.",
        ),
        (
            {"listener_name_client_port": "1"},
            "listener.name.client is the beginning of a setting, and there is no listener CLIENT.",
        ),
    ],
)
def test_a_wrong_setting_is_named(changes: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        config(**changes)
    assert str(raised.value).startswith(text)
    assert "\n" not in str(raised.value)


def test_settings_of_one_listener() -> None:
    own = {"listener_name_ssl_num_io_threads": "3"}
    found = config(listeners=PLAIN_AND_SSL, **own)
    assert found.num_io_threads == found.of_listener("PLAINTEXT").num_io_threads == 8
    assert found.of_listener("SSL").num_io_threads == 3
    wrong = config(listeners=PLAIN_AND_SSL, listener_name_ssl_num_io_threads="x")
    with pytest.raises(ConfigError, match=r"^listener.name.ssl.num.io.threads has value x which"):
        wrong.of_listener("SSL")
