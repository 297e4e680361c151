"""Bytes that no client of a later release should send, to a real broker: what comes of each."""

from __future__ import annotations

import socket
import struct
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import zstandard

from kafka08.errors import LaterCode
from kafka08.message.batch import Batch, encode_batch
from kafka08.message.compression import compress
from kafka08.protocol import admin_schemas as a
from kafka08.protocol import group_schemas as g
from kafka08.protocol import later_schemas as later
from kafka08.protocol.registry import APIS
from kafka08.protocol.requests import decode_response, encode_request
from kafka08.protocol.schemas import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.protocol.types import Struct
from tests.live.broker import LiveBroker
from tests.message.batches import batch, encode_record, simple, varint

MOST_BYTES = 4 << 20  # of a batch
MIB = 1 << 20
CORRUPT, INVALID, TOO_LARGE, OUT_OF_RANGE = 2, LaterCode.INVALID_RECORD, 10, 1
OPAQUE = [g.GroupProtocol("range", b"not a list of topics")]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    broker = LiveBroker(
        tmp_path_factory.mktemp("live") / "broker",
        api_versions_enable="true",
        message_max_bytes=MOST_BYTES,
        replica_fetch_max_bytes=MOST_BYTES,
        group_min_session_timeout_ms=100,
        group_initial_rebalance_delay_ms=100,
    )
    try:
        broker.create_topic("t")
        broker.create_offsets_topic()
        yield broker
        assert broker.stop() == 128 + 15
        assert "Traceback" not in broker.told()
    finally:
        broker.kill()


@pytest.fixture(autouse=True)
def unharmed(broker: LiveBroker) -> Iterator[None]:
    """Whatever a test sent, others are served after it, and no connection is left open."""
    before = sockets(broker)
    yield
    offset = broker.produce("t", b"still here")
    assert broker.fetch("t", offset) == [(offset, b"still here")]
    broker.until(lambda: sockets(broker) <= before + 2)


def sockets(broker: LiveBroker) -> int:
    return sum(name.startswith("socket:") for name in broker.open_files())


def answer(sock: socket.socket, request: Any, version: int) -> Any:
    """Sends a request of any version and waits for its answer."""
    sock.sendall(b"".join(encode_request(request, 5, "bad", version)))
    return received(sock, request, version)


def received(sock: socket.socket, request: Any, version: int) -> Any:
    size = int.from_bytes(exactly(sock, 4), "big")
    (api,) = (each for each in APIS.values() if each.request is type(request))
    return decode_response(Struct(api.response, version), exactly(sock, size))[1]


def exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            raise ConnectionResetError("closed by the broker")
        data += piece
    return data


def connect(broker: LiveBroker) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.port), 30)


def produce(broker: LiveBroker, data: bytes, version: int = 7) -> int:
    """The code for a set. A set that is refused leaves nothing in the log."""
    partition = ProducePartition(0, memoryview(data))
    request = ProduceRequest(1, 1000, [ProduceTopic("t", [partition])])
    before = broker.produce("t", b"before")
    with connect(broker) as sock:
        (found,) = answer(sock, request, version).topics[0].partitions
    after = broker.produce("t", b"after")
    if found.error:
        assert (found.base_offset, after) == (-1, before + 1)
    else:
        assert found.base_offset == before + 1 < after
    return int(found.error)


def raw_batch(records: bytes, count: int, codec: int = 0) -> bytes:
    """A batch of these bytes, with a header and a crc that are right."""
    header = Batch(0, 0, -1, 2, 0, codec, count - 1, 1000, 1000, -1, -1, -1, count)
    return encode_batch(header, records)


def record(body: bytes) -> bytes:
    return varint(len(body)) + body


def flipped(data: bytes, position: int) -> bytes:
    changed = bytearray(data)
    changed[position] ^= 1
    return bytes(changed)


GOOD = batch(simple(b"a", b"b", b"c"))
WITHOUT_HEADERS = b"\0\0\0\1\1"  # attributes, time, offset, null key, null value


