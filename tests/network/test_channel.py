"""The blocking client connection against peers that behave, and peers that do not."""

from __future__ import annotations

import resource
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kafka08.errors import ProtocolError
from kafka08.network.channel import Channel
from kafka08.protocol.group_schemas import HeartbeatRequest, HeartbeatResponse
from kafka08.protocol.later_schemas import ApiVersionsResponse, ServedVersions
from kafka08.protocol.negotiation import NoApiVersionsError
from kafka08.protocol.registry import APIS
from kafka08.protocol.requests import RequestDecoder, decode_request, encode_response
from kafka08.protocol.schemas import (
    ConsumerMetadataRequest,
    ConsumerMetadataResponse,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataResponse,
    OffsetsResponse,
    ProduceRequest,
    ProduceResponse,
)
from kafka08.runtime import Socket
from tests.fakes.runtime import FakeRuntime

PATIENCE = 5.0
_decode_later = RequestDecoder(APIS).decode


class Peer:
    """One accepted connection, as the script of a test sees it."""

    def __init__(self, sock: Any) -> None:
        self.sock = sock

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.sock.recv(size - len(data))
            if not piece:
                raise EOFError(data)
            data += piece
        return data

    def request(self) -> tuple[Any, Any]:
        return decode_request(memoryview(self.read(struct.unpack(">i", self.read(4))[0])))

    def later_request(self) -> tuple[Any, Any]:
        return _decode_later(memoryview(self.read(struct.unpack(">i", self.read(4))[0])))

    def answer(self, correlation_id: int, response: Any) -> None:
        self.sock.sendall(b"".join(encode_response(correlation_id, response)))

    def serve(self, response: Any, *, shift: int = 0) -> Any:
        header, request = self.request()
        self.answer(header.correlation_id + shift, response)
        return request


Script = Callable[[Peer], Any]
Broker = Callable[..., Channel]


@pytest.fixture
def broker() -> Iterator[Broker]:
    """Start a broker that runs one script per connection; returns a channel to it."""
    with ExitStack() as stack:

        def start(*scripts: Script, **settings: Any) -> Channel:
            listening = socket.create_server(("127.0.0.1", 0))

            def run() -> None:
                for script in scripts:
                    sock, _ = listening.accept()
                    with sock:
                        sock.settimeout(PATIENCE)
                        try:
                            script(Peer(sock))
                        except (OSError, EOFError):
                            pass  # the channel closed first

            thread = threading.Thread(target=run, daemon=True)
            thread.start()
            stack.callback(listening.close)
            stack.callback(thread.join, PATIENCE)
            channel = Channel(
                "127.0.0.1", listening.getsockname()[1], **{"timeout_ms": 5000, **settings}
            )
            stack.callback(channel.close)
            return channel

        yield start


HELLO = MetadataRequest(["t"])
WORLD = MetadataResponse([], [])


def test_a_call_is_answered(broker: Broker) -> None:
    channel = broker(lambda peer: [peer.serve(WORLD), peer.serve(HeartbeatResponse(-1))])
    assert not channel.connected
    assert channel.call(HELLO) == WORLD
    assert channel.call(HeartbeatRequest("g", 1, "c")) == HeartbeatResponse(-1)
    assert channel.connected


def test_the_header_names_the_client_and_counts_up(broker: Broker) -> None:
    seen = []

    def script(peer: Peer) -> None:
        for _ in range(2):
            header, request = peer.request()
            seen.append((header, request))
            peer.answer(header.correlation_id, WORLD)

    channel = broker(script, client_id="me")
    channel.call(HELLO)
    channel.call(HELLO)
    assert [tuple(header) for header, _ in seen] == [(3, 0, 1, "me"), (3, 0, 2, "me")]
    assert seen[0][1] == HELLO


def test_acks_0_expects_no_response(broker: Broker) -> None:
    def script(peer: Peer) -> None:
        assert peer.request()[1].acks == 0
        peer.serve(ProduceResponse([]))

    channel = broker(script)
    assert channel.call(ProduceRequest(0, 0, [])) is None
    assert channel.call(ProduceRequest(1, 0, [])) == ProduceResponse([])


