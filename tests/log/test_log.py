"""One log: what it stores, refuses, returns, rolls, truncates, deletes and syncs."""

from __future__ import annotations

import errno
import os
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import (
    InvalidMessageError,
    KafkaError,
    MessageSetSizeTooLargeError,
    MessageSizeTooLargeError,
    OffsetOutOfRangeError,
    UnknownError,
)
from kafka08.log import log as log_module
from kafka08.log.log import Log
from kafka08.log.numbering import NOTHING_APPENDED
from kafka08.log.tail import FRESH_MS
from kafka08.message.scan import iter_entries
from kafka08.message.sets import encode_set, iter_messages
from tests.fakes.runtime import FakeClock
from tests.log.support import (
    append,
    everything,
    fill,
    no_room_for_files,
    no_room_to_grow,
    no_space,
    open_log,
    segment_paths,
    values,
    writable,
)
from tests.message.batches import timed


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


# Append


def test_append_reports_and_stores(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    data = encode_set(values("a", "b"))
    assert log.append(writable(data)) == (0, 1, 2, len(data), 0, False, None, -1)
    info = append(log, "c", "d", "e", codec=1)
    assert (info.first_offset, info.last_offset, info.count, info.codec) == (2, 4, 3, 1)
    stored = segment_paths(log.directory)[0].read_bytes()
    assert [entry.offset for entry in iter_entries(stored)] == [0, 1, 4]
    assert everything(log) == list(enumerate("abcde"))


def test_partial_tail_is_cut_and_nothing_whole_is_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    data = encode_set(values("a", "b"))
    assert log.append(writable(data[:-1])).count == 1
    assert log.append(writable(data[:20])) == NOTHING_APPENDED
    assert log.append(writable(b"")) == NOTHING_APPENDED
    assert everything(log) == [(0, "a")]


def corrupt(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


CORRUPT = encode_set(values("good")) + corrupt(encode_set(values("bad")))


@pytest.mark.parametrize(
    ("data", "error", "as_leader"),
    [
        (CORRUPT, InvalidMessageError, True),
        (CORRUPT, InvalidMessageError, False),
        (encode_set(values("good", "x" * 1000)), MessageSizeTooLargeError, True),
        (encode_set(values(*["x" * 200] * 5)), MessageSetSizeTooLargeError, True),
    ],
)
def test_after_an_error_nothing_is_in_the_log(
    tmp_path: Path, data: bytes, error: type[KafkaError], as_leader: bool
) -> None:
    log = open_log(tmp_path, max_message_bytes=600, segment_bytes=1000)
    with pytest.raises(error) as caught:
        log.append(writable(data), assign_offsets=as_leader)
    assert caught.type is error
    assert (log.size, log.log_end_offset) == (0, 0)
    append(log, "next")
    assert everything(log) == [(0, "next")]


@pytest.mark.parametrize("texts", [["good", "x" * 1000], ["x" * 200] * 5])
def test_a_follower_stores_what_is_larger_than_its_leader_takes_now(
    tmp_path: Path, texts: list[str]
) -> None:
    log = open_log(tmp_path, max_message_bytes=600, segment_bytes=1000)
    for first in (0, len(texts)):
        log.append(writable(encode_set(values(*texts), 0, first)), assign_offsets=False)
    assert everything(log) == list(enumerate(texts * 2))
    assert len(segment_paths(log.directory)) == 2


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path)
    append(log, "a")
    real = os.pwrite

    def pwrite(fd: int, data: Any, position: int) -> int:
        if position > 30:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data[:5], position)

    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(OSError, match="No space"):
        append(log, "b" * 100)
    monkeypatch.undo()
    assert log.log_end_offset == 1
    assert log.size == os.path.getsize(segment_paths(log.directory)[0])
    append(log, "c")
    assert everything(log) == [(0, "a"), (1, "c")]