@pytest.mark.scenario("modern-12")
@pytest.mark.parametrize("position", [17, 21, 23, 27, 43, 57, 61, len(GOOD) - 1])
def test_a_bit_that_the_crc_covers(broker: LiveBroker, position: int) -> None:
    assert produce(broker, flipped(GOOD, position)) == CORRUPT


@pytest.mark.scenario("modern-12")
@pytest.mark.parametrize(
    "data",
    [
        batch(simple(b"a", b"b", b"c"), count=4),
        batch(simple(b"a", b"b", b"c"), count=4, last_delta=3),
        batch(simple(b"a", b"b", b"c"), count=2, last_delta=1),
        batch(simple(b"a"), count=0),
        batch(simple(b"a"), count=-1),
        batch(simple(b"a"), count=2**31 - 1, last_delta=2**31 - 2),
        batch(simple(b"a"), last_delta=-1),
        batch(simple(b"a", b"b"), deltas=[0, 5]),
        batch(simple(b"a", b"b"), deltas=[1, 0], last_delta=1),
        batch([], count=0, last_delta=0),
        batch(simple(b"a"), attributes=0x20),
        GOOD * 2,
        GOOD + b"\0",
        GOOD[:-1],
        b"",
    ],
)
def test_headers_that_do_not_agree_with_their_records(broker: LiveBroker, data: bytes) -> None:
    assert produce(broker, data) in (CORRUPT, INVALID)


def test_a_batch_of_a_transaction_without_a_transactional_id(broker: LiveBroker) -> None:
    assert produce(broker, batch(simple(b"a"), attributes=0x10)) == 53


@pytest.mark.scenario("modern-12")
@pytest.mark.parametrize(
    "records",
    [
        b"\xff" * 9 + b"\x01",  # a length of ten bytes
        b"\xff" * 20,
        varint(2**31 - 1) + b"\0" * 20,
        varint(-5) + b"\0" * 20,
        varint(0),
        record(b"\0" + b"\xff" * 9 + b"\x7f" + WITHOUT_HEADERS[2:] + b"\0"),  # 64 bits and more
        record(b"\0\0" + b"\xff" * 5 + b"\0"),  # an offset delta that never ends
        record(b"\0\0\0" + varint(2**31 - 1) + b"\1\0"),  # a key longer than the record
        record(b"\0\0\0\1" + varint(2**31 - 1) + b"\0"),
        record(WITHOUT_HEADERS + varint(1_000_000)),  # headers that are not there
        record(WITHOUT_HEADERS + varint(-1)),
        record(WITHOUT_HEADERS + varint(1) + b"\1\1"),  # a null name
        record(WITHOUT_HEADERS + varint(0) + b"x"),  # more than its fields
        record(WITHOUT_HEADERS)[:-1],
    ],
)
@pytest.mark.parametrize("codec", [0, 1])
def test_lengths_that_are_absurd(broker: LiveBroker, records: bytes, codec: int) -> None:
    data = compress(codec, records, magic=2) if codec else records
    assert produce(broker, raw_batch(data, 1, codec)) in (CORRUPT, INVALID)


def test_a_million_headers(broker: LiveBroker) -> None:
    """They are stored, and clients of 0.8 read the message without them."""
    one = encode_record(0, (b"k", b"value", 0, [(b"", None)] * 1_000_000))
    offset = broker.produce("t", b"before") + 1
    assert produce(broker, raw_batch(one, 1)) == 0
    assert broker.fetch("t", offset + 1)[0] == (offset + 1, b"value")


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_records_that_are_not_compressed_at_all(broker: LiveBroker, codec: int) -> None:
    assert produce(broker, raw_batch(b"no such codec", 1, codec)) not in (0, INVALID)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_codecs_that_do_not_exist(broker: LiveBroker, codec: int) -> None:
    assert produce(broker, raw_batch(b"anything", 1, codec)) not in (0, INVALID)


