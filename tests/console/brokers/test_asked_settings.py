"""kafka08.console.brokers.asked_settings."""

from __future__ import annotations

import pytest

from kafka08.console.brokers.asked_settings import asked_settings
from kafka08.errors import KafkaError
from kafka08.protocol import admin_schemas as a


def test_the_settings_that_a_broker_returns() -> None:
    requests = []

    def call(request: object) -> a.DescribeConfigsResponse:
        requests.append(request)
        told = {"a": "1", "c": "3", "b": None}
        entries = [a.ConfigEntry(name, value, True) for name, value in told.items()]
        return a.DescribeConfigsResponse(0, [a.ResourceConfig(0, None, 4, "7", entries)])

    assert asked_settings(call, 7, "a", "b") == {"a": "1"}
    asked = a.DescribedResource(a.BROKER_RESOURCE, "7", ["a", "b"])
    assert requests == [a.DescribeConfigsRequest([asked])]


def test_a_broker_that_refuses_returns_none() -> None:
    refusal = a.ResourceConfig(31, "no", 4, "7", [])
    assert asked_settings(lambda _: a.DescribeConfigsResponse(0, [refusal]), 7, "a") == {}


@pytest.mark.parametrize("error", [OSError("gone"), KafkaError("not up")])
def test_a_broker_that_does_not_answer_returns_none(error: Exception) -> None:
    def call(request: object) -> object:
        raise error

    assert asked_settings(call, 7, "a") == {}
