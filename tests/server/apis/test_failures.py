"""One line a request about what failed in it."""

from __future__ import annotations

import logging

import pytest

from kafka08.common import TopicPartition
from kafka08.errors import KafkaError, NotLeaderForPartitionError, UnknownTopicOrPartitionError
from kafka08.server.apis.failures import RequestFailures


def partition(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def on_disk() -> KafkaError:
    error = KafkaError("the disk is gone")
    error.__cause__ = OSError(5, "Input/output error")
    return error


def test_codes_are_those_of_the_wire() -> None:
    failures = RequestFailures()
    assert not failures
    assert failures.add(partition(0), NotLeaderForPartitionError()) == 6
    assert failures.add("u", UnknownTopicOrPartitionError()) == 3
    assert failures.add(partition(1), ValueError("x")) == -1
    assert failures


def test_three_are_shown_and_the_others_counted(caplog: pytest.LogCaptureFixture) -> None:
    failures = RequestFailures()
    for number in range(3):
        failures.add(partition(number), NotLeaderForPartitionError(f"no {number}"))
    assert str(failures) == (
        "[t,0] failed due to no 0; [t,1] failed due to no 1; [t,2] failed due to no 2"
    )
    failures.add(partition(3), NotLeaderForPartitionError("no 3"))
    failures.add("other", NotLeaderForPartitionError("no 4"))
    assert str(failures).endswith("[t,2] failed due to no 2; and 2 more")
    failures.tell("A fetch")
    [record] = caplog.records
    assert record.levelno == logging.WARNING and not record.exc_info
    assert record.getMessage() == f"A fetch: {failures}"


def test_the_first_unexpected_error_has_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    failures, first = RequestFailures(), ValueError("first")
    failures.add(partition(0), NotLeaderForPartitionError())
    failures.add(partition(1), first)
    failures.add(partition(2), ValueError("second"))
    failures.tell("A fetch")
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None and record.exc_info[1] is first


def test_failures_of_disks_alone_are_not_told_again(caplog: pytest.LogCaptureFixture) -> None:
    failures = RequestFailures()
    RequestFailures().tell("A fetch")
    failures.add(partition(0), on_disk())
    failures.tell("A fetch")
    assert not caplog.records
    failures.add(partition(1), NotLeaderForPartitionError())
    failures.add(partition(2), on_disk())
    failures.tell("A fetch")
    assert len(caplog.records) == 1


def test_requests_do_not_share_failures() -> None:
    one, other = RequestFailures(), RequestFailures()
    one.add(partition(0), ValueError())
    assert one and not other