def test_follower_keeps_offsets(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    data = encode_set(values("a", "b", "c"), 2, 7) + encode_set(values("d"), 0, 20)
    info = log.append(writable(data), assign_offsets=False)
    assert (info.last_offset, log.log_end_offset) == (20, 21)
    assert everything(log) == [(7, "a"), (8, "b"), (9, "c"), (20, "d")]


def test_follower_may_not_fall_behind_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(writable(encode_set(values("a"), 0, 15)), assign_offsets=False)
    with pytest.raises(KafkaError, match="Out of order"):
        log.append(writable(encode_set(values("b"), 0, 12)), assign_offsets=False)
    assert log.log_end_offset == 16


def test_normalised_sets_become_one_wrapper(tmp_path: Path) -> None:
    log = open_log(tmp_path, compressed_sets="normalised")
    append(log, "a")
    data = encode_set(values("b", "c"), 1) + encode_set(values("d")) + encode_set(values("e"), 2)
    info = log.append(writable(data))
    stored = segment_paths(log.directory)[0].read_bytes()
    assert [(e.offset, e.codec) for e in iter_entries(stored)] == [(0, 0), (4, 2)]
    assert (info.first_offset, info.last_offset, info.count) == (1, 4, 4)
    assert log.size == len(stored)
    assert everything(log) == list(enumerate("abcde"))


def test_normalised_set_too_large_after_repacking(tmp_path: Path) -> None:
    log = open_log(tmp_path, compressed_sets="normalised", max_message_bytes=150)
    parts = [encode_set([(None, os.urandom(60))], 1) for _ in range(3)]
    with pytest.raises(MessageSizeTooLargeError):
        log.append(writable(b"".join(parts)))
    assert log.size == 0


def test_flush_messages(tmp_path: Path) -> None:
    log = open_log(tmp_path, flush_messages=3)
    append(log, "a", "b")
    assert log.recovery_point == 0
    append(log, "c")
    assert log.recovery_point == 3


# Roll


def test_rolls_when_the_set_does_not_fit(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=100)
    sizes = [append(log, "x" * 24).rolled for _ in range(5)]  # 50 bytes each
    assert sizes == [False, False, True, False, True]
    assert bases(log) == [0, 2, 4]
    assert [path.stem for path in segment_paths(log.directory)] == [
        f"{base:020d}" for base in (0, 2, 4)
    ]


def test_rolls_by_age_since_opening_not_when_empty(tmp_path: Path) -> None:
    clock = FakeClock()
    log = open_log(tmp_path, clock, segment_ms=1000)
    clock.now_ms += 5000
    assert not append(log, "a").rolled or not log.size
    clock.now_ms += 1001
    assert append(log, "b").rolled
    clock.now_ms += 1000
    assert not append(log, "c").rolled
    log.flush()
    log.close()
    clock.now_ms += 1000
    log = open_log(tmp_path, clock, segment_ms=1000, clean_shutdown=True)
    clock.now_ms += 1000
    assert not append(log, "d").rolled


def test_jitter_brings_the_roll_forward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module.random, "getrandbits", lambda bits: 1_000_000_300)
    clock = FakeClock()
    log = open_log(tmp_path, clock, segment_ms=2000, segment_jitter_ms=1000)
    append(log, "a")
    clock.now_ms += 1700
    assert not append(log, "b").rolled
    clock.now_ms += 1
    assert append(log, "c").rolled


def test_rolls_when_the_index_is_full(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_index_bytes=16, index_interval_bytes=0)
    assert [append(log, "x").rolled for _ in range(5)] == [False, False, False, True, False]


def test_rolls_before_relative_offsets_overflow(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, "a")
    last = (1 << 31) - 1
    assert not log.append(writable(encode_set(values("b"), 0, last)), assign_offsets=False).rolled
    assert log.append(writable(encode_set(values("c"), 0, last + 1)), assign_offsets=False).rolled
    assert log.read(5, 100).position == 27


def test_roll_trims_the_old_index_and_removes_files_in_the_way(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=0)
    fill(log, 3)
    stray = Path(log.directory) / f"{3:020d}.index"
    stray.write_bytes(b"garbage")
    assert log.roll()
    assert not log.roll()
    lengths = [path.stat().st_size for path in segment_paths(log.directory, ".index")]
    assert lengths == [16, 1024]
    assert stray.read_bytes() == bytes(1024)


# Read


