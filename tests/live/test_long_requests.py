"""Requests that take a real broker long, and what others notice of them: next to nothing."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kafka08.message.compression import compress
from kafka08.message.entry import encode_entry
from kafka08.message.sets import encode_set
from kafka08.network.channel import Channel
from kafka08.protocol.admin_schemas import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeGroupsRequest,
    MorePartitions,
    NewTopic,
)
from kafka08.protocol.registry import api_of
from kafka08.protocol.requests import decode_response, encode_request
from kafka08.protocol.schemas import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    MetadataRequest,
    OffsetFetchRequest,
    OffsetFetchTopic,
    OffsetsPartition,
    OffsetsRequest,
    OffsetsTopic,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)
from tests.live.broker import LiveBroker

# A healthy client gets at least so many answers during a long request. A broker that does one
# request after the other would let it wait all that time, for one answer.
ANSWERS = 4
# None of them takes more of the long request's time; a busy machine is slower at both.
SHARE = 0.6
# A request that takes less time than so many ordinary ones is not long.
LONG = 40
PARTITIONS = 50
MANY, FEW = 300_000, 49_000
# Two sizes in turn: no run of equal messages, which would be quick to go through.
TINY = encode_entry(None, b"") + encode_entry(None, b"a")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    directory = tmp_path_factory.mktemp("live") / "broker"
    broker = LiveBroker(
        directory,
        zookeeper_session_timeout_ms=4000,
        auto_create_topics_enable="false",
    )
    try:
        broker.create_topic("good")
        broker.create_topic("squeezed")
        broker.create_topic("evil", PARTITIONS)
        session = broker.zk.get("/brokers/ids/77")[1].czxid
        yield broker
        assert broker.zk.get("/brokers/ids/77")[1].czxid == session, "the session was lost"
        assert broker.stop() == 128 + 15
        assert "Traceback" not in broker.told()
    finally:
        broker.kill()


def bomb(size: int) -> bytes:
    """A wrapper of tiny messages that inflates to about ``size`` bytes."""
    return encode_entry(None, compress(1, TINY * (size // len(TINY))), 0, 1)


class Healthy:
    """A client that writes and reads one message after the other; ``waits``: seconds a call."""

    def __init__(self, broker: LiveBroker) -> None:
        self.waits: list[float] = []
        self._warm = threading.Event()
        self._broker = broker
        self._done = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        squeezed = encode_set([(None, b"%d" % number) for number in range(1000)], 1, 7)
        sets = {"good": encode_set([(None, b"x")]), "squeezed": squeezed}
        try:
            with self._broker.channel() as channel:
                while not self._done.wait(0.005):
                    for topic, data in (
                        ("good", encode_set([(None, b"x")])),
                        ("squeezed", squeezed),
                    ):
                        sets = [ProducePartition(0, memoryview(data))]
                        answer = self._call(
                            channel, ProduceRequest(1, 5000, [ProduceTopic(topic, sets)])
                        )
                        (written,) = answer.topics[0].partitions
                        wanted = [FetchPartition(0, written.base_offset, 1 << 20)]
                        answer = self._call(
                            channel, FetchRequest(-1, 0, 1, [FetchTopic(topic, wanted)])
                        )
                        (read,) = answer.topics[0].partitions
                        assert (written.error, read.error) == (0, 0)
                        assert len(read.message_set) > 0
                    self._warm.set()
        except BaseException as error:
            self._failure = error
            self._warm.set()

    def _call(self, channel: Channel, request: Any) -> Any:
        began = time.monotonic()
        answer = channel.call(request)
        self.waits.append(time.monotonic() - began)
        return answer

    def __enter__(self) -> Healthy:
        self._thread.start()
        self._warm.wait()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._done.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure


def received(sock: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = sock.recv_into(view)
        assert count, "the broker closed the connection"
        view = view[count:]
    return data


def send(broker: LiveBroker, request: Any) -> Any:
    """The answer to a request, while a healthy client works beside it and hardly waits."""
    frame = b"".join(encode_request(request, 1, "live"))
    address = "127.0.0.1", broker.port
    with socket.create_connection(address, 120) as sock, Healthy(broker) as healthy:
        before = len(healthy.waits)
        began = time.monotonic()
        sock.sendall(frame)
        (size,) = struct.unpack(">i", received(sock, 4))
        during = len(healthy.waits) - before
        took = time.monotonic() - began
        reply = received(sock, size)
    if took > LONG * sorted(healthy.waits[:before])[before // 2]:
        assert during >= ANSWERS
        assert max(healthy.waits[before : before + during]) < SHARE * took
    return decode_response(api_of(request)[2], memoryview(reply))[1]


def produced(broker: LiveBroker, *sets: bytes) -> list[int]:
    """The codes for sets that go to as many partitions."""
    partitions = [ProducePartition(number, memoryview(data)) for number, data in enumerate(sets)]
    answer = send(broker, ProduceRequest(1, 1000, [ProduceTopic("evil", partitions)]))
    return [partition.error for partition in answer.topics[0].partitions]


def test_many_wrappers_that_inflate_far(broker: LiveBroker) -> None:
    assert produced(broker, bomb(50 << 20) * 16) == [10]


def test_many_partitions_with_such_wrappers(broker: LiveBroker) -> None:
    codes = produced(broker, *[bomb(4 << 20)] * PARTITIONS)
    refused = codes.count(10)
    assert codes == [0] * (PARTITIONS - refused) + [10] * refused
    assert PARTITIONS > refused > 0


def test_many_partitions_with_a_little_each(broker: LiveBroker) -> None:
    assert produced(broker, *[bomb(200 << 10)] * PARTITIONS) == [0] * PARTITIONS


def test_a_long_set_of_tiny_messages(broker: LiveBroker) -> None:
    assert produced(broker, TINY * (10_000_000 // len(TINY))) == [0]


@pytest.mark.parametrize(
    "request_",
    [
        FetchRequest(-1, 0, 1, [FetchTopic("no", [FetchPartition(n, 0, 1) for n in range(MANY)])]),
        OffsetsRequest(-1, [OffsetsTopic("no", [OffsetsPartition(n, -1, 1) for n in range(MANY)])]),
        ProduceRequest(
            1,
            1000,
            [ProduceTopic("no", [ProducePartition(n, memoryview(b"")) for n in range(MANY)])],
        ),
        OffsetFetchRequest("group", [OffsetFetchTopic("no", list(range(MANY)))]),
        MetadataRequest([f"no{number}" for number in range(MANY // 3)]),
    ],
    ids=lambda request: type(request).__name__,
)
def test_long_lists_of_what_is_not_there(broker: LiveBroker, request_: Any) -> None:
    answer = send(broker, request_)
    named = [p for topic in answer.topics for p in getattr(topic, "partitions", [])]
    if isinstance(request_, MetadataRequest):
        named = answer.topics
    assert len(named) == (MANY // 3 if isinstance(request_, MetadataRequest) else MANY)
    # Whether it coordinates the group comes first.
    code = 16 if isinstance(request_, OffsetFetchRequest) else 3
    assert {each.error for each in named} == {code}
    assert broker.told().count("\n") < 200


@pytest.mark.parametrize(
    "request_",
    [
        DescribeGroupsRequest([f"no{number}" for number in range(FEW)]),
        CreateTopicsRequest([NewTopic(f"no/{n}", 1, 1, [], []) for n in range(MANY)], 1000),
        DeleteTopicsRequest([f"no/{number}" for number in range(MANY)], 1000),
        CreatePartitionsRequest(
            [MorePartitions(f"no/{n}", 2, None) for n in range(MANY)], 0, False
        ),
    ],
    ids=lambda request: type(request).__name__,
)
def test_long_lists_of_what_cannot_be_done(broker: LiveBroker, request_: Any) -> None:
    answered, *_ = [field for field in send(broker, request_) if isinstance(field, list)]
    assert len(answered) == len(request_[0])


def test_more_partitions_than_a_request_may_have(broker: LiveBroker) -> None:
    """A fetch of 96 MB: the connection closes before they become objects."""
    count = 6_000_000
    body = b"".join(encode_request(FetchRequest(-1, 0, 1, [FetchTopic("no", [])]), 1, "live"))[4:-4]
    size = struct.pack(">i", len(body) + 4 + 16 * count)
    frame = b"".join([size, body, struct.pack(">i", count), bytes(16 * count)])
    before = broker.reset_peak_memory()
    address = "127.0.0.1", broker.port
    with socket.create_connection(address, 120) as sock, Healthy(broker):
        sock.sendall(frame)
        assert sock.recv(4) == b""
    assert broker.peak_memory() - before < 3 * len(frame)


def test_reading_what_inflates_far(broker: LiveBroker) -> None:
    """Stored before, each with a request of its own; then all of them are asked for at once."""
    places = range(4)
    starts = []
    for number in places:
        data = memoryview(bomb(30 << 20))
        request = ProduceRequest(
            1, 1000, [ProduceTopic("evil", [ProducePartition(10 + number, data)])]
        )
        with broker.channel(60_000) as channel:
            (answer,) = channel.call(request).topics[0].partitions
        assert answer.error == 0
        starts.append(answer.base_offset)
    wanted = [FetchPartition(10 + number, starts[number], 1 << 20) for number in places]
    answer = send(broker, FetchRequest(-1, 0, 1, [FetchTopic("evil", wanted)]))
    for partition in answer.topics[0].partitions:
        assert partition.error == 0
        assert len(partition.message_set) > 0
