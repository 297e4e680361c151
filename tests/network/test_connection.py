"""Single turns of a connection, without a server."""

from __future__ import annotations

import math
import socket
import struct
from collections.abc import Iterator

import pytest

from kafka08.network.connection import Connection
from kafka08.network.memory import RequestMemory
from kafka08.network.peer import Peer, current_peer
from kafka08.network.transport import PlainSocket
from kafka08.network.workers import END, WAIT


class Turns:
    """A connection that notes its frames and answers none, and the socket of its peer."""

    def __init__(self) -> None:
        ours, self.peer = socket.socketpair()
        sock = PlainSocket(fileno=ours.detach())
        sock.setblocking(False)
        self.frames: list[bytes] = []
        self.connection = Connection(sock, Peer("host:1"), 1000, RequestMemory(-1), self.handle)
        self.connection.last_active = 0.0

    def handle(self, frame: memoryview, address: str) -> None:
        self.frames.append(bytes(frame))

    def turn(self) -> int:
        return self.connection.serve(math.inf)


@pytest.fixture
def turns() -> Iterator[Turns]:
    made = Turns()
    token = current_peer.set(None)  # a turn leaves its peer, also to the tests after these
    yield made
    current_peer.reset(token)
    made.connection.close()
    made.peer.close()


def test_a_turn_without_bytes_is_no_traffic(turns: Turns) -> None:
    turns.connection.read_ahead()
    assert turns.turn() == WAIT
    assert turns.connection.last_active == 0.0
    turns.peer.sendall(b"\0")  # less than a frame
    assert turns.turn() == WAIT
    assert turns.connection.last_active > 0.0


def test_frames_that_were_read_ahead_are_handled_in_the_turn_alone(turns: Turns) -> None:
    turns.peer.sendall(struct.pack(">i", 3) + b"one" + struct.pack(">i", 3) + b"tw")
    turns.connection.read_ahead()
    turns.peer.sendall(b"o")
    turns.connection.read_ahead()  # does not read over the first frame
    assert turns.frames == []
    assert turns.turn() == WAIT and turns.frames == [b"one"]
    turns.connection.read_ahead()
    turns.peer.close()
    assert turns.turn() == WAIT and turns.frames == [b"one", b"two"]
    turns.connection.read_ahead()
    assert turns.turn() == END
