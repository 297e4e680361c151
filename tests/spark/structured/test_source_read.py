"""Ranges that executors read, and what is lost of them."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")


from kafka08.common import READ_COMMITTED
from kafka08.errors import UnknownTopicOrPartitionError
from kafka08.message.sets import encode_set
from kafka08.spark.errors import (
    DataLossError,
    EndedEarlyError,
    MessageTooLargeForFetchError,
    OpenTransactionError,
)
from kafka08.spark.planner import Range
from kafka08.spark.structured.source_options import SourceOptions
from tests.fakes import transactional_log
from tests.fakes.cluster import FakeCluster
from tests.spark.cluster import T, put
from tests.spark.sources import LENIENT, ONE, OPTIONS, filled, read


@pytest.fixture
def cluster() -> FakeCluster:
    return filled()


def values(cluster: FakeCluster, wanted: Range, options: SourceOptions = OPTIONS) -> list[int]:
    found = read(cluster, wanted, options=options)
    return [int(value) for batch in found for value in batch.column("value").to_pylist()]


def test_a_range_is_read_exactly(cluster: FakeCluster) -> None:
    assert values(cluster, Range("t", 1, 7, 19)) == list(range(7, 19))


@pytest.mark.scenario("spark-16")
def test_what_retention_removed(cluster: FakeCluster, caplog: pytest.LogCaptureFixture) -> None:
    cluster.starts[ONE] = 5
    wanted = Range("t", 1, 2, 9)
    with pytest.raises(DataLossError, match=r"t-1 \[2, 9\).*earliest 5.*failOnDataLoss"):
        values(cluster, wanted)
    assert not caplog.records
    assert values(cluster, wanted, LENIENT) == [5, 6, 7, 8]
    (warning,) = caplog.messages
    assert "t-1 [2, 9) is out of range" in warning
    assert values(cluster, Range("t", 1, 2, 4), LENIENT) == []


@pytest.mark.scenario("spark-input-6")
def test_a_message_larger_than_any_fetch_is_an_error(cluster: FakeCluster) -> None:
    put(cluster, T, encode_set([(None, b"0" * 500)]))
    params = OPTIONS.params._replace(fetch_bytes=100, max_fetch_bytes=200)
    options = OPTIONS._replace(params=params)
    text = r"offset 0 of t-0 \[0, 1\) is larger than 200 bytes: raise fetch\.message\.max\.bytes"
    with pytest.raises(MessageTooLargeForFetchError, match=text):
        list(read(cluster, Range("t", 0, 0, 1), options=options))


def test_a_range_beyond_the_log(cluster: FakeCluster) -> None:
    with pytest.raises(EndedEarlyError, match="failOnDataLoss"):
        values(cluster, Range("t", 0, 5, 20))
    assert values(cluster, Range("t", 0, 5, 20), LENIENT) == [5, 6, 7, 8, 9]
    assert values(cluster, Range("t", 0, 15, 20), LENIENT) == []


def test_a_partition_that_is_gone(cluster: FakeCluster, caplog: pytest.LogCaptureFixture) -> None:
    """Planned, and deleted before it was read: as what retention removed."""
    cluster.delete(ONE)
    wanted = Range("t", 1, 0, 9)
    with pytest.raises(DataLossError, match=r"t-1 \[0, 9\) .* gone.*failOnDataLoss"):
        values(cluster, wanted)
    assert values(cluster, wanted, LENIENT) == []
    assert "t-1 [0, 9) cannot be read: the partition is gone" in caplog.messages[-1]
    cluster.failures = [UnknownTopicOrPartitionError()] * 2
    with pytest.raises(UnknownTopicOrPartitionError):
        values(cluster, Range("t", 0, 0, 9), LENIENT)


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_committed_transactions_alone(cluster: FakeCluster, size: int) -> None:
    put(cluster, T)
    transactional_log.fill(cluster, T)
    params = OPTIONS.params._replace(isolation_level=READ_COMMITTED, fetch_bytes=size)
    options = OPTIONS._replace(params=params)
    found = read(cluster, Range("t", 0, 0, transactional_log.STABLE), options=options)
    rows = [row for batch in found for row in batch.select(["offset", "value"]).to_pylist()]
    assert [tuple(row.values()) for row in rows] == transactional_log.COMMITTED
    for lenient in (options, options._replace(settings=LENIENT.settings)):
        with pytest.raises(OpenTransactionError, match="began at 10 is open"):
            list(read(cluster, Range("t", 0, 0, transactional_log.END), options=lenient))
