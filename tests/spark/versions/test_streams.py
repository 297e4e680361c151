"""The stream reader for a Spark that does not tell it where the query stands."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from kafka08.common import TopicPartition
from kafka08.errors import ConfigError
from kafka08.spark.errors import DataLossError
from kafka08.spark.structured.source import SourceStreamReader
from kafka08.spark.structured.source_offsets import from_json
from kafka08.spark.structured.source_options import SourceOptions
from kafka08.spark.versions.streams import LIMITS, UnlimitedStreamReader, stream_reader
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.spark.cluster import T, put
from tests.spark.sources import LENIENT, ONE, OPTIONS, filled, messages, planned_by, planner_of

EARLIEST = OPTIONS._replace(starting="earliest")


@pytest.fixture
def cluster() -> FakeCluster:
    return filled()


def stream_of(
    cluster: FakeCluster, options: SourceOptions = OPTIONS, runtime: FakeRuntime | None = None
) -> UnlimitedStreamReader:
    return planned_by(UnlimitedStreamReader(options), planner_of(cluster, options, runtime))


def test_which_reader() -> None:
    assert type(stream_reader(OPTIONS, {}, limits=True)) is SourceStreamReader
    assert type(stream_reader(OPTIONS, {}, limits=False)) is UnlimitedStreamReader


@pytest.mark.parametrize("name", LIMITS)
def test_limits_need_a_later_spark(name: str) -> None:
    given = {name.lower(): "7"}
    with pytest.raises(ConfigError, match=f"{name} has value 7, which needs Spark 4.2 or later"):
        stream_reader(OPTIONS, given, limits=False)
    assert stream_reader(OPTIONS, given, limits=True)


def test_a_new_query(cluster: FakeCluster) -> None:
    stream = stream_of(cluster, EARLIEST)
    end = stream.latestOffset()
    assert from_json(end) == {T: 10, ONE: 30}
    start = stream.initialOffset()
    assert from_json(start) == {T: 0, ONE: 0}
    assert stream.initialOffset() == start
    assert [each.value.wanted.size for each in stream.partitions(start, end)] == [10, 30]


def test_without_news_the_offsets_are_the_same(cluster: FakeCluster) -> None:
    """Also the time of reading among them, or each trigger would have a batch."""
    runtime = FakeRuntime()
    stream = stream_of(cluster, EARLIEST, runtime)
    start = stream.initialOffset()
    end = stream.latestOffset()
    stream.partitions(start, end)
    runtime.sleep(60)
    assert stream.latestOffset() == end
    at_the_end = stream_of(cluster)
    assert at_the_end.initialOffset() == at_the_end.latestOffset() == {"t": {"0": 10, "1": 30}}


def test_a_new_query_is_asked_for_its_end_first(cluster: FakeCluster) -> None:
    """Messages and partitions that come in between are for the next run."""
    stream = stream_of(cluster)
    end = stream.latestOffset()
    cluster.store(T, messages(5, 10))
    put(cluster, TopicPartition("t", 2), messages(3))
    start = stream.initialOffset()
    assert from_json(start) == from_json(end) == {T: 10, ONE: 30}
    assert stream.partitions(start, end) == []


def test_after_a_restart(cluster: FakeCluster) -> None:
    """Spark names the last batch first; the query stands at its end."""
    runtime = FakeRuntime()
    end = stream_of(cluster, EARLIEST, runtime).latestOffset()
    runtime.sleep(60)
    stream = stream_of(cluster, EARLIEST, runtime)
    assert stream.partitions(end, end) == []
    assert stream.latestOffset() == end
    cluster.store(T, messages(5, 10))
    assert from_json(stream.latestOffset()) == {T: 15, ONE: 30}


def test_partitions_that_are_gone(cluster: FakeCluster) -> None:
    strict, lenient = stream_of(cluster, EARLIEST), stream_of(cluster, LENIENT)
    for stream in (strict, lenient):
        stream.latestOffset()
    cluster.delete(ONE)
    with pytest.raises(DataLossError, match=r"\[t,1\] of subscribe \(t\) are gone"):
        strict.latestOffset()
    assert from_json(lenient.latestOffset()) == {T: 10}


def test_a_log_that_went_back(cluster: FakeCluster) -> None:
    stream = stream_of(cluster)
    stream.latestOffset()
    put(cluster, T, messages(4))
    with pytest.raises(DataLossError, match=r"\[t,0\] ends at 4, but 10 was already planned"):
        stream.latestOffset()
