"""A source over a cluster of one topic: options, planner, and reads of a range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import pyarrow as pa

from kafka08.common import TopicPartition
from kafka08.message.sets import encode_set
from kafka08.spark.params import SourceParams
from kafka08.spark.planner import Range
from kafka08.spark.structured.source import SourceStreamReader
from kafka08.spark.structured.source_options import BOOTSTRAP, SourceOptions, SourceSettings
from kafka08.spark.structured.source_plan import SourcePlanner
from kafka08.spark.structured.source_read import read_range
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.spark.cluster import T, client_of, cluster_of

ONE = TopicPartition("t", 1)
PARAMS = SourceParams((("h", 9092),), backoff_ms=100, option=BOOTSTRAP)
OPTIONS = SourceOptions(PARAMS, SourceSettings(retries=2), topics=("t",))


def with_settings(options: SourceOptions, **settings: object) -> SourceOptions:
    return options._replace(settings=options.settings.replace(**settings))


LENIENT = with_settings(OPTIONS, fail_on_data_loss=False)


def messages(count: int, first: int = 0) -> bytes:
    return encode_set([(None, b"%d" % number) for number in range(count)], 0, first)


def filled() -> FakeCluster:
    """Partition 0 has 10 messages, partition 1 has 30."""
    return cluster_of({T: messages(10), ONE: messages(30)})


def planner_of(
    cluster: FakeCluster, options: SourceOptions = OPTIONS, runtime: FakeRuntime | None = None
) -> SourcePlanner:
    return SourcePlanner(options, cluster=client_of(cluster), runtime=runtime or FakeRuntime())


Stream = TypeVar("Stream", bound=SourceStreamReader)


def planned_by(stream: Stream, planner: SourcePlanner) -> Stream:
    """The reader, with a planner that it did not make."""
    stream._made = planner
    return stream


def read(
    cluster: FakeCluster,
    wanted: Range,
    timestamp_ms: int | None = 0,
    options: SourceOptions = OPTIONS,
) -> Iterator[pa.RecordBatch]:
    return read_range(
        with_settings(options, retries=1),
        wanted,
        timestamp_ms=timestamp_ms,
        cluster=client_of(cluster),
        runtime=FakeRuntime(),
    )
