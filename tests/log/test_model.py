"""The storage layer against its model: 20,000 steps with crashes anywhere, always the same ones.

A longer run with new seeds is integration/test_storage_model.py.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.log.faulty_files import Crash, FaultyFiles
from tests.log.storage_model import Driver

STEPS = 225
SEEDS = 100
BLOCK = 20


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Recovery logs many lines, which would fill the report."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a place: the files' durability is only played."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_logs_keep_their_promises_through_every_crash(first: int, directory: Path) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + BLOCK):
        counts += Driver(directory, seed).run(STEPS)
    assert counts["kill"] > BLOCK
    assert counts["power cut"] > BLOCK
    assert counts["clean stop"] > BLOCK
    assert counts["cleaning"] > BLOCK


def test_a_seed_always_takes_the_same_steps(tmp_path: Path) -> None:
    runs = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        driver = Driver(tmp_path / name, 5)
        runs.append((driver.run(100), driver.files.calls, driver.trail))
    assert runs[0] == runs[1]


# The files under it: a model whose crashes crash nothing would prove nothing.


@pytest.fixture
def files(tmp_path: Path) -> Iterator[FaultyFiles]:
    with FaultyFiles(str(tmp_path), lambda: 1_000_000, random.Random(1)) as faulty:
        yield faulty


def write(path: Path, data: bytes, *, sync: bool = False) -> None:
    fd = os.open(str(path), os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, data, 0)
    if sync:
        os.fsync(fd)
    os.close(fd)


def sync_directory(path: Path) -> None:
    fd = os.open(str(path), os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def test_a_dead_process_changes_nothing(files: FaultyFiles, tmp_path: Path) -> None:
    write(tmp_path / "a", b"whole")
    files.crash_at = files.calls + 1
    with pytest.raises(Crash):
        os.unlink(str(tmp_path / "a"))
    for change in (
        lambda: os.unlink(str(tmp_path / "a")),
        lambda: os.replace(str(tmp_path / "a"), str(tmp_path / "b")),
        lambda: os.mkdir(str(tmp_path / "c")),
        lambda: write(tmp_path / "a", b"other"),
        lambda: write(tmp_path / "d", b"new"),
        lambda: shutil.rmtree(str(tmp_path)),
    ):
        with pytest.raises(Crash):
            change()
    files.revive(power_cut=False)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_a_write_may_be_torn(files: FaultyFiles, tmp_path: Path) -> None:
    lengths = set()
    for number in range(30):
        path = tmp_path / str(number)
        write(path, b"")
        files.crash_at = files.calls + 1
        with pytest.raises(Crash):
            write(path, b"0123456789")
        files.revive(power_cut=False)
        lengths.add(len(path.read_bytes()))
    assert {0, 10} < lengths


def test_what_a_power_cut_leaves(files: FaultyFiles, tmp_path: Path) -> None:
    seen: dict[str, set[bytes | None]] = {"synced": set(), "nameless": set(), "written": set()}
    for _ in range(60):
        for path in tmp_path.iterdir():
            os.unlink(str(path))
        write(tmp_path / "synced", b"old", sync=True)
        write(tmp_path / "written", b"", sync=True)
        sync_directory(tmp_path)
        write(tmp_path / "written", b"some bytes")
        write(tmp_path / "nameless", b"new", sync=True)
        files.revive(power_cut=True)
        for name, contents in seen.items():
            path = tmp_path / name
            contents.add(path.read_bytes() if path.exists() else None)
    assert seen["synced"] == {b"old"}
    assert seen["nameless"] == {None, b"new"}
    assert {b"", b"some bytes"} < seen["written"]


def test_names_come_back_in_order(files: FaultyFiles, tmp_path: Path) -> None:
    left = set()
    for _ in range(60):
        for path in tmp_path.iterdir():
            os.unlink(str(path))
        write(tmp_path / "a", b"")
        sync_directory(tmp_path)
        os.replace(str(tmp_path / "a"), str(tmp_path / "b"))
        write(tmp_path / "c", b"")
        os.unlink(str(tmp_path / "b"))
        files.revive(power_cut=True)
        left.add("".join(sorted(path.name for path in tmp_path.iterdir())))
    assert left == {"a", "b", "bc", "c"}
