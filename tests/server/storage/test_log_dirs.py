"""Nodes for failed or full data directories, and the halt when no controller acts on them."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.log.disk import DiskFailure
from kafka08.protocol.schemas import StopReplicaPartition, StopReplicaRequest
from kafka08.server.storage.log_dir_failures import QUIET_SECONDS
from kafka08.server.storage.log_dirs import (
    ASK_AGAIN_SECONDS,
    HANDOVER_SECONDS,
)
from tests.server.disks import NODE, T0, T1, Disks, eio
from tests.server.support import ME, PEER, Halted
from zk.errors import ZkConnectionError


def full(directory: str) -> DiskFailure:
    return DiskFailure(directory, OSError(errno.ENOSPC, "No space left on device"))


class Room:
    """The free space that os.statvfs returns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.blocks, self.files = 0, 100
        monkeypatch.setattr(os, "statvfs", lambda path: self)

    f_frsize = 4096
    f_files = 1000

    @property
    def f_bavail(self) -> int:
        return self.blocks

    @property
    def f_favail(self) -> int:
        return self.files


def test_what_a_full_disk_holds_is_to_be_led_by_others(
    disks: Disks, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = Room(monkeypatch)
    disks.report(full(disks.a))
    disks.dirs.step()
    assert disks.told_full() == [T0]
    assert disks.told() == []
    assert disks.rig.logs.full_dirs == {disks.a}
    disks.rig.follow("t", 0)  # another leads
    room.blocks, room.files = 1 << 20, 0
    disks.rig.clock.now += QUIET_SECONDS
    disks.dirs.step()
    assert disks.told_full() == [T0]
    room.files = 1
    disks.dirs.step()
    assert disks.told_full() == []
    assert disks.rig.logs.full_dirs == set()
    assert disks.rig.logs.log_dirs == [disks.a, disks.b]


def test_partitions_with_one_replica_stay_on_a_full_disk(
    disks: Disks, monkeypatch: pytest.MonkeyPatch
) -> None:
    Room(monkeypatch)
    disks.rig.lead("t", 0, replicas=[ME])
    disks.report(full(disks.a))
    disks.dirs.step()
    assert disks.told_full() == []


@pytest.mark.parametrize("isr", [[ME, PEER], [ME]])
def test_the_controller_is_asked_again_while_others_could_lead(
    disks: Disks, monkeypatch: pytest.MonkeyPatch, isr: list[int]
) -> None:
    Room(monkeypatch)
    disks.rig.lead("t", 0, replicas=[ME, PEER], isr=isr)
    disks.report(full(disks.a))
    disks.dirs.step()
    first = disks.rig.zk.get(NODE)[1].czxid
    began = disks.rig.clock.monotonic()
    while disks.rig.clock.monotonic() < began + ASK_AGAIN_SECONDS:
        assert disks.rig.zk.get(NODE)[1].czxid == first
        disks.dirs.step()
    assert (disks.rig.zk.get(NODE)[1].czxid != first) is (len(isr) > 1)


def test_a_shortage_is_two_lines_in_the_log(
    disks: Disks, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "kafka.log.LogManager")
    room = Room(monkeypatch)
    for _ in range(1000):
        disks.report(full(disks.a))
    disks.dirs.step()
    disks.rig.clock.now += 20
    disks.report(full(disks.a))
    assert [each.levelname for each in caplog.records] == ["ERROR"]
    room.blocks = 1 << 20
    disks.dirs.step()
    assert "1001 times" in caplog.text
    assert len(caplog.records) == 2
    # Refused although there is room: no two lines a second.
    for _ in range(100):
        disks.report(full(disks.a))
        disks.dirs.step()
    assert len(caplog.records) <= 2 + 2 * 100 / QUIET_SECONDS


def test_other_shortages_are_over_when_none_was_met_for_a_while(
    disks: Disks, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "kafka.log.LogManager")
    many = DiskFailure(disks.a, OSError(errno.EMFILE, "Too many open files"))
    disks.report(many, many)
    began = disks.rig.clock.monotonic()
    while len(caplog.records) == 1:
        disks.dirs.step()
    assert disks.rig.clock.monotonic() - began == QUIET_SECONDS
    assert disks.told_full() == []
    assert "2 times" in caplog.text


def test_zookeeper_is_told_for_the_session(disks: Disks) -> None:
    disks.report(DiskFailure(disks.a, eio()))
    disks.states[T0] = (PEER, (PEER,))
    disks.rig.zk.fails[NODE] = ZkConnectionError("away")
    disks.rig.runtime.while_waiting.append(disks.rig.zk.fails.clear)
    disks.dirs.step()
    assert disks.told() == [T0]
    assert disks.rig.zk.get(NODE)[1].ephemeral_owner
    disks.rig.zk.delete(NODE)
    disks.dirs.publish()  # a new session
    assert disks.told() == [T0]


def test_nothing_is_told_while_all_is_well(disks: Disks) -> None:
    disks.dirs.publish()
    assert disks.rig.zk.exists(NODE) is None


@pytest.mark.parametrize("state", [(PEER, (PEER,)), (ME, (ME,)), (-1, (ME,)), None])
def test_goes_on_once_leadership_has_moved_or_cannot(disks: Disks, state: Any) -> None:
    disks.report(DiskFailure(disks.a, eio()))

    def moves() -> None:
        disks.states.pop(T0)
        if state is not None:
            disks.states[T0] = state

    disks.rig.runtime.while_waiting += [lambda: None, lambda: None, moves]
    disks.dirs.step()
    assert disks.rig.asked_states == 3
    disks.rig.failures.changed.set()
    disks.dirs.step()
    assert disks.rig.asked_states == 3


def test_halts_when_the_controller_does_nothing(disks: Disks) -> None:
    began = disks.rig.clock.monotonic()
    disks.report(DiskFailure(disks.a, eio()))
    with pytest.raises(Halted, match="leaves 1 lost partitions with us"):
        disks.dirs.step()
    assert disks.rig.clock.monotonic() - began == HANDOVER_SECONDS


def test_a_partition_that_gets_no_log_is_told(
    disks: Disks, monkeypatch: pytest.MonkeyPatch
) -> None:
    import kafka08.log.manager as manager_module

    def fail(*_: object, **__: object) -> Any:
        raise eio()

    monkeypatch.setattr(manager_module, "Log", fail)
    assert disks.error_of(7, leader=ME, replicas=[ME, PEER]) == -1
    disks.dirs.step()
    assert disks.told() == [TopicPartition("t", 7)]


def test_after_a_start_without_a_directory_no_log_is_made(disks: Disks) -> None:
    """It would be there twice once the directory is back."""
    disks.rig.logs.lost_at_start = True
    assert disks.error_of(7, leader=PEER, replicas=[ME, PEER], isr=[PEER]) == -1
    assert disks.error_of(1, leader=PEER, leader_epoch=5, replicas=[ME, PEER]) == 0
    assert set(disks.rig.logs.logs) == {T0, T1}
    disks.dirs.step()
    assert disks.told() == [TopicPartition("t", 7)]


def delete(disks: Disks, partition: int) -> int:
    """The code in the answer to a StopReplica that deletes."""
    request = StopReplicaRequest(9, 1, True, [StopReplicaPartition("t", partition)])
    return int(disks.rig.call(request).partitions[0].error)


def test_a_log_in_a_failed_directory_is_not_reported_as_deleted(disks: Disks) -> None:
    """It would be there again after a restart, and nobody would delete it."""
    disks.report(DiskFailure(disks.a, eio()))
    assert delete(disks, 0) == delete(disks, 0) == -1
    assert delete(disks, 1) == delete(disks, 1) == delete(disks, 7) == 0


def test_after_a_start_without_a_directory_only_what_was_seen_is_deleted(disks: Disks) -> None:
    disks.rig.logs.lost_at_start = True
    assert delete(disks, 7) == -1
    assert delete(disks, 1) == 0
    disks.rig.logs.checkpoint_recovery_points()
    assert delete(disks, 1) == 0  # asked again by a controller that did not hear the answer
