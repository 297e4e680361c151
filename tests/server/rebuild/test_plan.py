"""Which segments are to be rebuilt, and which rebuilt entries are too many."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafka08.log.segments.segment import LogSegment
from kafka08.message.sets import encode_set
from kafka08.server.rebuild import files as rebuilt
from kafka08.server.rebuild import plan as rebuild_plan
from kafka08.server.rebuild import process as rebuilding
from kafka08.server.rebuild.files import open_rebuilt
from kafka08.server.rebuild.plan import IDLE_MS, Plan, Planner
from tests.fakes.runtime import FakeClock
from tests.log.support import writable
from tests.message.batches import batch, simple, timed, timed_wrapper
from tests.server.rebuild.support import all_small, old_log, produce, stretch_of

LOTS = 1 << 30


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    all_small(monkeypatch)


class PlannedLog:
    """A log with four segments, all committed, and a planner for it."""

    def __init__(self, directory: Path, max_bytes: int = LOTS, **changes: Any) -> None:
        self.clock = FakeClock()
        self.log = old_log(directory, self.clock, **changes)
        produce(self.log, 40)
        assert len(self.log.segments) == 4
        for number, segment in enumerate(self.log.segments):
            os.utime(segment.path, (number, number))
        self.led_until = self.log.log_end_offset
        self.planner = Planner(self.clock, max_bytes, lambda key: self.led_until)

    def plan(self) -> Plan:
        return self.planner.plan([self.log])

    def wanted(self) -> list[tuple[int, int, int]]:
        """(number of the segment, start, stop)."""
        segments = self.log.segments
        return [(segments.index(each[1]), each[2], each[3]) for each in self.plan().wanted]

    def rebuild(self, segment: LogSegment) -> None:
        with stretch_of(segment, 0, segment.size) as stretch:
            rebuilding.rebuild(stretch)
        segment.rebuilt = open_rebuilt(segment)

    def whole(self, *numbers: int) -> list[tuple[int, int, int]]:
        return [(number, 0, self.log.segments[number].size) for number in numbers]


def test_sealed_segments_newest_first(tmp_path: Path) -> None:
    case = PlannedLog(tmp_path)
    assert case.wanted() == case.whole(2, 1, 0)


def test_the_rest_of_what_was_begun(tmp_path: Path) -> None:
    case = PlannedLog(tmp_path)
    segment = case.log.segments[1]
    middle = segment.position_of(segment.base_offset + 20)
    assert middle is not None
    with stretch_of(segment, 0, middle) as stretch:
        rebuilding.rebuild(stretch)
    segment.rebuilt = open_rebuilt(segment)
    case.rebuild(case.log.segments[2])
    assert case.wanted() == [(1, middle, segment.size), *case.whole(0)]


def test_long_segments_in_stretches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild_plan, "LONGEST_BYTES", 400)
    case = PlannedLog(tmp_path)
    assert case.wanted() == [(2, 0, 400), (1, 0, 400), (0, 0, 400)]


def test_the_active_segment_once_it_has_enough(tmp_path: Path) -> None:
    case = PlannedLog(tmp_path)
    active = case.log.segments[3]
    case.log.config = case.log.config.override({"segment.bytes": "1000000"})
    while active.size < rebuild_plan.STRETCH_BYTES:
        assert 3 not in [number for number, _, _ in case.wanted()]
        produce(case.log, 1)
        case.led_until = case.log.log_end_offset
    assert case.wanted()[0] == (3, 0, active.size)


def test_the_active_segment_once_it_is_idle(tmp_path: Path) -> None:
    case = PlannedLog(tmp_path)
    active = case.log.segments[3]
    produce(case.log, 2)
    case.led_until = case.log.log_end_offset
    assert active.size >= rebuild_plan.IDLE_BYTES
    for _ in range(2):
        assert 3 not in [number for number, _, _ in case.wanted()]
        case.clock.now_ms += IDLE_MS - 1
    case.clock.now_ms += 1
    assert (3, 0, active.size) in case.wanted()
    produce(case.log, 1)
    case.led_until = case.log.log_end_offset
    assert 3 not in [number for number, _, _ in case.wanted()]


def test_only_what_consumers_may_see(tmp_path: Path) -> None:
    case = PlannedLog(tmp_path)
    segments = case.log.segments
    case.led_until = segments[1].base_offset + 20
    stop = segments[1].position_of(case.led_until)
    assert stop is not None
    assert case.wanted() == [(1, 0, stop), *case.whole(0)]
    case.led_until = 0  # not led here
    assert case.wanted() == []


@pytest.mark.parametrize(
    "settings", [{"cleanup.policy": "compact"}, {"compressed.sets": "normalised"}]
)
def test_logs_that_need_none(tmp_path: Path, settings: dict[str, str]) -> None:
    case = PlannedLog(tmp_path)
    case.log.config = case.log.config.override(settings)
    assert case.plan() == ([], [], [])


def test_plain_logs_need_none(tmp_path: Path) -> None:
    log = old_log(tmp_path)
    produce(log, 40, codec=0)
    assert Planner(FakeClock(), LOTS, lambda key: LOTS).plan([log]) == ([], [], [])


def test_those_given_up_are_left_out(tmp_path: Path) -> None:
    case = PlannedLog(tmp_path)
    case.planner.give_up(case.log.segments[1])
    assert case.wanted() == case.whole(2, 0)


def test_room_for_the_newest(tmp_path: Path) -> None:
    case = PlannedLog(tmp_path)
    segments = case.log.segments
    for segment in segments[:3]:
        case.rebuild(segment)
    sizes = [max(segment.size, 300) for segment in segments]
    made = [rebuild_plan.disk_bytes(each.rebuilt) for each in segments[:3] if each.rebuilt]
    room = sizes[3] + max(sizes[2], made[2]) + max(sizes[1], made[1])
    planner = Planner(case.clock, room, lambda key: case.led_until)
    assert planner.plan([case.log]).surplus == [segments[0]]
    planner = Planner(case.clock, room - 1, lambda key: case.led_until)
    assert planner.plan([case.log]).surplus == [segments[1], segments[0]]
    planner = Planner(case.clock, 0, lambda key: case.led_until)
    assert planner.plan([case.log]) == ([], [segments[2], segments[1], segments[0]], [])


def test_a_disk_that_fills_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = PlannedLog(tmp_path)
    segments = case.log.segments
    for segment in segments[1:3]:
        case.rebuild(segment)
    used = sum(rebuild_plan.disk_bytes(each.rebuilt) for each in segments if each.rebuilt)
    monkeypatch.setattr(rebuild_plan, "_free_bytes", lambda directory: 0)
    assert case.wanted() == []
    monkeypatch.setattr(rebuild_plan, "_free_bytes", lambda directory: -used)
    assert case.plan() == ([], [segments[2], segments[1]], [])


def test_what_may_be_used_of_a_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    found = os.statvfs(tmp_path)
    free = rebuild_plan._free_bytes(str(tmp_path))
    assert free < found.f_bavail * found.f_frsize
    assert free > -found.f_blocks * found.f_frsize


def test_each_directory_has_its_own_room(tmp_path: Path) -> None:
    case = PlannedLog(tmp_path / "one", max_bytes=4000)
    other = PlannedLog(tmp_path / "two")
    plan = case.planner.plan([case.log, other.log])
    alone = case.plan()
    assert len(alone.wanted) == 2
    assert {each.log for each in plan.wanted} == {case.log, other.log}
    assert len(plan.wanted) == 4


def test_found_after_a_restart(tmp_path: Path) -> None:
    case = PlannedLog(tmp_path)
    for segment in case.log.segments[:3]:
        case.rebuild(segment)
        segment.rebuilt = None
    plan = case.plan()
    assert [(log, segment) for log, segment, _ in plan.found] == [
        (case.log, segment) for segment in reversed(case.log.segments[:3])
    ]
    assert plan.wanted == []


def test_segments_that_vanish_meanwhile(tmp_path: Path) -> None:
    case = PlannedLog(tmp_path)
    os.unlink(case.log.segments[1].path)
    assert case.wanted() == case.whole(2, 0)


def test_nothing_is_remembered_of_segments_that_are_gone(tmp_path: Path) -> None:
    case = PlannedLog(tmp_path)
    case.plan()
    case.planner.give_up(case.log.segments[0])
    case.planner.plan([])
    assert not case.planner._compressed and not case.planner._given_up


def test_plain_segments_are_read_again_only_after_they_have_grown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = old_log(tmp_path)
    add = partial(log.append, writable(encode_set([(None, b"v" * 90)])))
    while len(log.segments) < 3 or log.segments[-1].size < rebuild_plan.LEAST_BYTES:
        add()
    read: list[LogSegment] = []

    def holds_wrappers(segment: LogSegment) -> bool:
        read.append(segment)
        return rebuilt.holds_wrappers(segment)

    monkeypatch.setattr(rebuild_plan, "holds_wrappers", holds_wrappers)
    planner = Planner(FakeClock(), LOTS, lambda key: log.log_end_offset)
    for _ in range(3):
        assert planner.plan([log]) == ([], [], [])
    assert read == [*log.segments]
    read.clear()
    add()
    assert len(log.segments) == 3
    planner.plan([log])
    assert read == [log.segments[-1]]


@pytest.mark.parametrize(
    "data",
    [
        batch(simple(b"a" * 90)),
        batch(simple(b"a" * 90), codec=1),
        batch(simple(b"a" * 90), codec=4),
        timed_wrapper(timed([(b"k", b"v")]), 1),
    ],
    ids=["batch", "gzip batch", "zstd batch", "timed wrapper"],
)
def test_segments_of_later_formats_are_left_alone(tmp_path: Path, data: bytes) -> None:
    log = old_log(tmp_path)
    while len(log.segments) < 3:
        log.append(writable(data))
    planner = Planner(FakeClock(), LOTS, lambda key: log.log_end_offset)
    assert planner.plan([log]) == ([], [], [])
