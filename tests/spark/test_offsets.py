"""Requests of drivers for offsets, and their repetition after errors."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.errors import LeaderNotAvailableError, UnknownTopicOrPartitionError
from kafka08.message.sets import encode_set
from kafka08.protocol import schemas
from kafka08.spark.errors import UnreachableError, naming
from kafka08.spark.offsets import LogOffsetReader, behind, resolve
from tests.fakes import transactional_log
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.spark.cluster import ONE, T, client_of, cluster_of, put, questions, refused, stamped

OTHER = TopicPartition("t", 1)


def reader_of(cluster: FakeCluster, retries: int = 1) -> tuple[LogOffsetReader, FakeRuntime]:
    runtime = FakeRuntime()
    client = client_of(cluster)
    return LogOffsetReader(client, retries=retries, backoff_ms=200, runtime=runtime), runtime


@pytest.fixture
def cluster() -> FakeCluster:
    return cluster_of({T: encode_set([(None, b"x")] * 3), OTHER: b""})


def test_earliest_and_latest(cluster: FakeCluster) -> None:
    cluster.starts[T] = 1
    reader, _ = reader_of(cluster)
    assert reader.earliest([T, OTHER]) == {T: 1, OTHER: 0}
    assert reader.latest([T, OTHER]) == {T: 3, OTHER: 0}
    assert len(cluster.sent(schemas.OffsetsRequest)) == 2, "one request a leader"


def test_the_first_message_since_a_time(cluster: FakeCluster) -> None:
    put(cluster, T, stamped([10, 20, 15]))
    reader, _ = reader_of(cluster)
    assert reader.since({T: 11, OTHER: 0}) == {T: 1, OTHER: -1}, "OTHER has no times"
    assert reader.since({T: 21}) == {T: -1}
    cluster.failures = [refused()]
    assert reader.since({T: 0}) == {T: 0}


def test_partitions(cluster: FakeCluster) -> None:
    reader, runtime = reader_of(cluster)
    assert reader.partitions(["t"]) == [T, OTHER]
    assert questions(cluster) == [["t"]]
    before = runtime.clock.now
    with pytest.raises(UnknownTopicOrPartitionError, match="another"):
        reader.partitions(["another"])
    assert runtime.clock.now - before == pytest.approx(0.2)


def test_all_partitions(cluster: FakeCluster) -> None:
    cluster.create("u", 1, leader=ONE.id)
    reader, _ = reader_of(cluster)
    assert reader.find([], lambda there: []) == [T, OTHER, TopicPartition("u", 0)]


def test_who_knows_no_other_topic_is_asked_to_the_end(cluster: FakeCluster) -> None:
    """Named at first, as a broker may create it then; afterwards all topics are asked for."""
    cluster.delete(T)
    cluster.delete(OTHER)
    reader, _ = reader_of(cluster, retries=4)
    with pytest.raises(UnknownTopicOrPartitionError):
        reader.partitions(["t"])
    assert questions(cluster) == [["t"], [], [], [], []]
    cluster.create("u", 1, leader=ONE.id)
    cluster.requests.clear()
    with pytest.raises(UnknownTopicOrPartitionError):
        reader.partitions(["t"])
    assert questions(cluster) == [["t"], [], []]


def test_a_topic_that_is_being_created_is_named_again(cluster: FakeCluster) -> None:
    reader, _ = reader_of(cluster, retries=3)
    codes = [LeaderNotAvailableError.code] * 2

    def script(port: int, request: Any) -> Any:
        if not isinstance(request, schemas.MetadataRequest) or not codes:
            return None
        being_made = [schemas.TopicMetadata(codes.pop(), "t", [])]
        return cluster.tell(request, [])._replace(topics=being_made)

    cluster.script = script
    assert reader.partitions(["t"]) == [T, OTHER]
    assert questions(cluster) == [["t"]] * 3
    codes += [LeaderNotAvailableError.code] * 4
    with pytest.raises(LeaderNotAvailableError, match="No metadata for topic t"):
        reader.partitions(["t"])


def test_a_failure_is_asked_again_with_fresh_metadata(cluster: FakeCluster) -> None:
    reader, runtime = reader_of(cluster)
    before = runtime.clock.now
    cluster.failures = [refused()]
    assert reader.latest([T]) == {T: 3}
    assert questions(cluster) == [["t"]] * 2
    assert runtime.clock.now - before == pytest.approx(0.2)


def test_the_last_failure_is_raised(cluster: FakeCluster) -> None:
    reader, _ = reader_of(cluster, retries=2)
    cluster.failures = [refused()] * 3
    with pytest.raises(ConnectionError, match=r"one:9092, leader of \[t,0\]: gone"):
        reader.latest([T])
    assert cluster.failures == []


def test_a_log_that_seems_to_have_gone_back_is_asked_again(cluster: FakeCluster) -> None:
    reader, runtime = reader_of(cluster)
    before = runtime.clock.now
    assert reader.latest_since({T: 2}, [T, OTHER]) == {T: 3, OTHER: 0}
    assert runtime.clock.now == before
    ends = [5, 3]
    cluster.end = lambda tp: ends.pop() if tp == T else 0  # type: ignore[method-assign]
    assert reader.latest_since({T: 5}, [T, OTHER]) == {T: 5, OTHER: 0}
    assert runtime.clock.now - before == pytest.approx(0.2)
    ends[:] = [3] * 4
    found = reader.latest_since({T: 5}, [T], doubts=3)
    assert behind(found, {T: 5}) == [T]
    assert ends == []


def test_no_broker_is_named_with_its_option() -> None:
    endpoints = (("one", 9092), ("two", 9093))
    with (
        pytest.raises(
            UnreachableError, match=r"bootstrap\.servers has value one:9092,two:9093: gone"
        ),
        naming("bootstrap.servers", endpoints),
    ):
        raise refused()


def test_leaders_that_are_not_there_are_left_out(cluster: FakeCluster) -> None:
    reader, _ = reader_of(cluster)
    assert reader.leaders([T]) == {T: ONE}
    cluster.leaders[T] = -1
    reader.partitions(["t"])
    assert reader.leaders([T]) == {}
    with pytest.raises(LeaderNotAvailableError):
        reader.earliest([T])


def test_resolve(cluster: FakeCluster) -> None:
    reader, _ = reader_of(cluster)
    assert resolve({T: -1, OTHER: 7}, reader) == {T: 3, OTHER: 7}
    assert resolve({T: -2}, reader) == {T: 0}


def test_readers_of_committed_transactions_have_an_end_of_their_own() -> None:
    cluster = cluster_of({T: b"", OTHER: b""})
    transactional_log.fill(cluster, T)
    runtime = FakeRuntime()
    reader = LogOffsetReader(client_of(cluster), retries=0, runtime=runtime, committed=True)
    assert reader.latest([T, OTHER]) == {T: transactional_log.STABLE, OTHER: 0}
    assert reader.ends([T, OTHER]) == {T: transactional_log.END, OTHER: 0}
    # Offsets of an earlier run that read all are in the log: nothing is lost.
    for start in (transactional_log.STABLE + 1, transactional_log.END):
        assert reader.latest_since({T: start}, [T], doubts=0) == {T: start}
    beyond = transactional_log.END + 1
    assert reader.latest_since({T: beyond}, [T], doubts=0) == {T: transactional_log.STABLE}
