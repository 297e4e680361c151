"""The order of syncs: one small case for each order that a crash once broke."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.log.checkpoint import OffsetCheckpoint
from kafka08.log.directory import (
    LOG_DIRS_FILE,
    RECOVERY_POINT_CHECKPOINT_FILE,
    LogDirectory,
)
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.settings.broker import BrokerConfig
from tests.fakes.runtime import FakeClock
from tests.log.support import append, crash_copy, everything, open_log, segment_paths, writable
from tests.message.batches import batch


class Killed(BaseException):
    pass


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what is renamed, cut, removed and synced, in order; but for side files."""
    done: list[str] = []

    def watch(name: str, label: Callable[..., str]) -> None:
        real = getattr(os, name)

        def call(*args: Any) -> Any:
            if not (step := f"{name} {label(*args)}").endswith(".crc32c"):
                done.append(step)
            return real(*args)

        monkeypatch.setattr(os, name, call)

    def of_fd(fd: int, *_: object) -> str:
        return os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))

    def of_path(path: str, *_: object) -> str:
        return os.path.basename(path)

    for name in ("fsync", "ftruncate"):
        watch(name, of_fd)
    for name in ("replace", "unlink"):
        watch(name, of_path)
    return done


def three_segments(tmp_path: Path) -> Log:
    """Offsets 0-1, 2-3, 4-5."""
    log = open_log(tmp_path, segment_bytes=100)
    for _ in range(6):
        append(log, "x" * 24)
    assert [s.base_offset for s in log.segments] == [0, 2, 4]
    return log


def name(base: int) -> str:
    return f"{base:020d}.log"


def test_truncation_drops_the_newest_first_and_syncs_that_before_the_cut(
    tmp_path: Path, trace: list[str]
) -> None:
    log = three_segments(tmp_path)
    trace.clear()
    log.truncate_to(1)
    steps = [step for step in trace if ".index" not in step]
    expected = [f"replace {name(4)}", f"replace {name(2)}", "fsync t-0", f"ftruncate {name(0)}"]
    assert steps[:4] == expected


def test_times_are_cut_once_the_cut_of_their_messages_is_on_disk(
    tmp_path: Path, trace: list[str]
) -> None:
    """A power cut that brings the messages back must not find their times gone."""
    log = open_log(tmp_path)
    for time in (10, 20, 30):
        log.append(writable(batch([(None, b"x", time, [])])))
    log.segments[0].indexes.complete(log.segments[0].newest)
    trace.clear()
    log.truncate_to(1)
    steps = [step for step in trace if ".index" not in step]
    times = name(0).replace(".log", ".timeindex")
    assert steps == [f"ftruncate {name(0)}", f"fsync {name(0)}", f"ftruncate {times}"]


def test_a_torn_time_index_is_replaced_and_not_written_to(tmp_path: Path, trace: list[str]) -> None:
    """A power cut could undo the write but not the file's new length, and leave an entry of the
    torn bytes and zeros."""
    log = open_log(tmp_path)
    for time in (1_400_000_004_600, 1_400_000_004_632, 1_400_000_004_610):
        log.append(writable(batch([(None, b"x", time, [])])))
    log.roll()
    log.append(writable(batch([(None, b"x", 1_400_000_004_640, [])])))
    log.flush()
    (times,) = segment_paths(log.directory, ".timeindex")
    whole = times.read_bytes()
    times.write_bytes(whole[:5])
    trace.clear()
    open_log(tmp_path, recovery_point=3)
    assert trace[:2] == [f"fsync {times.name}.cleaned", f"replace {times.name}.cleaned"]
    assert times.read_bytes() == whole


