"""kafka08.client.reading: fetch by fetch through a log with large messages and gaps."""

from __future__ import annotations

import pytest

from kafka08.client.reading import FetchTooSmallError, PartitionReader, Position, fetch
from kafka08.common import TopicPartition
from kafka08.errors import OffsetOutOfRangeError
from kafka08.message.sets import encode_set, iter_messages
from kafka08.protocol import schemas
from tests.fakes import transactional_log
from tests.fakes.cluster import FakeCluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.create("t", 2)
    return cluster


def reader(cluster: FakeCluster, offset: int, *sizes: int) -> PartitionReader:
    return PartitionReader(cluster.channel("b0", 9090).call, T0, Position(offset, *sizes))


def offsets(source: PartitionReader) -> list[list[int]]:
    """Those of each piece, up to the end of the log."""
    pieces = []
    while len(data := source.read()):
        pieces.append([message.offset for message in iter_messages(data)])
    return pieces


def test_one_fetch_has_an_entry_for_each_partition(cluster: FakeCluster) -> None:
    cluster.append("t", 0, b"a")
    call = cluster.channel("b0", 9090).call
    entries = fetch(call, {T0: 0, T1: 7}, 1000, max_wait_ms=5, min_bytes=1)
    assert [entry.error for entry in entries.values()] == [0, OffsetOutOfRangeError.code]
    [request] = cluster.sent(schemas.FetchRequest)
    assert request[:3] == (-1, 5, 1)


def test_a_log_is_read_piece_by_piece_to_its_end(cluster: FakeCluster) -> None:
    cluster.append("t", 0, *[b"x"] * 4)
    two = len(encode_set([(None, b"x")] * 2))
    source = reader(cluster, 0, two + 5)
    assert offsets(source) == [[0, 1], [2, 3]]
    assert source.offset == 4


def test_removed_offsets_are_passed_over(cluster: FakeCluster) -> None:
    for first in (2, 8):
        cluster.store(T0, encode_set([(None, b"x")], base_offset=first))
    source = reader(cluster, 0)
    assert offsets(source) == [[2, 8]]
    assert source.offset == 9


def test_a_message_that_does_not_fit_is_fetched_with_more(cluster: FakeCluster) -> None:
    cluster.append("t", 0, b"x", b"y" * 1000)
    source = reader(cluster, 1, 100, 2000)
    assert offsets(source) == [[1]]
    sizes = [r.topics[0].partitions[0].max_bytes for r in cluster.sent(schemas.FetchRequest)]
    assert sizes == [100, 200, 400, 800, 1600, 1600], "the size stays for the messages that follow"


def test_the_largest_fetch_has_a_limit(cluster: FakeCluster) -> None:
    cluster.append("t", 0, b"x" * 1000)
    with pytest.raises(FetchTooSmallError, match="offset 0 is larger than 300 bytes") as caught:
        reader(cluster, 0, 100, 300).read()
    assert (caught.value.offset, caught.value.size) == (0, 300)


def test_a_reader_may_wait_at_the_end_of_a_replica(cluster: FakeCluster) -> None:
    call = cluster.channel("b0", 9090).call
    waiting = PartitionReader(call, T0, Position(0), max_wait_ms=5, replica_id=-2)
    assert not waiting.read()
    reader(cluster, 0).read()
    assert [request[:3] for request in cluster.sent(schemas.FetchRequest)] == [
        (-2, 5, 1),
        (-1, 0, 0),
    ]


def test_the_errors_of_the_leader_are_raised(cluster: FakeCluster) -> None:
    with pytest.raises(OffsetOutOfRangeError):
        reader(cluster, 5).read()


def test_a_position_that_does_not_advance_grows() -> None:
    position = Position(5, 10, 25)
    position.advance(6)
    assert (position.offset, position.size) == (6, 10)
    position.advance(None)
    position.advance(6)
    assert (position.offset, position.size) == (6, 25)
    with pytest.raises(FetchTooSmallError):
        position.advance(None)


def test_committed_transactions_alone(cluster: FakeCluster) -> None:
    transactional_log.fill(cluster, T0)
    call = cluster.channel("b0", 9090).call
    for size in (1, 100, 1 << 20):
        position = Position(0, size)
        source = PartitionReader(call, T0, position, committed=True)
        found = []
        while len(data := source.read()):
            found += [(each.offset, each.value) for each in iter_messages(data)]
        assert found == transactional_log.COMMITTED
        assert source.offset == transactional_log.STABLE
