"""A source task's offsets are stored after its records are converted and acknowledged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.connect.converters import StringConverter
from kafka08.connect.interface import ConnectError, Context, SourceRecord, SourceTask
from kafka08.connect.source import Delivery, SourceRunner
from kafka08.errors import MessageSizeTooLargeError
from tests.producer.fake_producer import ProducerDriver, failing

PLACE = {"table": "t"}


class Offsets:
    def __init__(self) -> None:
        self.written: list[Mapping[str, Any]] = []
        self.full = False

    def write(self, name: str, offsets: Mapping[str, Any]) -> None:
        if self.full:
            raise OSError("No space left on device")
        self.written.append(dict(offsets))


class ThreeRecords(SourceTask):
    """Three records, then nothing."""

    commits = 0

    def __init__(self) -> None:
        self.left = [
            SourceRecord(PLACE, {"id": n}, "t", f"v{n}", partition=n % 2) for n in range(3)
        ]

    def poll(self) -> list[SourceRecord]:
        found, self.left = self.left, []
        return found

    def commit(self) -> None:
        self.commits += 1


class SourceSetup:
    def __init__(self) -> None:
        # Each partition has its own broker, and each request one record.
        self.driver = ProducerDriver(
            brokers=2, max_request_size=30, max_in_flight_requests_per_connection=1
        )
        self.driver.cluster.leaders[TopicPartition("t", 1)] = 1
        self.offsets, self.task = Offsets(), ThreeRecords()
        runtime = self.driver.runtime
        self.context = Context("c-0", runtime.event())
        converter = StringConverter({}, "value.converter")
        delivery: Any = (converter, converter, lambda: self.driver.producer, self.offsets, 0.0, 1.0)
        self.runner = SourceRunner(
            "c", Delivery(*delivery), self.task, {}, self.context, runtime, runtime.event()
        )
        self.runner.begin()

    def step(self) -> None:
        self.runner.step()


def test_offsets_follow_acknowledgements_in_order() -> None:
    it = SourceSetup()
    it.step()
    it.driver.write()
    assert it.offsets.written == []
    it.driver.read(1)
    it.step()
    assert it.offsets.written == []  # the first is not there yet
    it.driver.read(0)
    it.step()
    assert it.offsets.written == [{'{"table": "t"}': {"id": 1}}]
    assert it.task.commits == 0
    it.driver.run()
    it.step()
    assert it.driver.cluster.values("t", 0) == [b"v0", b"v2"]
    assert it.driver.cluster.values("t", 1) == [b"v1"]
    assert it.offsets.written[-1] == {'{"table": "t"}': {"id": 2}}
    assert it.task.commits == 1


def test_nothing_behind_a_failure_is_remembered() -> None:
    it = SourceSetup()
    it.step()
    it.driver.cluster.script = failing(0, MessageSizeTooLargeError.code)
    it.driver.run()
    it.driver.run()
    assert it.driver.cluster.values("t", 0) == [b"v0", b"v2"]
    with pytest.raises(ConnectError, match="was not stored"):
        it.step()
    it.runner.finish()
    assert it.offsets.written == [{'{"table": "t"}': {"id": 0}}]


def test_a_full_disk_is_tried_again() -> None:
    it = SourceSetup()
    it.step()
    it.driver.run()
    it.driver.run()
    it.offsets.full = True
    it.step()
    it.offsets.full = False
    it.step()
    assert it.offsets.written == [{'{"table": "t"}': {"id": 2}}]


def test_a_failing_task_keeps_its_error_and_is_stopped() -> None:
    it = SourceSetup()

    def fail() -> list[SourceRecord]:
        raise ValueError("gone")

    it.task.poll = fail  # type: ignore[method-assign]
    it.runner.run()
    assert isinstance(it.runner.error, ValueError)
    assert it.runner.done
