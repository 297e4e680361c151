"""Limits and sensors together."""

from __future__ import annotations

from kafka08.security.limits import DEFAULT, Entity
from kafka08.security.quota import Quota
from tests.fakes.runtime import FakeClock


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
