"""When a client tries again after an error, and when it gives up: one policy for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kafka08.errors import KafkaError
from kafka08.runtime import Event, Runtime

T = TypeVar("T")


def always(error: Exception) -> bool:
    return True


class Retry:
    """Tries until a step succeeds, ``backoff`` seconds apart, or what it says for an error.

    It ends with the error of the last try: after ``attempts`` tries, when ``patience`` seconds have
    passed since the first, when ``stopping`` is set, or at an error that ``passes`` calls final.
    Without these it goes on. Only OSError and KafkaError are errors of a try.
    """

    def __init__(
        self,
        runtime: Runtime,
        backoff: float | Callable[[Exception], float],
        *,
        attempts: int | None = None,
        patience: float | None = None,
        stopping: Event | None = None,
        passes: Callable[[Exception], bool] = always,
    ) -> None:
        self._now = runtime.clock.monotonic
        self._backoff = backoff
        self._attempts = attempts
        self._patience = patience
        self._stopping = stopping or runtime.event()
        self._passes = passes

    def run(
        self,
        step: Callable[[], T],
        *,
        again: Callable[[Exception], object] | None = None,
        refresh: Callable[[], object] | None = None,
    ) -> T:
        """The result of ``step``. Before each further try comes a pause. ``again`` is called with
        the error before it, and what it raises ends the tries; ``refresh`` is called after it, as
        a part of the try."""
        begin = self._now()
        tries = 0
        while True:
            try:
                if tries and refresh is not None:
                    refresh()
                return step()
            except (OSError, KafkaError) as error:
                tries += 1
                late = self._patience is not None and self._now() - begin >= self._patience
                stopped = self._stopping.is_set()
                if late or stopped or tries == self._attempts or not self._passes(error):
                    raise
                if again is not None:
                    again(error)
                backoff = self._backoff
                if self._stopping.wait(backoff(error) if callable(backoff) else backoff):
                    raise
