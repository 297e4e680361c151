"""The pipelined connection against a peer that behaves, and peers that do not."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kafka08.errors import ProtocolError
from kafka08.network.channel import Channel
from kafka08.producer.connection import MAX_RESPONSE_BYTES, PipelinedConnection
from kafka08.protocol.later_schemas import ApiVersionsResponse, ServedVersions
from kafka08.protocol.negotiation import NoApiVersionsError
from kafka08.protocol.registry import APIS
from kafka08.protocol.requests import RequestDecoder, encode_response
from kafka08.protocol.schemas import (
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResponse,
)
from kafka08.runtime import ThreadRuntime

REQUEST = ProduceRequest(1, 1000, [])
RESPONSE = ProduceResponse([ProduceTopicResponse("t", [ProducePartitionResponse(0, 0, 7)])])


class Pair(ThreadRuntime):
    """``peer`` is the other end of the one connection there is."""

    def __init__(self) -> None:
        super().__init__()
        self._mine, self.peer = socket.socketpair()
        self.peer.settimeout(10)

    def connect(self, host: str, port: int, timeout: float) -> Any:
        self._mine.settimeout(timeout)
        return self._mine


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.peer.close()


def connect(pair: Pair, **options: Any) -> PipelinedConnection:
    return PipelinedConnection(Channel("h", 1, runtime=pair, client_id="me", **options), pair)


@pytest.fixture
def connection(pair: Pair) -> Iterator[PipelinedConnection]:
    connection = connect(pair, timeout_ms=50)
    yield connection
    connection.close()


def answer(number: int) -> bytes:
    return b"".join(encode_response(number, RESPONSE))


def test_answers_come_with_what_was_asked(pair: Pair, connection: PipelinedConnection) -> None:
    assert connection.waiting_since() is None
    for context in ("first", "second", "third"):
        connection.write(connection.encode(REQUEST, context))
    assert connection.waiting_since() is not None
    pair.peer.sendall(answer(1) + answer(2) + answer(3)[:7])
    found = connection.receive()
    assert [(response, asked.context) for response, asked in found] == [
        (RESPONSE, "first"),
        (RESPONSE, "second"),
    ]
    for _ in found:
        connection.outstanding.popleft()
    later = threading.Timer(0.12, pair.peer.sendall, [answer(3)[7:]])  # more than one timeout
    later.start()
    assert [asked.context for _, asked in connection.receive()] == ["third"]
    later.join()


def test_what_has_no_answer_is_not_outstanding(pair: Pair, connection: PipelinedConnection) -> None:
    data = connection.encode(REQUEST, None, answered=False)
    connection.write(data)
    assert not connection.outstanding
    assert pair.peer.recv(1000) == data


@pytest.mark.parametrize(
    "data",
    [
        answer(2),
        answer(1) + answer(2),
        struct.pack(">ii", 4, 1),
        struct.pack(">i", 2) + b"xx",
        struct.pack(">i", -1),
        struct.pack(">i", MAX_RESPONSE_BYTES + 1),
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
    ],
    ids=["wrong-id", "too-many", "short", "no-id", "negative", "huge", "http"],
)
def test_garbage(pair: Pair, connection: PipelinedConnection, data: bytes) -> None:
    connection.encode(REQUEST, None)
    pair.peer.sendall(data)
    with pytest.raises(ProtocolError):
        connection.receive()


def test_a_peer_that_closes_is_noticed_while_nothing_is_outstanding(
    pair: Pair, connection: PipelinedConnection
) -> None:
    pair.peer.shutdown(socket.SHUT_RDWR)
    with pytest.raises(ConnectionResetError):
        connection.receive()


def test_abort_wakes_the_reader(connection: PipelinedConnection) -> None:
    raised: list[BaseException] = []

    def read() -> None:
        try:
            connection.receive()
        except OSError as error:
            raised.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    connection.abort()
    thread.join(10)
    assert len(raised) == 1
    with pytest.raises(OSError, match=r".+"):
        connection.write(b"x")


def served(last_produce: int) -> bytes:
    served = ((0, 0, last_produce), (1, 0, 11), (2, 0, 5))
    versions = [ServedVersions(*each) for each in served]
    return b"".join(encode_response(0, ApiVersionsResponse(0, versions)))


def test_versions_are_asked_for_and_used(pair: Pair) -> None:
    data = served(7)
    pair.peer.sendall(data[:9])
    later = threading.Timer(0.02, pair.peer.sendall, [data[9:]])
    later.start()
    connection = connect(pair, timeout_ms=5000, api_versions=True)
    later.join()
    assert pair.peer.recv(1000)[4:8] == struct.pack(">hh", 18, 0)
    request = connection.encode(REQUEST, None)
    header, _ = RequestDecoder(APIS).decode(memoryview(request)[4:])
    assert (header.api_key, header.api_version) == (0, 7)
    pair.peer.sendall(b"".join(encode_response(1, RESPONSE, 7)))
    assert [response for response, _ in connection.receive()] == [RESPONSE]
    connection.close()


@pytest.mark.parametrize("answer", [served(2), b""])
def test_a_broker_that_does_not_know_them(pair: Pair, answer: bytes) -> None:
    pair.peer.sendall(answer)
    pair.peer.shutdown(socket.SHUT_WR)
    with pytest.raises(NoApiVersionsError):
        connect(pair, timeout_ms=5000, api_versions=True)


def test_a_broker_that_does_not_answer(pair: Pair) -> None:
    with pytest.raises(TimeoutError):
        connect(pair, timeout_ms=10, api_versions=True)
