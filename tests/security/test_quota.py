"""Quotas: limits and sensors, which are exact for those with a rate by name, bounded for others."""

from __future__ import annotations

import pytest

from kafka08.security.limits import DEFAULT, Entity, Limit
from kafka08.security.quota import MOST, Quota, Sensors
from tests.fakes.runtime import FakeClock


def client(name: str, *, is_own: bool = False) -> Limit:
    return Limit(Entity(client=name), 100, is_own)


def test_each_owner_has_its_rate() -> None:
    sensors = Sensors(FakeClock(), 10)
    assert sensors.use(client("a"), 1500) == 5
    assert sensors.use(client("b"), 1000) == 0
    assert sensors.use(client("a"), 100) == 6


@pytest.mark.scenario("security-47")
def test_47_many_ids_share_a_sensor_and_named_ones_do_not() -> None:
    sensors = Sensors(FakeClock(), 10)
    for number in range(1_000_000):
        sensors.use(client(str(number)), 1)
    assert len(sensors) == MOST + 1
    assert sensors.use(client("another"), 0) > 9800
    assert sensors.use(client("named", is_own=True), 1500) == 5
    assert sensors.use(Limit(Entity(user="u"), 100, False), 1500) == 5


def test_many_clients_of_a_user_do_not_take_from_another_user() -> None:
    sensors = Sensors(FakeClock(), 10, most=3)
    for number in range(10):
        sensors.use(Limit(Entity("eve", str(number)), 100, False), 2000)
    assert sensors.use(Limit(Entity("eve", "x"), 100, False), 0) > 0
    assert sensors.use(Limit(Entity("bob", "x"), 100, False), 0) == 0


@pytest.mark.scenario("security-47")
def test_sensors_that_are_not_used_are_dropped() -> None:
    clock = FakeClock()
    sensors = Sensors(clock, 10)
    sensors.use(client("quick"), 10)
    sensors.use(client("owes"), 1_000_000)
    clock.advance(61)
    sensors.use(client("x"), 1)
    assert len(sensors) == 2
    clock.advance(3600)
    sensors.use(client("x"), 1)
    assert len(sensors) == 1


def test_a_user_shares_a_rate_over_its_clients() -> None:
    quota = Quota(FakeClock())
    assert quota.use("u", "c", 10**9) == 0
    quota.limits.set(Entity(DEFAULT), 1000)
    assert quota.use("u", "c", 10_000) == 0
    assert quota.use("u", "d", 1000) == 1
    assert quota.use("v", "c", 1000) == 0


def test_the_default_is_for_each_client() -> None:
    quota = Quota(FakeClock(), 1000, 5)
    assert quota.use("u", "c", 6000) == 1
    assert quota.use("v", "c", 0) == 1
    assert quota.use("u", "d", 5000) == 0
