"""Opening directories that a crash, another hand or 0.8.2.2 left behind."""

from __future__ import annotations

import errno
import logging
import os
import random
from pathlib import Path

import pytest

from kafka08.log.segments import file_walk
from kafka08.message.sets import encode_set
from tests.log.faulty_files import FaultyFiles
from tests.log.support import (
    append,
    config,
    crash_copy,
    everything,
    fill,
    open_log,
    segment_paths,
    values,
    writable,
)

SIZE = 76  # of one entry that ``fill`` makes


def written(tmp_path: Path, count: int = 10, **changes: int) -> Path:
    """A crashed log of ``count`` entries of 76 bytes, one index entry to each but two."""
    log = open_log(tmp_path / "first", **{"index_interval_bytes": 0, **changes})
    fill(log, count)
    log.settle()
    return crash_copy(log, tmp_path / "crashed")


def reopened(tmp_path: Path, **changes: object):  # type: ignore[no-untyped-def]
    return open_log(tmp_path / "crashed", **{"index_interval_bytes": 0, **changes})


@pytest.mark.parametrize("cut", [0, 1, 11, 12, 25, 26, SIZE - 1])
def test_a_torn_tail_is_cut_exactly(tmp_path: Path, cut: int) -> None:
    directory = written(tmp_path)
    path = segment_paths(directory)[0]
    os.truncate(path, 9 * SIZE + cut)
    log = reopened(tmp_path)
    assert (log.log_end_offset, path.stat().st_size) == (9, 9 * SIZE)
    append(log, "next")
    assert [offset for offset, _ in everything(log)] == list(range(10))


@pytest.mark.parametrize("at", [11, 12, 16, 17, 20, 40, SIZE - 1])
def test_a_damaged_entry_and_all_behind_it_go(tmp_path: Path, at: int) -> None:
    directory = written(tmp_path, segment_bytes=5 * SIZE)
    path = segment_paths(directory)[0]
    content = bytearray(path.read_bytes())
    content[3 * SIZE + at] ^= 0x40
    path.write_bytes(content)
    log = reopened(tmp_path)
    assert (log.log_end_offset, log.size) == (3, 3 * SIZE)
    assert [p.name for p in segment_paths(directory)] == [path.name]
    assert len(list(directory.glob("*.deleted"))) == 2


@pytest.mark.parametrize("offset", [0, 2, 1 << 40, -1])
def test_an_offset_that_cannot_be_is_damage(tmp_path: Path, offset: int) -> None:
    directory = written(tmp_path)
    path = segment_paths(directory)[0]
    content = path.read_bytes()
    wrong = offset.to_bytes(8, "big", signed=True)
    path.write_bytes(content[: 3 * SIZE] + wrong + content[3 * SIZE + 8 :])
    assert reopened(tmp_path).log_end_offset == 3


def test_an_entry_larger_than_the_limit_is_no_damage(tmp_path: Path) -> None:
    written(tmp_path)
    assert reopened(tmp_path, max_message_bytes=30).log_end_offset == 10


@pytest.mark.parametrize("garbled", [False, True])
def test_entries_larger_than_the_buffer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, garbled: bool
) -> None:
    monkeypatch.setattr(file_walk, "CHUNK", 100)
    log = open_log(tmp_path / "first")
    append(log, "a" * 60)
    append(log, "b" * 1000)
    append(log, "c" * 60)
    path = segment_paths(crash_copy(log, tmp_path / "crashed"))[0]
    if garbled:
        content = bytearray(path.read_bytes())
        content[900] ^= 1
        path.write_bytes(content)
    assert reopened(tmp_path).log_end_offset == (1 if garbled else 3)


def test_segments_below_the_recovery_point_are_trusted(tmp_path: Path) -> None:
    directory = written(tmp_path, segment_bytes=5 * SIZE)
    first, second = segment_paths(directory)
    for path in (first, second):
        content = bytearray(path.read_bytes())
        content[3 * SIZE + 30] ^= 1
        path.write_bytes(content)
    log = reopened(tmp_path, recovery_point=5)
    assert log.log_end_offset == 8
    assert first.stat().st_size == 5 * SIZE


def test_recovery_point_is_never_above_the_end(tmp_path: Path) -> None:
    written(tmp_path)
    assert reopened(tmp_path, recovery_point=99).recovery_point == 10


