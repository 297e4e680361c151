from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator

import pytest

from kafka08.console.migration import reports
from kafka08.console.migration.reports import decode, fetch_page
from kafka08.network.peer import Peer
from kafka08.server.requests.heard import Speaker, Spoken
from kafka08.server.requests.spoken import described
from tests.console.migration.uses import NEW, OLD, fetch, page, produce, report
from tests.fakes.runtime import FakeRuntime

REPORT = report(produce(OLD, 0, "t"), fetch(NEW, 4, "t"), broker_id=2, forgotten=3)


def test_a_page_and_what_it_means() -> None:
    assert decode(page(REPORT)) == REPORT


def test_a_broker_says_it_in_the_same_names() -> None:
    peer = Peer("10.0.0.5:1")
    speaker = Speaker("new", peer.host, peer.principal, ("librdkafka", "2.5"))
    about = json.loads(page(report()))
    about["heard"] = described([(Spoken(speaker, 0, 3, "t", 2), 1_000)])
    [use] = decode(json.dumps(about).encode()).uses
    assert use == produce(NEW, 3, "t", 2)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 100_000,
        page(REPORT).replace(b'"version": 0', b'"version": "0"'),
        page(REPORT).replace(b'"last_ms": 1000', b'"last_ms": null'),
        page(REPORT).replace(b'"topic"', b'"other"'),
        page(REPORT).replace(b'"forgotten": 3', b'"forgotten": "x"'),
        json.dumps(json.loads(page(REPORT)) | {"heard": [1]}).encode(),
        json.dumps(json.loads(page(REPORT)) | {"heard": None}).encode(),
    ],
)
def test_what_is_not_a_page_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="its answer is not a page of clients"):
        decode(body)


def test_each_address_is_asked_once_and_errors_are_kept() -> None:
    asked: list[tuple[str, float]] = []

    def fetched(address: str, timeout_s: float) -> bytes:
        asked.append((address, timeout_s))
        if address == "gone:1":
            raise ConnectionRefusedError("refused")
        return b"x" if address == "odd:1" else page(REPORT)

    found = reports.read(["odd:1", "b2:1", "b2:1", "gone:1"], fetched, FakeRuntime(), 4.0)
    assert found.brokers == {2: REPORT}
    assert found.errors == {"odd:1": "its answer is not a page of clients", "gone:1": "refused"}
    assert asked == [("odd:1", 4.0), ("b2:1", 4.0), ("gone:1", 4.0)]


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock


def answer(server: socket.socket, data: bytes) -> str:
    """The address of a server that answers one request so."""

    def serve() -> None:
        sock, _ = server.accept()
        with sock:
            assert sock.recv(4096).startswith(b"GET /clients HTTP/1.1\r\n")
            sock.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    return f"127.0.0.1:{server.getsockname()[1]}"


def test_the_body_of_a_page(server: socket.socket) -> None:
    address = answer(server, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    assert fetch_page(address, 10) == b"{}"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "its release is older"),
        (b"HTTP/1.1 421 Misdirected\r\nContent-Length: 0\r\n\r\n", "http.allowed.hosts"),
        (b"HTTP/1.1 500 Sorry\r\nContent-Length: 0\r\n\r\n", "it answered 500 Sorry"),
        (b"SSH-2.0\r\n", "it does not answer in HTTP"),
        (b"", "closed connection without response"),
    ],
)
def test_answers_that_are_errors(server: socket.socket, data: bytes, text: str) -> None:
    with pytest.raises(OSError, match=text):
        fetch_page(answer(server, data), 10)


def test_an_answer_may_not_be_endless(
    server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "_MOST_BYTES", 10)
    with pytest.raises(ConnectionError, match="longer than 10 bytes"):
        fetch_page(answer(server, b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 11), 10)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        address = f"127.0.0.1:{sock.getsockname()[1]}"
    with pytest.raises(ConnectionRefusedError):
        fetch_page(address, 10)
