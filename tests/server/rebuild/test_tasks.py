"""The task that rebuilds for consumers: what they are sent then, and what it does about errors."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kafka08.log.segments.names import rebuilt_paths
from kafka08.message.scan import iter_entries
from kafka08.server.rebuild import process as rebuilding
from kafka08.server.rebuild.process import Stretch
from kafka08.server.rebuild.tasks import MOST_AT_ONCE, PAUSE_S, RebuildTasks, start_process
from tests.message.sets import has_absolute_offsets, plain, wrapper
from tests.server.rebuild.support import KEY, InlineRebuild, all_small
from tests.server.support import ME, PEER, Rig

T = ("t", 0)
LOTS = 1 << 20


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    all_small(monkeypatch)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, log_segment_bytes=1500, log_index_interval_bytes=300)


def fill(rig: Rig, sets: int = 40, codec: int = 1) -> None:
    for number in range(sets):
        pairs = [(None, b"text %d " % (4 * number + n) * 12) for n in range(4)]
        answer = rig.produce((*T, wrapper(plain(pairs), codec)))
        assert answer is not None and answer[T][0] == 0


def tasks_of(rig: Rig, start: Callable[..., Any] = InlineRebuild, room: int = 1 << 30) -> Any:
    return RebuildTasks(rig.runtime, rig.logs.logs, rig.replicas.led_until, room, start)


def consumed(rig: Rig, until: int = 160) -> bytes:
    """All bytes that a consumer gets, fetch after fetch; each wrapper must be right."""
    found, offset = b"", 0
    while offset < until:
        error, _, data = rig.fetch((*T, offset, LOTS))[T]
        data = bytes(data)
        entries = list(iter_entries(data))
        assert error == 0 and entries
        assert all(has_absolute_offsets(data[e.position : e.stop]) for e in entries if e.codec)
        found += data
        offset = entries[-1].offset + 1
    return found


def test_consumers_are_sent_the_same_as_before_and_replicas_what_is_stored(rig: Rig) -> None:
    rig.lead(replicas=[ME, PEER])
    fill(rig, codec=3)
    rig.fetch((*T, 160, LOTS), replica_id=PEER)
    before = consumed(rig)
    tasks = tasks_of(rig)
    tasks.work()
    log = rig.logs.logs[KEY]
    assert [segment.rebuilt is not None for segment in log.segments] == [True] * (
        len(log.segments) - 1
    ) + [False]
    rig.runtime.pooled.clear()
    sealed = log.segments[-1].base_offset
    assert before.startswith(consumed(rig, sealed))
    assert not rig.runtime.pooled  # nothing was rebuilt for it
    stored = b"".join(Path(segment.path).read_bytes() for segment in log.segments)
    replicated, offset = b"", 0
    while offset < 160:
        data = bytes(rig.fetch((*T, offset, LOTS), replica_id=PEER)[T][2])
        replicated += data
        offset = list(iter_entries(data))[-1].offset + 1
    assert replicated == stored


def test_then_it_waits(rig: Rig) -> None:
    rig.lead()
    fill(rig)
    tasks = tasks_of(rig)
    tasks.work()
    begun = rig.clock.now
    tasks.work()
    assert rig.clock.now == pytest.approx(begun + PAUSE_S)


def test_an_idle_log_is_rebuilt_to_its_end_and_goes_on(rig: Rig) -> None:
    rig.lead()
    fill(rig)
    tasks = tasks_of(rig)
    for _ in range(8):
        tasks.work()
    active = rig.logs.logs[KEY].segments[-1]
    assert active.rebuilt is not None and active.rebuilt.index.last_offset == 160
    # what is rebuilt of the newest segment ends a fetch that would wait for more
    begun = rig.clock.now
    part = rig.fetch((*T, active.base_offset, LOTS), max_wait_ms=5000, min_bytes=LOTS)[T][2]
    assert len(part) and rig.clock.now == begun
    fill(rig, 10)
    consumed(rig, 200)


def test_a_fetch_at_the_end_still_waits(rig: Rig) -> None:
    rig.lead()
    fill(rig)
    tasks = tasks_of(rig)
    for _ in range(8):
        tasks.work()
    begun = rig.clock.now
    assert not len(rig.fetch((*T, 160, LOTS), max_wait_ms=5000)[T][2])
    assert rig.clock.now >= begun + 5


def test_with_no_room_all_are_removed(rig: Rig) -> None:
    rig.lead()
    fill(rig)
    tasks_of(rig).work()
    tasks_of(rig, room=0).work()
    log = rig.logs.logs[KEY]
    assert not any(segment.rebuilt for segment in log.segments)
    assert not any(".rebuilt" in name for name in os.listdir(log.directory))
    consumed(rig)


def test_found_again_after_a_restart(rig: Rig, tmp_path: Path) -> None:
    rig.lead()
    fill(rig)
    tasks_of(rig).work()
    rig.logs.close()
    again = Rig(tmp_path, log_segment_bytes=1500, log_index_interval_bytes=300)
    again.lead()
    started: list[Any] = []
    tasks_of(again, started.append).work()
    assert not started
    segments = again.logs.logs[KEY].segments
    assert all(segment.rebuilt for segment in segments[:-1])
    consumed(again)


def changes() -> list[Any]:
    def truncate(rig: Rig) -> None:
        rig.logs.logs[KEY].truncate_to(2)

    def delete(rig: Rig) -> None:
        rig.logs.delete_log(KEY)

    def truncate_all(rig: Rig) -> None:
        rig.logs.logs[KEY].truncate_fully_and_start_at(7)

    return [truncate, delete, truncate_all]


@pytest.mark.parametrize("change", changes())
def test_what_was_made_of_a_log_that_has_changed_since_is_not_used(
    rig: Rig, change: Callable[[Rig], None]
) -> None:
    rig.lead()
    fill(rig)
    log = rig.logs.logs[KEY]

    class Changed(InlineRebuild):
        def __init__(self, stretches: Sequence[Stretch]) -> None:
            change(rig)
            super().__init__(stretches)

    tasks_of(rig, Changed).work()
    assert not any(segment.rebuilt for segment in log.segments)
    if os.path.exists(log.directory):
        assert not any(name.endswith(".rebuilt") for name in os.listdir(log.directory))


@pytest.mark.parametrize("codes", [(errno.ENOSPC, True), (errno.EMFILE, True), (errno.EIO, False)])
def test_shortages_pass_and_faults_do_not(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, codes: tuple[int, bool]
) -> None:
    code, again = codes
    rig.lead()
    fill(rig)

    def fails(stretch: Stretch) -> Any:
        os.pwrite(stretch.rebuilt_fd, b"half", 0)
        raise OSError(code, "no")

    real = rebuilding.rebuild
    monkeypatch.setattr(rebuilding, "rebuild", fails)
    tasks = tasks_of(rig)
    tasks.work()
    log = rig.logs.logs[KEY]
    assert not any(".rebuilt" in name for name in os.listdir(log.directory))
    consumed(rig)
    monkeypatch.setattr(rebuilding, "rebuild", real)
    tasks.work()
    assert any(segment.rebuilt for segment in log.segments) == again


def test_files_that_cannot_be_opened(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.lead()
    fill(rig)
    real = os.open
    before = len(os.listdir("/proc/self/fd"))

    def refuses(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if str(path).endswith(".rebuilt-index"):
            raise OSError(errno.EACCES, "no")
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", refuses)
    tasks_of(rig).work()
    monkeypatch.undo()
    assert len(os.listdir("/proc/self/fd")) <= before + len(rig.logs.logs[KEY].segments)
    consumed(rig)


def test_a_process_that_dies(rig: Rig) -> None:
    rig.lead()
    fill(rig)

    class Dies(InlineRebuild):
        def __init__(self, stretches: Sequence[Stretch]) -> None:
            super().__init__(stretches[:1])

    tasks = tasks_of(rig, Dies)
    tasks.work()
    segments = rig.logs.logs[KEY].segments
    assert [segment.rebuilt is not None for segment in segments].count(True) == 1
    given_up = tasks._planner._given_up
    assert len(given_up) == 1
    consumed(rig)


def test_a_process_that_cannot_be_started(rig: Rig) -> None:
    rig.lead()
    fill(rig)

    errors = [OSError(errno.EAGAIN, "no")]

    def start(stretches: Sequence[Stretch]) -> Any:
        if errors:
            raise errors.pop()
        return InlineRebuild(stretches)

    tasks = tasks_of(rig, start)
    tasks.work()
    assert not any(segment.rebuilt for segment in rig.logs.logs[KEY].segments)
    tasks.work()
    assert any(segment.rebuilt for segment in rig.logs.logs[KEY].segments)


def test_segments_that_need_none_are_asked_once(rig: Rig) -> None:
    rig.topic_settings["t"] = {"compressed.sets": "normalised"}
    partition = rig.lead()
    fill(rig)
    log = partition.log
    assert log is not None
    log.config = log.config.override({"compressed.sets": "verbatim"})
    jobs: list[Any] = []

    def start(stretches: Sequence[Stretch]) -> Any:
        jobs.append(stretches)
        return InlineRebuild(stretches)

    tasks = tasks_of(rig, start)
    for _ in range(3):
        tasks.work()
    assert len(jobs) == 1
    assert not any(".rebuilt" in name for name in os.listdir(log.directory))


def test_a_stop_kills_the_process(rig: Rig) -> None:
    rig.lead()
    fill(rig)
    started: list[Any] = []

    class StuckRebuild(InlineRebuild):
        def __init__(self, stretches: Sequence[Stretch]) -> None:
            self.killed = False
            started.append(self)

        def lines(self) -> list[bytes]:
            return []

    tasks = tasks_of(rig, StuckRebuild)
    rig.runtime.while_waiting.append(tasks.stop)
    tasks.work()
    assert started[0].killed


def test_not_too_many_at_once(rig: Rig) -> None:
    rig.lead()
    fill(rig, 150)
    jobs: list[int] = []

    def start(stretches: Sequence[Stretch]) -> Any:
        jobs.append(len(stretches))
        return InlineRebuild(stretches)

    tasks = tasks_of(rig, start)
    tasks.work()
    tasks.work()
    assert jobs[0] == MOST_AT_ONCE
    assert sum(jobs) == len(rig.logs.logs[KEY].segments) - 1


def test_a_real_process(rig: Rig) -> None:
    rig.lead()
    fill(rig, 20)
    log = rig.logs.logs[KEY]
    segment = log.segments[0]
    entries_path, index_path = rebuilt_paths(segment.path)
    flags = os.O_RDWR | os.O_CREAT
    fds = [os.open(path, flags) for path in (segment.path, entries_path, index_path)]
    stretch = Stretch(*fds, segment.base_offset, 0, segment.size, 0, 0, 300)
    process: Any = start_process([stretch])
    try:
        lines: list[bytes] = []
        process._process.wait(60)
        lines += process.lines()
    finally:
        process.kill()
        for fd in fds:
            os.close(fd)
    assert rebuilding.parse_event(lines[0]) == (segment.size, True)
    tasks_of(rig).work()
    consumed(rig, 80)