def test_after_a_clean_shutdown_nothing_is_checked(tmp_path: Path) -> None:
    directory = written(tmp_path)
    path = segment_paths(directory)[0]
    content = bytearray(path.read_bytes())
    content[3 * SIZE + 30] ^= 1
    path.write_bytes(content)
    index = segment_paths(directory, ".index")[0]
    os.truncate(index, 9 * 8)
    log = reopened(tmp_path, clean_shutdown=True)
    assert (log.log_end_offset, log.recovery_point) == (10, 10)


def test_garbage_after_a_clean_shutdown_is_cut_all_the_same(tmp_path: Path) -> None:
    directory = written(tmp_path)
    path = segment_paths(directory)[0]
    with path.open("ab") as file:
        file.write(bytes(50))
    log = reopened(tmp_path, clean_shutdown=True)
    assert (log.log_end_offset, path.stat().st_size) == (10, 10 * SIZE)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"\0" * 1024,
        b"short",
        b"\xff" * 80,
        bytes.fromhex("00000001 0000004d"),  # between two entries
        bytes.fromhex("00000009 0000004c"),  # an offset above that of its entry
        bytes.fromhex("00000001 7fffffff"),
    ],
)
@pytest.mark.parametrize("number", [0, 1])
def test_a_bad_index_is_rebuilt(
    tmp_path: Path, content: bytes | None, clean: bool, number: int
) -> None:
    directory = written(tmp_path, segment_bytes=5 * SIZE)
    path = segment_paths(directory, ".index")[number]
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    log = reopened(tmp_path, clean_shutdown=clean)
    assert [offset for offset, _ in everything(log)] == list(range(10))
    assert all(log.read(offset, 100).position == offset % 5 * SIZE for offset in range(10))
    index = log.segments[number].index
    expected = [(5 * number + i, SIZE * i) for i in range(1, 5)]
    if content != b"":
        assert [index.entry(i) for i in range(index.entries)] == expected


