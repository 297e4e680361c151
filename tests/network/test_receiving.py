"""Frames read from a socket, as short or as far ahead as they may be."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from kafka08.errors import ProtocolError
from kafka08.network.memory import RequestMemory
from kafka08.network.receiving import Receiver
from kafka08.network.transport import PlainSocket
from tests.network.socket_service import framed

MAX_BYTES = 4 << 20


class Reading:
    """A receiver of a socket, and the peer that sends."""

    address = "reader:1"
    serving = False

    def __init__(self) -> None:
        ours, self.peer = socket.socketpair()
        self.peer.setblocking(False)
        self.sock = PlainSocket(fileno=ours.detach())
        self.sock.setblocking(False)
        self.memory = RequestMemory(MAX_BYTES)
        self.receiver = Receiver(self.sock, MAX_BYTES, self.memory)

    def shutdown(self) -> None:
        self.sock.close()

    def read(self) -> list[bytes]:
        """Read once, and handle the frames."""
        assert self.receiver.read(self)
        frames, self.receiver.frames = self.receiver.frames, []
        self.receiver.give_memory_back(self)
        return [bytes(frame) for frame in frames]


@pytest.fixture
def reading() -> Iterator[Reading]:
    made = Reading()
    yield made
    made.sock.close()
    made.peer.close()


def test_whole_frames_are_there_and_the_rest_comes_later(reading: Reading) -> None:
    with pytest.raises(BlockingIOError):
        reading.read()
    assert reading.receiver.is_drained and not reading.receiver.frames
    reading.peer.sendall(framed(b"one") + framed(b"two")[:-1])
    assert reading.read() == [b"one"] and reading.receiver.is_drained
    reading.peer.sendall(b"o" + framed(b"x" * 4000))
    assert reading.read() == [b"two", b"x" * 4000]
    reading.peer.close()
    assert not reading.receiver.read(reading)


def test_a_wrong_size_is_raised_after_the_frames_before_it(reading: Reading) -> None:
    reading.peer.sendall(framed(b"fine") + b"\xff" * 4)
    assert reading.read() == [b"fine"] and reading.receiver.has_failed
    with pytest.raises(ProtocolError, match="a frame of -1 bytes"):
        reading.receiver.read(reading)


def test_a_large_request_has_memory_until_it_was_handled(reading: Reading) -> None:
    body = bytes(1 << 20)
    sent, frames, used, short = framed(body), [], 0, []
    while not frames:
        with suppress(BlockingIOError):
            sent = sent[reading.peer.send(sent) :]
        short.append(reading.receiver.is_short)
        assert reading.receiver.read(reading)
        used = max(used, reading.memory.used)
        frames, reading.receiver.frames = reading.receiver.frames, []
    assert bytes(frames[0]) == body
    assert used == 4 + len(body) == reading.memory.used
    assert short[0] and not any(short[1:])
    reading.receiver.give_memory_back(reading)
    assert reading.memory.used == 0
