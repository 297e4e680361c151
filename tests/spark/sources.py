"""A source over a cluster of one topic: options, planner, and reads of a range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from kafka08.common import TopicPartition
from kafka08.message.sets import encode_set
from kafka08.spark.offsets import OffsetReader
from kafka08.spark.planner import Range
from kafka08.spark.reader import RangeReader
from kafka08.spark.source_options import SourceOptions
from kafka08.spark.source_plan import SourcePlanner
from kafka08.spark.source_read import read_range
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.spark.cluster import T, client_of, cluster_of

ONE = TopicPartition("t", 1)
OPTIONS = SourceOptions((("h", 9092),), topics=("t",), retries=2, backoff_ms=100)
LENIENT = OPTIONS._replace(fail_on_data_loss=False)


def messages(count: int, first: int = 0) -> bytes:
    return encode_set([(None, b"%d" % number) for number in range(count)], 0, first)


def filled() -> FakeCluster:
    """Partition 0 has 10 messages, partition 1 has 30."""
    return cluster_of({T: messages(10), ONE: messages(30)})


def planner_of(
    cluster: FakeCluster, options: SourceOptions = OPTIONS, runtime: FakeRuntime | None = None
) -> SourcePlanner:
    runtime = runtime or FakeRuntime()
    reader = OffsetReader(
        [],
        retries=options.retries,
        backoff_ms=100,
        runtime=runtime,
        cluster=client_of(cluster),
    )
    return SourcePlanner(options, reader=reader, runtime=runtime)


def read(
    cluster: FakeCluster, wanted: Range, timestamp_ms: int = 0, options: SourceOptions = OPTIONS
) -> Iterator[pa.RecordBatch]:
    settings: Any = {
        "retries": 1,
        "backoff_ms": 100,
        "runtime": FakeRuntime(),
        "cluster": client_of(cluster),
    }
    return read_range(
        options,
        wanted,
        timestamp_ms=timestamp_ms,
        reader=RangeReader([], **settings),
        offsets=OffsetReader([], **settings),
    )
