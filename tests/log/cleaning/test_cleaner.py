"""Which log is cleaned when, what is recorded, and every way to break a cleaning off."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.log.checkpoint import OffsetCheckpoint
from kafka08.log.cleaning import cleaner as cleaner_module
from kafka08.log.cleaning.cleaner import LEGAL_NEXT, LogCleaner, State
from kafka08.log.cleaning.cleaner_job import CleanerProcess, Job
from kafka08.log.disk import DiskFailure
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.runtime import ThreadRuntime
from kafka08.server.rebuild.view import ConsumerView
from tests.fakes.runtime import FakeClock
from tests.log.cleaning.support import (
    KEY,
    InlineProcess,
    broker_config,
    clean_once,
    cleaner_of,
    compacted_log,
    contents,
    drive,
    keys,
    no_bound,
    put,
    put_keys,
    up_to,
)
from tests.log.dead_disk import Dead
from tests.log.support import config, crash_copy, die_at_rename, open_log

CHECKPOINT = "cleaner-offset-checkpoint"


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Segments of two messages each, abac|x..., the active one holding x."""
    log = compacted_log(tmp_path, segment_bytes=170)
    put_keys(log, "abacx")
    assert [s.base_offset for s in log.segments] == [0, 2, 4]
    return log


def recorded(tmp_path: Path) -> str:
    return (tmp_path / CHECKPOINT).read_text()


def suffixes(log: Log) -> set[str]:
    return {path.suffix for path in Path(log.directory).iterdir()} - {""}


class TestSelection:
    def test_the_dirtiest_of_those_dirty_enough(self, tmp_path: Path) -> None:
        logs = {}
        for number, text in enumerate(["aa", "aaaa", "", "aaaaaa"]):
            key = TopicPartition("t", number)
            logs[key] = Log(
                str(tmp_path / f"t-{number}"),
                config(cleanup_policy="compact", min_cleanable_dirty_ratio=0.4),
                clock=FakeClock(),
            )
            put_keys(logs[key], text)
            logs[key].roll()
        OffsetCheckpoint(str(tmp_path / CHECKPOINT)).write({KEY: 2, TopicPartition("t", 3): 0})
        cleaner = LogCleaner(
            broker_config(tmp_path), [str(tmp_path)], logs, clock=FakeClock(), start=InlineProcess
        )
        cleaner._cleaned[str(tmp_path)][TopicPartition("t", 1)] = 0
        logs[TopicPartition("t", 3)].config = config(cleanup_policy="delete")
        put_keys(logs[KEY], "a")  # two clean, one dirty, a third
        logs[KEY].roll()
        found = cleaner.grab_filthiest_log(no_bound)
        assert found is not None and found.topic_partition.partition == 1
        assert found.cleanable_ratio == 1.0
        assert cleaner.state(found.topic_partition) is State.IN_PROGRESS
        assert cleaner.grab_filthiest_log(no_bound) is None
        put_keys(logs[KEY], "a" * 2)
        logs[KEY].roll()
        found = cleaner.grab_filthiest_log(no_bound)
        assert found is not None and found.topic_partition == KEY
        assert found.first_dirty_offset == 2

    def test_never_the_active_segment(self, tmp_path: Path) -> None:
        log = compacted_log(tmp_path, segment_bytes=10**6)
        put_keys(log, "aaaa")
        assert not clean_once(cleaner_of(log))
        assert keys(log) == "aaaa"

    def test_only_what_is_committed(self, log: Log) -> None:
        """A truncation must not take the only message of a key that is left."""
        cleaner = cleaner_of(log)
        assert clean_once(cleaner, 3)
        assert cleaner.checkpoint(log) == 2 and keys(log) == "abacx"
        assert not clean_once(cleaner, 0)
        assert clean_once(cleaner, 4)
        assert keys(log) == "bacx"

    def test_what_is_cleaned_away_is_superseded_on_disk(self, log: Log) -> None:
        assert log.recovery_point == 0
        assert clean_once(cleaner_of(log))
        assert log.recovery_point == 4

    @pytest.mark.parametrize(
        ("checkpoint", "first"), [(None, 0), (0, 0), (1, 0), (2, 2), (3, 2), (4, 4), (5, 4)]
    )
    def test_a_checkpoint_is_moved_down_to_a_segment_base(
        self, log: Log, tmp_path: Path, checkpoint: int | None, first: int
    ) -> None:
        if checkpoint is not None:
            OffsetCheckpoint(str(tmp_path / CHECKPOINT)).write({KEY: checkpoint})
        cleaner = cleaner_of(log)
        found = cleaner.to_clean(log, up_to(log.log_end_offset))
        assert (found.first_dirty_offset, found.end_offset) == (first, 4)

    def test_a_checkpoint_before_or_behind_the_log_is_void(self, tmp_path: Path) -> None:
        log = open_log(tmp_path, config=config(cleanup_policy="compact", segment_bytes=170))
        log.truncate_fully_and_start_at(100)
        put_keys(log, "abacx")
        for wrong in (3, 106):
            OffsetCheckpoint(str(tmp_path / CHECKPOINT)).write({KEY: wrong})
            cleaner = cleaner_of(log)
            assert cleaner.to_clean(log, up_to(log.log_end_offset)).first_dirty_offset == 100
        assert recorded(tmp_path) == "0\n1\nt 0 100\n"  # it could become right again otherwise