@pytest.mark.scenario("modern-23")
@pytest.mark.parametrize("codec", [1, 4])
@pytest.mark.parametrize("mib", [70, 400])
def test_what_inflates_too_far(broker: LiveBroker, codec: int, mib: int) -> None:
    memory = broker.memory()
    gzip = zlib.compressobj(1, wbits=31)
    made = gzip if codec == 1 else zstandard.ZstdCompressor(level=1).compressobj()
    packed = b"".join([*(made.compress(bytes(MIB)) for _ in range(mib)), made.flush()])
    assert len(packed) < MOST_BYTES
    assert produce(broker, raw_batch(packed, 1, codec)) == TOO_LARGE
    assert broker.memory() - memory < 150 * MIB


@pytest.mark.scenario("modern-23")
def test_what_inflates_far_is_read_in_bounded_memory(broker: LiveBroker) -> None:
    """60 MiB in a batch of some KiB, for consumers that get it in another format."""
    big = batch([(b"k", bytes(60 * MIB), 0, [])], codec=4)
    assert len(big) < 64 << 10
    offset = broker.produce("t", b"before") + 2
    assert produce(broker, big) == 0
    memory = broker.memory()
    for _ in range(3):
        ((at, value), *_) = broker.fetch("t", offset)
        assert (at, len(value)) == (offset, 60 * MIB)
    assert broker.memory() - memory < 400 * MIB


# --- keys and versions


@pytest.mark.scenario("modern-2")
@pytest.mark.parametrize("version", [4, 5, 99, 32767, -1, -32768])
def test_any_version_of_api_versions_is_answered(broker: LiveBroker, version: int) -> None:
    """In the layout of version 0, and the connection goes on."""
    with connect(broker) as sock:
        header = struct.pack(">hhih", 18, version, 5, -1)
        sock.sendall(struct.pack(">i", len(header) + 9) + header + b"\0\1x\1y\0\0\0\0")
        found = received(sock, later.ApiVersionsRequest(), 0)
        assert found.error == LaterCode.UNSUPPORTED_VERSION
        assert [tuple(each[:3]) for each in found.api_keys] == [(18, 0, 3)]
        for known in range(4):
            asked = later.ApiVersionsRequest("bad", "1")
            assert answer(sock, asked, known).error == 0


@pytest.mark.scenario("modern-4")
@pytest.mark.parametrize("key", [-1, 17, 36, 68, 71, 999, 32767])
def test_unknown_keys_close(broker: LiveBroker, key: int) -> None:
    with connect(broker) as sock:
        sock.sendall(struct.pack(">ihhih", 30, key, 0, 5, 0) + bytes(20))
        assert sock.recv(100) == b""


@pytest.mark.scenario("modern-4")
@pytest.mark.parametrize("key", [0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 19, 42])
@pytest.mark.parametrize("version", [99, -1])
def test_unknown_versions_close(broker: LiveBroker, key: int, version: int) -> None:
    with connect(broker) as sock:
        sock.sendall(struct.pack(">ihhih", 30, key, version, 5, 0) + bytes(20))
        assert sock.recv(100) == b""


# --- records that cannot be deleted


def delete(broker: LiveBroker, *asked: tuple[str, int, int], version: int = 1) -> list[Any]:
    """(low watermark, code) of each partition."""
    topics = [a.DeleteRecordsTopic(t, [a.DeleteRecordsPartition(p, at)]) for t, p, at in asked]
    with connect(broker) as sock:
        found = answer(sock, a.DeleteRecordsRequest(topics, 1000), version)
    return [tuple(each[1:]) for topic in found.topics for each in topic.partitions]


@pytest.mark.parametrize("offset", [-2, -(1 << 63), (1 << 63) - 1])
def test_offsets_that_are_not_in_the_log(broker: LiveBroker, offset: int) -> None:
    for version in (0, 1):
        assert delete(broker, ("t", 0, offset), version=version) == [(-1, OUT_OF_RANGE)]