def test_recovery_drops_what_lies_behind_damage_before_it_cuts(
    tmp_path: Path, trace: list[str]
) -> None:
    log = three_segments(tmp_path)
    path = segment_paths(log.directory)[0]
    path.write_bytes(path.read_bytes()[:-1])
    trace.clear()
    assert open_log(tmp_path).log_end_offset == 1
    steps = [step for step in trace if ".index" not in step]
    expected = [f"replace {name(4)}", f"replace {name(2)}", "fsync t-0", f"ftruncate {name(0)}"]
    assert steps == [*expected, f"fsync {name(0)}"]


def test_a_recovery_killed_before_its_cut_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = three_segments(tmp_path)
    path = segment_paths(log.directory)[0]
    path.write_bytes(path.read_bytes()[:-1])

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(os, "ftruncate", killed)
        open_log(tmp_path)
    again = open_log(tmp_path)
    assert (again.log_end_offset, len(everything(again))) == (1, 1)


def test_a_flush_syncs_what_a_truncation_cut_below_the_recovery_point(
    tmp_path: Path, trace: list[str]
) -> None:
    log = three_segments(tmp_path)
    log.flush()
    log.truncate_to(3)
    log.roll()
    append(log, "new")
    trace.clear()
    log.flush()
    assert f"fsync {name(2)}" in trace
    assert f"fsync {name(3)}" in trace


def test_a_flush_syncs_a_log_that_a_truncation_emptied(tmp_path: Path, trace: list[str]) -> None:
    log = three_segments(tmp_path)
    log.flush()
    log.truncate_to(0)
    trace.clear()
    log.flush()
    assert f"fsync {name(0)}" in trace
    log.truncate_fully_and_start_at(2)
    trace.clear()
    log.flush()
    assert f"fsync {name(2)}" in trace
    trace.clear()
    log.flush()
    assert trace == []


def test_a_cut_that_a_killed_process_did_not_sync_is_synced_by_the_next(
    tmp_path: Path, trace: list[str]
) -> None:
    log = three_segments(tmp_path)
    log.flush()
    log.truncate_to(3)
    log.roll()
    copy = crash_copy(log, tmp_path / "crashed")
    log = open_log(copy.parent, recovery_point=3)
    trace.clear()
    append(log, "new")
    log.flush()
    assert f"fsync {name(2)}" in trace


def test_a_segment_that_reaches_into_the_next_ends_the_log(tmp_path: Path) -> None:
    log = three_segments(tmp_path)
    old = segment_paths(log.directory)[1].read_bytes()
    log.truncate_to(3)
    log.roll()
    append(log, "new")
    segment_paths(log.directory)[1].write_bytes(old)  # a power cut has undone the truncation
    log = open_log(tmp_path, recovery_point=3)
    assert log.log_end_offset == 4
    assert [offset for offset, _ in everything(log)] == [0, 1, 2, 3]


def test_garbage_behind_the_segment_before_the_recovery_point_is_cut(tmp_path: Path) -> None:
    log = three_segments(tmp_path)
    path = segment_paths(log.directory)[1]
    path.write_bytes(path.read_bytes() + b"\x01" * 40)
    log = open_log(tmp_path, recovery_point=4)
    assert [s.size for s in log.segments] == [100, 100, 100]
    assert len(everything(log)) == 6


def test_a_torn_entry_behind_the_segment_before_the_recovery_point_is_cut(tmp_path: Path) -> None:
    """A power cut may bring back the front part of an entry that a truncation had cut."""
    log = three_segments(tmp_path)
    before, active = segment_paths(log.directory)[1:]
    entry = bytearray(active.read_bytes()[:50])
    entry[-4:] = bytes(4)
    before.write_bytes(before.read_bytes() + entry)
    log = open_log(tmp_path, recovery_point=4)
    assert [s.size for s in log.segments] == [100, 100, 100]
    assert len(everything(log)) == 6


@pytest.mark.parametrize("kept", [0, 50])
def test_segments_go_that_follow_a_lost_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kept: int
) -> None:
    """A power cut may take the end of a file, to the byte, and leave the next file. A follower
    would not ask for these messages again."""
    os.truncate(segment_paths(three_segments(tmp_path).directory)[1], kept)
    log = open_log(tmp_path)
    assert [s.size for s in log.segments] == [100, kept]
    assert log.log_end_offset == 2 + kept // 50 == len(everything(log))
    assert "Corruption found" in caplog.text


