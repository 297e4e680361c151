"""Index entries that are gathered, written many at once, and lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kafka08.log.segments.index import ENTRY, ENTRY_SIZE
from kafka08.log.segments.indexes import MOST_GATHERED
from tests.log.segments.test_segment import new_segment, put
from tests.log.segments.test_time_index import add, entries
from tests.log.support import FullDisk, no_space, open_log


def test_index_entries_are_written_many_at_once(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, 0)
    segment.index.preallocate(8 * 2 * MOST_GATHERED)
    count = MOST_GATHERED + 10
    for offset in range(count + 1):
        put(segment, offset, "x")
        size = segment.size // (offset + 1)
        for sought in {0, offset // 2, offset}:
            assert segment.position_of(sought) == sought * size
    assert (segment.index.entries, segment.index.gathered) == (count, 10)
    content = Path(segment.index.path).read_bytes()
    written = [(at, at * size) for at in range(1, MOST_GATHERED + 1)]
    assert list(ENTRY.iter_unpack(content[: 8 * MOST_GATHERED])) == written
    assert not any(content[8 * MOST_GATHERED :])
    segment.close()
    assert os.path.getsize(segment.index.path) == 8 * count


def test_full_disk_at_the_index_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = new_segment(tmp_path)
    data = b"".join(put(segment, offset, "x") for offset in range(MOST_GATHERED))
    assert segment.index.gathered == MOST_GATHERED - 1
    size = len(data) // MOST_GATHERED
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", FullDisk(size, 1000))  # the next set, no more
        data += put(segment, MOST_GATHERED, "x")
    assert Path(segment.path).read_bytes() == data
    assert segment.index.entries == 0
    put(segment, MOST_GATHERED + 1, "x")
    assert segment.index.entry(0) == (MOST_GATHERED + 1, len(data))
    assert segment.position_of(2) == 2 * size


def test_a_set_that_cannot_be_indexed_leaves_no_time(tmp_path, monkeypatch):
    log = open_log(tmp_path)
    add(log, 10, 20)
    segment = log.segments[0]

    write = os.pwrite

    def broken(fd: int, data: Any, position: int) -> int:
        if len(data) == MOST_GATHERED * ENTRY_SIZE:
            raise OSError("broken")
        return write(fd, data, position)

    while segment.index.gathered < MOST_GATHERED - 1:
        segment.bytes_since_index_entry = 10_000
        add(log, 5)
    segment.bytes_since_index_entry = 10_000
    monkeypatch.setattr(os, "pwrite", broken)
    with pytest.raises(OSError, match="broken"):
        add(log, 99)
    monkeypatch.undo()
    assert segment.newest == (20, 1)
    assert segment.time_index.last.timestamp < 99 and not segment.index.entries
    end = log.log_end_offset
    add(log, 30)
    assert segment.newest == (30, end)
    assert (segment.time_index.last, segment.index.last_offset) == ((30, end), end)


def test_entries_that_a_full_disk_has_no_room_for_are_left_out(tmp_path, monkeypatch):
    log = open_log(tmp_path)
    add(log, 10, 30, 20, 25)
    segment = log.segments[0]
    assert segment.index.gathered == segment.time_index.gathered == 1
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", no_space)
        log.close()
    assert entries(segment.time_index.path) == [] and not os.path.getsize(segment.index.path)
    again = open_log(tmp_path, clean_shutdown=True)
    assert again.segments[0].newest == (30, 1)
    assert again.read(3, 1).position == 3 * (again.size // 4)
