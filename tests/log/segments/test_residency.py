"""Bytes in the page cache: found without reading them, and read in on demand."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from kafka08.log.segments import residency
from kafka08.log.segments.file_slice import FileSlice, SegmentFile
from kafka08.log.segments.residency import (
    INDEX_STAYS_MS,
    MAX_AHEAD_BYTES,
    MIN_AHEAD_BYTES,
    SAMPLE_BYTES,
    can_look_up,
    extent,
    is_resident,
    read_in,
    read_in_index,
)
from kafka08.log.segments.segment import LogSegment
from kafka08.message.sets import encode_set
from tests.page_cache import is_in_memory

SIZE = 16 << 20


@pytest.fixture
def cold(tmp_path: Path) -> SegmentFile:
    """A file on the disk and nowhere else."""
    path = tmp_path / "file"
    path.write_bytes(os.urandom(1 << 20) * 16)
    file = SegmentFile.open(str(path))
    os.fsync(file.fd)
    os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)
    if is_in_memory(file.fd, 0, SIZE):
        pytest.skip("this file system keeps everything in memory")
    return file


@pytest.mark.parametrize("size", [1, 5000, SAMPLE_BYTES, SAMPLE_BYTES + 1, 1 << 20])
def test_cold_then_read_in(cold: SegmentFile, size: int) -> None:
    part = FileSlice(cold, 100_001, size)
    assert not is_resident(part)
    read_in(part)
    assert is_resident(part)


def test_one_missing_run_makes_it_cold(cold: SegmentFile) -> None:
    whole = FileSlice(cold, 0, 2 << 20)
    read_in(whole)
    assert is_resident(whole)
    os.posix_fadvise(cold.fd, 1 << 20, 1 << 18, os.POSIX_FADV_DONTNEED)
    assert not is_resident(whole)
    assert is_resident(FileSlice(cold, 0, 1 << 20))


def test_a_cold_end_is_seen(cold: SegmentFile) -> None:
    read_in(FileSlice(cold, 0, 1 << 20))
    os.posix_fadvise(cold.fd, 8192, 0, os.POSIX_FADV_DONTNEED)
    assert not is_resident(FileSlice(cold, 0, 20_000))


def test_a_page_that_comes_while_the_kernel_looks(
    cold: SegmentFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a quick disk, or for a busy processor. The pages beside it are still missing."""
    preadv = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, into, at, _: preadv(fd, into, at))
    part = FileSlice(cold, 0, 100_000)
    assert not is_resident(part)
    read_in(part)
    assert is_resident(part)


def test_nothing_is_never_cold(cold: SegmentFile) -> None:
    assert is_resident(FileSlice(cold, 0, 0))


def test_a_slice_beyond_the_end_ends_the_reading(cold: SegmentFile) -> None:
    read_in(FileSlice(cold, SIZE - 10, 100))


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EIO, errno.EINVAL])
def test_where_it_cannot_be_told_nothing_waits(
    cold: SegmentFile, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "preadv", refuse)
    assert is_resident(FileSlice(cold, 0, 100))
    monkeypatch.undo()
    # Only a file system that cannot tell is not asked again.
    assert is_resident(FileSlice(cold, 0, 100)) == (number == errno.EOPNOTSUPP)


def test_without_the_flag_all_is_taken_for_hot(
    cold: SegmentFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(residency, "_NOWAIT", 0)
    assert is_resident(FileSlice(cold, 0, 100))


@pytest.mark.parametrize(
    ("size", "ahead"),
    [(4096, MIN_AHEAD_BYTES), (200_000, 800_000), (1 << 20, 4 << 20), (8 << 20, MAX_AHEAD_BYTES)],
)
def test_as_much_is_read_ahead_as_the_reader_is_likely_to_want(
    cold: SegmentFile, monkeypatch: pytest.MonkeyPatch, size: int, ahead: int
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(
        os, "posix_fadvise", lambda fd, at, count, advice: asked.append((at, count))
    )
    read_in(FileSlice(cold, 1000, size))
    assert asked == [(1000, size + ahead)]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO])
def test_where_files_go_to_sockets_alone(
    cold: SegmentFile, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "sendfile", refuse)
    part = FileSlice(cold, 1000, 3 << 20)
    if number == errno.EIO:
        with pytest.raises(OSError, match="Input/output"):
            read_in(part)
    else:
        read_in(part)
        assert is_resident(part)


# Lookups


@pytest.fixture(params=[1, 30])
def segment(request: pytest.FixtureRequest, tmp_path: Path) -> LogSegment:
    """Entries 0 to 119 of 1 kB each in sets of 1 or 30; an index entry for 4 kB at least."""
    made = LogSegment(str(tmp_path), 0, 0)
    made.index.preallocate(1024)
    for offset in range(0, 120, request.param):
        data = encode_set([(None, b"x" * 1000)] * request.param, 0, offset)
        made.append(offset, memoryview(data), 3000)
    return made


def test_an_index_is_read_as_a_whole_now_and_then(segment: LogSegment) -> None:
    now = 1_400_000_000_000
    assert not can_look_up(segment, 5, now)
    segment.index.read_in_ms = now
    assert can_look_up(segment, 5, now + INDEX_STAYS_MS - 1)
    assert not can_look_up(segment, 5, now + INDEX_STAYS_MS)
    assert not can_look_up(segment, 5, now - 1)  # the clock was set back


def test_the_last_index_entry_is_known_anyway(segment: LogSegment) -> None:
    assert can_look_up(segment, segment.index.last_offset, 1 << 40)
    assert not can_look_up(segment, segment.index.last_offset - 1, 1 << 40)


def test_a_file_is_opened_by_another_thread_first(segment: LogSegment) -> None:
    segment.index.read_in_ms = 1000
    segment.release()
    assert not can_look_up(segment, 5, 1000)
    assert not can_look_up(segment, 119, 1000)


def test_the_extent_covers_what_is_read(segment: LogSegment) -> None:
    for offset in range(120):
        part = extent(segment, offset, 2000)
        found = segment.read(offset, 2000, None)
        assert found is not None
        assert part.position <= found.position
        assert part.position + part.size >= found.position + found.size
        assert part.position + part.size <= segment.size
    assert extent(segment, 50, 1 << 30).size == segment.size - extent(segment, 50, 1).position
    assert 0 < extent(segment, 50, -1).size < 32_000


def test_an_index_is_read_in(segment: LogSegment) -> None:
    index = segment.index
    segment.close()
    with open(index.path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    read_in_index(segment.path, index.path, index.entries * 8)
    file_of_index = SegmentFile.open(index.path)
    assert is_resident(FileSlice(file_of_index, 0, index.entries * 8))


def test_a_missing_index_is_told(segment: LogSegment) -> None:
    os.unlink(segment.index.path)
    with pytest.raises(FileNotFoundError):
        read_in_index(segment.path, segment.index.path, 8)
    assert not os.path.exists(segment.index.path)
