"""Plain sockets that do not block. Those with TLS are in test_tls."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.network.transport import PlainSocket


@pytest.fixture
def ends() -> Iterator[tuple[PlainSocket, socket.socket]]:
    near, far = socket.socketpair()
    near.setblocking(False)
    with PlainSocket(fileno=near.detach()) as sock, far:
        yield sock, far


def test_what_there_is_is_read_and_no_more(ends: tuple[PlainSocket, socket.socket]) -> None:
    sock, far = ends
    sock.setblocking(False)
    buffer = bytearray(100)
    with pytest.raises(BlockingIOError):
        sock.recv_into(buffer)
    far.sendall(b"abc")
    assert sock.recv_into(buffer) == 3 and buffer[:3] == b"abc"


def test_files_are_sent_whole(ends: tuple[PlainSocket, socket.socket], tmp_path: Path) -> None:
    sock, far = ends
    sock.setblocking(False)
    data = os.urandom(1 << 20)
    (tmp_path / "f").write_bytes(data)
    found = bytearray()

    def wait_write() -> None:
        found.extend(far.recv(1 << 16))

    with (tmp_path / "f").open("rb") as file:
        sock.send_file(file.fileno(), 5, len(data) - 5, wait_write)
        while len(found) < len(data) - 5:
            wait_write()
        assert bytes(found) == data[5:]
        with pytest.raises(OSError, match="the file ends before its size"):
            sock.send_file(file.fileno(), len(data), 1, wait_write)
