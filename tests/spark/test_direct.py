"""The direct stream's planner without a JVM: when its state moves, and what it reuses."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark import SparkContext

from kafka08.common import TopicPartition
from kafka08.errors import KafkaError
from kafka08.message.sets import encode_set
from kafka08.spark import direct
from kafka08.spark.direct import DirectPlanner
from kafka08.spark.driver import contexts
from kafka08.spark.errors import RangeNotAvailableError
from kafka08.spark.files.offset_log import LocalFiles, OffsetLog
from kafka08.spark.offsets import LogOffsetReader
from kafka08.spark.params import SourceParams
from kafka08.spark.planner import Range
from kafka08.spark.rdd import Elements
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.spark.cluster import client_of, cluster_of, put

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def reach(cluster: FakeCluster, **ends: int) -> None:
    """Have the logs of partitions a, b and c end at these offsets."""
    for name, end in ends.items():
        data = encode_set([(None, b"x")], 0, end - 1) if end else b""
        put(cluster, TopicPartition("t", "abc".index(name)), data)


@pytest.fixture
def cluster() -> FakeCluster:
    made = cluster_of({})
    reach(made, a=100, b=0)
    return made


class Spark:
    """Spark for the planner. Its RDDs are lists of ranges."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.conf: dict[str, str] = {}
        self.failing = False
        self._conf = self.conf
        self.told: list[int] = []

    def make_rdd(self, sc: Any, params: Any, ranges: list[Range], *rest: Any) -> list[Range]:
        if self.failing:
            raise RuntimeError("no RDD")
        return ranges


class Running:
    rate = None
    ssc = None

    def __init__(self, log: OffsetLog, kept: int) -> None:
        self.log = log
        self.kept = kept


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Spark]:
    made = Spark(tmp_path / "log")
    monkeypatch.setattr(SparkContext, "_active_spark_context", made)
    monkeypatch.setattr(direct, "make_rdd", made.make_rdd)
    monkeypatch.setattr(contexts, "report_input", lambda ssc, i, ms, ranges: made.told.append(ms))
    return made


def planner_of(
    spark: Spark, cluster: FakeCluster, kept: int = 100, **offsets: int
) -> DirectPlanner:
    def offset_reader(retries: int) -> AbstractContextManager[LogOffsetReader]:
        client = client_of(cluster)
        return nullcontext(LogOffsetReader(client, retries=retries, runtime=FakeRuntime()))

    state = {
        "stream": "s",
        "_stream_id": 7,
        "_batch_ms": 1000,
        "_params": SimpleNamespace(offset_reader=offset_reader),
        "_offsets": {A: offsets.get("a", 0), B: 0},
        "_elements": Elements(),
        "_batches": {},
        "_ssc": None,
        "_running": Running(OffsetLog(LocalFiles(spark.directory)), kept),
    }
    return restored(state)


def restored(state: dict[str, Any]) -> DirectPlanner:
    """From a checkpoint."""
    planner = DirectPlanner.__new__(DirectPlanner)
    vars(planner).update(state)
    return planner


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds)


@pytest.mark.scenario("spark-4")
def test_batches_follow_each_other(spark: Spark, cluster: FakeCluster) -> None:
    planner = planner_of(spark, cluster)
    assert planner(at(1)) == [Range(*A, 0, 100), Range(*B, 0, 0)]
    reach(cluster, a=120, b=5)
    assert planner(at(2)) == [Range(*A, 100, 120), Range(*B, 0, 5)]
    assert planner(at(1)) == [Range(*A, 0, 100), Range(*B, 0, 0)]
    assert planner(at(3)) == [Range(*A, 120, 120), Range(*B, 5, 5)]
    assert spark.told == [1000, 2000, 1000, 3000]
    assert OffsetLog(LocalFiles(spark.directory)).read(2000) == planner._batches[2000]


@pytest.mark.scenario("spark-14")
def test_what_fails_moves_nothing(spark: Spark, cluster: FakeCluster) -> None:
    planner = planner_of(spark, cluster)
    cluster.down = {9092}
    with pytest.raises(OSError, match="port 9092"):
        planner(at(1))
    cluster.down, spark.failing = set(), True
    with pytest.raises(RuntimeError):
        planner(at(2))
    spark.failing = False
    spark.directory.touch()  # where the log's directory should be
    with pytest.raises(OSError):
        planner(at(3))
    spark.directory.unlink()
    assert planner(at(4)) == [Range(*A, 0, 100), Range(*B, 0, 0)]