def test_read_at_the_end_and_out_of_range(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 3)
    log.truncate_fully_and_start_at(10)
    fill(log, 2)
    found = log.read(12, 100)
    assert (len(found), found.base_offset, found.position) == (0, 10, log.size)
    assert len(log.read(12, -1)) == 0
    for offset in (9, 13):
        with pytest.raises(OffsetOutOfRangeError, match="range 10 to 12"):
            log.read(offset, 100)
    with pytest.raises(UnknownError):
        log.read(10, -1)
    assert len(log.read(10, 0)) == 0


def test_a_log_that_must_begin_elsewhere_on_a_full_disk(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=200)
    fill(log, 9)
    assert len(log.segments) > 2
    with no_room_for_files(), pytest.raises(OSError, match="No space left"):
        log.truncate_fully_and_start_at(20)
    assert (log.first_offset, log.log_end_offset, log.size) == (0, 0, 0)
    assert everything(log) == []
    log.truncate_fully_and_start_at(20)
    assert append(log, "a").first_offset == 20
    assert bases(log) == [20] and everything(log) == [(20, "a")]


@pytest.mark.parametrize("start", [0, 5])
def test_nothing_is_deleted_in_a_log_that_begins_anew(tmp_path: Path, start: int) -> None:
    log = open_log(tmp_path)
    fill(log, 4)
    log.delete_records(2)
    log.truncate_fully_and_start_at(start)
    assert (log.deleted_until, log.first_offset, log.log_end_offset) == (0, start, start)


def test_read_never_crosses_a_segment_and_cuts_anywhere(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=100)
    for _ in range(4):
        append(log, "x" * 24)
    found = log.read(1, 1000)
    assert (found.base_offset, found.position, len(found)) == (0, 50, 50)
    assert len(log.read(0, 33)) == 33


def test_what_was_appended_a_moment_ago_is_fresh(tmp_path: Path) -> None:
    clock = FakeClock()
    log = open_log(tmp_path, clock=clock)
    assert log.is_fresh(0)  # nothing is there to be read
    ends = []
    for _ in range(6):
        append(log, "a")
        ends.append(log.log_end_offset)
        clock.now_ms += FRESH_MS // 2
    assert ends == [1, 2, 3, 4, 5, 6]
    # periods began three, two and one ago, with the offsets 0, 2 and 4
    assert [log.is_fresh(offset) for offset in range(7)] == [False] * 2 + [True] * 5
    clock.now_ms += FRESH_MS
    assert [log.is_fresh(offset) for offset in range(7)] == [False] * 6 + [True]
    append(log, "a")
    assert [log.is_fresh(offset) for offset in (5, 6, 7)] == [False, True, True]
    clock.now_ms -= 3_600_000  # set back
    assert [log.is_fresh(offset) for offset in (5, 6, 7)] == [False, False, True]
    append(log, "a")
    assert [log.is_fresh(offset) for offset in (6, 7)] == [False, True]


def test_nothing_is_fresh_after_a_start(tmp_path: Path) -> None:
    fill(open_log(tmp_path), 3)
    log = open_log(tmp_path)
    append(log, "a")
    assert [log.is_fresh(offset) for offset in (0, 2, 3)] == [False, False, True]


def test_the_segment_of_an_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=100)
    for _ in range(4):
        append(log, "x" * 24)
    bases = [segment and segment.base_offset for segment in map(log.segment_of, range(-1, 5))]
    assert bases == [None, 0, 0, 2, 2, None]
    log.delete()
    assert log.segment_of(1) is None


def test_read_is_bounded_by_the_high_watermark(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, "a")
    append(log, "b", "c", "d", codec=3)
    append(log, "e")

    def offsets(start: int, hw: int) -> list[int]:
        return [message.offset for message in iter_messages(log.read(start, 1000, hw).read())]

    assert offsets(0, 5) == offsets(0, 99) == [0, 1, 2, 3, 4]
    assert offsets(0, 4) == [0, 1, 2, 3]
    assert offsets(0, 3) == offsets(0, 2) == offsets(0, 1) == [0]  # the wrapper is withheld
    assert offsets(2, 4) == [1, 2, 3]  # and given whole
    assert offsets(0, 0) == offsets(3, 1) == []


