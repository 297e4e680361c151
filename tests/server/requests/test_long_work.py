"""The places for long work, and the order of those that wait for one."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kafka08.errors import InvalidMessageError
from kafka08.message.compression import InflatesTooFarError
from kafka08.runtime import GeventRuntime
from kafka08.server.requests.long_work import SMALL_BYTES, LongWork, in_turns
from tests.fakes.runtime import FakeRuntime

MUCH = 64 << 20


def test_little_room_first_then_all() -> None:
    rooms: list[int] = []

    def work(room: int) -> str:
        rooms.append(room)
        if room < MUCH:
            raise InflatesTooFarError("more than that")
        return "done"

    assert LongWork(FakeRuntime()).run(work, MUCH) == "done"
    assert rooms == [SMALL_BYTES, MUCH]
    with pytest.raises(InflatesTooFarError):
        LongWork(FakeRuntime()).run(work, 1000)
    assert LongWork(FakeRuntime()).run(work, MUCH, SMALL_BYTES + 1) == "done"
    assert rooms[2:] == [1000, MUCH]


def test_a_failure_gives_its_place_back() -> None:
    places = LongWork(FakeRuntime())

    def fail(room: int) -> None:
        raise InvalidMessageError("no message")

    for _ in range(10):
        with pytest.raises(InvalidMessageError):
            places.run(fail, MUCH)
    assert places.run(lambda room: room, MUCH) == SMALL_BYTES


def test_small_work_does_not_wait_for_large(capfd: pytest.CaptureFixture[str]) -> None:
    runtime = GeventRuntime(threads=6)
    places = LongWork(runtime)
    gate = threading.Event()
    under_way: list[int] = []

    def large(room: int) -> None:
        if room <= SMALL_BYTES:
            raise InflatesTooFarError("more than that")
        under_way.append(room)
        gate.wait(10)

    tasks = [runtime.spawn("large", places.run, large, MUCH) for _ in range(3)]
    try:
        while not under_way:
            runtime.sleep(0.001)
        assert places.run(lambda room: "small", MUCH) == "small"
        assert under_way == [MUCH]  # one at a time
    finally:
        gate.set()
        assert all(task.join(10) for task in tasks)
        runtime.close()
    assert len(under_way) == 3
    assert capfd.readouterr().err == ""


def test_turns() -> None:
    runtime: Any = FakeRuntime()
    slept: list[float] = []
    runtime.sleep = slept.append
    seen = []
    for item in in_turns(runtime, range(10)):
        seen.append(item)
        runtime.clock.now += 0.002
    assert seen == list(range(10))
    assert len(slept) == 3
    assert list(in_turns(runtime, ["one"])) == ["one"]