def test_a_batch_that_failed_stays_empty_for_windows(spark: Spark, cluster: FakeCluster) -> None:
    """Spark drops it, and its messages are in the next one, also if a window asks for it first."""
    planner = planner_of(spark, cluster)
    assert planner(at(1))[0] == Range(*A, 0, 100)
    cluster.down = {9092}
    with pytest.raises(OSError, match="port 9092"):
        planner(at(2))
    cluster.down = set()
    reach(cluster, a=120)
    assert planner(at(2)) == []
    assert planner(at(3))[0] == Range(*A, 100, 120)
    reach(cluster, a=130)
    assert planner(at(2)) == []
    assert planner(at(4))[0] == Range(*A, 120, 130)


def test_windows_find_old_batches_in_the_log(spark: Spark, cluster: FakeCluster) -> None:
    """Those that a checkpoint has no more, one that failed between them too."""
    planner = planner_of(spark, cluster, kept=2)
    planner(at(1))
    reach(cluster, a=120)
    cluster.down = {9092}
    with pytest.raises(OSError, match="port 9092"):
        planner(at(2))
    cluster.down = set()
    for second in (3, 4, 5):
        planner(at(second))
    assert planner(at(3))[0] == Range(*A, 100, 120)
    assert planner(at(2)) == []
    assert planner(at(1))[0] == Range(*A, 0, 100)
    with pytest.raises(KafkaError, match="batch 0 are not known"):
        planner(at(0))


def test_offsets_beyond_the_end_are_an_error_and_no_reset(
    spark: Spark, cluster: FakeCluster
) -> None:
    planner = planner_of(spark, cluster, a=150)
    with pytest.raises(RangeNotAvailableError, match=r"150 of \[t,0\], whose log ends at 100"):
        planner(at(1))
    reach(cluster, a=160)
    assert planner(at(2))[0] == Range(*A, 150, 160)


@pytest.mark.scenario("spark-7")
def test_rates(spark: Spark, cluster: FakeCluster) -> None:
    spark.conf["spark.streaming.kafka.maxRatePerPartition"] = "30"
    planner = planner_of(spark, cluster)
    assert [planner(at(second))[0].end for second in (1, 2, 3, 4, 5)] == [30, 60, 90, 100, 100]


@pytest.mark.scenario("spark-17")
def test_new_partitions_when_asked_for(spark: Spark, cluster: FakeCluster) -> None:
    planner = planner_of(spark, cluster)
    reach(cluster, c=4)
    assert len(planner(at(1))) == 2
    spark.conf["spark.streaming.kafka.discoverPartitions"] = "true"
    assert planner(at(2))[2] == Range("t", 2, 0, 4)


@pytest.mark.scenario("spark-10")
def test_a_batch_that_was_logged_is_planned_the_same(spark: Spark, cluster: FakeCluster) -> None:
    planner_of(spark, cluster)(at(1))
    reach(cluster, a=150)
    again = planner_of(spark, cluster)
    assert again(at(1))[0] == Range(*A, 0, 100)
    assert again(at(2))[0] == Range(*A, 100, 150)


def test_a_log_that_does_not_fit_is_passed_over(spark: Spark, cluster: FakeCluster) -> None:
    planner_of(spark, cluster)(at(1))
    assert planner_of(spark, cluster, a=40)(at(1))[0] == Range(*A, 40, 100)


def test_a_batch_too_old_to_know_is_an_error(spark: Spark, cluster: FakeCluster) -> None:
    planner = planner_of(spark, cluster)
    planner(at(5))
    with pytest.raises(KafkaError, match="batch 1000"):
        planner(at(1))


@pytest.mark.scenario("spark-9")
def test_a_checkpoint_holds_offsets_and_ranges_and_nothing_that_runs(
    spark: Spark, cluster: FakeCluster
) -> None:
    planner = planner_of(spark, cluster)
    planner(at(1))
    state = planner.__getstate__() | {"_params": SourceParams((("a", 1),))}
    copy = pickle.loads(pickle.dumps(restored(state))).__getstate__()
    assert copy["_running"] is None
    assert copy["_ssc"] is None
    assert copy["_offsets"] == {A: 100, B: 0}
    assert copy["_batches"] == {1000: [Range(*A, 0, 100), Range(*B, 0, 0)]}
