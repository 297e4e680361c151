"""A tool of the command line in a test: its calls, and what they print."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest


class Printed(NamedTuple):
    out: str
    err: str


class Command:
    """Calls of ``main`` with ``words`` in front of those of each call."""

    def __init__(
        self, main: Callable[[list[str]], int], *words: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._main = main
        self._words = words
        self._capsys = capsys

    def call(self, *words: str, status: int = 0) -> Printed:
        """The output of a call that ends with this status."""
        assert self._main([*self._words, *words]) == status
        return Printed(*self._capsys.readouterr())

    def run(self, *words: str, status: int = 0) -> list[str]:
        """The lines of a call that prints nothing on stderr."""
        printed = self.call(*words, status=status)
        assert printed.err == ""
        return printed.out.splitlines()

    def fail(self, *words: str) -> str:
        """The error of a call."""
        return self.call(*words, status=1).err
