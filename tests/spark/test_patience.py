"""How long jobs wait for brokers that do not answer, and what they log meanwhile."""

from __future__ import annotations

import logging

import pytest

from kafka08.spark.offsets import LogOffsetReader
from kafka08.spark.patience import LOGGED_EVERY_S, PATIENCE_S, WaitLog, retries_within
from kafka08.spark.planner import Range
from kafka08.spark.reader import RangeReader
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.spark.cluster import T, client_of, refused
from tests.spark.sources import filled

# Until a session at ZooKeeper has expired and the controller has elected another leader.
AWAY_S = 10


@pytest.fixture
def cluster() -> FakeCluster:
    return filled()


def test_a_dying_broker_is_waited_for(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.failures = [refused()] * (AWAY_S * 5)
    runtime = FakeRuntime()
    reader = LogOffsetReader(client_of(cluster), backoff_ms=200, runtime=runtime)
    with caplog.at_level(logging.WARNING):
        assert reader.latest([T]) == {T: 10}
    assert len(caplog.records) == AWAY_S // LOGGED_EVERY_S
    assert "Asking for partitions and offsets: trying again after" in caplog.text


def test_a_task_waits_too(cluster: FakeCluster) -> None:
    cluster.failures = [refused()] * (AWAY_S * 5)
    reader = RangeReader(client_of(cluster), backoff_ms=200, runtime=FakeRuntime())
    assert sum(len(found) for found in reader.read(Range("t", 0, 0, 10))) == 10


def test_but_not_for_ever(cluster: FakeCluster) -> None:
    cluster.failures = [refused()] * 10_000
    runtime = FakeRuntime()
    begin = runtime.clock.monotonic()
    with pytest.raises(OSError):
        LogOffsetReader(client_of(cluster), backoff_ms=200, runtime=runtime).latest([T])
    assert PATIENCE_S <= runtime.clock.monotonic() - begin < PATIENCE_S + 1


def test_retries_that_are_given_count(cluster: FakeCluster) -> None:
    cluster.failures = [refused()] * 2
    with pytest.raises(OSError):
        LogOffsetReader(client_of(cluster), retries=1, runtime=FakeRuntime()).latest([T])


def test_the_number_of_retries() -> None:
    assert retries_within(7, 0.2) == 7
    assert retries_within(0, 0.2) == 0
    assert retries_within(None, 0.2) == 150
    assert retries_within(None, 100) == 1


def test_failures_are_logged_rarely(caplog: pytest.LogCaptureFixture) -> None:
    runtime = FakeRuntime()
    log = WaitLog(logging.getLogger("kafka08.spark.test"), runtime.clock)
    with caplog.at_level(logging.WARNING):
        for _ in range(10):
            log.waiting("Asking", OSError("gone"))
            runtime.sleep(1)
    assert [record.message for record in caplog.records] == ["Asking: trying again after: gone"] * 2
