"""HTTP over real sockets: requests good and bad, deadlines, bounds, Host, TLS."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import gevent
import gevent.event
import gevent.socket
import pytest

from kafka08.errors import KafkaError
from kafka08.network.http import Bounds, Environ, Hosts, HttpServer, is_loopback
from kafka08.network.tls import SecureConnector, Tls, client_context, server_context
from kafka08.runtime import GeventRuntime
from kafka08.settings.tls import SslSettings

GOLDEN_TLS = Path(__file__).parents[1] / "golden" / "tls"
PATIENCE = 10.0
LARGE = 64 << 20
Answer = Callable[..., Any]


class HttpWorld:
    """The application of the tests: what it was asked for, and what it waits for."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.began = gevent.event.Event()
        self.go_on = gevent.event.Event()

    def __call__(self, environ: Environ, start: Answer) -> Iterable[bytes]:
        body = environ["wsgi.input"].read()
        assert len(body) == int(environ["CONTENT_LENGTH"])
        self.bodies.append(body)
        path = environ["PATH_INFO"]
        if path == "/broken":
            raise ValueError("a secret")
        if path == "/disk":
            raise OSError("a disk")
        start("200 OK", [("Content-Type", "text/plain")])
        if path == "/wait":
            self.began.set()
            self.go_on.wait()
        if path == "/large":
            return [bytes(LARGE)]
        if path == "/pieces":
            return (piece for piece in (b"one,", b"two"))
        return [f"{environ['wsgi.url_scheme']} {path}".encode()]


@pytest.fixture
def world() -> HttpWorld:
    return HttpWorld()


Start = Callable[..., HttpServer]


@pytest.fixture
def start(world: HttpWorld) -> Iterator[Start]:
    with ExitStack() as stack:

        def start(
            *, allowed_hosts: Iterable[str] = (), tls: Tls | None = None, **bounds: int
        ) -> HttpServer:
            server = HttpServer(
                "127.0.0.1",
                0,
                world,
                name="test",
                bounds=Bounds(**bounds),
                allowed_hosts=list(allowed_hosts),
                tls=tls,
            )
            stack.callback(server.stop, 0)
            server.start()
            return server

        yield start


def connect(server: HttpServer) -> Any:
    return gevent.socket.create_connection(("127.0.0.1", server.port), PATIENCE)


def head_of(sock: Any) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = sock.recv(1)
        assert byte, head
        head += byte
    return head


def rest_of(sock: Any) -> bytes:
    return b"".join(iter(partial(sock.recv, 1 << 16), b""))


def send(server: HttpServer, request: bytes) -> bytes:
    """All that is answered until the connection is closed."""
    with connect(server) as sock:
        sock.sendall(request)
        return rest_of(sock)


def get(path: str, *headers: str, method: str = "GET") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers, "", ""]
    return "\r\n".join(lines).encode()


CLOSE = "Connection: close"


def test_a_request_is_answered(start: Start) -> None:
    answer = send(start(), get("/x?y", CLOSE))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nhttp /x")


def test_a_connection_is_kept(start: Start) -> None:
    with connect(start()) as sock:
        for path in ("/a", "/b"):
            sock.sendall(get(path))
            head_of(sock)
            assert sock.recv(100) == f"http {path}".encode()


def test_requests_sent_together_are_answered_in_turn(start: Start, world: HttpWorld) -> None:
    posted = get("/a", "Content-Length: 5", method="POST") + b"hello"
    answer = send(start(body_bytes=5), posted + get("/b") + get("/c", CLOSE))
    assert re.findall(rb"http /\w", answer) == [b"http /a", b"http /b", b"http /c"]
    assert world.bodies == [b"hello", b"", b""]


