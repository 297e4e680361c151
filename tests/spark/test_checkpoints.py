"""Checkpoints of DStreams that 0.2.0 wrote still open: pickles name classes by their modules.

golden/dstream-checkpoint-0.2.0.pickle has all of kafka08 that such a checkpoint can name: both
planners, each with the function that wraps its RDDs, and what the functions of a job may refer to.
It stands for files of users, and is never made again.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from kafka08.client.security import ClientSecurity
from kafka08.common import TopicPartition
from kafka08.spark import dstream, errors
from kafka08.spark.direct import DirectPlanner
from kafka08.spark.params import SourceParams
from kafka08.spark.planner import Range
from kafka08.spark.rdd import Elements, planned_rdd
from kafka08.spark.receiver import GroupPlanner

GOLDEN = Path(__file__).parents[1] / "golden" / "dstream-checkpoint-0.2.0.pickle"
PLANNER = {
    "stream": "s",
    "_stream_id": 0,
    "_batch_ms": 1000,
    "_elements": Elements(),
    "_batches": {1000: [Range("t", 1, 0, 5)]},
    "_running": None,
    "_ssc": None,
}


class Opened(pickle.Unpickler):
    """Notes the names that a pickle has of kafka08."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.names: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("kafka08."):
            self.names.add(f"{module}.{name}")
        return super().find_class(module, name)


@pytest.fixture
def parts() -> Any:
    return pickle.loads(GOLDEN.read_bytes())


def test_planners_open(parts: Any) -> None:
    (direct, wrapper), (group, group_wrapper), _, _ = parts
    security = ClientSecurity(security_protocol="SSL")
    params = SourceParams((("h", 9092),), True, client_id="c", security=security)
    assert (type(direct), type(group)) == (DirectPlanner, GroupPlanner)
    offsets = {TopicPartition("t", 1): 5}
    assert vars(direct) == {**PLANNER, "_params": params, "_offsets": offsets}
    properties = {"zookeeper.connect": "z:2181", "group.id": "g"}
    assert vars(group) == {**PLANNER, "_properties": properties, "_topics": {"t": 1}}
    assert wrapper is group_wrapper is planned_rdd


def test_what_jobs_refer_to_opens(parts: Any) -> None:
    _, _, (offset_range, topic_partition, broker, message), names = parts
    assert offset_range == dstream.OffsetRange("t", 1, 0, 5)
    assert topic_partition == dstream.TopicAndPartition("t", 1)
    assert vars(broker) == vars(dstream.Broker("h", 9092))
    assert vars(message) == vars(dstream.KafkaMessageAndMetadata("t", 1, 4, b"k", b"v"))
    assert names == (
        dstream.KafkaUtils,
        dstream.KafkaRDD,
        dstream.KafkaDStream,
        dstream.KafkaTransformedDStream,
        dstream.utf8_decoder,
        errors.DataLossError,
        errors.RangeNotAvailableError,
        errors.EndedEarlyError,
        errors.MessageTooLargeForFetchError,
        errors.UnreachableError,
        errors.JobError,
    )


def test_checkpoints_of_today_name_the_same(parts: Any) -> None:
    """A moved name would open here, but not where an earlier version is installed again."""
    old, new = Opened(GOLDEN.read_bytes()), Opened(pickle.dumps(parts))
    old.load()
    new.load()
    assert new.names == old.names
