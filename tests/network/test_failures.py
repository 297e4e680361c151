"""Failed logins and rejected connections: few lines, however many there are."""

from __future__ import annotations

import logging

import pytest

from kafka08.network.failures import Failures
from tests.fakes.runtime import FakeClock


def test_a_line_of_each_kind_per_address_and_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = FakeClock()
    failures = Failures(clock)
    for _ in range(10_000):
        failures.login_failed("10.0.0.1", "SSL handshake failed: NO_SHARED_CIPHER")
        failures.rejected("10.0.0.1", "too many")
    clock.advance(61)
    failures.flush()
    reason = "(SSL handshake failed: NO_SHARED_CIPHER)"
    assert caplog.messages == [
        f"Failed authentication with /10.0.0.1 {reason}",
        "Rejected connection from 10.0.0.1, too many",
        f"Failed authentication with /10.0.0.1 {reason}, 9999 times in 60 seconds",
        "Rejected connection from 10.0.0.1, too many, 9999 times in 60 seconds",
    ]


@pytest.mark.scenario("security-25")
def test_ever_new_addresses_do_not_take_memory(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    failures = Failures(FakeClock())
    for number in range(5000):
        failures.login_failed(f"2001:db8::{number:x}", "x")
    failures.flush()
    assert len(caplog.messages) == 1001
    assert caplog.messages[-1].startswith("4000 further failed logins")


def test_a_peers_words_are_on_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    Failures(FakeClock()).login_failed("h", "a\r\nb\x1b\u2028" + "x" * 999)
    (line,) = caplog.messages
    assert line.isascii()
    assert line.isprintable()
    assert len(line) < 300