def test_a_large_response_arrives_whole(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka08.network.channel._FIRST_READ_BYTES", 100)
    data = bytes(range(256)) * 1000

    def script(peer: Peer) -> None:
        partition = FetchPartitionResponse(0, 0, 7, data)
        peer.serve(FetchResponse([FetchTopicResponse("t", [partition])]))

    answer = broker(script).call(FetchRequest(-1, 0, 0, []))
    assert answer.topics[0].partitions[0].message_set == data


def test_an_answer_to_something_else_closes(broker: Broker) -> None:
    channel = broker(lambda peer: peer.serve(WORLD, shift=1), lambda peer: peer.serve(WORLD))
    with pytest.raises(ProtocolError, match="answered 2 where 1 was due"):
        channel.call(HELLO)
    assert not channel.connected
    assert channel.call(HELLO) == WORLD  # on a new connection


def test_only_consumer_metadata_may_be_answered_as_0(broker: Broker) -> None:
    response = ConsumerMetadataResponse(15, -1, "", -1)

    def script(peer: Peer) -> None:
        peer.request()
        peer.answer(0, response)
        peer.request()
        peer.answer(0, WORLD)

    channel = broker(script)
    assert channel.call(ConsumerMetadataRequest("g")) == response
    with pytest.raises(ProtocolError, match="answered 0"):
        channel.call(HELLO)


@pytest.mark.parametrize("answer", [b"", b"\0\0", struct.pack(">ii", 100, 1) + b"half"])
def test_a_peer_that_closes_early(broker: Broker, answer: bytes) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.sock.sendall(answer)

    channel = broker(script, lambda peer: peer.serve(WORLD))
    with pytest.raises(ConnectionResetError, match="closed the connection"):
        channel.call(HELLO)
    assert not channel.connected
    assert channel.call(HELLO) == WORLD


@pytest.mark.parametrize("size", [3, 0, -1, -(2**31)])
def test_sizes_that_cannot_be(broker: Broker, size: int) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.sock.sendall(struct.pack(">i", size))
        peer.request()  # waits for the channel to close

    channel = broker(script)
    with pytest.raises(ProtocolError, match=f"response of {size} bytes"):
        channel.call(HELLO)
    assert not channel.connected


def test_another_protocols_words_take_no_memory(broker: Broker) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")  # as a size: 1.2 GB

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ConnectionResetError):
        broker(script).call(HELLO)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_a_response_that_makes_no_sense_closes(broker: Broker) -> None:
    def script(peer: Peer) -> None:
        header, _ = peer.request()
        peer.sock.sendall(struct.pack(">iii", 8, header.correlation_id, 1000))

    channel = broker(script)
    with pytest.raises(ProtocolError):
        channel.call(HELLO)
    assert not channel.connected


def test_silence_times_out(broker: Broker) -> None:
    channel = broker(lambda peer: [peer.request(), peer.request()], timeout_ms=20)
    with pytest.raises(TimeoutError):
        channel.call(HELLO)
    assert not channel.connected


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    channel = Channel("127.0.0.1", port, timeout_ms=1000)
    with pytest.raises(ConnectionRefusedError):
        channel.call(HELLO)
    assert not channel.connected


def test_closed_by_another_task_between_two_reads() -> None:
    class ClosedWithin(Socket):
        def recv_into(self, buffer: memoryview) -> int:
            buffer[:] = struct.pack(">i", 100)[: len(buffer)]
            channel.close()
            return 4

    runtime = FakeRuntime()
    runtime.open_socket = lambda host, port: ClosedWithin()
    channel = Channel("nowhere", 1, runtime=runtime)
    with pytest.raises(ConnectionResetError):
        channel.call(MetadataRequest([]))


def test_aborted_while_it_waits(broker: Broker) -> None:
    asked = threading.Event()
    channel = broker(lambda peer: [peer.request(), asked.set(), peer.request()])
    raised: list[BaseException] = []

    def call() -> None:
        try:
            channel.call(HELLO)
        except OSError as error:
            raised.append(error)

    waiting = threading.Thread(target=call)
    waiting.start()
    assert asked.wait(10)
    channel.abort()
    waiting.join(10)
    assert isinstance(raised[0], ConnectionResetError)
    with pytest.raises(ConnectionAbortedError):
        channel.call(HELLO)
    assert not channel.connected


