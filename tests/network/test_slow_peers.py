"""The socket server and peers that read slowly, are silent, leave or are muted."""

from __future__ import annotations

import select
import struct
import time
from typing import Any

import gevent
import pytest
from gevent import socket

from kafka08.log.segments.file_slice import FileSlice, SegmentFile
from kafka08.network import server as server_module
from tests.network.socket_service import Connect, Service, Start, framed, until


def test_a_slow_reader_gets_all_of_a_large_slice(
    start: Start, connect: Connect, service: Service, stored: SegmentFile
) -> None:
    size = 256 * 2048
    service.slices = {b"s": FileSlice(stored, 0, size)}
    server = start(send_buffer_bytes=4096)
    slow, other = connect(server), connect(server)
    slow.send(b"s", b"after")
    assert struct.unpack(">i", slow.read(4)) == (size,)
    data = bytearray()
    while len(data) < size:
        data += slow.read(min(50_007, size - len(data)))
        assert other.call(b"hello") == b"hello"
    assert data == bytes(range(256)) * 2048
    assert slow.reply() == b"after"


def test_a_peer_that_never_reads_stops_nobody_else(
    start: Start, connect: Connect, service: Service, stored: SegmentFile
) -> None:
    service.slices = {b"s": FileSlice(stored, 0, 256 * 16384)}
    server = start(send_buffer_bytes=4096)
    deaf, other = connect(server), connect(server)
    deaf.send(*[b"s"] * 10)
    for number in range(50):
        assert other.call(b"%d" % number) == b"%d" % number
    assert 1 <= service.frames.count(b"s") < 10  # what is behind an unsent reply waits


def test_short_replies_nobody_reads_do_not_pile_up(
    start: Start, connect: Connect, service: Service
) -> None:
    server = start(send_buffer_bytes=4096)
    deaf, other = connect(server), connect(server)
    body = b"d" * 900
    sender = gevent.spawn(lambda: [deaf.send(body) for _ in range(20_000)])
    served = -1
    while served != service.frames.count(body):
        served = service.frames.count(body)
        for _ in range(100):
            assert other.call(b"hello") == b"hello"
    sender.kill()
    assert 1 <= served < 20_000


def test_silent_connections_are_closed(start: Start, connect: Connect) -> None:
    server = start(idle_ms=60)
    never, half, done = connect(server), connect(server), connect(server)
    half.sock.sendall(framed(b"cut")[:-1])
    assert done.call(b"hello") == b"hello"
    assert never.is_closed() and half.is_closed() and done.is_closed()
    until(lambda: server.connections == 0)


def test_a_request_in_work_is_not_idleness(
    start: Start, connect: Connect, service: Service
) -> None:
    server = start(idle_ms=60)
    waiting, silent = connect(server), connect(server)
    waiting.send(b"wait")
    assert silent.is_closed()
    service.gate.set()
    assert waiting.reply() == b"wait"


def test_a_peer_that_never_reads_idles_out(
    start: Start, connect: Connect, service: Service, stored: SegmentFile
) -> None:
    service.slices = {b"s": FileSlice(stored, 0, 256 * 16384)}
    server = start(idle_ms=60, send_buffer_bytes=4096)
    deaf, broken = connect(server), connect(server)
    deaf.send(b"s")
    broken.send(b"s", b"fail")  # the connection is over but for the reply nobody takes
    until(lambda: service.frames.count(b"s") == 2)
    until(lambda: server.connections == 0)


@pytest.mark.parametrize("half", [True, False])
@pytest.mark.parametrize("next_request", [b"", b"and more"])
def test_a_peer_that_leaves_while_its_request_waits_is_noticed(
    start: Start, connect: Connect, service: Service, half: bool, next_request: bytes
) -> None:
    """Also behind unread bytes. A peer that closed only its sending half gets the answers."""
    server = start()
    client = connect(server)
    client.send(b"until the peer ends", *filter(None, [next_request]))
    until(service.waiting.is_set)
    if half:
        client.sock.shutdown(socket.SHUT_WR)
        assert client.reply() == b"until the peer ends"
        assert not next_request or client.reply() == next_request
        assert client.is_closed()
    else:
        client.sock.close()
    until(lambda: server.connections == 0)


def test_a_peer_that_stays_is_not_taken_for_gone(
    start: Start, connect: Connect, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    poll = select.poll

    def counted() -> Any:
        looks.append(1)
        return poll()

    monkeypatch.setattr(server_module, "_LOOK_SECONDS", 0.001)
    monkeypatch.setattr(select, "poll", counted)
    server = start()
    client = connect(server)
    client.send(b"until the peer ends", b"next")
    until(service.waiting.is_set)
    seen = len(looks)
    until(lambda: len(looks) > seen + 3)
    assert server.connections == 1
    assert service.frames == [b"until the peer ends"]
    client.sock.close()
    until(lambda: server.connections == 0)


# Muted connections


@pytest.mark.scenario("security-44")
def test_a_muted_connection_is_answered_and_read_from_later(
    start: Start, connect: Connect, service: Service
) -> None:
    server = start()
    client, other = connect(server), connect(server)
    began = time.monotonic()
    client.send(b"mute 0.3", b"behind")
    assert client.reply() == b"mute 0.3"
    client.send(b"later")
    assert other.call(b"other") == b"other"
    assert service.frames == [b"mute 0.3", b"other"]
    assert time.monotonic() - began < 0.3
    assert [client.reply(), client.reply()] == [b"behind", b"later"]
    assert time.monotonic() - began >= 0.3


@pytest.mark.scenario("security-49")
def test_49_a_muted_connection_ends_when_its_peer_has_closed(
    start: Start, connect: Connect, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_LOOK_SECONDS", 0.02)
    server = start()
    client = connect(server)
    client.send(b"mute 60", b"mute 60", b"last")
    assert client.reply() == b"mute 60"
    client.sock.close()
    until(lambda: server.connections == 0)
    assert service.frames == [b"mute 60", b"mute 60", b"last"]


@pytest.mark.scenario("security-49")
def test_49_a_muted_connection_idles_out(start: Start, connect: Connect) -> None:
    server = start(idle_ms=60)
    client = connect(server)
    assert client.call(b"mute 60") == b"mute 60"
    assert client.is_closed()
    until(lambda: server.connections == 0)


@pytest.mark.scenario("security-49")
def test_49_a_stop_does_not_wait_for_a_mute(
    start: Start, connect: Connect, service: Service
) -> None:
    server = start()
    client = connect(server)
    client.send(b"mute 60", b"behind")
    assert client.reply() == b"mute 60"
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < server_module.STOP_SECONDS
    assert server.connections == 0
