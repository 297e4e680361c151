"""Segments: writes that fail half-way, scans by header."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka08.errors import KafkaError
from kafka08.log.segments.segment import LogSegment
from kafka08.message.sets import encode_set, iter_messages
from tests.log.support import FullDisk, values


def new_segment(directory: Path, base: int = 0) -> LogSegment:
    segment = LogSegment(str(directory), base, 0)
    segment.index.preallocate(1024)
    return segment


def put(segment: LogSegment, offset: int, *texts: str, codec: int = 0) -> bytes:
    data = encode_set(values(*texts), codec, offset)
    segment.append(offset, memoryview(data), 0)
    return data


def test_golden_entry(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, 5)
    put(segment, 5, "hi")
    assert os.path.basename(segment.path) == "00000000000000000005.log"
    assert Path(segment.path).read_bytes().hex() == (
        "000000000000000500000010fd6ebddb0000ffffffff000000026869"
    )


@pytest.mark.parametrize("room", [0, 1, 27, 28, 60])
def test_full_disk_leaves_nothing_of_the_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    segment = new_segment(tmp_path)
    before = put(segment, 0, "first")
    monkeypatch.setattr(os, "pwrite", FullDisk(room, 10))
    with pytest.raises(OSError, match="No space"):
        put(segment, 1, "second" * 20)
    monkeypatch.undo()
    assert Path(segment.path).read_bytes() == before
    assert (segment.size, segment.index.entries) == (len(before), 0)
    after = put(segment, 1, "third")
    assert Path(segment.path).read_bytes() == before + after
    assert segment.index.last_offset == 1


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = new_segment(tmp_path)
    monkeypatch.setattr(os, "pwrite", FullDisk(1 << 20, 7))
    data = put(segment, 0, "abc", "def")
    assert Path(segment.path).read_bytes() == data


def test_no_index_entry_for_the_first_set_and_one_per_append(tmp_path: Path) -> None:
    segment = new_segment(tmp_path, 10)
    first = put(segment, 10, "a", "b")
    put(segment, 12, "c", "d", "e")
    put(segment, 15, "f")
    entries = [segment.index.entry(i) for i in range(segment.index.entries)]
    assert entries[0] == (12, len(first))
    assert [offset for offset, _ in entries] == [12, 15]


def test_index_waits_for_more_than_the_interval(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    data = memoryview(encode_set(values("x" * 74)))  # 100 bytes
    for offset in range(4):
        segment.append(offset, data, 100)
    assert [segment.index.entry(i) for i in range(segment.index.entries)] == [(2, 200)]


def test_position_of_in_and_around_a_wrapper(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    plain = put(segment, 0, "a")
    wrapper = put(segment, 1, "b", "c", "d", codec=1)
    assert [segment.position_of(offset) for offset in range(5)] == [
        0,
        len(plain),
        len(plain),
        len(plain),
        None,
    ]
    assert segment.next_offset() == (4, len(plain) + len(wrapper))


def test_scan_past_entries_larger_than_its_reads(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    positions = []
    for offset, size in enumerate([10, 100_000, 8192 - 26 - 6, 20, 70_000, 5]):
        positions.append(segment.size)
        segment.append(offset, memoryview(encode_set(values("x" * size), 0, offset)), 1 << 30)
    assert not segment.index.entries
    assert [segment.position_of(offset) for offset in range(6)] == positions
    assert segment.next_offset() == (6, segment.size)


def test_broken_header_is_an_error_not_a_loop(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    Path(segment.path).write_bytes(bytes(100))
    segment.size = 100
    with pytest.raises(KafkaError, match="Invalid message size"):
        segment.position_of(5)


def test_the_set_appended_last_is_found_without_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = new_segment(tmp_path)
    for offset in range(0, 9, 3):
        put(segment, offset, "a", "b", "c", codec=offset % 2)
    looks: list[int] = []
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda *a: (looks.append(a[2]), real(*a))[1])
    found = segment.read(6, 1000, None)
    assert found is not None
    assert looks == []
    assert [m.offset for m in iter_messages(found.read())] == [6, 7, 8]
    looks.clear()
    inside = segment.read(7, 1000, None)
    assert inside is not None
    assert looks
    assert inside.position > found.position


def test_a_cut_forgets_where_the_last_set_was(tmp_path: Path) -> None:
    segment = new_segment(tmp_path)
    put(segment, 0, "first")
    put(segment, 1, "second")
    segment.truncate_to(1, 0)
    segment.take_appends(1024, cuts_times=False)
    assert segment.read(1, 1000, None) is None
    put(segment, 1, "other", "and more")
    found = segment.read(1, 1000, None)
    assert found is not None
    assert [m.value for m in iter_messages(found.read())] == [b"other", b"and more"]
    segment.truncate_to(0, 0)
    segment.take_appends(1024, cuts_times=False)
    put(segment, 0, "x" * 100)
    assert segment.position_of(1) is None
