"""The socket server and connections that log in first."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kafka08.network import half_open
from kafka08.network import server as server_module
from kafka08.network.connection import Handle
from kafka08.network.peer import Peer, Session
from kafka08.network.server import ConnectionClosed, Listener, Server
from tests.network.socket_service import Service, SocketClient, framed


def test_the_sessions_of_a_login_are_ended(service: Service) -> None:
    """Those of the user's other mechanisms, and of others, go on."""
    logins = iter((Session("A", "carol"), Session("B", "carol"), None))

    def login(peer: Peer, serve: Handle) -> Handle:
        peer.session = next(logins)
        return serve

    server = Server([Listener("127.0.0.1", 0, "SASL")], max_request_bytes=1000, idle_ms=600_000)
    server.start(service.handle, {"SASL": login})
    clients = [SocketClient(server.ports[0]) for _ in range(3)]
    try:
        for client in clients:
            assert client.call(b"x")
        server.end_sessions({Session("A", "carol"), Session("A", "dave")})
        assert clients[0].is_closed()
        for client in clients[1:]:
            assert client.call(b"x")
    finally:
        for client in clients:
            client.sock.close()
        server.stop()


class Door:
    """A login that takes the word "open"."""

    def __init__(self) -> None:
        self.peer = Peer()

    def begin(self, peer: Peer, serve: Handle) -> Handle:
        self.peer = peer

        def handle(frame: memoryview, address: str) -> list[Any] | None:
            if peer.is_admitted:
                return serve(frame, address)
            if bytes(frame) == b"open":
                peer.admit("User:alice")
                return [framed(b"come in")]
            refused = ConnectionClosed("a wrong word")
            refused.reply = [framed(b"no")]
            raise refused

        return handle


@pytest.fixture
def door(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[Door, SocketClient]]]:
    """A server of a listener with a login, and a client of it."""
    monkeypatch.setattr(server_module, "_LOOK_SECONDS", 0.02)
    with ExitStack() as stack:

        def start(**settings: Any) -> tuple[Door, SocketClient]:
            door = Door()
            settings = {"max_request_bytes": 1 << 20, **settings}
            server = Server([Listener("127.0.0.1", 0, "INNER")], **settings)
            server.start(service.handle, {"INNER": door.begin})
            stack.callback(server.stop)
            client = SocketClient(server.ports[0])
            stack.callback(client.sock.close)
            return door, client

        yield start


def test_a_login_comes_first_and_its_last_word_is_sent(
    service: Service, door: Callable[..., tuple[Door, SocketClient]]
) -> None:
    login, client = door()
    client.send(b"open", b"request")
    assert (client.reply(), client.reply()) == (b"come in", b"request")
    assert login.peer.principal == "User:alice"
    _, other = door()
    other.send(b"request", b"request")
    assert other.reply() == b"no"
    assert other.is_closed()
    assert service.frames == [b"request"]


def test_frames_are_small_until_the_login_is_done(
    door: Callable[..., tuple[Door, SocketClient]], caplog: pytest.LogCaptureFixture
) -> None:
    _, client = door()
    client.sock.sendall(struct.pack(">i", 524_289))
    assert client.is_closed()
    assert [each for each in caplog.records if each.levelno > logging.INFO] == []
    _, other = door()
    assert other.call(b"open") == b"come in"
    assert other.call(b"x" * 600_000) == b"x" * 600_000


@pytest.mark.scenario("security-27")
def test_a_login_has_a_deadline(
    door: Callable[..., tuple[Door, SocketClient]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that come meanwhile do not move it; connections with a login are not ended."""
    monkeypatch.setattr(half_open.HalfOpen.__init__, "__defaults__", (0.2, 200, 2000))
    _, client = door()
    _, other = door()
    assert other.call(b"open") == b"come in"
    client.sock.settimeout(0.02)
    with pytest.raises((ConnectionError, EOFError)):
        for byte in struct.pack(">i", 1000) + bytes(500):
            client.sock.sendall(bytes([byte]))
            try:
                if client.sock.recv(1) == b"":
                    raise EOFError
            except TimeoutError:
                pass
    assert other.call(b"still here") == b"still here"