def test_records_that_are_not_to_be_deleted(broker: LiveBroker) -> None:
    broker.create_topic("compacted", cleanup_policy="compact")
    asked = [("__consumer_offsets", 0), ("compacted", 0), ("t", -1), ("t", 1 << 30), ("", 0)]
    codes = [17, LaterCode.POLICY_VIOLATION, 3, 3, 3]
    found = [delete(broker, (topic, number, 0)) for topic, number in asked]
    assert found == [[(-1, code)] for code in codes]


def test_many_partitions_to_delete_from(broker: LiveBroker) -> None:
    asked = [("t", number % 50_000, 1) for number in range(100_000)]
    before = broker.produce("t", b"before")
    found = delete(broker, *asked)
    assert len(found) == 50_000
    assert found[0] == (1, 0) and set(found[1:]) == {(-1, 3)}
    assert broker.fetch("t", before)[0] == (before, b"before")


# --- groups


def join_request(
    group: str, member_id: str = "", *, session_ms: int = 30_000, rebalance_ms: int = 30_000
) -> g.JoinGroupRequest:
    return g.JoinGroupRequest(group, session_ms, member_id, "consumer", OPAQUE, rebalance_ms)


@pytest.mark.scenario("modern-38")
def test_metadata_that_is_not_of_consumers_is_answered(broker: LiveBroker) -> None:
    with connect(broker) as sock:
        joined = answer(sock, join_request("opaque"), 3)
        assert (joined.error, joined.leader) == (0, joined.member_id)


@pytest.mark.scenario("modern-36")
def test_a_leader_that_never_syncs(broker: LiveBroker) -> None:
    with connect(broker) as one, connect(broker) as other:
        request = join_request("silent", rebalance_ms=300)
        one.sendall(b"".join(encode_request(request, 5, "bad", 3)))
        second = answer(other, request, 3)
        first = received(one, request, 3)
        assert first.leader == second.leader and first.generation == second.generation
        (sock, joined) = (other, second) if first.leader == first.member_id else (one, first)
        sync = g.SyncGroupRequest("silent", joined.generation, joined.member_id, [])
        assert answer(sock, sync, 2).error == LaterCode.REBALANCE_IN_PROGRESS
        again = answer(sock, join_request("silent", joined.member_id, rebalance_ms=300), 3)
        assert (again.error, again.leader) == (0, joined.member_id)
        assert again.generation == joined.generation + 1


def test_metadata_above_the_limit(broker: LiveBroker) -> None:
    large = [g.GroupProtocol("range", bytes(MIB))]
    with connect(broker) as sock:
        refused = answer(sock, join_request("large")._replace(protocols=large), 3)
        assert refused.error == TOO_LARGE


def test_a_flood_of_joins_that_nobody_follows_up(broker: LiveBroker) -> None:
    """Each asks for the id of a member of a new group, with the longest session; ids are long."""
    memory = broker.memory()
    with connect(broker) as sock:
        for number in range(300):
            requests = [join_request(f"{number}-{n}", session_ms=1_800_000) for n in range(40)]
            sock.sendall(
                b"".join(b"".join(encode_request(r, 5, "y" * 30_000, 4)) for r in requests)
            )
            for request in requests:
                found = received(sock, request, 4)
                assert found.error == LaterCode.MEMBER_ID_REQUIRED
    assert broker.memory() - memory < 200 * MIB  # 360 MiB were asked for


def test_a_thousand_members_of_one_group(broker: LiveBroker) -> None:
    """All of them wait at once, and then all are gone at once; others are served meanwhile."""
    request = join_request("crowd", rebalance_ms=60_000)
    frame = b"".join(encode_request(request, 5, "m", 3))
    with ExitStack() as stack:
        socks = [stack.enter_context(connect(broker)) for _ in range(1000)]
        for sock in socks:
            sock.sendall(frame)
        broker.produce("t", b"meanwhile")
        joined = [received(sock, request, 3) for sock in socks]
        assert {each.error for each in joined} == {0}
        last = max(each.generation for each in joined)
        (leader,) = (each for each in joined if each.generation == last and each.members)
        assert leader.leader == leader.member_id
