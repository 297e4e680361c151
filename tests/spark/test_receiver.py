"""The planner of a group's stream without a JVM: what becomes of batches planned before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark import SparkContext

from kafka08.common import TopicPartition
from kafka08.spark import receiver
from kafka08.spark.driver import contexts
from kafka08.spark.planner import Range
from kafka08.spark.rdd import Elements
from kafka08.spark.receiver import GroupPlanner

A = TopicPartition("t", 0)


class OneOwner:
    """A member that owns one partition, and the log of that: each look at it finds 10 more."""

    def __init__(self) -> None:
        self.position = {A: 0}
        self.planned: list[int] = []
        self.again: list[int] = []
        self.end = 0
        self.failing = False

    def positions(self) -> tuple[object, dict[TopicPartition, int]]:
        return None, dict(self.position)

    def plan(self, token: object, batch_ms: int, ranges: Sequence[Range]) -> bool:
        self.planned.append(batch_ms)
        self.position = {each.topic_partition: each.end for each in ranges}
        return True

    def recovered(self, batch_ms: int, ranges: Sequence[Range]) -> None:
        self.again.append(batch_ms)

    def brokers(self) -> list[tuple[str, int]]:
        return []

    def latest_since(self, *_: object, **options: object) -> dict[TopicPartition, int]:
        if self.failing:
            raise ConnectionError("away")
        self.end += 10
        return {A: self.end}

    def leaders(self, wanted: object) -> dict[TopicPartition, object]:
        return {}


@pytest.fixture
def member(monkeypatch: pytest.MonkeyPatch) -> Iterator[OneOwner]:
    monkeypatch.setattr(SparkContext, "_active_spark_context", SimpleNamespace(_conf={}))
    monkeypatch.setattr(receiver, "make_rdd", lambda sc, source, ranges, *rest: ranges)
    monkeypatch.setattr(contexts, "report_input", lambda *details: None)
    yield OneOwner()


def planner_of(member: OneOwner, kept: int) -> GroupPlanner:
    source = SimpleNamespace(offset_reader=lambda: nullcontext(member))
    running = SimpleNamespace(
        member=member, source=lambda brokers: source, rate=None, ssc=None, kept=kept
    )
    planner = GroupPlanner.__new__(GroupPlanner)
    state: dict[str, Any] = {
        "stream": "s",
        "_stream_id": 7,
        "_batch_ms": 1000,
        "_elements": Elements(),
        "_batches": {},
        "_ssc": None,
        "_running": running,
    }
    vars(planner).update(state)
    return planner


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds)


def test_a_batch_is_planned_once(member: OneOwner) -> None:
    planner = planner_of(member, kept=5)
    planned = [planner(at(second)) for second in range(1, 6)]
    assert planned == [[Range(*A, 10 * n, 10 * n + 10)] for n in range(5)]
    assert [planner(at(second)) for second in range(1, 6)] == planned
    assert (member.planned, member.again) == ([1000, 2000, 3000, 4000, 5000],) * 2


def test_a_batch_too_old_to_know_is_empty_and_takes_nothing(
    member: OneOwner, caplog: pytest.LogCaptureFixture
) -> None:
    planner = planner_of(member, kept=3)
    for second in range(1, 6):
        planner(at(second))
    assert planner(at(2)) == []
    assert "The ranges of batch 2000 are not known any more" in caplog.text
    assert member.planned == [1000, 2000, 3000, 4000, 5000]
    assert planner(at(6)) == [Range(*A, 50, 60)]


def test_a_batch_that_failed_stays_empty_for_windows(member: OneOwner) -> None:
    planner = planner_of(member, kept=5)
    planner(at(1))
    member.failing = True
    with pytest.raises(ConnectionError):
        planner(at(2))
    member.failing = False
    assert planner(at(2)) == []
    assert planner(at(3)) == [Range(*A, 10, 20)]
    assert planner(at(2)) == []
