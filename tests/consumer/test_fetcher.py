from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import Broker, TopicPartition, fetcher_number
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.errors import ConsumerTimeoutError
from kafka08.consumer.fetcher import ConsumerFetcherManager
from kafka08.consumer.stream import KafkaStream, PartitionPosition
from kafka08.errors import MessageSizeTooLargeError
from kafka08.protocol import schemas
from tests.fakes import transactional_log
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
BROKERS = [Broker(0, "b0", 9090), Broker(1, "b1", 9091)]


class FetcherRig:
    def __init__(self, **settings: Any) -> None:
        self.runtime = FakeRuntime()
        self.cluster = FakeCluster(BROKERS)
        self.cluster.create("t", 2)
        config = ConsumerConfig(group_id="g", zookeeper_connect="z", **settings)
        self.manager = ConsumerFetcherManager(
            "g_c",
            config,
            lambda: BROKERS,
            runtime=self.runtime,
            channel=self.cluster.channel,
        )
        queue = self.runtime.queue(config.queued_max_message_chunks)
        self.stream = KafkaStream(queue, timeout_ms=0)

    def start(self, **offsets: int) -> dict[TopicPartition, PartitionPosition]:
        positions = {
            TopicPartition("t", int(name[1:])): PartitionPosition(
                TopicPartition("t", int(name[1:])), offset, self.stream
            )
            for name, offset in offsets.items()
        }
        self.manager.start(positions.values())
        self.find()
        return positions

    def find(self) -> None:
        assert self.runtime.step("leader-finder") == 1

    def fetch(self) -> int:
        return self.runtime.step("ConsumerFetcherThread")

    def read(self) -> list[tuple[int, int]]:
        found = []
        try:
            while True:
                message = next(self.stream)
                found.append((message.partition, message.offset))
        except ConsumerTimeoutError:
            return found


def test_one_request_per_broker_for_all_its_partitions() -> None:
    rig = FetcherRig()
    rig.cluster.append("t", 0, b"a", b"b")
    rig.cluster.append("t", 1, b"c")
    positions = rig.start(p0=0, p1=0)
    assert rig.fetch() == 1
    assert rig.read() == [(0, 0), (0, 1), (1, 0)]
    (request,) = rig.cluster.sent(schemas.FetchRequest)
    assert request.replica_id == -1
    assert (request.max_wait_ms, request.min_bytes) == (100, 1)
    assert positions[T0].fetched_offset == 2
    rig.fetch()
    assert rig.read() == []


@pytest.mark.scenario("client-21")
@pytest.mark.parametrize(("reset", "expected"), [("smallest", 3), ("largest", 5)])
@pytest.mark.parametrize("stored", [-1, 1, 99])
def test_reset(reset: str, expected: int, stored: int) -> None:
    rig = FetcherRig(auto_offset_reset=reset)
    rig.cluster.append("t", 0, *[b"%d" % i for i in range(5)])
    rig.cluster.starts[T0] = 3
    position = rig.start(p0=stored)[T0]
    rig.fetch()
    if stored >= 0:
        rig.fetch()
    assert position.consumed_offset == expected
    assert [offset for _, offset in rig.read()] == list(range(expected, 5))


@pytest.mark.scenario("client-22")
def test_nothing_is_committable_before_the_first_reset() -> None:
    rig = FetcherRig()
    assert rig.start(p0=-1)[T0].processed_offset == -1


@pytest.mark.scenario("client-27")
def test_leader_change_leaves_no_gap_and_no_duplicate() -> None:
    rig = FetcherRig()
    rig.cluster.append("t", 0, b"a", b"b")
    rig.start(p0=0)
    rig.fetch()
    rig.cluster.append("t", 0, b"c")
    rig.cluster.leaders[T0] = 1
    rig.fetch()
    rig.find()
    rig.fetch()
    assert rig.read() == [(0, 0), (0, 1), (0, 2)]
    assert {port for port, request in rig.cluster.requests[-1:]} == {9091}


def test_partition_without_leader_is_looked_up_again() -> None:
    rig = FetcherRig()
    rig.cluster.append("t", 0, b"a")
    rig.cluster.leaders[T0] = -1
    rig.start(p0=0)
    assert rig.fetch() == 0
    assert rig.runtime.slept == [0.2]
    rig.cluster.leaders[T0] = 0
    rig.find()
    rig.fetch()
    assert rig.read() == [(0, 0)]


def test_dead_broker_gives_all_its_partitions_back() -> None:
    rig = FetcherRig()
    rig.cluster.append("t", 0, b"a")
    rig.cluster.append("t", 1, b"b")
    rig.start(p0=0, p1=0)
    rig.cluster.down = {9090}
    rig.fetch()
    rig.cluster.leaders.update({T0: 1, T1: 1})
    rig.find()
    rig.fetch()
    assert rig.read() == [(0, 0), (1, 0)]


def test_reply_for_a_position_that_moved_is_dropped() -> None:
    rig = FetcherRig()
    rig.cluster.append("t", 0, b"a", b"b")
    position = rig.start(p0=0)[T0]

    def move(port: int, request: Any) -> None:
        if isinstance(request, schemas.FetchRequest):
            position.fetched_offset = 1

    rig.cluster.script = move
    rig.fetch()
    assert rig.read() == []


