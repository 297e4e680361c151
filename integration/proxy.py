"""Stands at a broker's advertised port, so that its answers can be spoilt or made up.

Knows nothing of pytest or of the broker behind it but the port.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from integration.harness import free_port
from kafka08.protocol.requests import decode_request, encode_response

# Ways to spoil an answer; the connection ends after all but the first.
BAD_MODES = ("cut", "garbage", "absurd size", "another's answer", "hang")
HANG_S = 3.0
# Versions of Produce from which on a transactional id comes before acks, and compact.
_TRANSACTIONAL_PRODUCE, _FLEXIBLE_PRODUCE = 3, 9


class Proxy:
    """Does to answers what ``mode`` says, on the way from ``target`` on loopback.

    ``intercept(request)`` is asked first: what it returns is the answer, and the broker never
    sees the request; None lets it through. ``loses(frame)`` is asked when the broker has answered
    a request: if it says so, the answer is lost, and the connection ends.
    """

    def __init__(self, target: int = 0) -> None:
        self.mode = "pass"
        self.intercept: Callable[[Any], Any] | None = None
        self.loses: Callable[[bytes], bool] | None = None
        self.answers = 0
        self.target = target
        self._random = random.Random(7)
        self._listener = socket.create_server(("127.0.0.1", free_port()))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), socket.socket() as server:
            server.connect(("127.0.0.1", self.target))
            while True:
                request = _frame(client)
                answer = self._made_up(request)
                if answer is None:
                    server.sendall(request)
                    if _is_unanswered(request):
                        continue
                    answer = _frame(server)
                self.answers += 1
                if self.loses is not None and self.loses(request):
                    return
                if not self._answer(client, answer):
                    return

    def _made_up(self, frame: bytes) -> bytes | None:
        if self.intercept is None:
            return None
        header, request = decode_request(memoryview(bytearray(frame[4:])))
        response = self.intercept(request)
        if response is None:
            return None
        return b"".join(map(bytes, encode_response(header.correlation_id, response)))

    def _answer(self, client: socket.socket, answer: bytes) -> bool:
        """Whether the connection goes on."""
        if self.mode == "pass":
            client.sendall(answer)
            return True
        if self.mode == "cut":
            client.sendall(answer[: self._random.randrange(len(answer))])
        elif self.mode == "garbage":
            size = self._random.randrange(4, 200)
            client.sendall(struct.pack(">i", size) + self._random.randbytes(size))
        elif self.mode == "absurd size":
            client.sendall(struct.pack(">i", self._random.choice([-1, 0, 3, 2**31 - 1])))
        elif self.mode == "another's answer":
            client.sendall(answer[:4] + struct.pack(">i", 77) + answer[8:])
        elif self.mode == "hang":
            time.sleep(HANG_S)
        return False

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # or the port stays open while accept waits
        self._listener.close()


def _is_unanswered(frame: bytes) -> bool:
    """A produce request with acks 0."""
    key, version = struct.unpack_from(">hh", frame, 4)
    if key != 0:
        return False
    at = _after_string(frame, 12)
    if version >= _FLEXIBLE_PRODUCE:  # behind tagged fields, of which there are none
        at += 1 + max(frame[at + 1], 1)  # short ids alone
    elif version >= _TRANSACTIONAL_PRODUCE:
        at = _after_string(frame, at)
    return bool(struct.unpack_from(">h", frame, at) == (0,))


def _after_string(frame: bytes, at: int) -> int:
    (length,) = struct.unpack_from(">h", frame, at)
    return at + 2 + max(length, 0)


def _frame(connection: socket.socket) -> bytes:
    size = _exactly(connection, 4)
    return size + _exactly(connection, struct.unpack(">i", size)[0])


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionResetError
        data += more
    return data
