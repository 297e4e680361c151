"""A client's program as a process that reads lines and prints lines."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from typing import IO

PATIENCE_S = 60.0


class Child:
    """Started when made. ``lines`` are what it has printed."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self.lines: list[str] = []
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._errors: list[str] = []
        self._threads = [
            threading.Thread(target=self._collect, args=pair, daemon=True)
            for pair in ((self._child.stdout, self.lines), (self._child.stderr, self._errors))
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _collect(stream: IO[str], lines: list[str]) -> None:
        with stream:
            lines.extend(line.rstrip("\n") for line in stream)  # one by one, as they come

    @property
    def told(self) -> str:
        return "\n".join([self.name, *self.lines[-20:], *self._errors[-20:]])

    def tell(self, line: str) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(line + "\n")
        self._child.stdin.flush()

    def close(self) -> None:
        """End its input, and wait until it has ended."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        try:
            code = self._child.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"it did not close: {self.told}") from None
        for thread in self._threads:
            thread.join()
        assert code == 0, self.told

    def kill(self) -> None:
        self._child.kill()
        self._child.wait()
        assert self._child.stdin is not None
        self._child.stdin.close()
        for thread in self._threads:
            thread.join()
