"""The next ranges of a query: limits, new and deleted partitions, losses."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")


from kafka08.common import READ_COMMITTED, TopicPartition
from kafka08.errors import ConfigError
from kafka08.spark.errors import (
    DataLossError,
    UnreachableError,
)
from kafka08.spark.planner import Range
from kafka08.spark.structured.source_options import SinceTime
from tests.fakes import transactional_log
from tests.fakes.cluster import FakeCluster
from tests.spark.cluster import T, cluster_of, put, refused, stamped
from tests.spark.sources import LENIENT, ONE, OPTIONS, filled, planner_of, with_settings


@pytest.fixture
def cluster() -> FakeCluster:
    return filled()


@pytest.mark.scenario("spark-21")
@pytest.mark.parametrize(
    ("starting", "expected"),
    [
        ("earliest", {T: 2, ONE: 0}),
        ("latest", {T: 10, ONE: 30}),
        ({T: -2, ONE: 7}, {T: 2, ONE: 7}),
        ({T: -1, ONE: -1}, {T: 10, ONE: 30}),
    ],
)
def test_where_a_query_starts(cluster: FakeCluster, starting: Any, expected: Any) -> None:
    cluster.starts[T] = 2
    assert planner_of(cluster, OPTIONS._replace(starting=starting)).initial() == expected


def test_starting_offsets_name_every_partition(cluster: FakeCluster) -> None:
    other = TopicPartition("t", 5)
    planner = planner_of(cluster, OPTIONS._replace(starting={T: 1, other: 2}))
    with pytest.raises(ConfigError, match=r"startingOffsets .* missing \[t,1\], unknown \[t,5\]"):
        planner.initial()


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (4, {T: 4, ONE: 0}),
        ({T: 9, ONE: 1029}, {T: 9, ONE: 29}),
        (1029, {T: 10, ONE: 29}),
    ],
)
def test_times_choose_offsets(cluster: FakeCluster, time: Any, expected: Any) -> None:
    put(cluster, T, stamped(range(10)))
    put(cluster, ONE, stamped(range(1000, 1030)))
    starting = SinceTime("startingTimestamp", time, or_latest=True)
    assert planner_of(cluster, OPTIONS._replace(starting=starting)).initial() == expected
    batch = OPTIONS._replace(
        starting="earliest", ending=starting._replace(option="endingTimestamp")
    )
    assert planner_of(cluster, batch).bounds() == ({T: 0, ONE: 0}, expected)


def test_times_that_no_message_has(cluster: FakeCluster) -> None:
    """T is too early, ONE has messages of 0.8 alone."""
    put(cluster, T, stamped(range(10)))
    starting = SinceTime("startingTimestamp", 10, or_latest=False)
    planner = planner_of(cluster, OPTIONS._replace(starting=starting))
    text = r"startingTimestamp .* \[t,0\], \[t,1\].* startingOffsetsByTimestampStrategy latest"
    with pytest.raises(ConfigError, match=text):
        planner.initial()
    planner = planner_of(cluster, OPTIONS._replace(starting=starting._replace(time=5)))
    with pytest.raises(ConfigError, match=r"last message of \[t,1\],"):
        planner.initial()


def test_times_name_every_partition(cluster: FakeCluster) -> None:
    starting = SinceTime("startingOffsetsByTimestamp", {T: 5}, or_latest=False)
    planner = planner_of(cluster, OPTIONS._replace(starting=starting))
    with pytest.raises(ConfigError, match=r"startingOffsetsByTimestamp .* missing \[t,1\]"):
        planner.initial()


def test_a_time_behind_the_end(cluster: FakeCluster) -> None:
    put(cluster, T, stamped(range(10)))
    put(cluster, ONE, stamped(range(30)))
    starting = SinceTime("startingTimestamp", 5, or_latest=False)
    options = OPTIONS._replace(starting=starting, ending={T: 5, ONE: 4})
    with pytest.raises(ConfigError, match=r"startingTimestamp is 5 for \[t,1\], .*4 .endingOff"):
        planner_of(cluster, options).bounds()


def test_starting_offsets_out_of_range(cluster: FakeCluster) -> None:
    starting: Any = {T: 11, ONE: 3}
    with pytest.raises(DataLossError, match=r"startingOffsets has 11 for \[t,0\].*\[0, 10\)"):
        planner_of(cluster, OPTIONS._replace(starting=starting)).initial()
    lenient = planner_of(cluster, LENIENT._replace(starting=starting))
    assert lenient.initial() == {T: 10, ONE: 3}


def test_unknown_topics_and_partitions(cluster: FakeCluster) -> None:
    with pytest.raises(ConfigError, match=r"subscribe \(t,nope\): no such topic"):
        planner_of(cluster, OPTIONS._replace(topics=("t", "nope"))).initial()
    gone = OPTIONS._replace(topics=(), assigned=(T, TopicPartition("t", 9)))
    with pytest.raises(ConfigError, match=r"assign .*no such partition: \[t,9\]"):
        planner_of(cluster, gone).initial()
    assert planner_of(cluster, OPTIONS._replace(topics=(), assigned=(ONE,))).partitions() == [ONE]


def test_brokers_that_are_lost_are_named(cluster: FakeCluster) -> None:
    cluster.failures = [refused()] * 3
    with pytest.raises(
        UnreachableError, match=r"kafka\.bootstrap\.servers has value h:9092: .* gone"
    ):
        planner_of(cluster).initial()


def test_a_new_partition_without_its_beginning(cluster: FakeCluster) -> None:
    cluster.starts[ONE] = 5
    with pytest.raises(DataLossError, match=r"\[t,1\] begins at 5"):
        planner_of(cluster).ranges({T: 0}, {T: 10, ONE: 30})
    found = planner_of(cluster, LENIENT).ranges({T: 0}, {T: 10, ONE: 30})
    assert found[1] == Range("t", 1, 5, 30)


def test_big_ranges_are_cut(cluster: FakeCluster) -> None:
    planner = planner_of(cluster, with_settings(OPTIONS, min_partitions=4))
    found = planner.ranges({T: 0, ONE: 0}, {T: 10, ONE: 30})
    assert [(r.partition, r.start, r.end) for r in found] == [
        (0, 0, 10),
        (1, 0, 10),
        (1, 10, 20),
        (1, 20, 30),
    ]


@pytest.fixture
def transactional() -> FakeCluster:
    cluster = cluster_of({T: b""})
    transactional_log.fill(cluster, T)
    return cluster


COMMITTED = OPTIONS._replace(params=OPTIONS.params._replace(isolation_level=READ_COMMITTED))


def test_a_query_of_committed_transactions_ends_at_the_first_open_one(
    transactional: FakeCluster,
) -> None:
    planner = planner_of(transactional, COMMITTED._replace(starting="earliest"))
    assert planner.bounds() == ({T: 0}, {T: transactional_log.STABLE})
    assert planner.latest({T: 0}) == {T: transactional_log.STABLE}
    assert planner_of(transactional).latest({T: 0}) == {T: transactional_log.END}
    assert planner_of(transactional, COMMITTED).initial() == {T: transactional_log.STABLE}
    del transactional.stable[T]
    assert planner.latest({T: transactional_log.STABLE}) == {T: transactional_log.END}


def test_an_open_transaction_before_the_offsets_is_no_loss(
    transactional: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as those of a checkpoint of a query that read all."""
    start = {T: transactional_log.STABLE + 1}
    planner = planner_of(transactional, COMMITTED._replace(starting=start))
    assert planner.initial() == start
    assert planner.latest(start) == start
    assert planner.limited(start, start) == start
    assert planner.ranges(start, start) == []
    with pytest.raises(DataLossError):
        planner.latest({T: transactional_log.END + 1})
    assert not caplog.records
