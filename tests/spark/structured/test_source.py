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
from kafka08.spark.structured.source_offsets import OffsetsJson, from_json, read_time
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
    planned_by,
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
    return planned_by(SourceStreamReader(options), planner_of(cluster, options, runtime))


def test_a_reader_travels_without_its_connections(cluster: FakeCluster) -> None:
    copy = pickle.loads(pickle.dumps(stream_of(cluster)))
    assert copy._options == OPTIONS
    assert copy._made is None


START = {"t": {"0": 0, "1": 30}}


def end_of(stream: SourceStreamReader, start: OffsetsJson = START) -> OffsetsJson:
    return stream.latestOffset(start, ReadAllAvailable())


def test_rows_have_the_time_of_their_planning(cluster: FakeCluster) -> None:
    runtime = FakeRuntime()
    stream = stream_of(cluster, runtime=runtime)
    planned = runtime.clock.millis()
    end = end_of(stream)
    runtime.sleep(5)
    (task,) = stream.partitions(START, end)
    assert task.value.read_ms == planned
    (batch,) = read(cluster, task.value.wanted, planned)
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [planned * 1000] * 10


def test_a_batch_that_runs_again_has_the_same_time(cluster: FakeCluster) -> None:
    runtime = FakeRuntime()
    end = end_of(stream_of(cluster, runtime=runtime))
    runtime.sleep(3600)
    (task,) = stream_of(cluster, runtime=runtime).partitions(START, end)
    assert task.value.read_ms == runtime.clock.millis() - 3_600_000


def test_a_batch_whose_offsets_have_no_time_has_that_of_its_run(cluster: FakeCluster) -> None:
    """Such as the last one of a checkpoint that Spark's own source wrote."""
    runtime = FakeRuntime()
    stream = stream_of(cluster, runtime=runtime)
    (task,) = stream.partitions(START, {"t": {"0": 10, "1": 30}})
    assert task.value.read_ms == runtime.clock.millis()


def test_the_time_is_no_news(cluster: FakeCluster) -> None:
    runtime = FakeRuntime()
    stream = stream_of(cluster, runtime=runtime)
    end = end_of(stream)
    runtime.sleep(60)
    assert end_of(stream, end) == end
    without = {"t": {"0": 10, "1": 30}}
    assert end_of(stream, without) == without


def test_the_time_never_goes_back(cluster: FakeCluster) -> None:
    """Or a watermark would drop the rows as late."""
    runtime = FakeRuntime()
    stream = stream_of(cluster, runtime=runtime)
    end = end_of(stream)
    runtime.clock.now -= 60
    cluster.store(T, messages(5, 10))
    assert read_time(end_of(stream, end)) == read_time(end)


def test_a_query_without_the_time_of_reading(cluster: FakeCluster) -> None:
    timed = end_of(stream_of(cluster))
    stream = stream_of(cluster, with_settings(OPTIONS, time_of_reading=False))
    plain = end_of(stream, timed)
    assert plain == {"t": {"0": 10, "1": 30}}, "what Spark's own source reads too"
    assert end_of(stream, plain) == plain
    (task,) = stream.partitions(START, plain)
    assert task.value.read_ms is None
    (batch,) = read(cluster, task.value.wanted, None)
    assert batch.column("timestamp").null_count == 10
    (again,) = stream.partitions(START, timed)
    assert again.value.read_ms == read_time(timed), "of a batch that was planned with it"


def test_batches_are_limited_and_no_partition_starves(cluster: FakeCluster) -> None:
    stream = stream_of(cluster, with_settings(EARLIEST, max_offsets=8))
    start = stream.initialOffset()
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMaxRows(8)
    assert from_json(stream.latestOffset(start, limit)) == {T: 2, ONE: 6}
    assert from_json(stream.latestOffset(start, ReadAllAvailable())) == {T: 10, ONE: 30}
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
    assert from_json(end) == {T: 10, ONE: 30}, "the first batch takes what there is"
    cluster.store(T, messages(5, 10))
    assert stream.latestOffset(end, limit) == end
    assert from_json(stream.latestOffset(end, ReadAllAvailable())) == {T: 15, ONE: 30}
    runtime.sleep(61)
    assert from_json(stream.latestOffset(end, limit)) == {T: 15, ONE: 30}


@pytest.mark.scenario("spark-22")
def test_available_now_ends_where_it_began_to_end(cluster: FakeCluster) -> None:
    stream = stream_of(cluster, with_settings(OPTIONS, max_offsets=30, min_offsets=25))
    stream.prepareForTriggerAvailableNow()
    cluster.store(T, messages(5, 10))
    put(cluster, TopicPartition("t", 2), messages(3))
    offsets: OffsetsJson = {"t": {"0": 0, "1": 0}}
    batches = 0
    while (following := stream.latestOffset(offsets, ReadMaxRows(30))) != offsets:
        offsets = following
        batches += 1
    assert from_json(offsets) == {T: 10, ONE: 30}
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
    assert from_json(end) == {T: 10}
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
    assert from_json(end) == {T: 10}
    assert stream.partitions(start, end) == []


def test_a_log_that_went_back(cluster: FakeCluster) -> None:
    start = {"t": {"0": 12, "1": 30}}
    with pytest.raises(DataLossError, match=r"\[t,0\] ends at 10, but 12 was already planned"):
        stream_of(cluster).latestOffset(start, ReadAllAvailable())
    stream = stream_of(cluster, LENIENT)
    end = stream.latestOffset(start, ReadAllAvailable())
    assert from_json(end) == {T: 10, ONE: 30}
    assert [task.value.wanted for task in stream.partitions(start, end)] == [Range("t", 0, 0, 10)]
