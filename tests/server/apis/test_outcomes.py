"""Errors of administrative changes become wire codes and bounded texts."""

from __future__ import annotations

import logging

import pytest

from kafka08.errors import ConfigError
from kafka08.server.apis.outcomes import AdminOutcome, InvalidRequestError, tried
from zk.errors import NoNodeError


def test_a_success_has_no_code() -> None:
    assert tried("t", list) == AdminOutcome(0, None)


@pytest.mark.parametrize(
    ("error", "code"),
    [(ConfigError("x"), 40), (InvalidRequestError("x"), 42), (NoNodeError("x"), -1)],
)
def test_errors_have_codes(error: Exception, code: int) -> None:
    def act() -> None:
        raise error

    assert tried("t", act) == AdminOutcome(code, str(error))


def test_an_unexpected_error_is_logged_and_its_text_cut(caplog: pytest.LogCaptureFixture) -> None:
    def act() -> None:
        raise ValueError("x" * 5000)

    with caplog.at_level(logging.ERROR):
        assert tried("t", act) == AdminOutcome(-1, "x" * 1000)
    assert "Administrative request for t failed" in caplog.text
