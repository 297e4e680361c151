"""The limits of what clients may take, which docs/rest.md states, over real sockets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import gevent.socket
import pytest

from kafka08.consumer.config import ConsumerConfig
from kafka08.network.http import HttpServer
from kafka08.rest.config import RestConfig, RestListener
from kafka08.rest.errors import RestError
from kafka08.rest.instances import Instances, InstanceSettings
from kafka08.rest.server import http_server
from tests.fakes.runtime import FakeRuntime
from tests.rest.world import PLAIN, RestWorld

PATIENCE = 10.0
Serve = Callable[..., HttpServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:

        def serve(**settings: int) -> HttpServer:
            listener = RestListener("http", "127.0.0.1", 0)
            server = http_server(RestConfig(**settings), listener, RestWorld().application)
            stack.callback(server.stop, 0)
            server.start()
            return server

        yield serve


def connect(server: HttpServer) -> Any:
    return gevent.socket.create_connection(("127.0.0.1", server.port), PATIENCE)


def request(path: str, *headers: str, method: str = "GET", body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def post(body: bytes, *headers: str) -> bytes:
    kind = f"Content-Type: {PLAIN}"
    return request("/", kind, "Connection: close", *headers, method="POST", body=body)


def answer(sock: Any) -> tuple[int, Any]:
    """Status and JSON of the last answer on a connection."""
    data = b"".join(iter(partial(sock.recv, 1 << 16), b""))
    head, _, body = data.partition(b"\r\n\r\n")
    assert b"Connection: close" in head or b"connection: close" in head.lower()
    return int(head.split()[1]), json.loads(body)


def send(server: HttpServer, data: bytes) -> tuple[int, Any]:
    with connect(server) as sock:
        sock.sendall(data)
        return answer(sock)


def refused(status: int, message: str) -> tuple[int, Any]:
    return status, {"error_code": status, "message": message}


def test_the_largest_body(serve: Serve) -> None:
    server = serve(request_max_bytes=1024)
    most, more = b'"%s"' % (b"x" * 1022), b'"%s"' % (b"x" * 1023)
    too_large = refused(413, "the body may have 1024 bytes")
    assert send(server, post(most, "Content-Length: 1024")) == (200, {})
    assert send(server, post(more, "Content-Length: 1025")) == too_large
    # A body whose size nobody says beforehand ends where it becomes too large.
    chunked = "Transfer-Encoding: chunked"
    assert send(server, post(b"400\r\n" + most + b"\r\n0\r\n\r\n", chunked)) == (200, {})
    assert send(server, post(b"401\r\n" + more + b"\r\n", chunked)) == too_large


def test_the_bodies_of_all_clients(serve: Serve) -> None:
    server = serve(requests_max_bytes=1024)
    with connect(server) as other:
        other.sendall(post(b"x" * 1000, "Content-Length: 1001"))
        while send(server, post(b'"%s"' % (b"x" * 23), "Content-Length: 25")) == (200, {}):
            pass  # until the server has read what was sent first
        full = refused(503, "all bodies together may have 1024 bytes now")
        assert send(server, post(b'"%s"' % (b"x" * 23), "Content-Length: 25")) == full
        assert send(server, post(b'"x"', "Content-Length: 3")) == (200, {})


def test_the_largest_heads(serve: Serve) -> None:
    server = serve()
    close = "Connection: close"
    assert send(server, request(f"/?{'x' * 8000}", close)) == (200, {})
    too_long = refused(414, "the request line is long")
    assert send(server, request(f"/?{'x' * 8192}", close)) == too_long
    assert send(server, request("/", close, f"X: {'x' * 16000}")) == (200, {})
    assert send(server, request("/", close, f"X: {'x' * 16384}")) == refused(
        431, "the headers are long"
    )
    many = [f"X{number}: x" for number in range(98)]
    assert send(server, request("/", close, *many)) == (200, {})
    assert send(server, request("/", close, *many, "X: x")) == refused(400, "too many headers")


def test_a_body_that_comes_byte_by_byte_does_not_hold_its_place(serve: Serve) -> None:
    server = serve(request_deadline_ms=100, connections_max=1)
    with connect(server) as slow, connect(server) as other:
        slow.sendall(post(b"", "Content-Length: 1000"))
        other.sendall(request("/topics", "Connection: close"))
        while True:
            slow.sendall(b" ")
            try:
                gevent.socket.wait_read(slow.fileno(), 0.005)
            except TimeoutError:
                continue
            break
        late = refused(408, "the request was not there as a whole in time")
        assert answer(slow) == late
        slow.close()
        assert answer(other) == (200, [])


def test_the_most_connections(serve: Serve) -> None:
    server = serve(connections_max=2)
    with connect(server) as first, connect(server) as second, connect(server) as third:
        for each in (first, second):
            each.sendall(request("/topics"))
            assert each.recv(1 << 16).endswith(b"[]")
        third.sendall(request("/topics", "Connection: close"))
        with pytest.raises(TimeoutError):
            gevent.socket.wait_read(third.fileno(), 0.05)
        first.close()
        assert answer(third) == (200, [])


def test_a_thousand_consumer_instances() -> None:
    """The next ones get 429, those that are there stay, and one that ends makes room."""
    instances = Instances(RestConfig(), FakeRuntime())
    config = ConsumerConfig(group_id="g", zookeeper_connect="z")
    settings = InstanceSettings(2, "binary", config)

    def refusal(group: str) -> str:
        with pytest.raises(RestError) as caught:
            instances.create(group, None, settings)
        assert (caught.value.status, caught.value.code) == (429, 429)
        return caught.value.message

    for number in range(500):
        instances.create("a", f"a-{number}", settings)
    assert refusal("a").endswith("(consumer.instances.group.max).")
    for number in range(500):
        instances.create("b", f"b-{number}", settings)
    assert len(instances) == 1000
    assert refusal("c").endswith("(consumer.instances.max).")
    instances.delete("a", "a-7")
    instances.create("c", None, settings)
    assert len(instances) == 1000
