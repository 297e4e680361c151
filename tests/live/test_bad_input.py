"""Bytes no client should send, to a real broker: what it answers, what it closes over."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka08.message.compression import compress
from kafka08.message.entry import encode_entry
from kafka08.message.sets import encode_set
from tests.live.broker import LiveBroker
from tests.message.sets import set_byte

GOOD = encode_set([(None, b"good")])


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    directory = tmp_path_factory.mktemp("live") / "broker"
    broker = LiveBroker(  # with later versions other keys close, and all unknown versions
        directory,
        message_max_bytes=2000,
        socket_request_max_bytes=1 << 20,
        api_versions_enable="false",
    )
    try:
        broker.create_topic("t")
        yield broker
        assert broker.stop() == 128 + 15
        assert (broker.data / ".kafka_cleanshutdown").exists()
        assert "Traceback" not in broker.told()
    finally:
        broker.kill()


@pytest.fixture(autouse=True)
def unharmed(broker: LiveBroker) -> Iterator[None]:
    """Whatever a test sent, others are served after it, and no connection is left open."""
    before = len(broker.open_files())
    yield
    offset = broker.produce("t", b"still here")
    assert broker.fetch("t", offset) == [(offset, b"still here")]
    broker.until(lambda: len(broker.open_files()) <= before + 2)


def exchange(broker: LiveBroker, data: bytes, *, end: bool = False) -> bytes:
    """Send bytes, read until the broker closes. ``end``: close our half first."""
    with socket.create_connection(("127.0.0.1", broker.port), 20) as sock:
        sock.sendall(data)
        if end:
            sock.shutdown(socket.SHUT_WR)
        received = b""
        try:
            while piece := sock.recv(1 << 16):
                received += piece
        except ConnectionResetError:
            pass
        return received


def frame(key: int, body: bytes, *, version: int = 0, correlation_id: int = 5) -> bytes:
    whole = struct.pack(">hhih", key, version, correlation_id, 0) + body
    return struct.pack(">i", len(whole)) + whole


def produce(data: bytes, *, size: int | None = None, acks: int = 1, topic: bytes = b"t") -> bytes:
    size = len(data) if size is None else size
    name = struct.pack(">h", len(topic)) + topic
    return frame(
        0, struct.pack(">hii", acks, 1000, 1) + name + struct.pack(">iii", 1, 0, size) + data
    )


METADATA = frame(3, struct.pack(">i", 0), correlation_id=6)


@pytest.mark.parametrize("size", [0, -1, -(2**31), (1 << 20) + 1, 2**31 - 1])
def test_size_words_that_close(broker: LiveBroker, size: int) -> None:
    assert exchange(broker, struct.pack(">i", size)) == b""


@pytest.mark.parametrize("key", [-1, 13, 14, 16, 18, 32767])
def test_unknown_keys_close(broker: LiveBroker, key: int) -> None:
    assert exchange(broker, frame(key, b"\0" * 16) + METADATA) == b""


@pytest.mark.parametrize("version", [-1, 2, 7])
def test_versions_of_offset_commit_that_close(broker: LiveBroker, version: int) -> None:
    assert exchange(broker, frame(8, b"\0" * 16, version=version) + METADATA) == b""


def test_other_versions_are_answered(broker: LiveBroker) -> None:
    request = frame(2, struct.pack(">ii", -1, 0), version=9)
    assert exchange(broker, request, end=True) == struct.pack(">iii", 8, 5, 0)


@pytest.mark.parametrize(
    "request_",
    [
        frame(3, struct.pack(">i", -1)),
        frame(3, struct.pack(">i", 2**31 - 1)),
        frame(3, struct.pack(">ih", 1, 100) + b"short"),
        produce(GOOD, size=-1),
        produce(GOOD, size=len(GOOD) + 1),
        frame(5, struct.pack(">iibi", 1, 1, 2, 0)),
        struct.pack(">i", 1) + b"\0",
    ],
)
def test_bodies_that_contradict_themselves_close(broker: LiveBroker, request_: bytes) -> None:
    """Replies to what came before are sent all the same; what comes after is not read."""
    reply = exchange(broker, produce(GOOD) + request_ + METADATA)
    assert struct.unpack_from(">ii", reply) == (len(reply) - 4, 5)


def test_half_a_request_does_nothing(broker: LiveBroker) -> None:
    offset = broker.produce("t", b"before")
    assert exchange(broker, produce(GOOD)[:-1], end=True) == b""
    assert broker.produce("t", b"after") == offset + 1


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (set_byte(GOOD, 13, GOOD[13] ^ 1), 2),
        (struct.pack(">qi", 0, 13) + b"\0" * 13, 2),
        (struct.pack(">qi", 0, -5) + b"\0" * 13, 2),
        (encode_set([(None, b"x" * 2000)]), 10),
        (set_byte(GOOD, 17, 5, right_crc=True), -1),
        (encode_entry(None, b"no gzip", 0, 1), -1),
        (encode_entry(None, b"no snappy", 0, 2), -1),
        (encode_entry(None, b"no lz4", 0, 3), -1),
        (GOOD[:-1], 0),
        (b"", 0),
    ],
)
def test_sets_that_are_refused(broker: LiveBroker, data: bytes, code: int) -> None:
    offset = broker.produce("t", b"before")
    reply = exchange(broker, produce(bytes(data)), end=True)
    assert struct.unpack_from(">hq", reply, len(reply) - 10) == (code, -1)
    if code:  # acks 0: the connection is all there is to say it with
        assert exchange(broker, produce(bytes(data), acks=0) + METADATA) == b""
    assert broker.produce("t", b"after") == offset + 1


def test_what_inflates_without_end_is_refused_in_bounded_memory(
    broker: LiveBroker,
) -> None:
    inner = compress(1, encode_entry(None, b"\0" * (1 << 20)) * 200)
    data = encode_entry(None, compress(1, encode_entry(None, inner, 0, 1)), 0, 1)
    before = broker.memory()
    assert len(data) < 2000
    reply = exchange(broker, produce(data), end=True)
    (code,) = struct.unpack_from(">h", reply, len(reply) - 10)
    assert code in (-1, 10)
    assert broker.memory() - before < 150 << 20


@pytest.mark.parametrize(
    "topic", [b"", b"..", b"../t", b"/tmp/t", b"a/b", b"\0", b"\xff", b"x" * 300]
)
def test_topics_that_cannot_be(broker: LiveBroker, topic: bytes) -> None:
    before = sorted(path.name for path in broker.data.parent.iterdir())
    name = struct.pack(">h", len(topic)) + topic
    reply = exchange(broker, frame(3, struct.pack(">i", 1) + name), end=True)
    assert struct.unpack_from(">i", reply, 4) == (5,)
    assert struct.pack(">h", 17) in reply
    reply = exchange(broker, produce(GOOD, topic=topic), end=True)
    assert struct.unpack_from(">hq", reply, len(reply) - 10) == (3, -1)
    # as a controller would say it: lead this, then delete it
    state = name + struct.pack(">iiiiiiiii", 0, 1, 77, 0, 1, 77, 0, 1, 77)
    epoch = struct.pack(">ii", 77, 1)
    lead = frame(4, epoch + struct.pack(">i", 1) + state + struct.pack(">i", 0))
    reply = exchange(broker, lead, end=True)
    assert reply.endswith(struct.pack(">ih", 0, 17))
    delete = frame(5, epoch + b"\1" + struct.pack(">i", 1) + name + struct.pack(">i", 0))
    reply = exchange(broker, delete, end=True)
    assert reply.endswith(struct.pack(">ih", 0, 0))
    assert sorted(path.name for path in broker.data.parent.iterdir()) == before
    assert not Path("/tmp/t-0").exists()
