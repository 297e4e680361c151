"""A source task's offsets are stored after its records are converted and acknowledged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kafka08.connect.converters import StringConverter
from kafka08.connect.interface import Context, SourceRecord, SourceTask
from kafka08.connect.source import Delivery, SourceRunner
from kafka08.errors import KafkaError
from kafka08.runtime import ThreadRuntime

PLACE = {"table": "t"}


class Future:
    def __init__(self) -> None:
        self.ended = False
        self.error: Exception | None = None

    def done(self) -> bool:
        return self.ended

    def exception(self) -> Exception | None:
        return self.error


class Producer:
    def __init__(self) -> None:
        self.futures: list[Future] = []
        self.sent: list[bytes | None] = []

    def send(self, topic: str, value: bytes | None, key: Any, partition: Any) -> Future:
        self.sent.append(value)
        self.futures.append(Future())
        return self.futures[-1]

    def close(self, timeout: float) -> None: ...


class Offsets:
    def __init__(self) -> None:
        self.written: list[Mapping[str, Any]] = []
        self.full = False

    def write(self, name: str, offsets: Mapping[str, Any]) -> None:
        if self.full:
            raise OSError("No space left on device")
        self.written.append(dict(offsets))


class Counting(SourceTask):
    """Three records, then nothing."""

    commits = 0

    def __init__(self) -> None:
        self.left = [SourceRecord(PLACE, {"id": n}, "t", f"v{n}") for n in range(3)]

    def poll(self) -> list[SourceRecord]:
        found, self.left = self.left, []
        return found

    def commit(self) -> None:
        self.commits += 1


class Setup:
    def __init__(self) -> None:
        self.producer, self.offsets, self.task = Producer(), Offsets(), Counting()
        runtime = ThreadRuntime()
        self.context = Context("c-0", runtime.event())
        converter = StringConverter({}, "value.converter")
        delivery: Any = (converter, converter, lambda: self.producer, self.offsets, 0.0, 1.0)
        self.runner = SourceRunner(
            "c", Delivery(*delivery), self.task, {}, self.context, runtime, runtime.event()
        )
        self.runner.begin()

    def step(self) -> None:
        self.runner.step()


def test_offsets_follow_acknowledgements_in_order() -> None:
    it = Setup()
    it.step()
    assert it.producer.sent == [b"v0", b"v1", b"v2"]
    assert it.offsets.written == []
    it.producer.futures[1].ended = True
    it.step()
    assert it.offsets.written == []  # the first is not there yet
    it.producer.futures[0].ended = True
    it.step()
    assert it.offsets.written == [{'{"table": "t"}': {"id": 1}}]
    assert it.task.commits == 0
    it.producer.futures[2].ended = True
    it.step()
    assert it.offsets.written[-1] == {'{"table": "t"}': {"id": 2}}
    assert it.task.commits == 1


def test_nothing_behind_a_failure_is_remembered() -> None:
    it = Setup()
    it.step()
    for future in it.producer.futures:
        future.ended = True
    it.producer.futures[1].error = KafkaError("too large")
    with pytest.raises(KafkaError, match="too large"):
        it.step()
    it.runner.finish()
    assert it.offsets.written == [{'{"table": "t"}': {"id": 0}}]


def test_a_full_disk_is_tried_again() -> None:
    it = Setup()
    it.step()
    for future in it.producer.futures:
        future.ended = True
    it.offsets.full = True
    it.step()
    it.offsets.full = False
    it.step()
    assert it.offsets.written == [{'{"table": "t"}': {"id": 2}}]


def test_a_failing_task_keeps_its_error_and_is_stopped() -> None:
    it = Setup()

    def fail() -> list[SourceRecord]:
        raise ValueError("gone")

    it.task.poll = fail  # type: ignore[method-assign]
    it.runner.run()
    assert isinstance(it.runner.error, ValueError)
    assert it.runner.done
