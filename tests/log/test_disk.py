"""Which I/O errors mean that a data directory has failed."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from kafka08.log.disk import (
    DiskFailure,
    SyncError,
    has_room,
    is_failure,
    is_full,
    is_shortage,
    open_unnamed,
    tried,
    write_all,
)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENOMEM])
def test_a_shortage_is_not_a_failure(tmp_path: Path, number: int) -> None:
    error = OSError(number, "as told")
    assert is_shortage(error)
    assert not is_failure(str(tmp_path), error)
    assert is_full(error) == (number == errno.ENOSPC)


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.EACCES])
def test_other_errors_are_failures(tmp_path: Path, number: int) -> None:
    error = OSError(number, "as told")
    assert not is_shortage(error)
    assert is_failure(str(tmp_path), error)


def test_a_failed_sync_is_a_failure_even_on_a_full_disk(tmp_path: Path) -> None:
    error = SyncError(errno.ENOSPC, "as told")
    assert not is_shortage(error)
    assert is_failure(str(tmp_path), error)


def test_a_missing_file_is_a_failure_only_without_its_directory(tmp_path: Path) -> None:
    error = FileNotFoundError(errno.ENOENT, "as told")
    assert not is_failure(str(tmp_path), error)
    assert is_failure(str(tmp_path / "unmounted"), error)


def test_values_other_than_os_errors_are_not_shortages() -> None:
    assert not is_shortage(None)
    assert not is_shortage(ValueError("as told"))


@pytest.mark.parametrize(
    ("blocks", "free_files", "files", "fits"),
    [(10, 5, 100, True), (9, 5, 100, False), (10, 0, 100, False), (10, 0, 0, True)],
)
def test_room_is_bytes_and_a_file(
    monkeypatch: pytest.MonkeyPatch, blocks: int, free_files: int, files: int, fits: bool
) -> None:
    found = SimpleNamespace(f_bavail=blocks, f_frsize=100, f_favail=free_files, f_files=files)
    monkeypatch.setattr(os, "statvfs", lambda directory: found)
    assert has_room("/d", 1000) == fits


def test_all_is_tried_although_some_fails() -> None:
    error, done = OSError(errno.EIO, "as told"), []

    def fail() -> None:
        raise error

    work = [("/a", fail), ("/b", lambda: done.append("b")), ("/c", fail)]
    assert tried(work) == [DiskFailure("/a", error), DiskFailure("/c", error)]
    assert done == ["b"]


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: real(fd, data[:3], at))
    with (tmp_path / "file").open("w+b", buffering=0) as file:
        write_all(file.fileno(), b"ten bytes.", 2)
        assert file.read() == b"\0\0ten bytes."


@pytest.mark.parametrize("in_memory", [True, False])
def test_an_unnamed_file_is_empty(in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create")
    fd = open_unnamed("label")
    try:
        found = os.fstat(fd)
        assert (found.st_size, found.st_nlink) == (0, 0)
        assert os.pwrite(fd, b"data", 3) == 4
        assert os.pread(fd, 9, 0) == b"\0\0\0data"
    finally:
        os.close(fd)
