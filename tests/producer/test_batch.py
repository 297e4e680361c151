"""A batch and the futures of its records: waits, callbacks, errors."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.producer.batch import ProducerBatch, RecordFuture, RecordMetadata, in_callback
from kafka08.producer.errors import WaitTimeoutError
from tests.fakes.runtime import FakeRuntime

T0 = TopicPartition("t", 0)


class BatchCase:
    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.batch = ProducerBatch(T0, 1, 0.0, self.runtime.lock(), self.runtime.event)
        self.batch.values = [b"a", b"b"]
        self.futures = [RecordFuture(self.batch, index) for index in range(2)]

    def end(self, offset: int, error: BaseException | None = None) -> None:
        self.batch.end(offset, error)
        self.batch.finish()


@pytest.fixture
def case() -> BatchCase:
    return BatchCase()


def test_records_follow_each_other_from_the_base_offset(case: BatchCase) -> None:
    case.end(40)
    assert [future.result() for future in case.futures] == [("t", 0, 40), ("t", 0, 41)]
    assert case.batch.count == 2
    assert case.batch.values == []


def test_without_an_answer_there_is_no_offset(case: BatchCase) -> None:
    case.end(-1)
    assert case.futures[1].result() == RecordMetadata("t", 0, -1)


def test_the_error_of_the_batch_is_that_of_each_record(case: BatchCase) -> None:
    case.end(-1, ConnectionError("away"))
    for future in case.futures:
        assert isinstance(future.exception(), ConnectionError)
        with pytest.raises(ConnectionError, match="away"):
            future.get()


def test_a_wait_ends_with_its_timeout(case: BatchCase) -> None:
    with pytest.raises(WaitTimeoutError, match=r"\[t,0\] was not acknowledged within 1.5 s"):
        case.futures[0].result(1.5)
    assert case.runtime.slept == [1.5]
    assert not case.futures[0].done()


def test_a_wait_ends_with_the_batch(case: BatchCase) -> None:
    case.runtime.while_waiting = [lambda: case.end(7)]
    assert case.futures[1].result(60).offset == 8
    assert case.runtime.slept == []


def test_callbacks_run_once_in_order_before_the_waiting_task_wakes(case: BatchCase) -> None:
    seen: list[Any] = []
    case.batch.add_callback(1, lambda metadata, error: seen.append((metadata, in_callback.get())))
    case.futures[0].add_done_callback(lambda future: seen.append(future.result()))
    case.end(3)
    assert seen == [(("t", 0, 4), True), ("t", 0, 3)]
    assert not in_callback.get()
    case.batch.add_callback(0, lambda metadata, error: seen.append("at once"))
    assert seen[2:] == ["at once"]


def test_a_callback_that_fails_stops_nobody(
    case: BatchCase, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(metadata: Any, error: Any) -> None:
        raise ValueError("as told")

    seen: list[Any] = []
    case.batch.add_callback(0, fail)
    case.batch.add_callback(1, lambda metadata, error: seen.append(error))
    error = ConnectionError("away")
    case.end(-1, error)
    assert seen == [error]
    assert "Error executing user-provided callback" in caplog.text


def test_a_future_prints_its_state(case: BatchCase) -> None:
    assert repr(case.futures[0]) == "RecordFuture([t,0], pending)"
    case.end(5)
    assert "offset=5" in repr(case.futures[0])
