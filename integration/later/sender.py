"""A producer as a process of a client's program: sends values as it is told to."""

from __future__ import annotations

import time
from typing import NamedTuple

from integration.later import programs
from integration.later.child import Child


class Sent(NamedTuple):
    """The end of one message. ``offset`` -1: the client does not know it."""

    number: int
    offset: int
    error: str


class Sender(Child):
    """Started when made; ``close`` or ``kill`` it. Its messages are numbered from 0 on."""

    def __init__(
        self,
        client: str,
        address: str,
        topic: str,
        *config: str,
        codec: str = "none",
        request_timeout_ms: int = 5000,
    ) -> None:
        args = ("send", address, topic, 0, codec, request_timeout_ms, *config)
        super().__init__(client, programs.command(client, *args))
        self.values: list[bytes] = []

    def send(self, value: bytes, header: bytes = b"") -> None:
        """Without waiting for its end. ``header``: the value of a header, if it has one."""
        self.values.append(value)
        self.tell(f"{value.hex()} {header.hex()}".rstrip())

    @property
    def ends(self) -> list[Sent]:
        """In the order in which the client knew them."""
        found = [line.split(maxsplit=2) for line in list(self.lines)]
        return [Sent(int(words[0]), int(words[1]), "".join(words[2:])) for words in found]

    def await_ends(self, count: int, timeout: float = 60) -> list[Sent]:
        """Until so many messages have ended."""
        deadline = time.monotonic() + timeout
        while len(self.lines) < count:
            assert time.monotonic() < deadline, f"{len(self.lines)} of {count}: {self.told}"
            time.sleep(0.01)
        return self.ends
