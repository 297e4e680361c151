"""A data directory fails: what becomes of its partitions, and who is told."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.errors import NotLeaderForPartitionError
from kafka08.log.disk import DiskFailure, SyncError
from kafka08.protocol.schemas import LeaderAndIsrRequest
from kafka08.server.log_dir_failures import QUIET_SECONDS
from kafka08.server.log_dirs import (
    ASK_AGAIN_SECONDS,
    HANDOVER_SECONDS,
)
from tests.server.support import BROKERS, ME, PEER, Halted, Rig, message_set, partition_state
from zk import znodes
from zk.errors import ZkConnectionError

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NODE = znodes.offline_replicas_path(ME)


def eio() -> OSError:
    return OSError(errno.EIO, "Input/output error")


def one() -> memoryview:
    return memoryview(bytearray(message_set("x")))


class Disks:
    """Broker 1 leads t-0 in a and follows for t-1 in b."""

    def __init__(self, rig: Rig, root: Path) -> None:
        self.rig = rig
        self.a, self.b = str(root / "a"), str(root / "b")
        rig.lead("t", 0, replicas=[ME, PEER])
        rig.follow("t", 1)
        assert [Path(rig.logs.logs[key].directory).parent.name for key in (T0, T1)] == ["a", "b"]
        self.dirs = rig.log_dirs
        self.states = rig.stored_states
        self.states[T0] = (ME, (ME, PEER))

    def report(self, *failures: DiskFailure) -> None:
        self.rig.replicas.disk_failed(failures)

    def error_of(self, partition: int, **state: Any) -> int:
        """What a LeaderAndIsr for a partition is answered."""
        request = LeaderAndIsrRequest(9, 1, [partition_state("t", partition, **state)], BROKERS)
        answer = self.rig.call(request)
        assert answer.error == 0
        return int(answer.partitions[0].error)

    def told(self) -> list[TopicPartition]:
        return znodes.decode_offline_replicas(NODE, self.rig.zk.get(NODE)[0]).failed

    def told_full(self) -> list[TopicPartition]:
        if self.rig.zk.exists(NODE) is None:
            return []
        return znodes.decode_offline_replicas(NODE, self.rig.zk.get(NODE)[0]).full


@pytest.fixture
def disks(make_rig: Callable[..., Rig], tmp_path: Path) -> Iterator[Disks]:
    yield Disks(make_rig(log_dirs=f"{tmp_path / 'a'},{tmp_path / 'b'}"), tmp_path)


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
    """Whether the set is on the disk nobody knows: it is not acknowledged, nor tried again."""

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


def full(directory: str) -> DiskFailure:
    return DiskFailure(directory, OSError(errno.ENOSPC, "No space left on device"))


class Room:
    """What os.statvfs says."""

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
