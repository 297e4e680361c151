"""The socket server over real sockets: frames, order, slices of files, its end."""

from __future__ import annotations

import struct
from typing import Any

import gevent
import pytest
from gevent import socket

from kafka08.log.segments.file_slice import FileSlice, SegmentFile
from tests.network.socket_service import (
    PATIENCE,
    Connect,
    Service,
    SocketClient,
    Start,
    framed,
    until,
)

# Frames and replies


def test_a_request_is_answered(start: Start, connect: Connect, service: Service) -> None:
    client = connect(start())
    assert client.call(b"hello") == b"hello"
    assert service.addresses == ["127.0.0.1"]
    assert service.ports == [client.sock.getsockname()[1]]


def test_pipelined_requests_are_answered_in_order(start: Start, connect: Connect) -> None:
    client = connect(start())
    bodies = [b"%d" % number for number in range(1000)]
    client.send(*bodies)
    assert [client.reply() for _ in bodies] == bodies


def test_the_times_of_requests_that_arrive_together(
    start: Start, connect: Connect, service: Service
) -> None:
    client = connect(start())
    client.send(b"timed", b"timed", b"timed" + b"x" * 900)
    for _ in range(3):
        client.reply()
    (read, begun, over), (again, after, _), _ = service.times
    assert read == begun == again
    assert over <= after
    until(lambda: service.meter.requests.count == 3)
    service.meter.settle()
    assert service.meter.response_send_time.sum > 0
    assert service.meter.response_queue_time.min >= 0


def test_a_request_that_waits_lets_the_replies_before_it_go_and_holds_those_behind(
    start: Start, connect: Connect, service: Service
) -> None:
    client = connect(start())
    client.send(b"before", b"wait", b"behind")
    assert client.reply() == b"before"
    service.waiting.wait(PATIENCE)
    assert service.frames == [b"before", b"wait"]
    service.gate.set()
    assert [client.reply(), client.reply()] == [b"wait", b"behind"]


def test_connections_do_not_wait_for_each_other(
    start: Start, connect: Connect, service: Service
) -> None:
    server = start()
    slow, quick = connect(server), connect(server)
    slow.send(b"wait")
    service.waiting.wait(PATIENCE)
    assert quick.call(b"hello") == b"hello"


def test_those_who_are_ready_together_are_told_apart(
    start: Start, connect: Connect, service: Service
) -> None:
    server = start()
    whole, half, wrong, gone = (connect(server) for _ in range(4))
    assert [each.call(b"hello") for each in (whole, half, wrong, gone)] == [b"hello"] * 4
    whole.send(b"whole")
    half.sock.sendall(framed(b"half a frame")[:-1])
    wrong.sock.sendall(b"\xff" * 4)
    gone.sock.close()
    assert whole.reply() == b"whole"
    assert wrong.is_closed()
    half.sock.sendall(b"e")
    assert half.reply() == b"half a frame"
    until(lambda: server.connections == 2)


def test_nothing_is_sent_for_no_reply(start: Start, connect: Connect) -> None:
    client = connect(start())
    client.send(b"silent", b"silent", b"hello")
    assert client.reply() == b"hello"


def test_frames_may_come_byte_by_byte(start: Start, connect: Connect, service: Service) -> None:
    client = connect(start())
    for byte in framed(b"hello"):
        client.sock.sendall(bytes([byte]))
        gevent.sleep(0)
    assert client.reply() == b"hello"
    assert service.frames == [b"hello"]


@pytest.mark.parametrize("size", [0, -1, -(2**31), 1001, 2**31 - 1])
def test_a_size_word_out_of_bounds_closes_at_once(
    start: Start, connect: Connect, service: Service, size: int
) -> None:
    client = connect(start())
    client.send(b"good")
    client.sock.sendall(struct.pack(">i", size))  # not a byte of the frame itself
    assert client.reply() == b"good"
    assert client.is_closed()
    assert service.frames == [b"good"]


def test_the_largest_size_is_fine(start: Start, connect: Connect) -> None:
    client = connect(start())
    assert client.call(b"x" * 1000) == b"x" * 1000


def test_half_a_frame_and_the_end_execute_nothing(
    start: Start, connect: Connect, service: Service
) -> None:
    server = start()
    client = connect(server)
    client.send(b"whole")
    client.sock.sendall(framed(b"cut")[:-1])
    assert client.reply() == b"whole"
    client.sock.shutdown(socket.SHUT_WR)
    assert client.is_closed()
    assert service.frames == [b"whole"]
    until(lambda: server.connections == 0)


