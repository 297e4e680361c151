"""What lies in the page cache: told without a read, and read in on demand."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from kafka08.log import residency
from kafka08.log.residency import SAMPLE_BYTES, is_resident, read_in
from kafka08.log.segment import FileSlice, SegmentFile

SIZE = 16 << 20


@pytest.fixture
def cold(tmp_path: Path) -> SegmentFile:
    """A file on the disk and nowhere else."""
    path = tmp_path / "file"
    path.write_bytes(os.urandom(1 << 20) * 16)
    file = SegmentFile(str(path))
    os.fsync(file.fd)
    os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)
    if is_resident(FileSlice(file, SIZE // 2, 1)):
        pytest.skip("this file system keeps everything in memory")
    return file


@pytest.mark.parametrize("size", [1, 5000, SAMPLE_BYTES, SAMPLE_BYTES + 1, 1 << 20])
def test_cold_then_read_in(cold: SegmentFile, size: int) -> None:
    part = FileSlice(cold, 100_001, size)
    assert not is_resident(part)
    assert not is_resident(part)  # asking does not read
    read_in([part])
    assert is_resident(part)


def test_one_missing_run_makes_it_cold(cold: SegmentFile) -> None:
    whole = FileSlice(cold, 0, 2 << 20)
    read_in([whole])
    assert is_resident(whole)
    os.posix_fadvise(cold.fd, 1 << 20, 1 << 18, os.POSIX_FADV_DONTNEED)
    assert not is_resident(whole)
    assert is_resident(FileSlice(cold, 0, 1 << 20))


def test_a_cold_end_is_seen(cold: SegmentFile) -> None:
    read_in([FileSlice(cold, 0, 1 << 20)])
    os.posix_fadvise(cold.fd, 8192, 0, os.POSIX_FADV_DONTNEED)
    assert not is_resident(FileSlice(cold, 0, 20_000))


def test_nothing_is_never_cold(cold: SegmentFile) -> None:
    assert is_resident(FileSlice(cold, 0, 0))


def test_a_slice_beyond_the_end_ends_the_reading(cold: SegmentFile) -> None:
    read_in([FileSlice(cold, SIZE - 10, 100)])


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EIO, errno.EINVAL])
def test_where_it_cannot_be_told_nothing_waits(
    cold: SegmentFile, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "preadv", refuse)
    assert is_resident(FileSlice(cold, 0, 100))


def test_without_the_flag_all_is_taken_for_hot(
    cold: SegmentFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(residency, "_NOWAIT", 0)
    assert is_resident(FileSlice(cold, 0, 100))
