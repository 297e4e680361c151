"""Reading a range: whose answer is taken, what is left out, when it is an error."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.errors import LeaderNotAvailableError
from kafka08.message.compression import GZIP
from kafka08.message.sets import encode_set
from kafka08.protocol import schemas
from kafka08.spark.errors import (
    DataLossError,
    EndedEarlyError,
    MessageTooLargeForFetchError,
    OpenTransactionError,
    RangeNotAvailableError,
)
from kafka08.spark.planner import Range
from kafka08.spark.reader import RangeReader
from tests.fakes import transactional_log
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.spark.cluster import (
    ONE,
    TWO,
    T,
    client_of,
    cluster_of,
    not_leader,
    questions,
    refused,
)


def log(count: int, base: int = 0, codec: int = 0) -> bytes:
    values = [(None, b"%d" % (base + i)) for i in range(count)]
    return encode_set(values, codec, base)


def reader_of(
    cluster: FakeCluster, *, fetch_bytes: int = 1 << 20, most: int = 1 << 20
) -> RangeReader:
    return RangeReader(
        client_of(cluster),
        fetch_bytes=fetch_bytes,
        max_fetch_bytes=most,
        retries=2,
        runtime=FakeRuntime(),
    )


def values(cluster: FakeCluster, start: int, end: int, **kwargs: int) -> list[int]:
    reader = reader_of(cluster, **kwargs)
    return [
        int(message.value or b"") for part in reader.read(Range(*T, start, end)) for message in part
    ]


def test_exactly_the_range() -> None:
    cluster = cluster_of({T: log(10)})
    assert values(cluster, 3, 7) == [3, 4, 5, 6]
    assert values(cluster, 3, 3) == []
    assert values(cluster, 0, 10, fetch_bytes=70) == list(range(10))


@pytest.mark.scenario("spark-26")
def test_a_range_inside_wrappers() -> None:
    cluster = cluster_of({T: log(10, 0, GZIP) + log(10, 10, GZIP)})
    assert values(cluster, 4, 13) == list(range(4, 13))


@pytest.mark.scenario("spark-6")
def test_the_hinted_leader_is_asked_first_and_left_after_a_failure() -> None:
    cluster = cluster_of({T: log(2)})
    cluster.failures = [not_leader()]
    reader = reader_of(cluster)
    assert sum(len(part) for part in reader.read(Range(*T, 0, 2), TWO)) == 2
    asked = [port for port, each in cluster.requests if isinstance(each, schemas.FetchRequest)]
    assert asked == [TWO.port, ONE.port]
    assert len(questions(cluster)) == 1


def test_failures_run_out() -> None:
    cluster = cluster_of({T: log(2)})
    cluster.failures = [refused()] * 3
    with pytest.raises(ConnectionError, match=r"one:9092, leader of \[t,0\]: gone"):
        values(cluster, 0, 2)
    cluster.leaders[T] = -1
    with pytest.raises(LeaderNotAvailableError):
        values(cluster, 0, 2)


@pytest.mark.scenario("spark-25", "spark-input-6")
def test_a_message_that_does_not_fit_is_asked_for_with_more() -> None:
    cluster = cluster_of({T: encode_set([(None, b"0" * 500), (None, b"1")])})
    assert values(cluster, 0, 2, fetch_bytes=100) == [0, 1]
    with pytest.raises(
        MessageTooLargeForFetchError, match=r"offset 0 .*fetch\.message\.max\.bytes"
    ):
        values(cluster, 0, 2, fetch_bytes=100, most=200)


def test_gaps_are_passed_over() -> None:
    cluster = cluster_of({T: log(2) + log(2, 5) + log(1, 9)})
    assert values(cluster, 0, 8) == [0, 1, 5, 6]
    assert values(cluster, 1, 10) == [1, 5, 6, 9]


@pytest.mark.scenario("spark-15")
def test_what_is_gone_is_an_error_that_says_what_there_is() -> None:
    cluster = cluster_of({T: log(5, 5)})
    cluster.starts[T] = 5
    with pytest.raises(
        RangeNotAvailableError, match=r"Offset 2 of t-0 \[2, 7\).*earliest 5, latest 10"
    ):
        values(cluster, 2, 7)


def test_a_log_that_ends_early() -> None:
    cluster = cluster_of({T: log(5)})
    with pytest.raises(EndedEarlyError, match=r"from 5 on: the log ends at 5"):
        values(cluster, 3, 9)


@pytest.mark.scenario("spark-13")
def test_a_new_leader_may_take_time_to_know_what_is_committed() -> None:
    cluster = cluster_of({T: log(5)})
    marks = [2, 2]

    def script(port: int, request: Any) -> Any:
        if not isinstance(request, schemas.FetchRequest) or not marks:
            return None
        told = schemas.FetchPartitionResponse(0, 0, marks.pop(), b"")
        return schemas.FetchResponse([schemas.FetchTopicResponse("t", [told])])

    cluster.script = script
    assert values(cluster, 3, 5) == [3, 4]
    assert len(questions(cluster)) == 3


def committed(cluster: FakeCluster, start: int, end: int, size: int) -> list[int]:
    reader = RangeReader(
        client_of(cluster), fetch_bytes=size, retries=2, runtime=FakeRuntime(), committed=True
    )
    return [message.offset for part in reader.read(Range(*T, start, end)) for message in part]


@pytest.mark.parametrize("size", [1, 100, 1 << 20])
def test_gaps_of_markers_and_aborted_transactions_are_passed_over(size: int) -> None:
    cluster = cluster_of({T: b""})
    transactional_log.fill(cluster, T)
    expected = [offset for offset, _ in transactional_log.COMMITTED]
    for start in range(transactional_log.STABLE + 1):
        found = committed(cluster, start, transactional_log.STABLE, size)
        assert found == [offset for offset in expected if offset >= start]
        for end in range(start, transactional_log.STABLE):
            found = committed(cluster, start, end, size)
            assert found == [offset for offset in expected if start <= offset < end]


def test_markers_at_the_end_of_a_log_are_passed_over() -> None:
    """By readers of all transactions too, to which a broker sends them as they are."""
    cluster = cluster_of({T: b"".join(transactional_log.STORED[:5])})
    assert cluster.end(T) == 6
    assert list(reader_of(cluster).read(Range(*T, 4, 6))) == []


def test_a_range_in_an_open_transaction_is_an_error_and_no_loss() -> None:
    cluster = cluster_of({T: b""})
    transactional_log.fill(cluster, T)
    text = r"t-0 \[0, 12\) cannot be read from 10 on: a transaction that began at 10 is open"
    with pytest.raises(OpenTransactionError, match=text) as caught:
        committed(cluster, 0, transactional_log.END, 1 << 20)
    assert not isinstance(caught.value, DataLossError)
    with pytest.raises(EndedEarlyError, match="the log ends at 12"):
        committed(cluster, 0, transactional_log.END + 1, 1 << 20)
    del cluster.stable[T]
    assert committed(cluster, 8, transactional_log.END, 1 << 20) == [10, 11]
