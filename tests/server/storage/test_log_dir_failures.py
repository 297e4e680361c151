"""A data directory fails or is full: what becomes of its partitions and of requests."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest

from kafka08.errors import NotLeaderForPartitionError
from kafka08.log.disk import DiskFailure, SyncError
from tests.server.disks import T0, T1, Disks, eio, one
from tests.server.support import Halted, message_set


def test_its_partitions_go_offline_and_the_others_stay(disks: Disks, caplog: Any) -> None:
    replicas = disks.rig.replicas
    disks.report(DiskFailure(disks.a, eio()))
    assert disks.rig.logs.log_dirs == [disks.b]
    assert not replicas.partitions[T0].is_leader
    with pytest.raises(NotLeaderForPartitionError):
        replicas.append_messages(T0, one(), 1)
    assert replicas.partitions[T1].any_log() is not None
    assert f"The data directory {disks.a} has failed, and with it 1 partitions" in caplog.text
    disks.report(DiskFailure(disks.a, eio()))
    assert caplog.text.count("has failed, and") == 1


def test_waiting_producers_are_told_to_look_elsewhere(disks: Disks) -> None:
    partition = disks.rig.replicas.partitions[T0]
    disks.report(DiskFailure(disks.a, eio()))
    with pytest.raises(NotLeaderForPartitionError):
        partition.check_enough_replicas_reach_offset(1, -1)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_sync_that_an_append_needs_fails(
    disks: Disks, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Whether the set is on the disk is unknown: it is not acknowledged, nor tried again."""

    def fail(fd: int) -> None:
        raise OSError(number, "no sync")

    replicas = disks.rig.replicas
    partition = replicas.partitions[T0]
    log = partition.any_log()
    log.config = log.config.override({"flush.messages": "1"})
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(NotLeaderForPartitionError, match="no sync"):
        replicas.append_messages(T0, one(), 1)
    monkeypatch.undo()
    assert disks.rig.logs.offline == {T0}
    assert log.recovery_point == 0 and partition.high_watermark == 0
    with pytest.raises(NotLeaderForPartitionError):
        replicas.append_messages(T0, one(), 1)
    with pytest.raises(NotLeaderForPartitionError):
        replicas.read_message_set(T0, 0, 100, -1)


def test_a_full_disk_refuses_and_nothing_more(
    disks: Disks, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", fail)
    # Code 6, after which every client tries again; -1 is final to most.
    with pytest.raises(NotLeaderForPartitionError, match="No space left"):
        disks.rig.replicas.append_messages(T0, one(), 1)
    monkeypatch.undo()
    assert f"I/O error in {disks.a}" in caplog.text
    assert disks.rig.replicas.append_messages(T0, one(), 1).first_offset == 0


def test_a_refused_produce_is_not_logged_for_itself(
    disks: Disks, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", fail)
    for _ in range(3):
        assert disks.rig.produce((*T0, message_set("x"))) == {T0: (6, -1)}
    monkeypatch.undo()
    assert len(caplog.records) == 1


def test_a_failed_sync_is_a_failure_whatever_its_number(disks: Disks) -> None:
    disks.report(DiskFailure(disks.a, SyncError(errno.ENOSPC, "No space left")))
    assert disks.rig.logs.log_dirs == [disks.b]


def test_a_file_removed_by_hand_is_none(disks: Disks) -> None:
    disks.report(DiskFailure(disks.a, FileNotFoundError(errno.ENOENT, "none")))
    assert len(disks.rig.logs.log_dirs) == 2


def test_the_last_directory_halts_the_broker(disks: Disks) -> None:
    disks.report(DiskFailure(disks.b, eio()))
    with pytest.raises(Halted, match="No data directory is left"):
        disks.report(DiskFailure(disks.a, eio()))
