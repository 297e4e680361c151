"""The socket server over real sockets: order, bounds, limits, slow peers, its end."""

from __future__ import annotations

import errno
import logging
import select
import socket as stdlib_socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import gevent
import pytest
from gevent import socket
from gevent.event import Event

from kafka08.errors import KafkaError
from kafka08.log.segments.file_slice import FileSlice, SegmentFile
from kafka08.metrics.requests import RequestMeter
from kafka08.network import half_open
from kafka08.network import server as server_module
from kafka08.network.connection import Handle
from kafka08.network.connection_limits import ConnectionLimits, Most
from kafka08.network.peer import Peer, Session, current_peer
from kafka08.network.server import ConnectionClosed, Listener, Server
from kafka08.runtime import SystemClock

PATIENCE = 5.0


class Service:
    """The service of the tests' server: echoes, unless a frame says otherwise."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.addresses: list[str] = []
        self.ports: list[int] = []
        self.gate = Event()
        self.waiting = Event()
        self.slices: dict[bytes, FileSlice] = {}
        self.times: list[tuple[float, float, float]] = []
        self.meter = RequestMeter()

    def handle(self, frame: memoryview, address: str) -> list[Any] | None:
        body = bytes(frame)
        self.frames.append(body)
        host, _, port = address.rpartition(":")
        self.addresses.append(host)
        self.ports.append(int(port))
        if body.startswith(b"timed"):
            peer = current_peer.get()
            assert peer is not None
            self.times.append((peer.read_at, peer.begun_at, time.monotonic()))
            peer.unsent.append((self.meter, 0.0, 0.0, 0.0, time.monotonic()))
        if body == b"silent":
            return None
        if body.startswith(b"mute"):
            peer = current_peer.get()
            assert peer is not None
            peer.mute_seconds = float(body[4:])
        if body == b"close":
            raise ConnectionClosed("as told")
        if body == b"fail":
            raise ValueError("as told")
        if body == b"until the peer ends":
            ended = Event()
            peer = current_peer.get()
            assert peer is not None
            peer.wake = ended.set
            self.waiting.set()
            ended.wait()
            peer.wake = None
        if body == b"wait":
            self.waiting.set()
            self.gate.wait()
        if body in self.slices:
            part = self.slices[body]
            return [struct.pack(">i", len(part)), part]
        return [struct.pack(">i", len(body)), body]


class SocketClient:
    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.sock = socket.create_connection((host, port), PATIENCE)

    def send(self, *bodies: bytes) -> None:
        self.sock.sendall(b"".join(framed(body) for body in bodies))

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.sock.recv(size - len(data))
            if not piece:
                raise EOFError(data)
            data += piece
        return data

    def reply(self) -> bytes:
        return self.read(struct.unpack(">i", self.read(4))[0])

    def call(self, body: bytes) -> bytes:
        self.send(body)
        return self.reply()

    def is_closed(self) -> bool:
        """Waits for the end; False if bytes come instead."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@pytest.fixture
def service() -> Service:
    return Service()


Start = Callable[..., Server]


@pytest.fixture
def start(service: Service) -> Iterator[Start]:
    with ExitStack() as stack:

        def start(**settings: Any) -> Server:
            settings = {"max_request_bytes": 1000, "idle_ms": 600_000, **settings}
            host = settings.pop("host", "127.0.0.1")
            server = Server([Listener(host, 0)], **settings)
            server.start(service.handle)
            stack.callback(server.stop)
            stack.callback(service.gate.set)
            return server

        yield start


@pytest.fixture
def connect() -> Iterator[Callable[..., SocketClient]]:
    with ExitStack() as stack:

        def connect(server: Server, host: str = "127.0.0.1") -> SocketClient:
            client = SocketClient(server.ports[0], host)
            stack.callback(client.sock.close)
            return client

        yield connect


Connect = Callable[..., SocketClient]


def limits(**given: Any) -> ConnectionLimits:
    return ConnectionLimits(SystemClock(), **given)


def until(condition: Callable[[], bool]) -> None:
    """Let the server's greenlets run until something is so."""
    with gevent.Timeout(PATIENCE):
        while not condition():
            gevent.sleep(0)


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


# Families of addresses