def test_read_skips_to_the_next_segment_over_a_gap(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, "a")
    log.roll()
    log.append(writable(encode_set(values("z"), 0, 50)), assign_offsets=False)
    (Path(log.directory) / f"{0:020d}.log").write_bytes(b"")  # compacted away
    log.close()
    log = open_log(tmp_path, clean_shutdown=True)
    assert bases(log) == [0, 1]
    for offset in (0, 1, 20, 50):
        assert [m.offset for m in iter_messages(log.read(offset, 100).read())] == [50]
    assert len(log.read(0, 100, 50)) == 0


# Truncate


def test_truncate_takes_a_whole_wrapper_and_keeps_the_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, "a")
    append(log, "b", "c", "d", codec=1)
    log.flush()
    log.truncate_to(3)
    assert (log.log_end_offset, log.recovery_point) == (3, 3)
    assert everything(log) == [(0, "a")]
    assert len(log.read(3, 100)) == 0
    log.append(writable(encode_set(values("b", "c", "d"), 1, 1)), assign_offsets=False)
    assert everything(log) == [(0, "a"), (1, "b"), (2, "c"), (3, "d")]


def test_truncate_over_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=100, index_interval_bytes=0)
    for i in range(6):
        append(log, f"{i}" * 24)
    log.truncate_to(99)
    assert log.log_end_offset == 6
    log.truncate_to(3)
    assert (bases(log), log.log_end_offset) == ([0, 2], 3)
    assert len(list(Path(log.directory).glob("*.deleted"))) == 2
    assert [path.stat().st_size for path in segment_paths(log.directory, ".index")] == [8, 1024]
    assert not append(log, "x" * 24).rolled
    assert [offset for offset, _ in everything(log)] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="negative"):
        log.truncate_to(-1)


def test_truncate_below_the_start_empties(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.truncate_fully_and_start_at(10)
    fill(log, 2)
    log.flush()
    log.truncate_to(5)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (5, 5, 5)
    assert not everything(log)


@pytest.mark.parametrize(
    ("where", "segments"), [("offset index", 1), ("offset index", 2), ("time index", 1)]
)
def test_on_a_full_disk_a_truncation_moves_the_end_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, segments: int
) -> None:
    """Otherwise what comes next would be appended with a gap before it: a follower of a compacted
    log takes a message that it lacks for one that its own cleaner removed."""
    log = open_log(tmp_path, cleanup_policy="compact", index_interval_bytes=100)
    for number in range(4):
        log.append(writable(timed([(b"k%d" % number, b"v")], time=1000 + number)))
        if number == 1 and segments == 2:
            log.roll()
    log.settle()
    with ExitStack() as full:
        if where == "offset index":
            full.enter_context(no_room_to_grow())
        else:
            full.enter_context(monkeypatch.context()).setattr(os, "pwrite", no_space)
        with pytest.raises(OSError, match="No space"):
            log.truncate_to(2)
    assert (log.log_end_offset, log.recovery_point) == (2, 0)
    assert [offset for offset, _ in everything(log)] == [0, 1]
    assert log.append(writable(timed([(b"k", b"v")], time=2000))).first_offset == 2
    again = open_log(tmp_path, cleanup_policy="compact", index_interval_bytes=100)
    assert [offset for offset, _ in everything(again)] == [0, 1, 2]


def test_truncated_to_nothing_starts_its_age_anew(tmp_path: Path) -> None:
    clock = FakeClock()
    log = open_log(tmp_path, clock, segment_ms=1000)
    append(log, "a")
    clock.now_ms += 900
    log.truncate_to(0)
    append(log, "b")
    clock.now_ms += 900
    assert not append(log, "c").rolled


# Flush