def test_http_1_0_has_no_chunks(start: Start) -> None:
    answer = send(start(), b"GET /pieces HTTP/1.0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and answer.endswith(b"\r\n\r\none,two")


def test_a_client_that_is_refused_while_it_sends_gets_the_answer(start: Start) -> None:
    request = get("/x", "Content-Length: 200000", method="POST") + bytes(200_000)
    assert send(start(), request).startswith(b"HTTP/1.1 413 ")


def test_an_answer_in_pieces(start: Start) -> None:
    assert send(start(), get("/pieces", CLOSE)).endswith(b"\r\n4\r\none,\r\n3\r\ntwo\r\n0\r\n\r\n")


@pytest.mark.scenario("ops-15")
@pytest.mark.parametrize("path", ["/x", "/pieces"])
def test_head_has_no_body(start: Start, path: str) -> None:
    answer = send(start(), get(path, CLOSE, method="HEAD"))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\n")
    assert answer.count(b"\r\n\r\n") == 1


@pytest.mark.parametrize(
    "request_",
    [
        get("/x", CLOSE, "Content-Length: 5", method="POST") + b"hello",
        get("/x", CLOSE, "Transfer-Encoding: chunked", method="POST")
        + b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        get("/x", CLOSE, "Content-Length: 5", "Upgrade: websocket", method="POST") + b"hello",
    ],
)
def test_the_application_gets_the_whole_body(
    start: Start, world: HttpWorld, request_: bytes
) -> None:
    assert send(start(body_bytes=5), request_).startswith(b"HTTP/1.1 200")
    assert world.bodies == [b"hello"]


def test_a_client_that_waits_for_leave_to_send(start: Start, world: HttpWorld) -> None:
    with connect(start(body_bytes=5)) as sock:
        sock.sendall(get("/x", CLOSE, "Content-Length: 5", "Expect: 100-continue", method="POST"))
        assert head_of(sock) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b"hello")
        assert rest_of(sock).startswith(b"HTTP/1.1 200")


