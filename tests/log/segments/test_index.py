"""The index: its bytes, its rules, its searches."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import KafkaError
from kafka08.log.segments.index import OffsetIndex, position_below


def new_index(directory: Path, base: int = 0, max_bytes: int = 1024) -> OffsetIndex:
    index = OffsetIndex(str(directory / f"{base:020d}.index"), base)
    index.preallocate(max_bytes)
    return index


def test_bytes_of_entries_and_preallocation(tmp_path: Path) -> None:
    index = new_index(tmp_path, 100, 67)
    assert os.path.getsize(index.path) == 64
    index.append(105, 4096)
    index.append(0x7FFFFFFF + 100, 0x01020304)
    assert Path(index.path).read_bytes() == bytes(64) and index.gathered == 2
    index.write_out()
    assert not index.gathered
    content = Path(index.path).read_bytes()
    assert content[:16] == bytes.fromhex("00000005 00001000 7fffffff 01020304")
    assert content[16:] == bytes(48)
    index.trim()
    assert Path(index.path).read_bytes() == content[:16]


def test_reopened_file_is_all_valid_entries(tmp_path: Path) -> None:
    index = new_index(tmp_path, 100)
    index.append(105, 4096)
    index.trim()
    again = OffsetIndex(index.path, 100)
    assert (again.entries, again.last_offset, again.last_position) == (1, 105, 4096)
    assert again.is_full
    again.preallocate(1024)
    assert not again.is_full
    assert again.lookup(105) == 4096


def test_entries_must_rise_but_the_first(tmp_path: Path) -> None:
    index = new_index(tmp_path, 100)
    index.append(100, 0)
    with pytest.raises(KafkaError, match="no larger than"):
        index.append(100, 50)
    assert index.entries == 1


def test_full(tmp_path: Path) -> None:
    index = new_index(tmp_path, 0, 16)
    index.append(1, 1)
    index.append(2, 2)
    assert index.is_full
    with pytest.raises(KafkaError, match="full"):
        index.append(3, 3)


def test_an_index_has_room_for_one_entry_at_least(tmp_path: Path) -> None:
    assert not new_index(tmp_path, 0, 4).is_full


@given(st.sets(st.integers(1, 200)), st.integers(0, 210), st.integers(0, 210), st.integers(0, 200))
def test_lookup_and_truncate(offsets: set[int], target: int, cut: int, written: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        index = new_index(Path(directory), 1000, 8 * 300)
        entries = [(1000 + offset, 10 * offset) for offset in sorted(offsets)]
        for number, entry in enumerate(entries):
            if number == written:
                index.write_out()
            index.append(*entry)
        assert [index.entry(i) for i in range(index.entries)] == entries
        for _ in range(2):
            below = [position for offset, position in entries if offset <= 1000 + target]
            assert index.lookup(1000 + target) == (below[-1] if below else 0)
            index.truncate_to(1000 + cut, 1 << 30)
            entries = [entry for entry in entries if entry[0] < 1000 + cut]
            assert index.entries == len(entries)
            assert index.last_offset == (entries[-1][0] if entries else 1000)


def test_truncated_entries_do_not_come_back(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    for i in range(1, 4):
        index.append(i, i)
    index.truncate_to(2, 1 << 30)
    index.preallocate(64)
    assert Path(index.path).read_bytes() == bytes.fromhex("0000000100000001") + bytes(56)


def test_failed_write_leaves_no_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = new_index(tmp_path)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    index.append(1, 1)
    index.write_out()
    index.append(2, 20)
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space"):
        index.write_out()
    monkeypatch.undo()
    assert (index.entries, index.last_offset, index.gathered) == (2, 2, 1)
    index.lose_gathered()
    assert (index.entries, index.last_offset, index.last_position, index.gathered) == (1, 1, 1, 0)
    index.append(3, 30)
    index.write_out()
    assert [index.entry(slot) for slot in range(index.entries)] == [(1, 1), (3, 30)]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", None),
        ("00000001 00000064", None),
        ("00000001 000000", "not a multiple"),
        ("00000001 00000064 00000000 00000000", "not above the base"),
        ("ffffffff 00000064", "not above the base"),
        ("00000001 000003e8", "past the end"),
        ("00000001 ffffff00", "past the end"),
        ("00000003 00000010 00000002 00000020", "do not rise"),
        ("00000001 00000010 00000002 00000010", "do not rise"),
        ("ffffffff 00000010 00000002 00000020", "do not rise"),
    ],
)
def test_problems(tmp_path: Path, content: str, problem: str | None) -> None:
    path = tmp_path / "x.index"
    path.write_bytes(bytes.fromhex(content))
    found = OffsetIndex(str(path), 0).problem(1000, thorough=True)
    assert found is None if problem is None else problem in (found or "")


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    assert OffsetIndex(str(tmp_path / "x.index"), 0).problem(10, thorough=False) == "it is missing"


@pytest.mark.parametrize("offset", range(99, 115))
def test_lookups_on_any_thread(tmp_path: Path, offset: int) -> None:
    index = OffsetIndex(str(tmp_path / "x.index"), 100)
    index.preallocate(80)
    for number in range(5):
        index.append(102 + 2 * number, 10 + number)
    index.write_out()
    assert position_below(index.path, index.entries, 100, offset) == index.lookup(offset)
    index.truncate_to(106, 1000)
    index.trim()
    assert position_below(index.path, 5, 100, offset) == index.lookup(offset)
    assert position_below(index.path + "x", 5, 100, offset) == 0