class TestCleaning:
    def test_the_whole_of_it(self, log: Log, tmp_path: Path, caplog: Any) -> None:
        caplog.set_level(logging.INFO, "kafka.log.LogCleaner")
        before = contents(log)
        cleaner = cleaner_of(log)
        assert clean_once(cleaner)
        assert contents(log) == before[1:]
        assert recorded(tmp_path) == "0\n1\nt 0 4\n"
        assert cleaner.state(KEY) is State.IDLE
        assert not clean_once(cleaner)
        assert suffixes(log) == {".log", ".index", ".deleted"}
        said = [record.getMessage() for record in caplog.records]
        assert said[:2] == [
            "Cleaner 0: Beginning cleaning of log t-0.",
            "Cleaner 0: Building offset map for t-0...",
        ]
        assert (
            "Cleaner 0: Building offset map for log t-0 for 2 segments in offset range [0, 4)."
            in said
        )
        assert any("into 0, retaining deletes." in line for line in said)
        assert "Cleaner 0: Swapping in cleaned segment 0 for segment(s) 0 in log t-0." in said
        assert said[-1].startswith(
            "\n\tLog cleaner thread 0 cleaned log t-0 (dirty section = [0, 4])\n\t0.0 MB of log"
        )
        assert "\tEnd size: 0.0 MB (3 messages)\n" in said[-1]
        assert "25.0% size reduction (25.0% fewer messages)\n" in said[-1]

    def test_several_segments_become_one(self, log: Log) -> None:
        log.config = log.config.override({"segment.bytes": "10000"})
        before = contents(log)
        assert clean_once(cleaner_of(log))
        assert [s.base_offset for s in log.segments] == [0, 4]
        assert contents(log) == before[1:]
        # appends go on, and so does reading from any offset
        put_keys(log, "y")
        assert [m[0] for m in contents(log)] == [1, 2, 3, 4, 5]
        assert log.read(0, 1000).base_offset == 0 and log.read(4, 1000).base_offset == 4

    def test_everything_may_go(self, tmp_path: Path) -> None:
        log = compacted_log(tmp_path, segment_bytes=170)
        put_keys(log, "aaaax")
        cleaner = cleaner_of(log)
        assert clean_once(cleaner)
        assert log.segments[0].size == 0 and log.log_start_offset == 0
        assert [m[0] for m in contents(log)] == [3, 4]
        reopened = open_log(tmp_path, config=log.config)
        assert contents(reopened) == contents(log)

    def test_slices_in_flight_stay_readable_and_caches_right(self, log: Log) -> None:
        view = ConsumerView(ThreadRuntime())
        put(log, (b"a", b"1"), (b"b", b"2"), codec=2)
        log.roll()
        held = [log.read(at, 1000) for at in (0, 2, 4, 5)]
        known = [(part.file.serial, bytes(part.read())) for part in held]
        seen = [view.bytes_to_send(part, 1000) for part in held]
        assert clean_once(cleaner_of(log))
        log.files.remove_due(10**15)
        assert [(part.file.serial, part.read()) for part in held] == known
        assert all(len(each) for each in seen)
        fresh = log.read(0, 1000)
        assert fresh.file.serial not in [serial for serial, _ in known]
        assert known[0][0] != known[2][0]
        assert fresh.file.sendable_until == 0

    def test_old_files_go_after_the_delay(self, tmp_path: Path) -> None:
        clock = FakeClock()
        log = compacted_log(tmp_path, clock, segment_bytes=170, file_delete_delay_ms=1000)
        put_keys(log, "abacx")
        assert clean_once(cleaner_of(log, clock))
        assert ".deleted" in suffixes(log)
        assert log.files.remove_due(clock.now_ms + 999) == 0
        assert log.files.remove_due(clock.now_ms + 1000) > 0
        assert suffixes(log) == {".log", ".index"}

    def test_one_segment_larger_than_the_map(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.setattr(cleaner_module, "max_entries", lambda *_: 2)
        log = compacted_log(tmp_path, segment_bytes=10**6)
        put_keys(log, "abcdeabcdefgh")
        log.roll()
        put_keys(log, "x")
        starts: list[int] = []

        def start(job: Job) -> InlineProcess:
            starts.append(job.first_dirty_offset)
            return InlineProcess(job)

        assert clean_once(cleaner_of(log, start=start))
        assert keys(log) == "abcdefghx"
        assert starts == [0, 2, 4, 6, 8, 10, 12]
        # every checkpoint is the base of a segment: the original stops at another value
        assert recorded(tmp_path) == "0\n1\nt 0 13\n"


class Stuck:
    """A process that never says more than it is told to."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.exit_status: int | None = None
        self.events: list[dict[str, Any]] = []
        self.killed = False
        Stuck.last = self
        for suffix in (".log.cleaned", ".index.cleaned"):
            Path(job.directory, f"{0:020d}{suffix}").touch()

    last: Stuck

    def poll(self) -> list[dict[str, Any]]:
        found, self.events = self.events, []
        return found

    def kill(self) -> None:
        self.killed = True


class TestAborts:
    def begin(self, log: Log, start: Any = Stuck) -> tuple[LogCleaner, Any]:
        cleaner = cleaner_of(log, start=start)
        found = cleaner.grab_filthiest_log(no_bound)
        assert found is not None
        steps = cleaner.clean(found)
        next(steps)()
        assert next(steps) == cleaner_module.POLL_SECONDS
        return cleaner, steps

    def check_over(self, cleaner: LogCleaner, log: Log) -> None:
        assert Stuck.last.killed
        assert cleaner.state(KEY) is State.IDLE
        assert ".cleaned" not in suffixes(log) and ".swap" not in suffixes(log)
        assert cleaner.checkpoint(log) is None

    @pytest.mark.parametrize(
        "act",
        [
            pytest.param(lambda log: log.truncate_to(3), id="truncate"),
            pytest.param(lambda log: log.truncate_to(5), id="truncate nothing"),
            pytest.param(lambda log: log.truncate_fully_and_start_at(7), id="start over"),
            pytest.param(
                lambda log: setattr(log, "config", config(cleanup_policy="delete")), id="policy"
            ),
        ],
    )
    def test_what_changes_the_log_ends_its_cleaning(self, log: Log, act: Any) -> None:
        cleaner, steps = self.begin(log)
        act(log)
        drive(steps)
        self.check_over(cleaner, log)

    def test_by_order(self, log: Log, caplog: Any) -> None:
        caplog.set_level(logging.INFO, "kafka.log.LogCleaner")
        cleaner, steps = self.begin(log)
        cleaner.abort(KEY)
        assert Stuck.last.killed and cleaner.state(KEY) is State.ABORTED
        assert cleaner.grab_filthiest_log(no_bound) is None
        cleaner.abort(KEY)
        drive(steps)
        self.check_over(cleaner, log)
        assert caplog.messages.count(f"The cleaning for partition {KEY} is aborted") == 1

    def test_by_shutdown(self, log: Log) -> None:
        cleaner, steps = self.begin(log)
        steps.close()
        self.check_over(cleaner, log)

    def test_by_deletion(self, log: Log) -> None:
        cleaner, steps = self.begin(log)
        cleaner.deleted(log)
        assert Stuck.last.killed
        log.delete()
        drive(steps)
        assert cleaner.state(KEY) is State.IDLE
        assert not os.path.exists(log.directory)

    @pytest.mark.parametrize("when", ["before", "between", "after"])
    def test_truncation_around_a_swap(self, log: Log, tmp_path: Path, when: str) -> None:
        """Segments cleaned together with the truncated part must not return after a crash."""
        cleaner = cleaner_of(log)
        found = cleaner.grab_filthiest_log(no_bound)
        assert found is not None
        steps = cleaner.clean(found)
        next(steps)()  # the flush
        for _ in range(20):
            wish = next(steps)
            if ".swap" in suffixes(log):
                break
        assert callable(wish)
        if when != "before":
            wish()
        if when == "after":
            next(steps)()
        log.truncate_to(2)
        assert ".swap" not in suffixes(log)
        drive(steps)
        copy = crash_copy(log, tmp_path / "copy")
        assert [m[0] for m in contents(log)] == ([1] if when == "after" else [0, 1])
        reopened = open_log(copy.parent, config=log.config)
        assert contents(reopened) == contents(log)
        assert cleaner.checkpoint(log) is None and cleaner.state(KEY) is State.IDLE

    def test_a_process_that_fails_or_dies(self, log: Log, tmp_path: Path, caplog: Any) -> None:
        clock = FakeClock()
        cleaner = cleaner_of(log, clock, start=Stuck)
        for pause in (60, 120, 240, 480, 960, 1920, 3600, 3600):
            found = cleaner.grab_filthiest_log(no_bound)
            assert found is not None
            steps = cleaner.clean(found)
            next(steps)()
            next(steps)
            if pause == 60:
                Stuck.last.events = [{"error": "no luck"}]
            else:
                Stuck.last.exit_status = -9
            drive(steps)
            self.check_over(cleaner, log)
            text = "no luck" if pause == 60 else "The cleaner process ended with -9"
            assert f"the next try is in {pause} s: {text}" in caplog.messages[-1]
            clock.now_ms += pause * 1000 - 1
            assert cleaner.grab_filthiest_log(no_bound) is None
            clock.now_ms += 1
        cleaner._start = InlineProcess
        assert clean_once(cleaner)
        assert not cleaner._set_aside

    def test_one_bad_log_does_not_stop_the_others(self, log: Log, tmp_path: Path) -> None:
        good = Log(str(tmp_path / "t-1"), log.config, clock=FakeClock())
        put_keys(good, "aaaax")
        with open(log.segments[0].path, "r+b") as file:
            file.seek(50)
            file.write(b"??")
        logs = {KEY: log, good.topic_partition: good}
        cleaner = LogCleaner(
            broker_config(tmp_path), [str(tmp_path)], logs, clock=FakeClock(), start=InlineProcess
        )
        assert clean_once(cleaner) and clean_once(cleaner) and not clean_once(cleaner)
        assert recorded(tmp_path) == "0\n1\nt 1 4\n"

    def test_a_full_disk_while_swapping(self, log: Log, monkeypatch: Any) -> None:
        def fail(_: str) -> None:
            raise OSError("no space left")

        monkeypatch.setattr(cleaner_module, "sync_directory", fail)
        cleaner = cleaner_of(log)
        before = contents(log)
        assert clean_once(cleaner)
        assert contents(log) == before
        assert suffixes(log) == {".log", ".index"}
        assert cleaner.checkpoint(log) is None

    def test_every_state_is_left_somehow(self) -> None:
        assert set(LEGAL_NEXT) == set(State)
        assert all(LEGAL_NEXT.values())


class TestCheckpoint:
    def manager(self, tmp_path: Path, **changes: Any) -> LogManager:
        manager = LogManager(
            broker_config(tmp_path, **changes),
            clock=FakeClock(),
            topic_configs={"t": {"cleanup.policy": "compact"}},
        )
        manager.load()
        if manager.cleaner is not None:
            manager.cleaner._start = InlineProcess
        return manager

    def filled(self, manager: LogManager) -> Log:
        log = manager.create_log(KEY, compacted_config())
        put_keys(log, "abacx")
        return log

    def test_truncation_lowers_it_and_what_follows_is_cleaned(self, tmp_path: Path) -> None:
        manager = self.manager(tmp_path)
        log = self.filled(manager)
        assert manager.cleaner is not None and clean_once(manager.cleaner)
        assert recorded(tmp_path) == "0\n1\nt 0 4\n"
        log.truncate_to(3)
        manager.checkpoint_recovery_points()
        assert recorded(tmp_path) == "0\n1\nt 0 3\n"
        put_keys(log, "bbbyz")
        assert clean_once(manager.cleaner)
        assert keys(log).count("b") == 1
        log.truncate_to(4)  # by the fetchers, who then have this called
        manager.checkpoint_recovery_points()
        assert recorded(tmp_path) == "0\n1\nt 0 4\n"
        manager.close()

    def test_starting_over_resets_it(self, tmp_path: Path) -> None:
        manager = self.manager(tmp_path)
        log = self.filled(manager)
        assert manager.cleaner is not None and clean_once(manager.cleaner)
        log.truncate_fully_and_start_at(2)
        manager.checkpoint_recovery_points()
        assert recorded(tmp_path) == "0\n0\n"
        put_keys(log, "aaaax")
        assert clean_once(manager.cleaner)
        assert keys(log) == "ax"
        manager.close()

    def test_deletion_drops_it(self, tmp_path: Path) -> None:
        manager = self.manager(tmp_path)
        self.filled(manager)
        assert manager.cleaner is not None and clean_once(manager.cleaner)
        manager.delete_log(KEY)
        assert recorded(tmp_path) == "0\n0\n"
        self.filled(manager)
        assert clean_once(manager.cleaner)
        manager.close()
        manager = self.manager(tmp_path)
        assert manager.cleaner is not None
        assert manager.cleaner.checkpoint(manager.logs[KEY]) == 4
        manager.close()

    def test_switched_off(self, tmp_path: Path) -> None:
        manager = self.manager(tmp_path, log_cleaner_enable="false")
        log = self.filled(manager)
        assert manager.cleaner is None
        log.truncate_to(3)
        manager.checkpoint_recovery_points()
        manager.delete_log(KEY)
        manager.close()
        assert not (tmp_path / CHECKPOINT).exists()


def compacted_config() -> Any:
    return config(cleanup_policy="compact", segment_bytes=170, min_cleanable_dirty_ratio=0.0)


class TestSwapRecovery:
    """A crash at each step of the swap leaves the old segments or the cleaned one, never both.
    tests/log/faulty_files.py goes further."""

    def prepared(self, tmp_path: Path) -> tuple[Log, list[Any]]:
        log = compacted_log(tmp_path, segment_bytes=170)
        put_keys(log, "abacadx")
        log.config = log.config.override({"segment.bytes": "10000"})
        return log, contents(log)

    @pytest.mark.parametrize("steps", range(14))
    def test_a_crash_at_each_rename(self, tmp_path: Path, monkeypatch: Any, steps: int) -> None:
        log, before = self.prepared(tmp_path)
        done = die_at_rename(monkeypatch, steps)
        try:
            clean_once(cleaner_of(log))
        except KeyboardInterrupt:
            assert steps < 11
        else:
            assert len(done) == 11 <= steps  # the last one is that of cleaning-times
        copy = crash_copy(log, tmp_path / "copy")
        monkeypatch.undo()
        for _ in range(2):
            found = open_log(copy.parent, config=log.config)
            survivors = before[1:2] + before[3:]
            assert contents(found) == (survivors if steps >= 2 else before)
            assert [s.base_offset for s in found.segments] == (
                [0, 6] if steps >= 2 else [0, 2, 4, 6]
            )
            assert found.log_end_offset == log.log_end_offset

    def test_recovery_itself_may_crash(self, tmp_path: Path, monkeypatch: Any) -> None:
        log, before = self.prepared(tmp_path)
        cleaner = cleaner_of(log)
        found = cleaner.grab_filthiest_log(no_bound)
        assert found is not None
        steps = cleaner.clean(found)
        while ".swap" not in suffixes(log):
            wish = next(steps)
            if callable(wish) and ".swap" not in suffixes(log):
                wish()
        copy = crash_copy(log, tmp_path / "copy")
        steps.close()
        for name in ("unlink", "replace"):
            real = getattr(os, name)

            def fail(*args: Any, real: Any = real) -> None:
                real(*args)
                raise KeyboardInterrupt

            for _ in range(3):
                with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
                    patch.setattr(os, name, fail)
                    open_log(copy.parent, config=log.config)
                if name == "replace":
                    break
        reopened = open_log(copy.parent, config=log.config)
        assert contents(reopened) == before[1:2] + before[3:]
        assert [s.base_offset for s in reopened.segments] == [0, 6]


class TestProcess:
    def test_a_real_one(self, log: Log) -> None:
        import time

        cleaner = cleaner_of(
            log, start=CleanerProcess, log_cleaner_io_max_bytes_per_second="1000000"
        )
        found = cleaner.grab_filthiest_log(no_bound)
        assert found is not None
        deadline = time.monotonic() + 30
        for wish in cleaner.clean(found):
            assert time.monotonic() < deadline
            if callable(wish):
                wish()
            else:
                time.sleep(0.01)
        assert keys(log) == "bacx"
        assert cleaner.checkpoint(log) == 4

    def test_killed(self, log: Log) -> None:
        cleaner = cleaner_of(log, start=CleanerProcess, log_cleaner_io_max_bytes_per_second="0.001")
        found = cleaner.grab_filthiest_log(no_bound)
        assert found is not None
        steps = cleaner.clean(found)
        next(steps)()
        next(steps)
        process = cleaner._processes[KEY]
        assert process.exit_status is None
        cleaner.abort(KEY)
        assert process.exit_status == -9
        drive(steps)
        assert keys(log) == "abacx"


def ended_with(steps: Any) -> DiskFailure | None:
    """The result of a cleaning whose requests are all answered at once."""
    error: Exception | None = None
    while True:
        try:
            wish = steps.throw(error) if error else next(steps)
        except StopIteration as end:
            failure: DiskFailure | None = end.value
            return failure
        error = None
        if callable(wish):
            try:
                wish()
            except OSError as found:
                error = found


def test_a_disk_that_dies_at_any_call_of_a_cleaning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    while True:
        directory = tmp_path / str(calls)
        log = compacted_log(directory, segment_bytes=170)
        put_keys(log, "abacx")
        before = contents(log)
        cleaner = cleaner_of(log)
        found = cleaner.grab_filthiest_log(no_bound)
        assert found is not None
        with monkeypatch.context() as patch:
            dead = Dead(patch, str(directory))
            dead.die(after=calls)
            failure = ended_with(cleaner.clean(found))
        assert cleaner.state(KEY) is State.IDLE
        if not dead.met:
            break
        assert failure is not None, calls
        assert (failure.directory, failure.error.errno) == (str(directory), errno.EIO)
        # whatever was done is a whole log to the next broker
        after = contents(open_log(directory, cleanup_policy="compact"))
        assert after in (before, [each for each in before if each[0] != 0]), calls
        calls += 1
    assert failure is None
    assert calls > 10
