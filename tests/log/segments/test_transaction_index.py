"""The index of aborted transactions: Kafka's bytes, answers, cuts, a full disk, damage."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from kafka08.log.segments import transaction_index
from kafka08.log.segments.transaction_index import (
    ENTRY_SIZE,
    AbortedTransaction,
    TransactionIndex,
)
from tests.log.support import no_space

GOLDEN = Path(__file__).parents[2] / "golden" / "transactions-vectors.json"
STORED = [
    disk for name, disk in json.loads(GOLDEN.read_text())["disk"].items() if "txnindex" in name
]


def entry(last: int, first: int = -1, stable: int = -1, producer: int = 7) -> AbortedTransaction:
    first = last - 1 if first < 0 else first
    return AbortedTransaction(producer, first, last, last + 1 if stable < 0 else stable)


def made(path: Path, *entries: AbortedTransaction) -> TransactionIndex:
    index = TransactionIndex(str(path / "0.txnindex"))
    index.append(entries)
    return index


def again(index: TransactionIndex) -> list[AbortedTransaction]:
    return TransactionIndex(index.path).entries


@pytest.mark.parametrize("stored", STORED)
def test_the_bytes_are_those_of_kafka(tmp_path: Path, stored: dict[str, str]) -> None:
    path = tmp_path / "0.txnindex"
    path.write_bytes(bytes.fromhex(stored["hex"]))
    found = TransactionIndex(str(path)).entries
    path.unlink()
    made(tmp_path, *found)
    assert path.read_bytes().hex() == stored["hex"]


def test_what_a_reader_must_leave_out(tmp_path: Path) -> None:
    """Two that overlap, one alone, and one whose marker comes late."""
    entries = [entry(9, 2, stable=4), entry(11, 4), entry(20, 18), entry(40, 22, stable=30)]
    index = made(tmp_path, *entries)
    assert index.between(0, 2) == ([], True)
    assert index.between(0, 4) == (entries[:1], True)
    assert index.between(0, 5) == (entries[:2], True)
    assert index.between(10, 12) == ([entries[1]], True)  # from the middle of a transaction
    assert index.between(12, 19) == ([entries[2]], True)
    assert index.between(21, 23) == ([entries[3]], True)
    assert index.between(21, 31) == ([entries[3]], False)
    assert index.between(41, 99) == ([], False)


def test_a_log_without_aborted_transactions_has_no_file(tmp_path: Path) -> None:
    index = made(tmp_path)
    index.truncate_to(0)
    index.save()
    assert not index.exists and not os.listdir(tmp_path)
    assert index.between(0, 9) == ([], False)


def test_a_cut(tmp_path: Path) -> None:
    index = made(tmp_path, entry(3), entry(6), entry(9))
    index.truncate_to(10)
    index.truncate_to(6)
    assert index.entries == again(index) == [entry(3)]
    index.append([entry(7)])
    assert again(index) == [entry(3), entry(7)]
    index.truncate_to(0)
    assert again(index) == []


def test_entries_that_are_right_are_not_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = made(tmp_path, entry(3), entry(6), entry(9))
    written: list[int] = []
    write_all = transaction_index.write_all

    def noted(fd: int, data: bytes, position: int) -> None:
        written.append(position // ENTRY_SIZE)
        write_all(fd, data, position)

    monkeypatch.setattr(transaction_index, "write_all", noted)
    index.replace_from(6, [entry(6), entry(9)])
    assert not written
    index.replace_from(0, [entry(3), entry(6), entry(10), entry(12)])
    assert written == [2]
    assert again(index) == [entry(3), entry(6), entry(10), entry(12)]


def test_without_room_an_append_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = made(tmp_path, entry(3))
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", no_space)
        with pytest.raises(OSError, match="No space"):
            index.append([entry(6)])
    assert index.entries == again(index) == [entry(3)]
    index.append([entry(7)])
    assert again(index) == [entry(3), entry(7)]


def test_without_room_what_is_found_again_stays_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = made(tmp_path, entry(3))
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", no_space)
        index.replace_from(3, [entry(4), entry(8)])
        assert index.between(0, 99)[0] == [entry(4), entry(8)]
        with pytest.raises(OSError, match="No space"):
            index.save()
    assert again(index) == []
    index.append([entry(9)])
    assert again(index) == [entry(4), entry(8), entry(9)]


def test_other_errors_are_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    index = made(tmp_path, entry(3))
    monkeypatch.setattr(os, "pwrite", broken)
    with pytest.raises(OSError, match="Input/output"):
        index.replace_from(3, [entry(4)])


def test_a_torn_entry_is_left_out_and_written_over(tmp_path: Path) -> None:
    index = made(tmp_path, entry(3), entry(6))
    os.truncate(index.path, 2 * ENTRY_SIZE - 5)
    torn = TransactionIndex(index.path)
    assert torn.entries == [entry(3)]
    torn.append([entry(8)])
    assert again(index) == [entry(3), entry(8)]
    os.truncate(index.path, 2 * ENTRY_SIZE - 5)
    assert not TransactionIndex(index.path).is_damaged(0)
    assert os.path.getsize(index.path) == ENTRY_SIZE


@pytest.mark.parametrize("entries", [(entry(6), entry(3)), (entry(3), entry(3))])
def test_entries_that_do_not_rise_are_damage(
    tmp_path: Path, entries: tuple[AbortedTransaction, ...]
) -> None:
    index = made(tmp_path, *entries)
    assert TransactionIndex(index.path).is_damaged(0)
    assert again(index) == []


def test_an_entry_of_another_segment_is_damage(tmp_path: Path) -> None:
    """After a power cut a new file may have zeros in place of some bytes."""
    index = made(tmp_path, entry(3))
    assert not TransactionIndex(index.path).is_damaged(3)
    assert TransactionIndex(index.path).is_damaged(4)
    assert again(index) == []


def test_another_version_is_damage(tmp_path: Path) -> None:
    index = made(tmp_path, entry(3), entry(6))
    assert not TransactionIndex(index.path).is_damaged(0)
    data = bytearray(Path(index.path).read_bytes())
    data[ENTRY_SIZE + 1] = 1
    Path(index.path).write_bytes(data)
    damaged = TransactionIndex(index.path)
    assert damaged.is_damaged(0) and not damaged.is_damaged(0)
    assert again(index) == []
