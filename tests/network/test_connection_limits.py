"""Numbers and rates of connections: of all, of listeners, of addresses."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.network.connection_limits import LOOK_SECONDS, ConnectionLimits, Most
from tests.fakes.runtime import FakeClock

A, B = "PLAINTEXT", "INNER"


def made(**settings: Any) -> tuple[FakeClock, ConnectionLimits]:
    clock = FakeClock()
    return clock, ConnectionLimits(clock, **settings)


def test_without_limits_nobody_waits() -> None:
    _, limits = made()
    for _ in range(1000):
        assert limits.wait(A) == 0
        assert limits.rejection("a") == ""
        assert not limits.add("a", A)


@pytest.mark.scenario("security-50")
def test_50_an_address_has_so_many() -> None:
    _, limits = made(of_address=10, of_addresses={"127.0.0.9": 1})
    for _ in range(10):
        assert limits.rejection("a") == ""
        limits.add("a", A)
    assert limits.rejection("a") == "too many"
    assert limits.rejection("127.0.0.9") == ""
    limits.add("127.0.0.9", A)
    assert limits.rejection("127.0.0.9") == "too many"
    limits.discard("a", A)
    assert limits.rejection("a") == ""


def test_over_the_limit_of_all_the_acceptor_waits() -> None:
    _, limits = made(of_all=Most(2))
    limits.add("a", A)
    assert limits.wait(A) == 0
    limits.add("b", B)
    assert limits.wait(A) == limits.wait(B) == LOOK_SECONDS
    limits.discard("b", B)
    assert limits.wait(A) == 0


def test_for_a_broker_another_connection_makes_room() -> None:
    _, limits = made(of_all=Most(1, 1), exempt=B, seconds=1)
    assert not limits.add("a", A)
    assert limits.wait(A) == LOOK_SECONDS
    assert limits.wait(B) == 0
    assert limits.add("b", B)


def test_a_listener_has_limits_of_its_own() -> None:
    _, limits = made(of_listeners={B: Most(1)}, exempt=B)
    limits.add("a", B)
    assert limits.wait(A) == 0
    assert limits.wait(B) == LOOK_SECONDS
    limits.discard("a", B)
    assert limits.wait(B) == 0


def test_new_connections_come_at_a_rate() -> None:
    clock, limits = made(of_all=Most(per_second=2), seconds=5)
    for _ in range(10):
        assert limits.wait(A) == 0
        limits.add("a", A)
    limits.add("a", A)
    assert limits.wait(A) == pytest.approx(0.5)
    clock.advance(0.5)
    assert limits.wait(A) == 0


def test_an_address_over_its_rate_is_rejected() -> None:
    clock, limits = made(seconds=5)
    limits.set_rate(None, 1)
    limits.set_rate("b", 100)
    for _ in range(6):
        assert limits.rejection("a") == ""
    for _ in range(100):
        assert limits.rejection("a") == "too fast"
        assert limits.rejection("b") == ""
    clock.advance(1)
    assert limits.rejection("a") == ""
    assert limits.rejection("a") == "too fast"
    limits.set_rate(None, None)
    assert limits.rejection("a") == ""
