"""Partitions that a full disk kept this broker from taking are taken once there is room."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.log import manager as manager_module
from kafka08.log.disk import DiskFailure
from kafka08.log.log import Log
from kafka08.protocol.schemas import LeaderAndIsrRequest, StopReplicaPartition, StopReplicaRequest
from tests.server.support import BROKERS, ME, PEER, Rig, message_set, partition_state
from zk.errors import ZkConnectionError

T = TopicPartition("t", 0)


class Disk:
    """Room for logs, or none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error: int | None = errno.ENOSPC
        monkeypatch.setattr(manager_module, "Log", self._log)

    def _log(self, *args: Any, **more: Any) -> Log:
        if self.error is not None:
            raise OSError(self.error, "no log")
        return Log(*args, **more)


@pytest.fixture
def disk(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def ask(rig: Rig, controller_epoch: int = 1, **state: Any) -> int:
    request = LeaderAndIsrRequest(9, controller_epoch, [partition_state("t", 0, **state)], BROKERS)
    return int(rig.call(request).partitions[0].error)


def take_back(rig: Rig) -> None:
    rig.call(StopReplicaRequest(9, 1, True, [StopReplicaPartition(*T)]))


@pytest.mark.parametrize("shortage", [errno.ENOSPC, errno.EMFILE, errno.EDQUOT])
def test_led_once_there_is_room(rig: Rig, disk: Disk, shortage: int) -> None:
    disk.error = shortage
    assert ask(rig) == -1
    rig.retries.retry()
    assert len(rig.retries) == 1 and T not in rig.replicas.partitions
    disk.error = None
    rig.retries.retry()
    assert rig.replicas.partitions[T].is_leader
    data = memoryview(bytearray(message_set("x")))
    assert rig.replicas.append_messages(T, data, 1).count == 1
    assert len(rig.retries) == 0


def test_followed_once_there_is_room(rig: Rig, disk: Disk) -> None:
    ask(rig, leader=PEER, replicas=[ME, PEER])
    disk.error = None
    rig.retries.retry()
    partition = rig.replicas.partitions[T]
    assert (partition.leader_id, partition.log is None) == (PEER, False)


def test_what_was_deleted_is_not_made_again_before_that_is_on_disk(
    rig: Rig, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(rig)
    disk.error = None

    def meanwhile(keys: object) -> list[DiskFailure]:
        rig.retries.retry()
        return []

    monkeypatch.setattr(rig.logs, "sync_deletions", meanwhile)
    take_back(rig)
    assert not rig.replicas.partitions and not rig.logs.logs


def test_what_the_controller_took_back_is_left_alone(rig: Rig, disk: Disk) -> None:
    ask(rig)
    take_back(rig)
    disk.error = None
    rig.retries.retry()
    assert not rig.replicas.partitions and not rig.logs.logs


def test_taken_back_in_the_middle(rig: Rig, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(rig)
    disk.error = None
    settings = rig.roles.log_config

    def slow(topic: str) -> Any:
        take_back(rig)
        return settings(topic)

    monkeypatch.setattr(rig.roles, "log_config", slow)
    rig.retries.retry()
    assert not rig.replicas.partitions and not rig.logs.logs


def test_a_newer_request_counts(rig: Rig, disk: Disk) -> None:
    ask(rig, leader_epoch=3)
    disk.error = None
    assert ask(rig, leader_epoch=4, leader=PEER, replicas=[ME, PEER]) == 0
    rig.retries.retry()
    assert rig.replicas.partitions[T].leader_epoch == 4
    assert len(rig.retries) == 0


def test_the_newer_of_two_refused(rig: Rig, disk: Disk) -> None:
    ask(rig, leader_epoch=3)
    ask(rig, leader_epoch=4, leader=PEER, replicas=[ME, PEER])
    disk.error = None
    rig.retries.retry()
    assert rig.replicas.partitions[T].leader_epoch == 4


def test_of_an_older_controller_is_given_up(rig: Rig, disk: Disk) -> None:
    ask(rig)
    rig.roles.check_controller(2)
    disk.error = None
    rig.retries.retry()
    assert len(rig.retries) == 0 and not rig.replicas.partitions


def test_not_while_leadership_is_in_doubt(rig: Rig, disk: Disk) -> None:
    ask(rig)
    disk.error = None
    rig.replicas.fence(True)
    rig.retries.retry()
    assert not rig.replicas.partitions
    rig.retries.clear()  # a new session
    rig.replicas.fence(False)
    rig.retries.retry()
    assert not rig.replicas.partitions


def test_settings_that_cannot_be_read(
    rig: Rig, disk: Disk, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    ask(rig)
    disk.error = None

    def away(topic: str) -> Any:
        raise ZkConnectionError("away")

    with monkeypatch.context() as patch:
        patch.setattr(rig.roles, "log_config", away)
        rig.retries.retry()
    assert "has to wait for its topic's settings" in caplog.text
    rig.retries.retry()
    assert rig.replicas.partitions[T].is_leader


def test_what_a_failed_disk_holds_is_not_tried(rig: Rig, disk: Disk) -> None:
    disk.error = errno.EIO
    assert ask(rig) == -1
    assert len(rig.retries) == 0
