"""The faults of the disk of a simulated broker."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from kafka08.log.disk import has_room
from tests.simulation.disk import BrokerDisk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[BrokerDisk]:
    with BrokerDisk(str(tmp_path), lambda: 0, Random(1)) as made:
        made.make_directories()
        yield made


def refused(path: str) -> int | None:
    """The error of a write to a new file, None if it succeeds."""
    try:
        with open(path, "wb") as file:
            file.write(b"12345678")
    except OSError as error:
        return error.errno
    return None


def test_a_full_disk_takes_nothing_until_it_is_repaired(disk: BrokerDisk) -> None:
    one, _ = disk.directories
    assert refused(f"{one}/a") is None
    disk.is_full = True
    assert not has_room(one, 1)
    assert refused(f"{one}/a") == errno.ENOSPC
    os.unlink(f"{one}/a")
    disk.repair()
    assert has_room(one, 1)
    assert refused(f"{one}/a") is None


def test_one_directory_is_broken(disk: BrokerDisk) -> None:
    one, two = disk.directories
    fd = os.open(f"{one}/open", os.O_RDWR | os.O_CREAT)
    disk.broken = one
    with pytest.raises(OSError, match="Input/output"):
        os.pwrite(fd, b"1", 0)
    with pytest.raises(OSError, match="Input/output"):
        os.fsync(fd)
    os.close(fd)
    assert refused(f"{one}/a") == errno.EIO
    assert refused(f"{two}/a") is None
    disk.repair()
    assert refused(f"{one}/a") is None


def test_a_write_in_part_says_so(disk: BrokerDisk) -> None:
    fd = os.open(f"{disk.directories[0]}/a", os.O_RDWR | os.O_CREAT)
    disk.is_short = True
    written = os.pwrite(fd, b"12345678", 0)
    assert 0 < written < 8
    assert os.pread(fd, 8, 0) == b"12345678"[:written]
    assert os.pwrite(fd, b"12345678", 0) == 8
    os.close(fd)


def test_a_slow_sync_is_waited_for_once(disk: BrokerDisk) -> None:
    fd = os.open(f"{disk.directories[0]}/a", os.O_RDWR | os.O_CREAT)
    disk.sync_micros = 700
    os.fsync(fd)
    os.fsync(fd)
    os.close(fd)
    assert (disk.waited(), disk.waited()) == (1400, 0)


def test_for_syncs_of_a_repaired_disk_nobody_waits(disk: BrokerDisk) -> None:
    fd = os.open(f"{disk.directories[0]}/a", os.O_RDWR | os.O_CREAT)
    disk.sync_micros = 700
    os.fsync(fd)
    os.close(fd)
    disk.repair()
    assert disk.waited() == 0


def test_a_slow_read_is_waited_for_once(disk: BrokerDisk) -> None:
    assert disk.is_resident()
    assert disk.waited() == 0
    disk.read_micros = 900
    assert not disk.is_resident()
    assert (disk.waited(), disk.waited()) == (900, 0)
    disk.repair()
    assert disk.is_resident()


def test_cuts_of_segments_and_stored_high_watermarks_are_moments(disk: BrokerDisk) -> None:
    one, seen = disk.directories[0], []
    disk.cuts.after(1, lambda: seen.append("cut"))
    disk.checkpoints.after(1, lambda: seen.append("stored"))
    for name in ("00.index", "00.log"):
        with open(f"{one}/{name}", "wb") as file:
            file.write(b"12345678")
        os.truncate(f"{one}/{name}", 4)
        assert seen == (["cut"] if name == "00.log" else [])
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        assert seen == ["cut"]
        with open(f"{one}/{name}.tmp", "wb") as file:
            file.write(b"0")
        os.replace(f"{one}/{name}.tmp", f"{one}/{name}")
    assert seen == ["cut", "stored"]
    disk.cuts.after(1, lambda: pytest.fail("a fault after the last one"))
    disk.repair()
    os.truncate(f"{one}/00.log", 2)


def test_the_directories_survive_a_power_cut(disk: BrokerDisk) -> None:
    disk.revive(power_cut=True)
    assert all(os.path.isdir(path) for path in disk.directories)
