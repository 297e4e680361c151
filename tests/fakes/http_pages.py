"""Brokers' pages over HTTP, without sockets."""

from __future__ import annotations

import json
from typing import Any

from tests.fakes.runtime import FakeRuntime

Counts = dict[str, tuple[int, int]]
"""Bytes in and out by topic, "" for all together."""


def answer(body: bytes) -> bytes:
    """An answer with this body."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + body


def bean_list(counts: Counts) -> bytes:
    """The page of a broker with these counts."""
    found: list[dict[str, Any]] = []
    for topic, (bytes_in, bytes_out) in counts.items():
        tag = f",topic={topic}" if topic else ""
        for name, count in (("In", bytes_in), ("Out", bytes_out), ("Rejected", 7)):
            bean = f"kafka.server:type=BrokerTopicMetrics,name=Bytes{name}PerSec{tag}"
            found.append({"name": bean, "Count": count, "OneMinuteRate": 0.5})
    return json.dumps({"beans": found}).encode()


def beans(counts: Counts) -> bytes:
    """The answer with that page."""
    return answer(bean_list(counts))


class ServedPages:
    """``answers``: by host and port, the bytes of an answer or the error of the connection; without
    one it is refused. ``asked``: what was sent, with where. ``pause``: seconds before each piece of
    an answer, of ``piece`` bytes."""

    def __init__(self, runtime: FakeRuntime) -> None:
        self.answers: dict[tuple[str, int], bytes | OSError] = {}
        self.asked: list[tuple[tuple[str, int], bytes]] = []
        self.closed = 0
        self.pause = 0.0
        self.piece = 1000
        self.runtime = runtime
        runtime.open_socket = self.open

    def open(self, host: str, port: int) -> _Socket:
        answer = self.answers.get((host, port), ConnectionRefusedError("refused"))
        if isinstance(answer, OSError):
            raise answer
        return _Socket(self, (host, port), answer)


class _Socket:
    def __init__(self, pages: ServedPages, place: tuple[str, int], left: bytes) -> None:
        self._pages = pages
        self._place = place
        self._left = left

    def sendall(self, data: bytes) -> None:
        self._pages.asked.append((self._place, data))

    def recv(self, size: int) -> bytes:
        self._pages.runtime.clock.advance(self._pages.pause)
        size = min(size, self._pages.piece)
        piece, self._left = self._left[:size], self._left[size:]
        return piece

    def close(self) -> None:
        self._pages.closed += 1
