"""A side of a login takes tokens in its states' order, and nothing after a refusal."""

from __future__ import annotations

import pytest

from kafka08.security.mechanisms import LoginRefusedError, Side, Step


class CountingSide(Side):
    def __init__(self) -> None:
        super().__init__(self._one)

    def _one(self, token: bytes) -> Step:
        if token != b"1":
            raise LoginRefusedError("not 1")
        return Step(b"one", self._two)

    def _two(self, token: bytes) -> Step:
        return Step(None)


def test_tokens_lead_from_state_to_state() -> None:
    side = CountingSide()
    assert side.answer(b"1") == b"one"
    assert not side.is_done
    assert side.answer(b"2") is None
    assert side.is_done


def test_a_token_after_the_end_is_refused() -> None:
    side = CountingSide()
    side.answer(b"1")
    side.answer(b"2")
    with pytest.raises(LoginRefusedError, match="after the end"):
        side.answer(b"1")


def test_a_refused_login_cannot_go_on() -> None:
    side = CountingSide()
    for token in (b"x", b"1", b"1"):
        with pytest.raises(LoginRefusedError):
            side.answer(token)
    assert not side.is_done
