from __future__ import annotations

import pytest

from kafka08.errors import ConfigError
from kafka08.server.access.logins import LoginSettings
from kafka08.server.optional import NoLogins, logins_of
from kafka08.settings.broker import BrokerConfig
from tests.fakes.runtime import FakeRuntime


def config(listeners: str) -> BrokerConfig:
    return BrokerConfig.from_properties(
        {"broker.id": "0", "zookeeper.connect": "z:1", "listeners": listeners}
    )


def test_a_broker_without_such_listeners_needs_nothing() -> None:
    found = logins_of(config("PLAINTEXT://:9092"))
    assert isinstance(found, NoLogins)
    runtime = FakeRuntime()
    assert found.connector(runtime) is runtime
    assert found.credentials(None) is None
    assert found.by_listener(runtime, None, list, None) == {}


def test_a_listener_with_logins_has_its_settings_read() -> None:
    with pytest.raises(ConfigError, match=r"sasl\.enabled\.mechanisms has no value"):
        logins_of(config("PLAINTEXT://:9092,SASL_PLAINTEXT://:9093"))
    methods = {name for name in vars(NoLogins) if not name.startswith("_")}
    assert methods <= set(dir(LoginSettings))
