"""Leader epochs of batches: kept with the log, read again after a crash."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka08.log import leader_epochs
from kafka08.log.leader_epochs import FILE
from kafka08.log.log import Log
from kafka08.message.batch import header_of
from kafka08.message.scan import iter_entries
from tests.log.support import append, no_space, open_log, writable
from tests.message.batches import batch, simple, timed

ONE = simple(b"v")


def produce(log: Log, epoch: int, *, times: int = 1) -> None:
    log.rules = log.rules._replace(leader_epoch=epoch)
    for _ in range(times):
        log.append(writable(batch(ONE)))


def filled(path: Path) -> Log:
    """Epochs 2, 5 and 6 begin at 0, 3 and 5."""
    log = open_log(path)
    produce(log, 2, times=3)
    produce(log, 5)
    append(log, "plain")
    produce(log, 6, times=2)
    return log


def ends(log: Log) -> list[tuple[int, int]]:
    return [log.epochs.end_of(epoch, log.log_end_offset) for epoch in range(8)]


ENDS = [(0, 0), (1, 0), (2, 3), (2, 3), (2, 3), (5, 5), (6, 7), (6, 7)]


def test_batches_have_the_epoch_of_their_leader(tmp_path: Path) -> None:
    log = filled(tmp_path)
    data = log.read(0, 1 << 20).read()
    batches = [entry.position for entry in iter_entries(data) if entry.magic == 2]
    assert [header_of(data, at).leader_epoch for at in batches] == [2, 2, 2, 5, 6, 6]
    assert ends(log) == ENDS
    assert [log.epochs.epoch_at(offset) for offset in range(7)] == [2, 2, 2, 5, 5, 6, 6]
    assert log.epochs.end_of(-1, 7) == (-1, -1)


def test_a_log_without_batches_has_none(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.rules = log.rules._replace(leader_epoch=3)
    append(log, "a")
    log.append(writable(timed([(b"k", b"v")])))
    log.flush()
    assert log.epochs.end_of(3, 2) == (-1, -1) and log.epochs.epoch_at(0) == -1
    assert not (Path(log.directory) / FILE).exists()


def test_the_file_is_that_of_later_releases(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.flush()
    assert (Path(log.directory) / FILE).read_text() == "0\n3\n2 0\n5 3\n6 5\n"


@pytest.mark.parametrize("clean", [True, False])
def test_they_are_known_after_a_restart(tmp_path: Path, clean: bool) -> None:
    log = filled(tmp_path)
    log.flush()
    log.close()
    assert ends(open_log(tmp_path, clean_shutdown=clean, recovery_point=7)) == ENDS


@pytest.mark.parametrize("synced", range(8))
def test_after_a_crash_they_are_read_from_the_batches(tmp_path: Path, synced: int) -> None:
    log = open_log(tmp_path)
    for number, epoch in enumerate((2, 2, 2, 5, 5, 6, 6)):
        produce(log, epoch)
        if number % 2:
            log.roll()
        if number + 1 == synced:
            log.flush()
    again = open_log(tmp_path, recovery_point=synced)
    assert ends(again) == ENDS
    again.flush()
    assert (Path(log.directory) / FILE).read_text() == "0\n3\n2 0\n5 3\n6 5\n"


@pytest.mark.parametrize(
    "text", ["", "0\n", "1\n0\n", "0\n2\n1 1\n", "0\n1\nx 1\n", "0\n2\n5 1\n4 2\n"]
)
def test_a_damaged_file_is_made_again(tmp_path: Path, text: str) -> None:
    log = filled(tmp_path)
    log.flush()
    log.close()
    path = Path(log.directory) / FILE
    path.write_text(text)
    again = open_log(tmp_path, clean_shutdown=True)
    assert ends(again) == ENDS
    produce(again, 6)
    again.flush()
    assert path.read_text() == "0\n3\n2 0\n5 3\n6 5\n"


def test_followers_know_the_epochs_of_what_they_copy(tmp_path: Path) -> None:
    data = filled(tmp_path / "leader").read(0, 1 << 20).read()
    log = open_log(tmp_path / "follower")
    log.append(writable(data), assign_offsets=False)
    assert ends(log) == ENDS


def test_on_a_full_disk_they_are_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The messages are synced all the same, and the directory is in use."""
    log = open_log(tmp_path, flush_messages=1)
    synced: list[int] = []
    with monkeypatch.context() as full:
        full.setattr(leader_epochs, "write_lines", no_space)
        full.setattr(os, "fsync", synced.append)
        produce(log, 2)
    assert (log.log_end_offset, log.recovery_point) == (1, 0)
    assert synced
    log.flush()
    assert log.recovery_point == 1
    assert (Path(log.directory) / FILE).exists()


def test_truncation_takes_them_back(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.truncate_to(5)
    assert log.epochs.end_of(6, 5) == (5, 5)
    produce(log, 9)
    assert log.epochs.end_of(9, 6) == (9, 6) and log.epochs.end_of(6, 6) == (5, 5)
    log.truncate_fully_and_start_at(20)
    assert log.epochs.end_of(9, 20) == (-1, -1)


def test_epochs_below_the_log_s_start_are_left_out(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.roll()
    produce(log, 7)
    log.config = log.config.override({"retention.bytes": "0"})
    log.delete_old_segments()
    log.flush()
    text = (Path(log.directory) / FILE).read_text()
    assert text == f"0\n1\n7 {log.log_start_offset}\n"