def test_compaction_leaves_gaps_between_segments(tmp_path: Path) -> None:
    os.truncate(segment_paths(three_segments(tmp_path).directory)[1], 0)
    log = open_log(tmp_path, cleanup_policy="compact")
    assert [offset for offset, _ in everything(log)] == [0, 1, 4, 5]


def test_a_cut_within_a_wrapper_leaves_no_gap_between_segments(tmp_path: Path) -> None:
    log = three_segments(tmp_path)
    append(log, "x", "x", "x", codec=1)
    log.truncate_to(7)  # of the wrapper from 6 to 8
    log.roll()
    append(log, "y")
    assert log.segments[-1].base_offset == 6
    log = open_log(tmp_path)
    assert [offset for offset, _ in everything(log)] == [0, 1, 2, 3, 4, 5, 7]


def test_markers_and_checkpoints_are_gone_or_there_for_good(
    tmp_path: Path, trace: list[str]
) -> None:
    directory = LogDirectory(str(tmp_path))
    directory.mark_clean()
    directory.unmark_clean()
    assert trace == ["unlink .kafka_cleanshutdown", f"fsync {tmp_path.name}"]
    directory.unlock()
    checkpoint = OffsetCheckpoint(str(tmp_path / "points"))
    trace.clear()
    checkpoint.write({})
    assert trace == ["fsync points.tmp", "replace points.tmp", f"fsync {tmp_path.name}"]


def test_a_directory_is_marked_for_good_before_others_name_it(
    tmp_path: Path, trace: list[str]
) -> None:
    """Else a power cut leaves one that seems to be unmounted."""
    log_dirs = f"{tmp_path}/one,{tmp_path}/two"
    properties = {"broker.id": "0", "zookeeper.connect": "none:1", "log.dirs": log_dirs}
    manager = LogManager(
        BrokerConfig.from_properties(properties), clock=FakeClock(), topic_configs={}
    )
    manager.load()
    manager.close()
    steps = [step for step in trace if step.startswith("replace ")]
    marked, named = f"replace {RECOVERY_POINT_CHECKPOINT_FILE}.tmp", f"replace {LOG_DIRS_FILE}.tmp"
    assert steps[:4] == [marked, marked, named, named]


def test_a_checkpoint_left_by_a_killed_process_is_on_disk_before_it_counts(
    tmp_path: Path, trace: list[str]
) -> None:
    offsets = {TopicPartition("t", 0): 7}
    OffsetCheckpoint(str(tmp_path / "starts")).write(offsets)
    next_one = OffsetCheckpoint(str(tmp_path / "starts"))
    trace.clear()
    next_one.update(offsets)
    assert trace == [f"fsync {tmp_path.name}"]
    next_one.update(offsets)
    assert trace == [f"fsync {tmp_path.name}"]


def test_a_torn_end_behind_which_the_log_goes_on_costs_nothing(tmp_path: Path) -> None:
    log = three_segments(tmp_path)
    path = segment_paths(log.directory)[0]
    path.write_bytes(path.read_bytes() + b"torn")  # the cut after a failed append, undone
    log = open_log(tmp_path)
    assert [s.size for s in log.segments] == [100, 100, 100]
    assert len(everything(log)) == 6


def test_a_failed_append_is_cut_for_good_by_the_next_flush(
    tmp_path: Path, trace: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = three_segments(tmp_path)
    log.roll()
    append(log, "kept")
    log.flush()

    def full(*_: object) -> int:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(os, "pwrite", full)
        append(log, "lost")
    log.roll()
    append(log, "next")
    trace.clear()
    log.flush()
    assert f"fsync {name(6)}" in trace