def has_ipv6() -> bool:
    try:
        with stdlib_socket.socket(stdlib_socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")


@needs_ipv6
@pytest.mark.parametrize("host", [None, "", " "])
def test_both_families_without_a_host(
    start: Start, connect: Connect, service: Service, host: str | None
) -> None:
    server = start(host=host)
    assert connect(server, "127.0.0.1").call(b"four") == b"four"
    assert connect(server, "::1").call(b"six") == b"six"
    assert service.addresses == ["127.0.0.1", "::1"]


@needs_ipv6
@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_an_ipv6_address_as_host(
    start: Start, connect: Connect, service: Service, host: str
) -> None:
    server = start(host=host)
    assert connect(server, "::1").call(b"six") == b"six"
    with pytest.raises(ConnectionRefusedError):
        connect(server, "127.0.0.1")


@pytest.mark.scenario("security-50")
@needs_ipv6
def test_limits_go_by_address_on_a_socket_for_both_families(start: Start, connect: Connect) -> None:
    server = start(host=None, limits=limits(of_addresses={"127.0.0.1": 1, "::1": 2, "10.1.1.1": 9}))
    four, six = connect(server, "127.0.0.1"), [connect(server, "::1") for _ in range(2)]
    assert [client.call(b"in") for client in (four, *six)] == [b"in"] * 3
    assert connect(server, "127.0.0.1").is_closed()
    assert connect(server, "::1").is_closed()


def test_ipv4_alone_where_the_machine_has_no_ipv6(
    monkeypatch: pytest.MonkeyPatch, start: Start, connect: Connect, service: Service
) -> None:
    real = socket.socket

    def without_ipv6(family: int, *args: Any) -> Any:
        if family == stdlib_socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return real(family, *args)

    monkeypatch.setattr(socket, "socket", without_ipv6)
    server = start(host=None)
    monkeypatch.undo()
    assert connect(server).call(b"four") == b"four"
    assert service.addresses == ["127.0.0.1"]


def test_a_port_taken_on_one_family_is_not_shared(start: Start) -> None:
    taken = start(host="127.0.0.1").ports[0]
    with pytest.raises(KafkaError, match=f"failed to bind to 0.0.0.0:{taken}"):
        Server([Listener(None, taken)], max_request_bytes=1)


def test_a_host_that_does_not_resolve_fails_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*_: Any, **__: Any) -> None:
        raise stdlib_socket.gaierror(stdlib_socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(stdlib_socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(KafkaError, match="failed to bind to box:9092: Name or service not known"):
        Server([Listener("box", 9092)], max_request_bytes=1)


# Slices of files


@pytest.fixture
def stored(tmp_path: Path) -> SegmentFile:
    path = tmp_path / "stored"
    path.write_bytes(bytes(range(256)) * 16384)
    return SegmentFile.open(str(path))


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


# Limits


@pytest.mark.scenario("security-50")
def test_connections_beyond_an_addresss_limit_are_closed_without_a_byte(
    start: Start, connect: Connect
) -> None:
    server = start(limits=limits(of_address=2))
    first, second = connect(server), connect(server)
    assert first.call(b"1") == b"1"
    assert second.call(b"2") == b"2"
    assert connect(server).is_closed()
    first.sock.close()
    until(lambda: server.connections == 1)
    assert connect(server).call(b"3") == b"3"


@pytest.mark.scenario("security-50")
def test_an_override_stands_for_its_host(start: Start, connect: Connect) -> None:
    server = start(limits=limits(of_address=0, of_addresses={"localhost": 1}))
    first = connect(server)
    assert first.call(b"1") == b"1"
    assert connect(server).is_closed()


def test_over_the_limit_of_all_the_next_waits(start: Start, connect: Connect) -> None:
    server = start(limits=limits(of_all=Most(2)))
    first, second = connect(server), connect(server)
    assert [first.call(b"1"), second.call(b"2")] == [b"1", b"2"]
    third = connect(server)
    third.send(b"3")
    gevent.sleep(0.15)
    assert server.connections == 2
    first.sock.close()
    assert third.reply() == b"3"


def test_connections_that_come_too_fast_are_accepted_later(start: Start, connect: Connect) -> None:
    server = start(limits=limits(of_all=Most(per_second=20), seconds=0.1))
    began = time.monotonic()
    clients = [connect(server) for _ in range(6)]
    assert [client.call(b"x") for client in clients] == [b"x"] * 6
    assert time.monotonic() - began > 0.1


def test_a_broker_takes_the_place_of_the_idlest_client(service: Service) -> None:
    given = limits(of_all=Most(2), exempt="INNER")
    listening = [Listener("127.0.0.1", 0), Listener("127.0.0.1", 0, "INNER")]
    server = Server(listening, max_request_bytes=1000, limits=given)
    server.start(service.handle)
    clients = [SocketClient(server.ports[0]), SocketClient(server.ports[0])]
    idle, busy = clients
    try:
        assert [idle.call(b"1"), busy.call(b"2")] == [b"1", b"2"]
        clients.append(SocketClient(server.ports[1]))
        assert clients[-1].call(b"3") == b"3"
        assert idle.is_closed()
        assert busy.call(b"4") == b"4"
    finally:
        for client in clients:
            client.sock.close()
        server.stop()


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


def test_a_taken_port_is_told_before_anything_starts(start: Start) -> None:
    server = start()
    with pytest.raises(KafkaError, match=f"failed to bind to 127.0.0.1:{server.ports[0]}"):
        Server([Listener("127.0.0.1", server.ports[0])], max_request_bytes=1000)


def test_listeners_share_the_limits_and_tell_themselves_apart(service: Service) -> None:
    seen: list[tuple[str, str, str]] = []

    def handle(frame: memoryview, address: str) -> list[Any] | None:
        peer = current_peer.get()
        assert peer is not None
        seen.append((peer.listener, peer.host, peer.principal))
        return service.handle(frame, address)

    def login(peer: Peer, handle: Handle) -> Handle:
        peer.admit("User:alice")
        return handle

    server = Server(
        [Listener("127.0.0.1", 0), Listener("127.0.0.1", 0, "INNER")],
        max_request_bytes=1000,
        limits=limits(of_address=2),
    )
    server.start(handle, {"INNER": login})
    clients = [SocketClient(port) for port in server.ports]
    try:
        for client in clients:
            assert client.call(b"x") == b"x"
        assert seen == [
            ("PLAINTEXT", "127.0.0.1", "User:ANONYMOUS"),
            ("INNER", "127.0.0.1", "User:alice"),
        ]
        clients.append(SocketClient(server.ports[1]))
        assert clients[-1].is_closed()
    finally:
        for client in clients:
            client.sock.close()
        server.stop()


def test_a_second_listener_that_cannot_be_bound_frees_the_first(start: Start) -> None:
    taken = start().ports[0]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(KafkaError, match=f"failed to bind to 127.0.0.1:{taken}"):
        Server([Listener("127.0.0.1", port), Listener("127.0.0.1", taken)], max_request_bytes=1)
    with socket.socket() as again:
        again.bind(("127.0.0.1", port))


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