def test_rebuilt_index_of_wrappers_never_uses_stored_inner_offsets(tmp_path: Path) -> None:
    log = open_log(tmp_path / "first")
    positions = []
    for _ in range(6):
        positions.append(log.size)
        append(log, "a" * 200, "b" * 200, "c" * 200, codec=1)  # stored inside as 0, 1, 2
    crash_copy(log, tmp_path / "crashed")
    log = reopened(tmp_path)
    index = log.segments[0].index
    assert [index.entry(i) for i in range(index.entries)] == [
        (3 * i, positions[i]) for i in range(1, 6)
    ]
    assert [log.read(offset, 100).position for offset in range(18)] == [
        positions[offset // 3] for offset in range(18)
    ]


def test_rebuilt_index_stops_when_full(tmp_path: Path) -> None:
    written(tmp_path)
    log = reopened(tmp_path, segment_index_bytes=24)
    assert log.segments[0].index.entries == 3
    assert [offset for offset, _ in everything(log)] == list(range(10))


@pytest.mark.parametrize("room", [0, 1, 2, 3, 4, 9])
def test_a_rebuilt_index_is_as_dense_as_a_full_disk_lets_it_be(
    tmp_path: Path, room: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    directory = written(tmp_path, index_interval_bytes=0)
    segment_paths(directory, ".index")[0].unlink()
    real = os.pwrite

    def write(fd: int, data: bytes, position: int) -> int:
        fits = room * 8 - position
        if fits <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data[:fits], position)

    monkeypatch.setattr(os, "pwrite", write)
    log = reopened(tmp_path, index_interval_bytes=0)
    monkeypatch.undo()
    index = log.segments[0].index
    assert index.entries == {0: 0, 1: 1, 2: 2, 3: 2, 4: 4, 9: 9}[room]
    assert ("No room for the index" in caplog.text) == (room < 9)
    assert [offset for offset, _ in everything(log)] == list(range(10))
    for slot in range(index.entries):
        offset, position = index.entry(slot)
        assert log.segments[0].position_of(offset) == position


def test_interval_of_a_rebuilt_index(tmp_path: Path) -> None:
    written(tmp_path)
    index = reopened(tmp_path, index_interval_bytes=2 * SIZE).segments[0].index
    assert [index.entry(i)[1] for i in range(index.entries)] == [3 * SIZE, 6 * SIZE, 9 * SIZE]


def test_temporary_files_go_and_swaps_are_completed(tmp_path: Path) -> None:
    directory = written(tmp_path, segment_bytes=5 * SIZE)
    base = f"{0:020d}"
    merged = encode_set(values("kept"), 0, 2) + encode_set(values("too"), 0, 7)
    (directory / f"{base}.log.swap").write_bytes(merged)
    (directory / f"{base}.index.swap").write_bytes(b"x")
    for name in ("1.log.deleted", "1.index.deleted", "2.log.cleaned", "2.index.cleaned"):
        (directory / name).write_bytes(b"x")
    log = reopened(tmp_path, clean_shutdown=True)
    # the second segment (base 5) lies within the merged one: the swap was cut short
    assert everything(log) == [(2, "kept"), (7, "too")]
    assert log.log_end_offset == 8
    assert sorted(os.listdir(directory)) == [f"{base}.index", f"{base}.log"]


def test_swap_leaves_segments_behind_it_alone(tmp_path: Path) -> None:
    directory = written(tmp_path, segment_bytes=5 * SIZE)
    (directory / f"{0:020d}.log.swap").write_bytes(encode_set(values("kept"), 0, 4))
    log = reopened(tmp_path, clean_shutdown=True)
    assert [offset for offset, _ in everything(log)] == [4, 5, 6, 7, 8, 9]


def test_files_that_are_no_segments(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    directory = written(tmp_path)
    names = ["notes.log", "5.log", f"{10**19:020d}.log", "readme.txt"]
    for name in names:
        (directory / name).write_bytes(b"x")
    (directory / f"{77:020d}.log").mkdir()
    (directory / f"{99:020d}.index").write_bytes(b"x")
    with caplog.at_level(logging.WARNING):
        log = reopened(tmp_path)
    assert log.log_end_offset == 10
    assert caplog.text.count("not that of a segment") == 3
    assert f"{77:020d}.log.aside" in os.listdir(directory)
    assert "orphaned index" in caplog.text
    assert {*names} < set(os.listdir(directory))
    assert f"{99:020d}.index" not in os.listdir(directory)


def test_an_empty_segment_gives_its_base(tmp_path: Path) -> None:
    directory = tmp_path / "crashed" / "t-0"
    directory.mkdir(parents=True)
    (directory / f"{42:020d}.log").write_bytes(b"")
    log = reopened(tmp_path)
    assert (log.log_start_offset, log.log_end_offset) == (42, 42)


def test_modification_times_survive_recovery(tmp_path: Path) -> None:
    directory = written(tmp_path, segment_bytes=5 * SIZE)
    for path in segment_paths(directory):
        os.utime(path, (1000, 1000))
    reopened(tmp_path)
    assert [path.stat().st_mtime for path in segment_paths(directory)] == [1000, 1000]


def test_no_file_stays_open_for_old_segments(tmp_path: Path) -> None:
    directory = written(tmp_path, count=40, segment_bytes=5 * SIZE)
    log = reopened(tmp_path)
    descriptors = [
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if os.path.islink(f"/proc/self/fd/{fd}")
    ]
    held = [path for path in descriptors if path.startswith(str(directory))]
    assert len(log.segments) == 8
    assert len(held) <= 2


def test_a_gap_left_by_truncation_is_kept_by_reading(tmp_path: Path) -> None:
    log = open_log(tmp_path / "first")
    append(log, "a")
    log.append(writable(encode_set(values("b", "c", "d"), 1, 3)), assign_offsets=False)
    crash_copy(log, tmp_path / "crashed")
    log = reopened(tmp_path)
    assert everything(log) == [(0, "a"), (3, "b"), (4, "c"), (5, "d")]


@pytest.mark.parametrize("seed", range(12))
def test_cut_index_entries_do_not_come_back(tmp_path: Path, seed: int) -> None:
    """A flush syncs an index that a truncation has emptied, too."""
    with FaultyFiles(str(tmp_path), lambda: 1_000_000, random.Random(seed)) as files:
        log = open_log(tmp_path, index_interval_bytes=0)
        fill(log, 3)
        log.roll()
        log.flush()
        log.truncate_to(0)
        log.config = config(index_interval_bytes=1 << 20)
        later = encode_set(values("v" * 50, "v" * 50, "v" * 50), 0, 2)
        log.append(writable(later), assign_offsets=False)
        log.roll()
        log.flush()
        files.revive(power_cut=True)
        again = open_log(tmp_path, recovery_point=log.recovery_point)
        assert again.segments[0].index.lookup(2) == 0
