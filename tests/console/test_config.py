"""kafka08.console.config."""

from __future__ import annotations

import pytest

from kafka08.console.config import ConsoleConfig
from kafka08.errors import ConfigError
from kafka08.network.http import is_loopback

ZK = {"zookeeper.connect": "h:2181"}


def test_by_default_only_this_machine_can_read_and_nobody_can_change() -> None:
    config = ConsoleConfig.from_properties(ZK)
    assert config.http_host == "127.0.0.1"
    assert config.read_only
    assert is_loopback(config.http_host)


@pytest.mark.scenario("ops-58")
@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({}, "console.users.file"),
        ({"console.users.file": "u"}, "http.tls"),
    ],
)
def test_changes_from_other_machines_need_users_and_tls(more: dict[str, str], named: str) -> None:
    far = {**ZK, "http.host": "0.0.0.0", "console.read.only": "false"}
    with pytest.raises(ConfigError, match=named):
        ConsoleConfig.from_properties({**far, **more})
    users = {"console.users.file": "u", "http.tls": "true"}
    assert not ConsoleConfig.from_properties({**far, **users}).read_only


def test_zookeeper_must_be_named() -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.connect"):
        ConsoleConfig.from_properties({})


def test_where_brokers_serve_http() -> None:
    texts = {**ZK, "console.broker.http": "1=b1:9404, 2=[::1]:9405"}
    config = ConsoleConfig.from_properties(texts)
    assert config.http_endpoints() == {1: ("b1", 9404), 2: ("::1", 9405)}
    assert ConsoleConfig.from_properties(ZK).http_endpoints() == {}


@pytest.mark.parametrize(
    "text", ["b1:9404", "1=b1", "1=", "1", "x=b1:9404", "-1=b1:9404", "1=b1:0", "1=b1:65536"]
)
def test_wrong_places_of_brokers_are_named(text: str) -> None:
    with pytest.raises(ConfigError, match=r"console\.broker\.http: .* is not id=host:port"):
        ConsoleConfig.from_properties({**ZK, "console.broker.http": text})
