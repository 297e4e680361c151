"""Settings of brokers that can be changed while they run."""

from __future__ import annotations

import pytest

from kafka08.errors import ConfigError
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.dynamic import DynamicBrokerSettings

RATE = "leader.replication.throttled.rate"


def test_a_file_cannot_have_them() -> None:
    assert not DynamicBrokerSettings.keys() & BrokerConfig.keys()


def test_only_what_is_to_be_changed_is_checked() -> None:
    DynamicBrokerSettings.validate([RATE], {RATE: "1", "log.retention.ms": "5"})
    DynamicBrokerSettings.validate([RATE], {})


@pytest.mark.parametrize("key", sorted(BrokerConfig.keys()))
def test_no_setting_of_the_file_can_be_changed(key: str) -> None:
    with pytest.raises(ConfigError, match=r"is read from server.properties when the broker starts"):
        DynamicBrokerSettings.validate([key], {})
