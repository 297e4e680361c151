from __future__ import annotations

from kafka08.metrics.registry import Registry
from kafka08.runtime import Scheduler
from kafka08.server.part import Part, Room
from tests.fakes.runtime import FakeRuntime


def test_a_room_may_have_nothing_of_its_own() -> None:
    runtime = FakeRuntime()
    registry, scheduler = Registry(runtime), Scheduler(runtime)
    before = len(list(registry.pieces()))
    room = Room()
    room.add_metrics(registry)
    room.schedule(scheduler)
    assert room.handlers() == []
    assert len(list(registry.pieces())) == before
    assert runtime.tasks == []


def test_a_part_may_have_only_one_end() -> None:
    assert Part("p") == Part("p", start=None, stop=None)
