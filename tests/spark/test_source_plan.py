"""The next ranges of a query: limits, new and deleted partitions, losses."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from kafka08.common import TopicPartition
from kafka08.errors import ConfigError, UnknownTopicOrPartitionError
from kafka08.message.sets import encode_set
from kafka08.spark.errors import (
    DataLossError,
    EndedEarlyError,
    MessageTooLargeForFetchError,
    UnreachableError,
)
from kafka08.spark.offsets import OffsetReader
from kafka08.spark.planner import Range
from kafka08.spark.reader import RangeReader
from kafka08.spark.source import StreamReader
from kafka08.spark.source_options import SourceOptions
from kafka08.spark.source_plan import SourcePlanner, from_json, to_json
from kafka08.spark.source_read import read_range
from tests.fakes.runtime import FakeRuntime
from tests.spark.cluster import FakeCluster, T, refused

ONE = TopicPartition("t", 1)
OPTIONS = SourceOptions((("h", 9092),), topics=("t",), retries=2, backoff_ms=100)
LENIENT = OPTIONS._replace(fail_on_data_loss=False)


def messages(count: int, first: int = 0) -> bytes:
    return encode_set([(None, b"%d" % number) for number in range(count)], 0, first)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster({T: messages(10), ONE: messages(30)})


def planner_of(cluster: FakeCluster, options: SourceOptions = OPTIONS) -> SourcePlanner:
    runtime = FakeRuntime()
    reader = OffsetReader(
        [], retries=options.retries, backoff_ms=100, runtime=runtime, cluster=cluster
    )
    return SourcePlanner(options, reader=reader, runtime=runtime)


def stream_of(cluster: FakeCluster, options: SourceOptions = OPTIONS) -> StreamReader:
    stream = StreamReader(options)
    stream._made = planner_of(cluster, options)
    return stream


def test_json_has_one_order() -> None:
    offsets = {TopicPartition("b", 10): 1, TopicPartition("b", 9): 2, TopicPartition("a", 0): 3}
    found = to_json(offsets)
    assert list(found) == ["a", "b"]
    assert list(found["b"]) == ["9", "10"]
    assert from_json(found) == offsets
    with pytest.raises(ConfigError, match="checkpoint"):
        from_json({"t": 3})  # type: ignore[dict-item]


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
    cluster.earliest[T] = 2
    assert planner_of(cluster, OPTIONS._replace(starting=starting)).initial() == expected


def test_starting_offsets_name_every_partition(cluster: FakeCluster) -> None:
    other = TopicPartition("t", 5)
    planner = planner_of(cluster, OPTIONS._replace(starting={T: 1, other: 2}))
    with pytest.raises(ConfigError, match=r"startingOffsets .* missing \[t,1\], unknown \[t,5\]"):
        planner.initial()


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


def test_batches_are_limited_and_no_partition_starves(cluster: FakeCluster) -> None:
    stream = stream_of(cluster, OPTIONS._replace(starting="earliest", max_offsets=8))
    start = stream.initialOffset()
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMaxRows(8)
    assert stream.latestOffset(start, limit) == {"t": {"0": 2, "1": 6}}
    assert stream.latestOffset(start, ReadAllAvailable()) == {"t": {"0": 10, "1": 30}}
    assert stream.reportLatestOffset() == {"t": {"0": 10, "1": 30}}


def test_initial_offsets_do_not_move(cluster: FakeCluster) -> None:
    stream = stream_of(cluster)
    first = stream.initialOffset()
    cluster.logs[T] += messages(5, 10)
    assert stream.initialOffset() == first


def test_waiting_for_more(cluster: FakeCluster) -> None:
    options = OPTIONS._replace(starting="earliest", min_offsets=100, max_delay_ms=60_000)
    stream = stream_of(cluster, options)
    start, limit = stream.initialOffset(), stream.getDefaultReadLimit()
    assert limit == ReadMinRows(100)
    end = stream.latestOffset(start, limit)
    assert end == {"t": {"0": 10, "1": 30}}, "the first batch takes what there is"
    cluster.logs[T] += messages(5, 10)
    assert stream.latestOffset(end, limit) == end
    assert stream.latestOffset(end, ReadAllAvailable()) == {"t": {"0": 15, "1": 30}}
    stream._planner._runtime.sleep(61)
    assert stream.latestOffset(end, limit) == {"t": {"0": 15, "1": 30}}


def test_available_now_ends_where_it_began_to_end(cluster: FakeCluster) -> None:
    stream = stream_of(cluster, OPTIONS._replace(max_offsets=30, min_offsets=25))
    stream.prepareForTriggerAvailableNow()
    cluster.logs[T] += messages(5, 10)
    cluster.logs[TopicPartition("t", 2)] = messages(3)
    offsets, batches = {"t": {"0": 0, "1": 0}}, 0
    while (following := stream.latestOffset(offsets, ReadMaxRows(30))) != offsets:
        offsets = following
        batches += 1
    assert offsets == {"t": {"0": 10, "1": 30}}
    assert batches == 2


def test_available_now_does_not_pass_over_what_is_gone(cluster: FakeCluster) -> None:
    start = {"t": {"0": 10, "1": 30}}
    del cluster.logs[ONE]
    strict = stream_of(cluster)
    strict.prepareForTriggerAvailableNow()
    with pytest.raises(DataLossError, match=r"\[t,1\] of subscribe \(t\) are gone"):
        strict.latestOffset(start, ReadAllAvailable())
    lenient = stream_of(cluster, LENIENT)
    lenient.prepareForTriggerAvailableNow()
    end = lenient.latestOffset(start, ReadAllAvailable())
    assert end == {"t": {"0": 10}}
    assert lenient.latestOffset(end, ReadAllAvailable()) == end


def test_new_partitions_are_read_from_their_beginning(cluster: FakeCluster) -> None:
    stream = stream_of(cluster)
    start = stream.initialOffset()
    new = TopicPartition("t", 2)
    cluster.logs[new] = messages(4)
    cluster.earliest[new] = 0
    end = stream.latestOffset(start, ReadAllAvailable())
    assert end["t"]["2"] == 4
    (task,) = stream.partitions(start, end)
    assert task.value.wanted == Range("t", 2, 0, 4)


def test_a_new_partition_without_its_beginning(cluster: FakeCluster) -> None:
    cluster.earliest[ONE] = 5
    with pytest.raises(DataLossError, match=r"\[t,1\] begins at 5"):
        planner_of(cluster).ranges({T: 0}, {T: 10, ONE: 30})
    found = planner_of(cluster, LENIENT).ranges({T: 0}, {T: 10, ONE: 30})
    assert found[1] == Range("t", 1, 5, 30)


def test_partitions_that_are_gone(cluster: FakeCluster) -> None:
    del cluster.logs[ONE]
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


def test_big_ranges_are_cut(cluster: FakeCluster) -> None:
    planner = planner_of(cluster, OPTIONS._replace(min_partitions=4))
    found = planner.ranges({T: 0, ONE: 0}, {T: 10, ONE: 30})
    assert [(r.partition, r.start, r.end) for r in found] == [
        (0, 0, 10),
        (1, 0, 10),
        (1, 10, 20),
        (1, 20, 30),
    ]


def test_a_reader_travels_without_its_connections(cluster: FakeCluster) -> None:
    copy = pickle.loads(pickle.dumps(stream_of(cluster)))
    assert copy._options == OPTIONS
    assert copy._made is None


def test_rows_have_the_time_of_their_planning(cluster: FakeCluster) -> None:
    stream = stream_of(cluster)
    clock = stream._planner._runtime.clock
    (task,) = stream.partitions({"t": {"0": 0, "1": 30}}, {"t": {"0": 10, "1": 30}})
    planned = clock.millis()
    assert task.value.planned_ms == planned
    (batch,) = read(cluster, task.value.wanted, planned)
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [planned * 1000] * 10
    clock.now -= 60  # type: ignore[attr-defined]
    (later,) = stream.partitions({"t": {"0": 0, "1": 30}}, {"t": {"0": 10, "1": 30}})
    assert later.value.planned_ms == planned, "or a watermark would drop the rows as late"


# --- on executors


def read(
    cluster: FakeCluster, wanted: Range, timestamp_ms: int = 0, options: SourceOptions = OPTIONS
) -> Iterator[pa.RecordBatch]:
    settings: Any = {"retries": 1, "backoff_ms": 100, "runtime": FakeRuntime(), "cluster": cluster}
    return read_range(
        options,
        wanted,
        timestamp_ms=timestamp_ms,
        reader=RangeReader([], **settings),
        offsets=OffsetReader([], **settings),
    )


def values(cluster: FakeCluster, wanted: Range, options: SourceOptions = OPTIONS) -> list[int]:
    found = read(cluster, wanted, options=options)
    return [int(value) for batch in found for value in batch.column("value").to_pylist()]


def test_a_range_is_read_exactly(cluster: FakeCluster) -> None:
    assert values(cluster, Range("t", 1, 7, 19)) == list(range(7, 19))


def test_what_retention_removed(cluster: FakeCluster, caplog: pytest.LogCaptureFixture) -> None:
    cluster.earliest[ONE] = 5
    wanted = Range("t", 1, 2, 9)
    with pytest.raises(DataLossError, match=r"t-1 \[2, 9\).*earliest 5.*failOnDataLoss"):
        values(cluster, wanted)
    assert not caplog.records
    assert values(cluster, wanted, LENIENT) == [5, 6, 7, 8]
    (warning,) = caplog.messages
    assert "t-1 [2, 9) is out of range" in warning
    assert values(cluster, Range("t", 1, 2, 4), LENIENT) == []


def test_a_message_larger_than_any_fetch_is_an_error(cluster: FakeCluster) -> None:
    cluster.logs[T] = encode_set([(None, b"0" * 500)])
    options = OPTIONS._replace(fetch_bytes=100, max_fetch_bytes=200)
    reader = RangeReader([], fetch_bytes=100, max_fetch_bytes=200, cluster=cluster)
    text = r"offset 0 of t-0 \[0, 1\) is larger than 200 bytes: raise fetch\.message\.max\.bytes"
    with pytest.raises(MessageTooLargeForFetchError, match=text):
        list(read_range(options, Range("t", 0, 0, 1), timestamp_ms=0, reader=reader))


def test_a_range_beyond_the_log(cluster: FakeCluster) -> None:
    with pytest.raises(EndedEarlyError, match="failOnDataLoss"):
        values(cluster, Range("t", 0, 5, 20))
    assert values(cluster, Range("t", 0, 5, 20), LENIENT) == [5, 6, 7, 8, 9]
    assert values(cluster, Range("t", 0, 15, 20), LENIENT) == []


def test_a_partition_that_is_gone(cluster: FakeCluster, caplog: pytest.LogCaptureFixture) -> None:
    """Planned, and deleted before it was read: as what retention removed."""
    del cluster.logs[ONE]
    wanted = Range("t", 1, 0, 9)
    cluster.failures = [UnknownTopicOrPartitionError()] * 2
    with pytest.raises(DataLossError, match=r"t-1 \[0, 9\) .* gone.*failOnDataLoss"):
        values(cluster, wanted)
    cluster.failures = [UnknownTopicOrPartitionError()] * 2
    assert values(cluster, wanted, LENIENT) == []
    assert "t-1 [0, 9) cannot be read: the partition is gone" in caplog.messages[-1]
    cluster.failures = [UnknownTopicOrPartitionError()] * 2
    with pytest.raises(UnknownTopicOrPartitionError):
        values(cluster, Range("t", 0, 0, 9), LENIENT)