def test_flush_up_to_syncs_the_segments_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path, segment_bytes=100, index_interval_bytes=0)
    for _ in range(5):
        append(log, "x" * 24)
    synced = []
    monkeypatch.setattr(
        os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")[-10:])
    )
    log.flush(up_to=4)
    assert log.recovery_point == 4
    assert synced[:4] == ["000000.log", "0000.index", "000002.log", "0002.index"]
    # the names of new segments, and that of the new directory
    assert [name[-3:] for name in synced[4:]] == ["t-0", str(tmp_path)[-3:]]
    synced.clear()
    log.flush(up_to=3)
    assert not synced
    log.flush()
    assert log.recovery_point == 5
    assert [name[-3:] for name in synced] == ["log", "dex"]


def test_truncation_during_a_flush_keeps_the_recovery_point_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path)
    fill(log, 5)
    monkeypatch.setattr(os, "fsync", lambda fd: log.truncate_to(2))
    log.flush()
    assert log.recovery_point == 0


def test_a_failed_flush_keeps_the_recovery_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path)
    fill(log, 1)

    def broken(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output"):
        log.flush()
    assert log.recovery_point == 0


# Retention


def aged(log: Log, ages_ms: list[int], now: int) -> None:
    for segment, age in zip(log.segments, ages_ms, strict=True):
        os.utime(segment.path, ns=(0, (now - age) * 1_000_000))


def three_segments(tmp_path: Path, clock: FakeClock, **changes: Any) -> Log:
    log = open_log(tmp_path, clock, segment_bytes=100, **{"retention_ms": 1 << 50, **changes})
    for _ in range(5):
        append(log, "x" * 24)
    assert bases(log) == [0, 2, 4]
    return log


def test_retention_by_time(tmp_path: Path) -> None:
    clock = FakeClock()
    log = three_segments(tmp_path, clock, retention_ms=1000)
    aged(log, [5000, 1000, 5000], clock.now_ms)
    assert log.delete_old_segments() == 1
    assert bases(log) == [2, 4]
    assert (log.log_start_offset, log.recovery_point) == (2, 0)


def test_a_negative_retention_keeps_for_ever(tmp_path: Path) -> None:
    clock = FakeClock()
    log = three_segments(tmp_path, clock, retention_ms=-1)
    aged(log, [10**10, 10**9, 5000], clock.now_ms)
    assert log.delete_old_segments() == 0
    log.config = log.config.replace(retention_ms=0)
    assert log.delete_old_segments() == 3


def test_retention_may_take_all_but_not_an_empty_active_segment(tmp_path: Path) -> None:
    clock = FakeClock()
    log = three_segments(tmp_path, clock, retention_ms=1000)
    aged(log, [5000, 5000, 5000], clock.now_ms)
    assert log.delete_old_segments() == 3
    assert (bases(log), log.log_end_offset, log.size) == ([5], 5, 0)
    aged(log, [5000], clock.now_ms)
    assert log.delete_old_segments() == 0
    append(log, "y")
    assert everything(log) == [(5, "y")]


@pytest.mark.parametrize(
    ("retention_bytes", "left"),
    [(-1, [0, 2, 4]), (250, [0, 2, 4]), (151, [0, 2, 4]), (150, [2, 4]), (49, [4]), (0, [5])],
)
def test_retention_by_size(tmp_path: Path, retention_bytes: int, left: list[int]) -> None:
    log = three_segments(tmp_path, FakeClock(), retention_bytes=retention_bytes)
    log.delete_old_segments()
    assert bases(log) == left


def test_deleted_files_go_after_the_delay_and_slices_stay_readable(tmp_path: Path) -> None:
    clock = FakeClock()
    log = three_segments(tmp_path, clock, retention_bytes=150, file_delete_delay_ms=60_000)
    found = log.read(0, 1000)
    before = found.read()
    log.delete_old_segments()
    names = sorted(os.listdir(log.directory))
    assert names[:2] == [f"{0:020d}.index.deleted", f"{0:020d}.log.deleted"]
    assert log.files.remove_due(clock.now_ms + 59_999) == 0
    assert log.files.remove_due(clock.now_ms + 60_000) == 2
    assert log.files.remove_due(clock.now_ms + 99_999) == 0
    assert f"{0:020d}.log.deleted" not in os.listdir(log.directory)
    assert found.read() == before


def test_delete_removes_the_directory(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 3)
    log.truncate_to(0)
    log.delete()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("change", ["made", "removed"])
def test_delete_while_a_flush_changes_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    log = open_log(tmp_path)
    fill(log, 3)
    remove, due = os.unlink, [change]

    def unlink(name: str, **options: Any) -> None:
        now = due.pop() if due else ""
        if now == "made":
            Path(log.directory, "made").touch()
        elif now == "removed":
            remove(name, **options)
        remove(name, **options)

    monkeypatch.setattr(os, "unlink", unlink)
    log.delete()
    assert os.listdir(tmp_path) == []


def test_flush_after_deletion_does_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 3)
    log.delete()
    log.flush()
    assert os.listdir(tmp_path) == []


