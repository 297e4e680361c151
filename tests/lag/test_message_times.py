"""kafka08.lag.message_times."""

from __future__ import annotations

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.common import Broker, TopicPartition
from kafka08.lag.message_times import AT_ONCE, MessageTimes
from kafka08.message.batch import Batch, encode_batch
from kafka08.message.entry import encode_entry
from kafka08.protocol import schemas
from kafka08.protocol.negotiation import NoApiVersionsError
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime

BROKER = Broker(0, "b0", 9090)
TP = TopicPartition("t", 0)


class OneBroker:
    def __init__(self, partitions: int = 1) -> None:
        self.cluster = FakeCluster([BROKER])
        self.cluster.create("t", partitions)
        client = ClusterClient([("b0", 9090)], runtime=FakeRuntime(), channel=self.cluster.channel)
        self.times = MessageTimes(client)

    def read(self) -> bool:
        return self.times.read(dict.fromkeys(self.cluster.leaders, BROKER))

    def time(self, offset: int, tp: TopicPartition = TP) -> int | None:
        self.times.of(tp, offset)
        self.read()
        return self.times.of(tp, offset)

    @property
    def fetches(self) -> int:
        return len(self.cluster.sent(schemas.FetchRequest))


def test_messages_and_batches_have_times() -> None:
    scene = OneBroker()
    scene.cluster.store(TP, encode_entry(None, b"x" * 1000, 0, timestamp=5000))
    header = Batch(1, 0, -1, 2, 0, 0, 2, 7000, 9000, -1, -1, -1, 3)
    data = encode_batch(header, b"x" * 500)
    scene.cluster.logs[TP].append((3, data))
    assert scene.time(0) == 5000
    assert scene.time(2) == 7000  # that of the batch's first record
    stamped = encode_batch(header._replace(attributes=8, base_offset=4), b"x" * 500)
    scene.cluster.logs[TP].append((6, stamped))
    assert scene.time(5) == 9000  # the broker's


@pytest.mark.parametrize(
    "data", [b"", encode_entry(None, b"x"), encode_entry(None, b"", timestamp=-1)]
)
def test_others_have_none(data: bytes) -> None:
    scene = OneBroker()
    scene.cluster.logs[TP] = [(0, data)]
    assert scene.time(0) is None
    assert scene.time(0) is None
    assert scene.fetches == 1


def test_each_place_is_asked_once_and_forgotten_when_nobody_wants_it() -> None:
    scene = OneBroker()
    for offset in (0, 1):
        scene.cluster.store(TP, encode_entry(None, b"x", offset, timestamp=offset))
    assert (scene.time(0), scene.time(0), scene.fetches) == (0, 0, 1)
    scene.read()  # the last wish
    scene.read()
    assert scene.times.of(TP, 0) is None


def test_places_of_one_partition_come_one_round_after_the_other() -> None:
    scene = OneBroker()
    for offset in (0, 1):
        scene.cluster.store(TP, encode_entry(None, b"x", offset, timestamp=100 + offset))
    for _ in range(2):
        found = [scene.times.of(TP, 0), scene.times.of(TP, 1)]
        scene.read()
    assert found == [100, None]
    assert [scene.times.of(TP, 0), scene.times.of(TP, 1)] == [100, 101]


def test_a_request_is_bounded() -> None:
    scene = OneBroker(AT_ONCE + 1)
    for tp in scene.cluster.leaders:
        scene.times.of(tp, 0)
    scene.read()
    [request] = scene.cluster.sent(schemas.FetchRequest)
    assert sum(len(topic.partitions) for topic in request.topics) == AT_ONCE


def test_an_original_broker_is_asked_once_and_others_again() -> None:
    scene = OneBroker()
    scene.cluster.store(TP, encode_entry(None, b"x", 0, timestamp=5000))
    scene.cluster.failures = [ConnectionResetError("gone")]
    assert scene.time(0) is None
    assert scene.time(0) == 5000
    other = OneBroker()
    other.cluster.failures = [NoApiVersionsError("b0:9090")]
    assert other.time(0) is None
    assert other.time(0) is None
    assert other.fetches == 1
