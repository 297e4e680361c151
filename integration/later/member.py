"""A member of a group as a process of a client's program."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from typing import IO

from integration.later import programs

PATIENCE_S = 60.0


class Member:
    """Started when made. ``lines`` are what it has printed; ``close`` or ``kill`` it."""

    def __init__(self, client: str, address: str, group: str, topic: str, *config: str) -> None:
        command = programs.command(client, "member", address, group, topic, *config)
        self.client = client
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

    def words(self, first: str) -> list[list[str]]:
        """The lines that begin with a word, without it."""
        return [line.split()[1:] for line in list(self.lines) if line.split()[:1] == [first]]

    @property
    def assigned(self) -> set[int]:
        """The partitions of the newest assignment."""
        found = self.words("assigned")
        return {int(each) for each in found[-1][0].split(",")} if found and found[-1] else set()

    @property
    def messages(self) -> list[tuple[int, int]]:
        """(partition, offset) as they came."""
        return [(int(partition), int(offset)) for partition, offset in self.words("message")]

    @property
    def told(self) -> str:
        return "\n".join([self.client, *self.lines[-20:], *self._errors[-20:]])

    def close(self) -> None:
        """End its input, and wait until it has left the group."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        try:
            code = self._child.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"it did not close: {self.told}") from None
        for thread in self._threads:
            thread.join()
        assert (code, self.lines[-1:]) == (0, ["closed"]), self.told

    def kill(self) -> None:
        self._child.kill()
        self._child.wait()
        assert self._child.stdin is not None
        self._child.stdin.close()
        for thread in self._threads:
            thread.join()


def await_members(
    what: str, timeout: float, condition: Callable[[], object], *members: Member
) -> None:
    """Until ``condition()`` is true; what the members said is in the error."""
    deadline = time.monotonic() + timeout
    while not condition():
        told = "\n\n".join(member.told for member in members)
        assert time.monotonic() < deadline, f"{what}: not within {timeout} s\n{told}"
        time.sleep(0.05)
