"""From a frame to its reply: headers, unknown keys and versions, who answers failures."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kafka08.errors import NotLeaderForPartitionError, ProtocolError
from kafka08.network.peer import Peer, current_peer
from kafka08.network.server import ConnectionClosed
from kafka08.protocol.group_schemas import HeartbeatRequest, HeartbeatResponse
from kafka08.protocol.schemas import RequestHeader
from kafka08.runtime import ThreadRuntime
from kafka08.server.requests.dispatch import Dispatcher
from tests.server.support import Rig, partition_state
from zk.errors import ZkConnectionError


def header(
    key: int, version: int = 0, correlation_id: int = 5, client: bytes | None = b"c"
) -> bytes:
    head = struct.pack(">hhi", key, version, correlation_id)
    return head + (b"\xff\xff" if client is None else struct.pack(">h", len(client)) + client)


METADATA = header(3) + struct.pack(">i", 0)


@pytest.mark.parametrize("key", [-1, 13, 16, 18, 32767])
def test_unknown_keys_close(rig: Rig, key: int) -> None:
    with pytest.raises(ProtocolError):
        rig.send(header(key) + b"\0" * 20)


@pytest.mark.parametrize(
    "frame", [b"", b"\0", b"\0\3\0", METADATA[:-1], METADATA[:9], METADATA[:6]]
)
def test_short_frames_close(rig: Rig, frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        rig.send(frame)


@pytest.mark.parametrize("version", [-1, 2, 99])
def test_only_offset_commit_has_versions(rig: Rig, version: int) -> None:
    reply = rig.send(header(3, version) + struct.pack(">i", 0))
    assert reply == struct.pack(">iiii", 12, 5, 0, 0)
    commit = struct.pack(">hi", 0, 0)  # group "", no topics
    assert rig.send(header(8, 0) + commit) == struct.pack(">iii", 8, 5, 0)
    with pytest.raises(ProtocolError):
        rig.send(header(8, version) + commit)


@pytest.mark.parametrize("correlation_id", [0, -1, -(2**31), 2**31 - 1])
def test_correlation_ids_come_back_as_they_are(rig: Rig, correlation_id: int) -> None:
    reply = rig.send(header(3, correlation_id=correlation_id) + struct.pack(">i", 0))
    assert reply is not None and struct.unpack_from(">i", reply, 4) == (correlation_id,)


def test_clients_may_be_nameless_and_frames_too_long(rig: Rig) -> None:
    assert rig.send(header(3, client=None) + struct.pack(">i", 0) + b"more") is not None


def test_controlled_shutdown_has_no_client_id(rig: Rig) -> None:
    assert rig.send(struct.pack(">hhii", 7, 0, 5, 1)) == struct.pack(">iihi", 10, 5, 0, 0)


def test_counts_that_lie(rig: Rig) -> None:
    with pytest.raises(ProtocolError):
        rig.send(header(3) + struct.pack(">i", -1))
    with pytest.raises(ProtocolError):
        rig.send(header(3) + struct.pack(">i", 2**31 - 1))
    # negative counts are empty elsewhere
    assert rig.send(header(2) + struct.pack(">ii", -1, -7)) == struct.pack(">iii", 8, 5, 0)
    produce = struct.pack(">hii", 1, 0, 1) + struct.pack(">h1si", 1, b"t", 1)
    with pytest.raises(ProtocolError):
        rig.send(header(0) + produce + struct.pack(">ii", 0, -1))


def test_booleans_are_0_or_1(rig: Rig) -> None:
    body = struct.pack(">ii", 9, 1)
    assert rig.send(header(5) + body + b"\1" + struct.pack(">i", 0)) is not None
    with pytest.raises(ProtocolError):
        rig.send(header(5) + body + b"\2" + struct.pack(">i", 0))


def test_bad_utf8_is_read_with_replacements(rig: Rig) -> None:
    rig.know(partition_state("t\ufffd"))
    reply = rig.send(header(3) + struct.pack(">ih2s", 1, 2, b"t\xff"))
    assert reply is not None and "t\ufffd".encode() in reply


class Failing:
    key = 12
    last_version = 0

    def __init__(self, error: Exception) -> None:
        self.error = error

    def handle(self, header: RequestHeader, request: Any) -> Any:
        raise self.error

    def failure(self, header: RequestHeader, request: Any, code: int) -> Any:
        assert isinstance(request, HeartbeatRequest)
        return HeartbeatResponse(code)


@pytest.mark.parametrize(
    ("error", "code"), [(ValueError("as told"), -1), (NotLeaderForPartitionError(), 6)]
)
def test_failures_are_answered_in_the_apis_own_words(
    error: Exception, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    frame = header(12) + struct.pack(">hih", 0, 0, 0)
    reply = Dispatcher(ThreadRuntime(), [Failing(error)]).handle(memoryview(frame), "")
    assert reply == [struct.pack(">iih", 6, 5, code)]
    assert ("Traceback" in caplog.text) is (code == -1)  # peers can provoke the others at will


def test_zookeeper_that_does_not_answer_is_no_error_of_the_broker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    frame = header(12) + struct.pack(">hih", 0, 0, 0)
    failing = Failing(ZkConnectionError(path="/brokers/ids"))
    reply = Dispatcher(ThreadRuntime(), [failing]).handle(memoryview(frame), "")
    assert reply == [struct.pack(">iih", 6, 5, -1)]
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_closing_is_no_failure() -> None:
    frame = header(12) + struct.pack(">hih", 0, 0, 0)
    dispatcher = Dispatcher(ThreadRuntime(), [Failing(ConnectionClosed())])
    with pytest.raises(ConnectionClosed):
        dispatcher.handle(memoryview(frame), "")
    assert dispatcher.metrics.of(12, "Heartbeat").requests.count == 1


@pytest.mark.parametrize("is_timed", [False, True])
def test_requests_are_counted_and_timed_only_for_a_reader(is_timed: bool) -> None:
    frame = header(12) + struct.pack(">hih", 0, 0, 0)
    error = NotLeaderForPartitionError()
    dispatcher = Dispatcher(ThreadRuntime(), [Failing(error)], is_timed=is_timed)
    peer = Peer()
    token = current_peer.set(peer)
    try:
        dispatcher.handle(memoryview(frame), "")
    finally:
        current_peer.reset(token)
    meter = dispatcher.metrics.of(12, "Heartbeat")
    assert [each[0] for each in peer.unsent] == ([meter] if is_timed else [])
    assert meter.requests.count == (0 if is_timed else 1)