def test_aborted_while_it_connects() -> None:
    closed: list[bool] = []

    class ClosedOnce(Socket):
        def close(self) -> None:
            closed.append(True)

    def open_socket(host: str, port: int) -> Socket:
        channel.abort()
        return ClosedOnce()

    runtime = FakeRuntime()
    runtime.open_socket = open_socket
    channel = Channel("nowhere", 1, runtime=runtime)
    with pytest.raises(ConnectionAbortedError):
        channel.call(MetadataRequest([]))
    assert closed == [True] and not channel.connected


# --- with the versions of later releases

SERVED = ApiVersionsResponse(
    0, [ServedVersions(*each) for each in ((0, 0, 8), (1, 0, 11), (2, 0, 4))]
)
FETCH = FetchRequest(-1, 0, 0, [])
TIMES = ListOffsetsRequest(-1, [])
OFFSETS = OffsetsResponse([], throttle_time_ms=7)
FETCHED = FetchResponse(
    [FetchTopicResponse("t", [FetchPartitionResponse(0, 0, 5, b"xx", log_start_offset=3)])]
)


def later(*scripts: Callable[[Peer], Any]) -> Script:
    """A peer that answers ApiVersions first."""

    def script(peer: Peer) -> None:
        header, _ = peer.later_request()
        assert header[:2] == (18, 0)
        peer.answer(header.correlation_id, SERVED)
        for each in scripts:
            each(peer)

    return script


def test_each_connection_asks_for_versions(broker: Broker) -> None:
    def fetched(peer: Peer) -> None:
        header, request = peer.later_request()
        assert (header.api_version, request) == (11, FETCH)
        peer.sock.sendall(b"".join(encode_response(header.correlation_id, FETCHED, 11)))

    def told(peer: Peer) -> None:
        peer.serve(WORLD)

    def listed(peer: Peer) -> None:
        header, request = peer.later_request()
        assert (header.api_version, request) == (4, TIMES)
        peer.sock.sendall(b"".join(encode_response(header.correlation_id, OFFSETS, 4)))

    channel = broker(later(fetched, told, listed), later(fetched), api_versions=True)
    assert channel.call(FETCH).topics[0].partitions[0].log_start_offset == 3
    assert channel.call(HELLO) == WORLD  # others as before
    assert channel.call(TIMES) == OFFSETS
    channel.close()
    assert channel.call(FETCH) == FETCHED


def test_a_broker_that_closes_instead(broker: Broker) -> None:
    channel = broker(lambda peer: peer.later_request(), api_versions=True)
    with pytest.raises(NoApiVersionsError, match=r"set api\.versions\.request=false"):
        channel.call(FETCH)
    assert not channel.connected


def test_a_connection_without_the_answer_is_not_used(broker: Broker) -> None:
    def stranger(peer: Peer) -> None:
        header, _ = peer.later_request()
        peer.answer(header.correlation_id, ApiVersionsResponse(0, []))
        peer.request()

    channel = broker(stranger, stranger, api_versions=True)
    for _ in range(2):
        with pytest.raises(NoApiVersionsError):
            channel.connect()
        assert not channel.connected


def test_a_broker_that_answers_something_else(broker: Broker) -> None:
    channel = broker(lambda peer: peer.sock.sendall(b"HTTP/1.1 400\r\n\r\n"), api_versions=True)
    with pytest.raises(ProtocolError):
        channel.call(FETCH)
    assert not channel.connected


def test_a_version_that_the_caller_knows_to_be_served(broker: Broker) -> None:
    def fetched(peer: Peer) -> None:
        header, request = peer.later_request()
        assert (header.api_version, request) == (5, FETCH)
        peer.sock.sendall(b"".join(encode_response(header.correlation_id, FETCHED, 5)))

    channel = broker(fetched)
    assert channel.call(FETCH, 5).topics[0].partitions[0].log_start_offset == 3
