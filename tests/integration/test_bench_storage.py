"""The storage bench's arithmetic: what it reads from logs, how much room it asks for."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from integration.bench import storage
from kafka08.log.segments.file_slice import FileSlice, SegmentFile
from kafka08.log.segments.residency import is_resident


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("\t1,024.0 MB of log processed in 12.5 seconds (81.9 MB/sec).", (1024.0, 12.5)),
        ("\t32.0 MB of log processed in 1,000.0 seconds (0.0 MB/sec).", (32.0, 1000.0)),
    ],
)
def test_the_cleaners_account(line: str, found: tuple[float, float]) -> None:
    ((size, seconds),) = storage.CLEANED.findall(line)
    assert (storage.amount(size), storage.amount(seconds)) == found


def needed(**changes: float) -> float:
    options = {"retained": 30, "recovered": 4, "cleaned": 1, **changes}
    return storage.disk_needed(argparse.Namespace(**options))


def test_the_room_it_asks_for() -> None:
    assert 40 < needed() < 60
    assert needed(retained=1) < 20
    assert needed(recovered=100) > 100


def test_without_room_it_says_so_and_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["storage", "--retained", "1e6", "--dir", str(tmp_path)])
    assert storage.main() == 1
    assert "Skipped: " in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_forgotten_files_are_cold(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(1 << 20))
    file = SegmentFile.open(str(path))
    last_byte = FileSlice(file, (1 << 20) - 1, 1)
    os.fsync(file.fd)
    os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)
    if is_resident(last_byte):
        pytest.skip("this file system keeps everything in memory")
    path.read_bytes()
    assert is_resident(last_byte)
    # The kernel keeps pages that another processor has just put into its list of new ones.
    for _ in range(1000):
        storage.forget([path])
        if not is_resident(last_byte):
            break
    else:
        pytest.fail("it is still in memory")
