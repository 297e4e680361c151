"""Offsets move over whole batches, in order, never past a failure."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.spark.driver.progress import BatchProgress
from kafka08.spark.planner import Range

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def made() -> BatchProgress:
    progress = BatchProgress({A: 10, B: 0})
    progress.plan(1, [Range(*A, 10, 20), Range(*B, 0, 0)])
    progress.plan(2, [Range(*A, 20, 25), Range(*B, 0, 5)])
    progress.submitted(1)
    progress.submitted(2)
    return progress


def test_batches_in_order() -> None:
    progress = made()
    assert progress.position == {A: 25, B: 5}
    assert progress.committed == {A: 10, B: 0}
    assert progress.complete(1, ok=True)
    assert progress.committed == {A: 20, B: 0}
    assert progress.complete(2, ok=True)
    assert progress.committed == {A: 25, B: 5}
    assert progress.running == 0


def test_a_later_batch_waits_for_the_earlier_one() -> None:
    progress = made()
    assert not progress.complete(2, ok=True)
    assert progress.committed == {A: 10, B: 0}
    assert progress.complete(1, ok=True)
    assert progress.committed == {A: 25, B: 5}


@pytest.mark.scenario("spark-19")
def test_nothing_past_a_failure() -> None:
    progress = made()
    assert not progress.complete(1, ok=False)
    assert not progress.complete(2, ok=True)
    progress.plan(3, [Range(*A, 25, 30)])
    assert not progress.complete(3, ok=True)
    assert progress.committed == {A: 10, B: 0}
    assert progress.running == 0


def test_an_empty_batch_that_failed_holds_nothing() -> None:
    progress = BatchProgress({A: 10})
    progress.plan(1, [Range(*A, 10, 10)])
    progress.complete(1, ok=False)
    progress.plan(2, [Range(*A, 10, 12)])
    assert progress.complete(2, ok=True)
    assert progress.committed == {A: 12}


def test_a_batch_never_submitted_counts_as_failed() -> None:
    progress = BatchProgress({A: 10})
    progress.plan(1, [Range(*A, 10, 20)])
    progress.plan(2, [Range(*A, 20, 30)])
    progress.submitted(2)
    assert not progress.complete(2, ok=True)
    assert progress.committed == {A: 10}
    assert progress.running == 0


def test_ranges_that_are_not_ours_are_not_committed() -> None:
    progress = BatchProgress({A: 10})
    progress.plan(1, [Range(*A, 5, 10), Range(*B, 0, 9)])
    assert not progress.complete(1, ok=True)
    assert progress.committed == {A: 10}
    assert not progress.complete(7, ok=True), "unknown"