def test_half_a_frame_is_waited_for(start: Start, connect: Connect, service: Service) -> None:
    server = start()
    client, other = connect(server), connect(server)
    whole = framed(b"late")
    client.sock.sendall(whole[:6])
    assert other.call(b"hello") == b"hello"
    client.sock.sendall(whole[6:])
    assert client.reply() == b"late"
    assert service.frames == [b"hello", b"late"]


@pytest.mark.parametrize("last", [b"close", b"fail"])
def test_a_handler_that_raises_closes_after_the_replies_before(
    start: Start, connect: Connect, service: Service, last: bytes
) -> None:
    server = start()
    client = connect(server)
    client.send(b"one", b"two", last, b"never")
    assert [client.reply(), client.reply()] == [b"one", b"two"]
    assert client.is_closed()
    assert service.frames == [b"one", b"two", last]
    assert connect(server).call(b"hello") == b"hello"


def test_a_slice_is_sent_between_other_replies(
    start: Start, connect: Connect, service: Service, stored: SegmentFile
) -> None:
    service.slices = {
        b"s": FileSlice(stored, 3, 1000),
        b"none": FileSlice(stored, 5, 0),
        b"long": FileSlice(stored, 7, 100_000),
    }
    client = connect(start())
    client.send(b"a", b"s", b"none", b"b", b"long", b"c")
    content = bytes(range(256)) * 500
    expected = [b"a", content[3:1003], b"", b"b", content[7:100_007], b"c"]
    assert [client.reply() for _ in expected] == expected


def test_who_was_woken_is_served_before_the_answer_leaves(
    start: Start, connect: Connect, service: Service
) -> None:
    order: list[str] = []
    handle = service.handle

    def watched(frame: memoryview, address: str) -> list[Any] | None:
        body = bytes(frame)
        reply = handle(frame, address)
        if body == b"wait":
            reply = [NotedReply(b"\0\0\0\1w", "woken", order)]
        elif body == b"wake":
            service.gate.set()
            reply = [NotedReply(b"\0\0\0\1x", "answered", order)]
        return reply

    service.handle = watched  # type: ignore[method-assign]
    server = start()
    waiting, waking = connect(server), connect(server)
    waiting.send(b"wait")
    assert service.waiting.wait(PATIENCE)
    assert waking.call(b"wake") == b"x"
    assert waiting.reply() == b"w"
    assert order == ["woken", "answered"]


class NotedReply:
    """A reply of some bytes that notes when it is taken."""

    def __init__(self, data: bytes, name: str, order: list[str]) -> None:
        self.data, self.name, self.order = data, name, order

    def __len__(self) -> int:
        return len(self.data)

    def read(self) -> bytes:
        self.order.append(self.name)
        return self.data


def test_a_file_that_is_shorter_than_its_slice_closes(
    start: Start, connect: Connect, service: Service, stored: SegmentFile
) -> None:
    service.slices = {
        b"short": FileSlice(stored, 256 * 16384 - 10, 20),
        b"long": FileSlice(stored, 256 * 16384 - 100_000, 100_001),
    }
    server = start()
    client = connect(server)
    client.send(b"short")
    assert client.is_closed()
    client = connect(server)
    client.send(b"long")
    assert len(client.read(100_004)) == 100_004
    assert client.is_closed()


# The end


def test_stopping_ends_every_greenlet(
    start: Start, connect: Connect, service: Service, stored: SegmentFile
) -> None:
    service.slices = {b"s": FileSlice(stored, 0, 256 * 16384)}
    server = start(send_buffer_bytes=4096)
    port = server.ports[0]
    silent, deaf, half = connect(server), connect(server), connect(server)
    assert silent.call(b"hello") == b"hello"
    deaf.send(b"s")
    half.sock.sendall(b"\0\0")
    until(lambda: len(service.frames) == 2 and server.connections == 3)
    server.stop()
    assert server.connections == 0
    assert silent.is_closed() and half.is_closed()
    with pytest.raises(ConnectionRefusedError):
        SocketClient(port)


def test_stopping_does_not_wait_for_ever_for_a_request(
    start: Start, connect: Connect, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka08.network.server.STOP_SECONDS", 0.05)
    server = start()
    client = connect(server)
    client.send(b"wait")
    service.waiting.wait(PATIENCE)
    server.stop()
    assert server.connections == 0
    assert client.is_closed()
