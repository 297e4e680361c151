"""The time index: its bytes, and its life beside segments that grow, roll, are cut and cleaned."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from kafka08.log.log import Log
from kafka08.log.segments.time_index import ENTRY, MessageTime, TimeIndex, offset_below
from kafka08.message.entry import encode_entry
from tests.fakes.runtime import FakeClock
from tests.log.cleaning.support import clean_once, cleaner_of, compacted_log
from tests.log.faulty_files import Crash, FaultyFiles
from tests.log.support import (
    FullDisk,
    append,
    crash_copy,
    die_at_rename,
    fill,
    no_space,
    open_log,
    writable,
)
from tests.message.batches import batch

VALUE = b"v" * 60


def timed_set(*times: int) -> memoryview:
    return writable(b"".join(encode_entry(b"k", VALUE, timestamp=time) for time in times))


def add(log: Log, *times: int) -> None:
    """One set of format 1 for each time."""
    for time in times:
        log.append(timed_set(time))


def entries(path: str | Path) -> list[tuple[int, int]]:
    return list(ENTRY.iter_unpack(Path(path).read_bytes()))


def time_files(log: Log) -> list[str]:
    return sorted(name for name in os.listdir(log.directory) if "timeindex" in name)


def index_of(tmp_path: Path, *found: tuple[int, int], base: int = 100) -> TimeIndex:
    index = TimeIndex(str(tmp_path / f"{base:020d}.timeindex"), base)
    for timestamp, offset in found:
        index.append(MessageTime(timestamp, offset))
    index.write_out()
    return index


def test_bytes(tmp_path):
    index = index_of(tmp_path, (5, 100), (9, 103))
    assert Path(index.path).read_bytes().hex() == (
        "0000000000000005" + "00000000" + "0000000000000009" + "00000003"
    )
    assert index.last == (9, 103)
    again = TimeIndex(index.path, 100)
    assert (again.entries, again.last) == (2, (9, 103))


def test_only_larger_timestamps_are_added(tmp_path):
    index = index_of(tmp_path)
    assert not index.append(MessageTime(-1, 100))
    assert not os.path.exists(index.path)
    assert index.append(MessageTime(0, 100))
    assert not index.append(MessageTime(0, 101))
    assert index.append(MessageTime(7, 102))
    assert index.entries == 2


@pytest.mark.parametrize("cut", range(99, 112))
def test_truncation(tmp_path, cut):
    found = [(5, 100), (7, 102), (9, 103), (20, 110)]
    index = index_of(tmp_path, *found)
    index.truncate_to(cut)
    left = [each for each in found if each[1] < cut]
    assert index.last == (left[-1] if left else (-1, 100))
    assert [(t, o + 100) for t, o in entries(index.path)] == left
    index.append(MessageTime(30, 120))
    index.write_out()
    assert TimeIndex(index.path, 100).last == (30, 120)


def test_lookup(tmp_path):
    index = index_of(tmp_path, (5, 100), (7, 102), (9, 103))
    for time, offset in ((0, 100), (5, 100), (6, 100), (7, 100), (8, 102), (9, 102), (10, 103)):
        assert offset_below(index.path, 3, 100, time) == offset
    assert offset_below(index.path, 2, 100, 10) == 102
    # the file was cut, or removed, since its entries were counted
    assert offset_below(index.path, 9, 100, 8) == 102
    assert offset_below(index.path + "x", 9, 100, 8) == 100


def test_a_failed_write_leaves_no_entry(tmp_path, monkeypatch):
    index = index_of(tmp_path, (5, 100))
    index.append(MessageTime(9, 101))
    index.append(MessageTime(12, 102))
    assert (index.entries, index.gathered, entries(index.path)) == (3, 2, [(5, 0)])
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", FullDisk(15, 100))
        with pytest.raises(OSError, match="No space"):
            index.write_out()
    assert (index.last, index.gathered, entries(index.path)) == ((12, 102), 2, [(5, 0)])
    index.lose_gathered()
    assert (index.entries, index.last) == (1, (5, 100))
    index.append(MessageTime(13, 103))
    index.write_out()
    assert entries(index.path) == [(5, 0), (13, 3)]


def test_it_is_emptied_on_a_full_disk(tmp_path, monkeypatch):
    index = TimeIndex(str(tmp_path / "0.timeindex"), 0)
    index.append(MessageTime(5, 1))
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", no_space)
        with pytest.raises(OSError, match="No space left"):
            index.replace(b"\0" * 24)
        index.replace(b"")
    assert (index.entries, index.exists) == (0, True)
    assert index.append(MessageTime(3, 1)) and index.last == (3, 1)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", None),
        (ENTRY.pack(5, 0) + ENTRY.pack(7, 2), None),
        (ENTRY.pack(5, 0) + b"x", "its length 13 is not a multiple of 12"),
        (ENTRY.pack(5, 0) + ENTRY.pack(-7, 2), "its last entry (-7, 102) is impossible"),
        (ENTRY.pack(5, 0) + ENTRY.pack(7, -2), "its last entry (7, 98) is impossible"),
        (ENTRY.pack(5, 1) + bytes(12) + ENTRY.pack(7, 2), "its entries do not rise"),
        (ENTRY.pack(5, 1) + ENTRY.pack(7, 1), "its entries do not rise"),
        (bytes(12), "its first entry has only zeros"),
        (bytes(12) + ENTRY.pack(7, 2), "its first entry has only zeros"),
    ],
)
def test_problems(tmp_path, content, problem):
    path = tmp_path / "x"
    path.write_bytes(content)
    assert TimeIndex(str(path), 100).problem(thorough=True) == problem
    assert TimeIndex(str(tmp_path / "y"), 100).problem(thorough=True) is None


# In a log


@pytest.mark.scenario("modern-28")
def test_nothing_is_written_for_format_0(tmp_path):
    log = open_log(tmp_path, segment_bytes=500)
    fill(log, 40)
    log.flush()
    log.truncate_to(30)
    log.roll()
    log.close()
    assert not time_files(log)
    assert not time_files(open_log(tmp_path))


def test_entries_come_with_those_of_the_offset_index_and_at_roll(tmp_path):
    log = open_log(tmp_path)
    add(log, 10, 30, 20, 25, 26, 40)
    (segment,) = log.segments
    assert segment.newest == (40, 5)
    # two sets between two entries of the offset index
    assert segment.index.entries == 2
    assert (segment.time_index.last, entries(segment.time_index.path)) == ((30, 1), [])
    log.settle()
    assert entries(segment.time_index.path) == [(30, 1)]
    log.roll()
    assert entries(segment.time_index.path) == [(30, 1), (40, 5)]
    add(log, 50)
    log.roll()
    second = log.segments[1]
    assert entries(second.time_index.path) == [(50, 0)]
    append(log, "format 0")
    assert log.segments[2].newest == (-1, 7)
    log.roll()
    assert len(time_files(log)) == 2


@pytest.mark.scenario("modern-28")
@pytest.mark.parametrize("clean", [True, False])
def test_a_restart(tmp_path, clean):
    log = open_log(tmp_path)
    add(log, 10, 30, 20, 45, 40)
    log.roll()
    add(log, 5, 6)
    newest = [segment.newest for segment in log.segments]
    if clean:
        log.flush()
        log.close()
        again = open_log(tmp_path, clean_shutdown=True)
    else:
        crash_copy(log, tmp_path / "copy")
        again = open_log(tmp_path / "copy")
    assert [segment.newest for segment in again.segments] == newest == [(45, 3), (6, 6)]
    assert not again.segments[0].time_index.problem(thorough=True)


@pytest.mark.parametrize("clean", [True, False])
def test_without_room_for_it_the_newest_time_is_known(tmp_path, monkeypatch, clean):
    log = open_log(tmp_path)
    add(log, 10, 30, 20, 45, 40)
    log.roll()
    add(log, 50, 51, 52)
    log.flush()
    log.close()
    for segment in log.segments:
        os.unlink(segment.time_index.path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", no_space)
        again = open_log(tmp_path, clean_shutdown=clean)
    assert [segment.time_index.entries for segment in again.segments] == [0, 0]
    assert [segment.newest for segment in again.segments] == [(45, 3), (52, 7)]
    assert [segment.largest_timestamp for segment in again.segments] == [45, 52]


@pytest.mark.scenario("modern-28")
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("content", [None, b"", b"torn", bytes(24)])
def test_a_missing_or_torn_file_is_made_again(tmp_path, clean, content):
    log = open_log(tmp_path)
    add(log, 10, 30, 20, 45, 40)
    log.roll()
    add(log, 50, 51, 52)
    paths = [segment.time_index.path for segment in log.segments]
    log.flush()
    log.close()
    for path in paths:
        if content is None:
            os.unlink(path)
        else:
            Path(path).write_bytes(content)
    again = open_log(tmp_path, clean_shutdown=clean)
    assert [segment.newest for segment in again.segments] == [(45, 3), (52, 7)]
    assert entries(paths[0])[-1] == (45, 3)


@pytest.mark.parametrize("cut", range(10))
def test_truncation_of_a_log(tmp_path, cut):
    times = [10, 30, 20, 45, 40, 50, 5, 60, 7]
    log = open_log(tmp_path, index_interval_bytes=250)
    add(log, *times[:6])
    log.roll()
    add(log, *times[6:])
    log.truncate_to(cut)
    left = times[:cut]
    newest = max((segment.newest for segment in log.segments), key=lambda each: each[0])
    assert newest == ((max(left), left.index(max(left))) if left else (-1, 0))
    assert len([n for n in time_files(log) if n.endswith("timeindex")]) <= len(log.segments)
    add(log, 70)
    assert log.segments[-1].newest == (70, log.log_end_offset - 1)


@pytest.mark.parametrize("cut", range(9))
@pytest.mark.parametrize("clean", [True, False])
def test_a_cut_within_a_set_keeps_the_times_before_it(tmp_path, cut, clean):
    """The entry of a set stands for the messages before it too."""
    times = [10, 30, 20, 65, 40, 35, 60, 7, 70]
    log = open_log(tmp_path, index_interval_bytes=400)
    for begin in range(0, len(times), 3):
        log.append(timed_set(*times[begin : begin + 3]))
    log.truncate_to(cut)
    left = times[:cut]
    newest = (max(left), left.index(max(left))) if left else (-1, 0)
    assert log.segments[-1].newest == newest
    log.flush()
    log.close()
    assert open_log(tmp_path, clean_shutdown=clean).segments[-1].newest == newest


def test_deletion_and_the_leftovers_of_a_crash(tmp_path):
    clock = FakeClock()
    log = open_log(tmp_path, clock, retention_bytes=0, file_delete_delay_ms=0)
    add(log, 10, 20)
    log.roll()
    log.delete_old_segments()
    assert [name.endswith(".timeindex.deleted") for name in time_files(log)] == [True]
    log.files.remove_due(clock.millis())
    assert not time_files(log)
    directory = Path(log.directory)
    (directory / f"{77:020d}.timeindex").write_bytes(bytes(12))
    log.close()
    assert not time_files(open_log(tmp_path))


def test_a_stale_file_of_a_new_segments_name(tmp_path):
    log = open_log(tmp_path)
    add(log, 10)
    Path(log.directory, f"{1:020d}.timeindex").write_bytes(ENTRY.pack(99, 3))
    log.roll()
    assert log.segments[1].newest == (-1, 1)


def test_times_of_a_roll_during_a_flush_are_synced_by_the_next(tmp_path, monkeypatch):
    log = open_log(tmp_path, index_interval_bytes=1 << 20)
    add(log, 10)
    path = log.segments[0].time_index.path
    synced = []

    def roll_meanwhile(fd):
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        if len(log.segments) == 1:
            log.roll()

    monkeypatch.setattr(os, "fsync", roll_meanwhile)
    log.flush()
    assert path not in synced
    add(log, 20)
    log.flush()
    assert path in synced


def test_a_new_file_is_synced_with_its_name(tmp_path):
    log = open_log(tmp_path)
    log.flush()
    add(log, 10)
    changes = log.files.changes
    add(log, 20, 30)
    assert log.files.changes == changes + 1
    add(log, 40, 50)
    assert log.files.changes == changes + 1
    files = log.segments[0].open_for_sync()
    assert len(files) == 3


def keyed(*pairs: tuple[bytes, int]) -> memoryview:
    return writable(b"".join(encode_entry(key, VALUE, timestamp=t) for key, t in pairs))


def test_compaction(tmp_path):
    log = compacted_log(tmp_path, segment_bytes=600)
    log.append(keyed((b"a", 90), (b"b", 20)))
    log.append(writable(batch([(b"c", VALUE, 0, []), (b"a", VALUE, 5, [])], codec=1, time=30)))
    log.append(keyed((b"a", 10)))
    log.append(keyed((b"d", 40)))
    log.roll()
    log.append(keyed((b"e", 50)))
    assert clean_once(cleaner_of(log))
    cleaned = log.segments[0]
    assert cleaned.newest == (40, 5)
    assert entries(cleaned.time_index.path)[-1] == (40, 5)
    assert not cleaned.time_index.problem(thorough=True)
    log.flush()
    log.close()
    again = open_log(tmp_path, clean_shutdown=True)
    assert again.segments[0].newest == (40, 5)
    assert not [name for name in os.listdir(log.directory) if name.endswith((".swap", ".cleaned"))]


@pytest.mark.parametrize("steps", range(17))
def test_a_crash_at_each_rename_of_a_swap(tmp_path, monkeypatch, steps):
    log = compacted_log(tmp_path, segment_bytes=200)
    for number, key in enumerate([b"a", b"b", b"a", b"c", b"a", b"d", b"x"]):
        log.append(keyed((key, 90 - number)))
    log.config = log.config.override({"segment.bytes": "10000"})
    die_at_rename(monkeypatch, steps)
    try:
        clean_once(cleaner_of(log))
    except KeyboardInterrupt:
        assert steps < 16
    copy = crash_copy(log, tmp_path / "copy")
    monkeypatch.undo()
    for clean in (False, True):
        found = open_log(copy.parent, config=log.config, clean_shutdown=clean)
        is_cleaned = len(found.segments) < 4
        assert is_cleaned or steps < 3
        assert found.segments[0].newest == ((89, 1) if is_cleaned else (90, 0))
        assert found.segments[-1].newest == (84, 6)
        found.flush()
        found.close()


# Retention, rolling and compaction

YEAR_MS = 365 * 24 * 3600 * 1000
HOUR_MS = 3600 * 1000


@pytest.mark.scenario("modern-29")
def test_retention_by_the_newest_message(tmp_path):
    clock = FakeClock()
    now = clock.millis()
    log = open_log(tmp_path, clock, retention_ms=HOUR_MS, segment_ms=2 * YEAR_MS)
    for times in ([now - YEAR_MS, now - HOUR_MS - 1], [now - YEAR_MS, now], [now - YEAR_MS]):
        add(log, *times)
        log.roll()
    # the second one keeps those behind it
    assert log.delete_old_segments() == 1
    assert log.log_start_offset == 2
    clock.now_ms += HOUR_MS + 1
    assert log.delete_old_segments() == 2
    assert log.log_start_offset == log.log_end_offset == 5


def test_a_message_of_the_future_is_kept(tmp_path):
    clock = FakeClock()
    log = open_log(tmp_path, clock, retention_ms=HOUR_MS)
    add(log, clock.millis() + YEAR_MS)
    log.roll()
    clock.now_ms += YEAR_MS
    assert log.delete_old_segments() == 0
    clock.now_ms += HOUR_MS + 1
    assert log.delete_old_segments() == 1


@pytest.mark.scenario("modern-29")
@pytest.mark.parametrize("restart", [None, False, True])
def test_messages_of_format_0_are_as_old_as_their_file(tmp_path, restart):
    """Also beside messages that say that they are old."""
    clock = FakeClock()
    now = clock.millis()
    log = open_log(tmp_path, clock, retention_ms=HOUR_MS)
    add(log, now - YEAR_MS)
    append(log, "format 0")
    log.roll()
    append(log, "format 0")
    log.roll()
    if restart is not None:
        log.flush()
        log.close()
        log = open_log(tmp_path, clock, config=log.config, clean_shutdown=restart)
    for segment in log.segments:
        os.utime(segment.path, (clock.now - 3600, clock.now - 3600))
    assert log.delete_old_segments() == 0
    clock.now_ms += 1
    assert log.delete_old_segments() == 2


def test_rolling_by_the_times_of_messages(tmp_path):
    clock = FakeClock()
    log = open_log(tmp_path, clock, segment_ms=HOUR_MS)
    add(log, 1000, 500)
    clock.now_ms += 2 * HOUR_MS
    add(log, 1000 + HOUR_MS)
    assert [segment.base_offset for segment in log.segments] == [0]
    add(log, 1001 + HOUR_MS)
    assert [segment.base_offset for segment in log.segments] == [0, 3]
    log.close()
    log = open_log(tmp_path, clock, config=log.config, clean_shutdown=True)
    add(log, 1001 + 2 * HOUR_MS)
    add(log, 7, 1002 + 2 * HOUR_MS)
    assert [segment.base_offset for segment in log.segments] == [0, 3, 6]
    # without a timestamp the age counts from when the segment was opened
    clock.now_ms += HOUR_MS
    append(log, "a")
    assert len(log.segments) == 3
    clock.now_ms += 1
    append(log, "a")
    assert [segment.base_offset for segment in log.segments] == [0, 3, 6, 8]


def test_a_cut_segment_has_another_first_message(tmp_path):
    log = open_log(tmp_path, segment_ms=HOUR_MS)
    add(log, 1000, 2000)
    log.truncate_to(0)
    add(log, HOUR_MS, 1001 + HOUR_MS)
    assert len(log.segments) == 1
    assert log.segments[0].first_timestamp == HOUR_MS


def test_the_entry_of_a_roll_is_synced_by_the_next_flush(tmp_path):
    """Without anything else of the segment to sync."""
    log = open_log(tmp_path)
    add(log, 10)
    log.flush()
    log.roll()
    synced = []
    real = os.fsync

    def fsync(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        real(fd)

    add(log, 20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        log.flush()
    assert log.segments[0].time_index.path in synced
    assert log.directory in synced


def test_a_lost_entry_of_a_roll_is_found_again(tmp_path):
    """After a power cut: all of the segment was on disk before it was rolled."""
    log = open_log(tmp_path)
    add(log, 10, 20, 30, 40)
    log.flush()
    point = log.recovery_point
    log.roll()
    path = Path(log.segments[0].time_index.path)
    copy = crash_copy(log, tmp_path / "copy")
    path = copy / path.name
    path.write_bytes(path.read_bytes()[:-12])
    again = open_log(tmp_path / "copy", recovery_point=point)
    assert again.segments[0].newest == (40, 3)
    assert entries(path)[-1] == (40, 3)


@pytest.mark.parametrize("ahead", range(1, 13))
def test_a_crash_while_the_indexes_are_rebuilt(tmp_path, ahead):
    """The next start knows the newest message, whatever the one before it had done."""
    with FaultyFiles(str(tmp_path), lambda: 1_000_000, random.Random(1)) as files:
        log = open_log(tmp_path)
        add(log, 90, 20, 30, 40)
        log.flush()
        point = log.recovery_point
        log.roll()
        add(log, 50)
        Path(log.segments[0].index.path).write_bytes(b"\xff" * 16)
        files.crash_at = files.calls + ahead
        with pytest.raises(Crash):
            open_log(tmp_path, recovery_point=point)
            raise Crash  # all was done before that call
        files.revive(power_cut=False)
        again = open_log(tmp_path, recovery_point=point)
        assert again.segments[0].newest == (90, 0)


@pytest.mark.parametrize("codec", [0, 1])
@pytest.mark.parametrize("claim", [-1, 0, 10 * YEAR_MS, 100 * YEAR_MS])
def test_the_newest_time_a_producer_claims_does_not_matter(tmp_path, claim, codec):
    """Neither to retention nor to rolling, nor to the time index."""
    clock = FakeClock()
    now = clock.millis()
    log = open_log(tmp_path, clock, retention_ms=HOUR_MS, segment_ms=HOUR_MS)
    records = [(b"k", b"v" * 60, delta, []) for delta in (0, -5, -3)]
    for at in (now, now + 1):
        log.append(writable(batch(records, 0, codec, time=at, max_timestamp=claim)))
    assert len(log.segments) == 1
    assert log.segments[0].newest == (now + 1, 5)
    assert log.segments[0].largest_timestamp == now + 1
    log.roll()
    assert log.segments[0].time_index.last == (now + 1, 5)
    clock.now_ms += HOUR_MS
    assert log.delete_old_segments() == 0
    clock.now_ms += 2
    assert log.delete_old_segments() == 1


@pytest.mark.parametrize("claim", [-1, 0, 1])
@pytest.mark.parametrize("first", [True, False])
def test_batches_that_were_stored_with_a_wrong_time_are_as_old_as_their_file(
    tmp_path, claim, first
):
    clock = FakeClock()
    now = clock.millis()
    log = open_log(tmp_path, clock, retention_ms=HOUR_MS, segment_ms=2 * YEAR_MS)
    add(log, now - YEAR_MS)
    wrong = batch([(b"k", b"v", 0, [])], 1, time=now, max_timestamp=claim)
    right = encode_entry(b"k", b"v", 2, timestamp=now - YEAR_MS)
    for data in (wrong, right)[: 2 if first else 1]:
        log.append(writable(data), assign_offsets=False)
    log.flush()
    log.close()
    log = open_log(tmp_path, clock, config=log.config, clean_shutdown=True)
    os.utime(log.segments[0].path, (now / 1000, now / 1000))
    log.roll()
    assert log.segments[0].largest_timestamp == now