@pytest.mark.scenario("ops-60")
@pytest.mark.parametrize(
    ("status", "request_"),
    [
        (400, b"\r\n\r\n"),
        (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n"),
        (505, b"GET /\r\n\r\n"),
        (400, b"GET / HTTP/x\r\n\r\n"),
        (400, b"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\n\r\n"),
        (400, get("/", "Host: localhost")),
        (400, get("/", "no colon")),
        (400, get("/", *(f"X-{number}: y" for number in range(200)))),
        (400, get("/", "Content-Length: 1", "Content-Length: 1") + b"x"),
        (400, get("/", "Content-Length: -1")),
        (400, get("/", "Content-Length: 1_0") + bytes(10)),
        (400, get("/", "Content-Length: " + "9" * 5000)),
        (400, get("/", "Content-Length: 1", "Transfer-Encoding: chunked") + b"0\r\n\r\n"),
        (400, get("/", "Transfer-Encoding: chunked", method="POST") + b"zz\r\n"),
        (400, get("/", "Transfer-Encoding: chunked", method="POST") + b"1\r\nxy\r\n0\r\n\r\n"),
        (501, get("/", "Transfer-Encoding: gzip, chunked", method="POST") + b"0\r\n\r\n"),
        (413, get("/", "Content-Length: 11", method="POST")),
        (
            413,
            get("/", "Transfer-Encoding: chunked", method="POST") + b"b\r\n" + bytes(11) + b"\r\n",
        ),
        (414, b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n"),
        (431, get("/", "X: " + "y" * 17_000)),
    ],
)
def test_a_bad_request_is_refused(
    start: Start, world: HttpWorld, caplog: Any, capfd: Any, status: int, request_: bytes
) -> None:
    with caplog.at_level(logging.INFO):
        server = start(body_bytes=10)
        caplog.clear()
        with connect(server) as sock:
            sock.sendall(request_)
            assert head_of(sock).startswith(b"HTTP/1.1 %d " % status)
        assert send(server, get("/x", CLOSE)).endswith(b"http /x")
    assert world.bodies == [b""]
    assert caplog.messages == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.scenario("ops-55")
@pytest.mark.parametrize(
    ("host", "is_served"),
    [
        ("localhost", True),
        ("LOCALHOST:80", True),
        ("localhost.", True),
        ("127.0.0.1:9404", True),
        ("[::1]:9404", True),
        ("::1", True),
        ("192.0.2.1", True),
        ("metrics.example", True),
        ("Metrics.Example:1", True),
        ("evil.example", False),
        ("evil.example:80", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
        (":80", False),
    ],
)
def test_only_known_hosts_are_served(start: Start, host: str, is_served: bool) -> None:
    server = start(allowed_hosts=["metrics.example"])
    answer = send(server, f"GET / HTTP/1.1\r\nHost: {host}\r\n{CLOSE}\r\n\r\n".encode())
    assert answer.split(b"\r\n")[0] == (
        b"HTTP/1.1 200 OK" if is_served else b"HTTP/1.1 421 Misdirected Request"
    )


def test_every_host_may_be_allowed() -> None:
    assert "evil.example" in Hosts(["*"])


@pytest.mark.scenario("ops-13")
@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GE",
        get("/")[:-2],
        get("/", "Content-Length: 2", method="POST") + b"x",
        get("/", "Transfer-Encoding: chunked", method="POST") + b"2\r\nx",
    ],
)
def test_a_request_that_does_not_end_is_closed(
    start: Start, world: HttpWorld, begun: bytes
) -> None:
    server = start(deadline_ms=50, body_bytes=10)
    send(server, begun)
    assert world.bodies == []
    assert send(server, get("/x", CLOSE)).endswith(b"http /x")


@pytest.mark.scenario("ops-13")
def test_bytes_now_and_then_do_not_move_the_deadline(start: Start) -> None:
    with connect(start(deadline_ms=100)) as sock:
        sock.sendall(b"GET /")
        with pytest.raises(OSError, match=r"reset|[Bb]roken"):
            while True:
                sock.sendall(b"x")
                gevent.sleep(0.01)


def test_a_request_that_is_too_slow_gets_its_answer(start: Start) -> None:
    server = start(deadline_ms=50, body_bytes=10)
    for begun in (b"GE", get("/", "Content-Length: 2", method="POST") + b"x"):
        answer = send(server, begun)
        assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n")
        assert answer.endswith(b"the request was not there as a whole in time\n")
    assert send(server, b"") == b""


def test_a_connection_that_waits_for_its_next_request_is_closed(start: Start) -> None:
    with connect(start(deadline_ms=50)) as sock:
        sock.sendall(get("/x"))
        assert rest_of(sock).endswith(b"http /x")


@pytest.mark.scenario("ops-13")
def test_who_does_not_read_is_closed_and_others_are_served(start: Start, caplog: Any) -> None:
    server = start(deadline_ms=100)
    with connect(server) as sock:
        sock.sendall(get("/large"))
        head_of(sock)
        assert send(server, get("/x", CLOSE)).endswith(b"http /x")
        gevent.sleep(0.3)
        read = 0
        with pytest.raises(OSError, match="reset"):
            while piece := sock.recv(1 << 20):
                read += len(piece)
            assert read < LARGE
            raise ConnectionResetError("reset: it was closed")
    assert [each for each in caplog.records if each.levelno > logging.INFO] == []


@pytest.mark.scenario("ops-60")
def test_connections_are_bounded(start: Start, world: HttpWorld) -> None:
    server = start(connections=1)
    with connect(server) as first, connect(server) as second:
        first.sendall(get("/wait", CLOSE))
        world.began.wait(PATIENCE)
        second.sendall(get("/x", CLOSE))
        gevent.sleep(0.05)
        assert len(world.bodies) == 1
        world.go_on.set()
        assert rest_of(second).endswith(b"http /x")


def test_the_bodies_of_all_connections_are_bounded(start: Start, world: HttpWorld) -> None:
    server = start(body_bytes=10, bodies_bytes=15)

    def post(path: str, size: int) -> bytes:
        return get(path, f"Content-Length: {size}", CLOSE, method="POST") + b"x" * size

    for _ in range(2):
        with connect(server) as first:
            first.sendall(post("/wait", 10))
            world.began.wait(PATIENCE)
            assert send(server, post("/x", 5)).endswith(b"http /x")
            answer = send(server, post("/x", 6))
            assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
            assert answer.endswith(b"all bodies together may have 15 bytes now\n")
            world.go_on.set()
            assert rest_of(first).endswith(b"http /wait")
        world.began.clear()
        world.go_on.clear()
    assert send(server, post("/x", 10)).endswith(b"http /x")


@pytest.mark.parametrize("path", ["/broken", "/disk"])
def test_an_error_of_the_application(start: Start, caplog: Any, capfd: Any, path: str) -> None:
    server = start()
    answer = send(server, get(path + "?token=1", CLOSE))
    assert answer.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert answer.endswith(b"Internal Server Error")
    [record] = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert record.message == f"Error while answering GET {path}"
    assert record.exc_info is not None
    assert capfd.readouterr() == ("", "")


def test_a_taken_port_is_named(start: Start, world: HttpWorld) -> None:
    taken = start().port
    with pytest.raises(
        KafkaError,
        match=rf"^http: cannot listen on 127\.0\.0\.1:{taken}: Address already in use\.$",
    ):
        HttpServer("127.0.0.1", taken, world, name="http")


@pytest.mark.parametrize(
    ("host", "port"), [("127.0.0.1", 70_000), ("no.such.host.invalid", 1), ("a..b", 1)]
)
def test_an_address_that_does_not_exist_is_named(world: HttpWorld, host: str, port: int) -> None:
    with pytest.raises(KafkaError, match=rf"^http: cannot listen on {re.escape(host)}:{port}: "):
        HttpServer(host, port, world, name="http")


def test_a_stop_ends_what_is_idle_and_waits_for_requests(start: Start, world: HttpWorld) -> None:
    server = start()
    with connect(server) as idle, connect(server) as busy:
        idle.sendall(get("/x"))
        head_of(idle)
        busy.sendall(get("/wait"))
        world.began.wait(PATIENCE)
        stopping = gevent.spawn(server.stop, 10_000)
        assert rest_of(idle) == b"http /x"
        assert not stopping.ready()
        world.go_on.set()
        head_of(busy)
        assert busy.recv(100) == b"http /wait"
        stopping.join(PATIENCE)
        assert stopping.ready()
    with pytest.raises(ConnectionRefusedError):
        connect(server)


def test_a_stop_ends_requests_after_its_grace(start: Start, world: HttpWorld) -> None:
    server = start()
    with connect(server) as busy:
        busy.sendall(get("/wait"))
        world.began.wait(PATIENCE)
        server.stop(20)
        assert rest_of(busy).startswith(b"HTTP/1.1 500 ")


def secured(name: str | None) -> SslSettings:
    given = {} if name is None else {"ssl_keystore_location": str(GOLDEN_TLS / f"{name}.pem")}
    return SslSettings(**given, ssl_truststore_location=str(GOLDEN_TLS / "ca.pem"))


def test_tls(start: Start) -> None:
    server = start(tls=Tls(secured("server"), partial(server_context, client_auth="none")))
    connector = SecureConnector(GeventRuntime(), Tls(secured(None), client_context))
    with connector.connect("127.0.0.1", server.port, PATIENCE) as sock:
        sock.sendall(get("/x", CLOSE))
        assert rest_of(sock).endswith(b"https /x")


def test_bytes_that_are_not_tls_are_closed(start: Start, caplog: Any, capfd: Any) -> None:
    tls = Tls(secured("server"), partial(server_context, client_auth="none"))
    server = start(tls=tls, deadline_ms=50)
    for sent in (get("/x", CLOSE), b""):
        with connect(server) as sock:
            sock.sendall(sent)
            try:
                assert rest_of(sock) == b""
            except ConnectionResetError:
                pass
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []
    assert capfd.readouterr() == ("", "")


def test_hosts_that_only_this_machine_reaches() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.0.0.2", "::1", "[::1]", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "myhost", "")))
