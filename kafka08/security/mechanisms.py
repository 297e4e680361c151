"""How both sides of a login look, whatever the mechanism: tokens in, tokens out.

A side is used for one login. Its states are functions that take the peer's token and return a
``Step``; a token after the last step, or after a refusal, is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kafka08.errors import KafkaError


class LoginRefusedError(KafkaError):
    """The peer's token ends the login. ``reveal``: the text may be shown to the peer; it tells
    nothing about which names exist."""

    text = "Authentication failed"
    java_class = "org.apache.kafka.common.errors.SaslAuthenticationException"

    def __init__(self, text: str, reveal: bool = False) -> None:
        super().__init__(text)
        self.reveal = reveal


class Step(NamedTuple):
    """The token for the peer (None: send nothing), and the state that takes the peer's next one
    (None: this side is done)."""

    token: bytes | None
    next: Callable[[bytes], Step] | None = None


class Side:
    """One side of one login. ``user`` is the name that has logged in; empty until then, and on
    the client's side."""

    def __init__(self, first: Callable[[bytes], Step]) -> None:
        self._state: Callable[[bytes], Step] | None = first
        self.user = ""

    @property
    def is_done(self) -> bool:
        return self._state is None

    def answer(self, token: bytes) -> bytes | None:
        """The answer to the peer's token; a client begins with an empty one.

        Raises LoginRefusedError; then the login cannot succeed any more.
        """
        state, self._state = self._state, _refuse
        if state is None:
            raise LoginRefusedError("a token after the end of the login")
        step = state(token)
        self._state = step.next
        return step.token


def _refuse(token: bytes) -> Step:
    raise LoginRefusedError("a token after a refused one")