def test_flush_does_without_a_lost_index(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=0)
    fill(log, 3)
    os.unlink(log.segments[0].index.path)
    log.flush()
    assert log.recovery_point == 3


def test_flush_on_another_thread_while_appending_rolling_and_truncating(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=500, index_interval_bytes=0)
    done = threading.Event()
    failures: list[BaseException] = []

    def flusher() -> None:
        try:
            while not done.is_set():
                log.flush()
                log.files.remove_due(1 << 62)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=flusher)
    thread.start()
    for number in range(300):
        fill(log, 1)
        if number % 20 == 19:
            log.truncate_to(log.log_end_offset - 5)
        assert log.recovery_point <= log.log_end_offset
    done.set()
    thread.join()
    assert not failures
    log.flush()
    assert log.recovery_point == log.log_end_offset == 300 - 15 * 5
    assert [offset for offset, _ in everything(log)] == list(range(225))


def test_close_trims_the_index(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=0)
    fill(log, 3)
    log.close()
    assert [path.stat().st_size for path in segment_paths(log.directory, ".index")] == [16]


def test_the_directory_must_be_named_as_a_partition(tmp_path: Path) -> None:
    with pytest.raises(KafkaError, match="not named"):
        Log(str(tmp_path / "plain"), open_log(tmp_path).config, clock=FakeClock())


def test_truncation_inside_an_indexed_wrapper_drops_its_index_entry(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=0)
    append(log, "a", "b")
    append(log, "c", "d", "e", "f", codec=1)
    assert log.segments[0].index.entries == 1
    log.truncate_to(4)
    assert (log.log_end_offset, log.segments[0].index.entries) == (4, 0)
    append(log, "x")
    append(log, "y")
    log.flush()
    log.close()
    log = open_log(tmp_path, clean_shutdown=True)
    assert everything(log) == [(0, "a"), (1, "b"), (4, "x"), (5, "y")]


# Deleted records


def test_deleted_records_are_there_for_replicas_and_not_for_consumers(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, *"abcd")
    log.delete_records(3)
    log.delete_records(2)
    assert (log.first_offset, log.log_start_offset, log.deleted_until) == (3, 0, 3)
    assert everything(log) == list(enumerate("abcd"))


def test_retention_takes_what_was_deleted(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=200, retention_ms=-1, retention_bytes=-1)
    fill(log, 7)  # two to a segment
    log.delete_records(5)
    assert log.delete_old_segments() == 2
    assert (log.log_start_offset, log.first_offset) == (4, 5)
    log.delete_records(7)
    assert log.delete_old_segments() == 2
    assert (log.log_start_offset, log.first_offset, log.log_end_offset) == (7, 7, 7)
    append(log, "x")
    assert everything(log) == [(7, "x")]


def test_a_truncation_takes_the_start_with_it(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, *"abcd")
    log.delete_records(3)
    log.truncate_to(4)
    assert log.first_offset == 3
    log.truncate_to(2)
    assert (log.first_offset, log.log_end_offset) == (2, 2)
    log.truncate_fully_and_start_at(9)
    assert (log.first_offset, log.deleted_until) == (9, 0)


def test_a_start_beyond_the_end_is_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    append(open_log(tmp_path), *"ab")
    assert open_log(tmp_path, deleted_until=2).first_offset == 2
    assert not caplog.records
    log = open_log(tmp_path, deleted_until=3)
    assert log.first_offset == 0
    assert "Ignoring the start 3 of t-0" in caplog.text