def test_corrupt_structure_is_fetched_again(caplog: pytest.LogCaptureFixture) -> None:
    rig = FetcherRig()
    position = rig.start(p0=0)[T0]
    rig.cluster.logs[T0].append((0, b"\0" * 40))
    rig.fetch()
    assert "Found invalid messages" in caplog.text
    assert position.fetched_offset == 0
    rig.cluster.logs[T0].clear()
    rig.cluster.append("t", 0, b"a")
    rig.fetch()
    assert rig.read() == [(0, 0)]


def test_stop_interrupts_a_put_on_a_full_stream() -> None:
    rig = FetcherRig(queued_max_message_chunks=1)
    rig.cluster.append("t", 0, b"a")
    rig.cluster.append("t", 1, b"b")
    positions = rig.start(p0=0, p1=0)
    puts = 0

    def after_a_while(seconds: float) -> None:
        nonlocal puts
        puts += 1
        if puts == 3:
            rig.manager.stop()

    rig.runtime.on_sleep = after_a_while
    rig.fetch()
    assert positions[T0].fetched_offset == 1
    assert positions[T1].fetched_offset == 0


def test_late_reply_after_stop_reaches_no_stream() -> None:
    rig = FetcherRig()
    rig.cluster.append("t", 0, b"a")
    position = rig.start(p0=0)[T0]

    def stop(port: int, request: Any) -> None:
        if isinstance(request, schemas.FetchRequest):
            rig.manager.stop()

    rig.cluster.script = stop
    rig.fetch()
    assert rig.read() == []
    assert position.fetched_offset == 0


def test_idle_fetchers_end() -> None:
    rig = FetcherRig()
    rig.start(p0=0)
    rig.cluster.leaders[T0] = 1
    rig.fetch()
    rig.find()
    assert rig.fetch() == 1  # the one for broker 1; that for broker 0 was stopped


def test_fetchers_per_broker() -> None:
    numbers = {p: fetcher_number(TopicPartition("t", p), 2) for p in range(4)}
    # 31 * hash("t") is 3596.
    assert numbers == {0: 0, 1: 1, 2: 0, 3: 1}
    rig = FetcherRig(num_consumer_fetchers=2)
    rig.start(p0=0, p1=0)
    assert rig.fetch() == 2


@pytest.mark.parametrize("asked", [False, True])
def test_versions_are_asked_for_if_the_settings_say_so(asked: bool) -> None:
    rig = FetcherRig(api_versions_request=asked)
    rig.start(p0=0)
    assert [each.get("api_versions", False) for each in rig.cluster.options] == [False, asked]


def test_a_larger_message_is_fetched_alone_up_to_the_limit() -> None:
    rig = FetcherRig(fetch_message_max_bytes=200, fetch_message_limit_bytes=1500)
    rig.cluster.append("t", 0, b"a", b"x" * 1000, b"b")
    positions = rig.start(p0=0)
    for _ in range(3):
        rig.fetch()
    assert rig.read() == [(0, 0), (0, 1), (0, 2)]
    asked = [
        (request.topics[0].partitions[0].offset, request.topics[0].partitions[0].max_bytes)
        for request in rig.cluster.sent(schemas.FetchRequest)
    ]
    assert asked[:5] == [(0, 200), (1, 200), (1, 400), (1, 800), (1, 1500)]
    assert positions[T0].fetched_offset == 3


def test_a_message_above_the_limit_reaches_the_reader_as_an_error() -> None:
    rig = FetcherRig(fetch_message_max_bytes=200, fetch_message_limit_bytes=500)
    rig.cluster.append("t", 0, b"x" * 1000)
    rig.start(p0=0)
    rig.fetch()
    with pytest.raises(MessageSizeTooLargeError, match="fetch offset 0"):
        rig.read()


def test_a_broker_that_goes_away_meanwhile_gives_the_partition_back() -> None:
    rig = FetcherRig(fetch_message_max_bytes=200, fetch_message_limit_bytes=500)
    rig.cluster.append("t", 0, b"x" * 300)
    rig.start(p0=0)
    rig.cluster.script = lambda port, request: _break_second(rig, request)
    rig.fetch()
    assert rig.read() == []
    rig.cluster.script = None
    rig.find()
    rig.fetch()
    assert rig.read() == [(0, 0)]


def _break_second(rig: FetcherRig, request: Any) -> Any:
    if len(rig.cluster.sent(schemas.FetchRequest)) > 1:
        raise ConnectionResetError("gone")
    return None


def test_committed_transactions_alone_and_the_end_is_before_the_open_one() -> None:
    rig = FetcherRig(isolation_level="read_committed", auto_offset_reset="largest")
    transactional_log.fill(rig.cluster, T0)
    transactional_log.fill(rig.cluster, T1)
    positions = rig.start(p0=0, p1=-1)
    rig.fetch()
    assert rig.read() == [(0, offset) for offset, _ in transactional_log.COMMITTED]
    assert positions[T1].consumed_offset == transactional_log.STABLE
    for tp in (T0, T1):  # the transaction is committed
        del rig.cluster.stable[tp]
    rig.fetch()
    assert rig.read() == [(0, 10), (0, 11), (1, 10), (1, 11)]
