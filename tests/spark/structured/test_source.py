"""The offsets that a streaming reader gives Spark, and the tasks of a batch."""

from __future__ import annotations

import pickle

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from kafka08.common import TopicPartition
from kafka08.spark.errors import (
    DataLossError,
)
from kafka08.spark.planner import Range
from kafka08.spark.structured.source import SourceStreamReader
from kafka08.spark.structured.source_options import SourceOptions
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.spark.cluster import T, put
from tests.spark.sources import (
    LENIENT,
    ONE,
    OPTIONS,
    filled,
    messages,
    planner_of,
    read,
    with_settings,
)

EARLIEST = OPTIONS._replace(starting="earliest")


@pytest.fixture
def cluster() -> FakeCluster:
    return filled()


def stream_of(
    cluster: FakeCluster, options: SourceOptions = OPTIONS, runtime: FakeRuntime | None = None
) -> SourceStreamReader:
    stream = SourceStreamReader(options)
    stream._made = planner_of(cluster, options, runtime)
    return stream


def test_a_reader_travels_without_its_connections(cluster: FakeCluster) -> None:
    copy = pickle.loads(pickle.dumps(stream_of(cluster)))
    assert copy._options == OPTIONS
    assert copy._made is None


def test_rows_have_the_time_of_their_planning(cluster: FakeCluster) -> None:
    runtime = FakeRuntime()
    stream, clock = stream_of(cluster, runtime=runtime), runtime.clock
    (task,) = stream.partitions({"t": {"0": 0, "1": 30}}, {"t": {"0": 10, "1": 30}})
    planned = clock.millis()
    assert task.value.planned_ms == planned
    (batch,) = read(cluster, task.value.wanted, planned)
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [planned * 1000] * 10
    clock.now -= 60
    (later,) = stream.partitions({"t": {"0": 0, "1": 30}}, {"t": {"0": 10, "1": 30}})
    assert later.value.planned_ms == planned, "or a watermark would drop the rows as late"


def test_batches_are_limited_and_no_partition_starves(cluster: FakeCluster) -> None:
    stream = stream_of(cluster, with_settings(EARLIEST, max_offsets=8))
    start = stream.initialOffset()
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMaxRows(8)
    assert stream.latestOffset(start, limit) == {"t": {"0": 2, "1": 6}}
    assert stream.latestOffset(start, ReadAllAvailable()) == {"t": {"0": 10, "1": 30}}
    assert stream.reportLatestOffset() == {"t": {"0": 10, "1": 30}}


def test_initial_offsets_do_not_move(cluster: FakeCluster) -> None:
    stream = stream_of(cluster)
    first = stream.initialOffset()
    cluster.store(T, messages(5, 10))
    assert stream.initialOffset() == first


def test_waiting_for_more(cluster: FakeCluster) -> None:
    options = with_settings(EARLIEST, min_offsets=100, max_delay_ms=60_000)
    runtime = FakeRuntime()
    stream = stream_of(cluster, options, runtime)
    start, limit = stream.initialOffset(), stream.getDefaultReadLimit()
    assert limit == ReadMinRows(100)
    end = stream.latestOffset(start, limit)
    assert end == {"t": {"0": 10, "1": 30}}, "the first batch takes what there is"
    cluster.store(T, messages(5, 10))
    assert stream.latestOffset(end, limit) == end
    assert stream.latestOffset(end, ReadAllAvailable()) == {"t": {"0": 15, "1": 30}}
    runtime.sleep(61)
    assert stream.latestOffset(end, limit) == {"t": {"0": 15, "1": 30}}


@pytest.mark.scenario("spark-22")
def test_available_now_ends_where_it_began_to_end(cluster: FakeCluster) -> None:
    stream = stream_of(cluster, with_settings(OPTIONS, max_offsets=30, min_offsets=25))
    stream.prepareForTriggerAvailableNow()
    cluster.store(T, messages(5, 10))
    put(cluster, TopicPartition("t", 2), messages(3))
    offsets, batches = {"t": {"0": 0, "1": 0}}, 0
    while (following := stream.latestOffset(offsets, ReadMaxRows(30))) != offsets:
        offsets = following
        batches += 1
    assert offsets == {"t": {"0": 10, "1": 30}}
    assert batches == 2


def test_available_now_does_not_pass_over_what_is_gone(cluster: FakeCluster) -> None:
    start = {"t": {"0": 10, "1": 30}}
    cluster.delete(ONE)
    strict = stream_of(cluster)
    strict.prepareForTriggerAvailableNow()
    with pytest.raises(DataLossError, match=r"\[t,1\] of subscribe \(t\) are gone"):
        strict.latestOffset(start, ReadAllAvailable())
    lenient = stream_of(cluster, LENIENT)
    lenient.prepareForTriggerAvailableNow()
    end = lenient.latestOffset(start, ReadAllAvailable())
    assert end == {"t": {"0": 10}}
    assert lenient.latestOffset(end, ReadAllAvailable()) == end


@pytest.mark.scenario("spark-17")
def test_new_partitions_are_read_from_their_beginning(cluster: FakeCluster) -> None:
    stream = stream_of(cluster)
    start = stream.initialOffset()
    new = TopicPartition("t", 2)
    put(cluster, new, messages(4))
    end = stream.latestOffset(start, ReadAllAvailable())
    assert end["t"]["2"] == 4
    (task,) = stream.partitions(start, end)
    assert task.value.wanted == Range("t", 2, 0, 4)


def test_partitions_that_are_gone(cluster: FakeCluster) -> None:
    cluster.delete(ONE)
    start = {"t": {"0": 10, "1": 30}}
    with pytest.raises(DataLossError, match=r"\[t,1\] of subscribe \(t\) are gone"):
        stream_of(cluster).latestOffset(start, ReadAllAvailable())
    stream = stream_of(cluster, LENIENT)
    end = stream.latestOffset(start, ReadAllAvailable())
    assert end == {"t": {"0": 10}}
    assert stream.partitions(start, end) == []


def test_a_log_that_went_back(cluster: FakeCluster) -> None:
    start = {"t": {"0": 12, "1": 30}}
    with pytest.raises(DataLossError, match=r"\[t,0\] ends at 10, but 12 was already planned"):
        stream_of(cluster).latestOffset(start, ReadAllAvailable())
    stream = stream_of(cluster, LENIENT)
    end = stream.latestOffset(start, ReadAllAvailable())
    assert end == {"t": {"0": 10, "1": 30}}
    assert [task.value.wanted for task in stream.partitions(start, end)] == [Range("t", 0, 0, 10)]
