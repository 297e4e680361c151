"""A failed disk takes its directory offline and no other, whichever call meets it first."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import OFFSETS_TOPIC, TopicPartition
from kafka08.errors import NotLeaderForPartitionError
from kafka08.groups.records import Committed, GroupPartition
from kafka08.log.log import Log
from kafka08.protocol.schemas import (
    OffsetsPartition,
    OffsetsRequest,
    OffsetsTopic,
    StopReplicaPartition,
    StopReplicaRequest,
)
from kafka08.runtime import Scheduler
from kafka08.server.storage.log_maintenance import LogMaintenance
from tests.log.dead_disk import Dead
from tests.server.disks import T0, Disks, one
from tests.server.support import PEER, Rig

OFFSETS = TopicPartition(OFFSETS_TOPIC, 0)


@pytest.fixture
def disks(make_rig: Callable[..., Rig], tmp_path: Path) -> Iterator[Disks]:
    rig = make_rig(log_dirs=f"{tmp_path / 'a'},{tmp_path / 'b'}", log_index_size_max_bytes=4096)
    disks = Disks(rig, tmp_path)
    for _ in range(4):
        rig.replicas.append_messages(T0, one(), 1)
    log = disks.rig.logs.logs[T0]
    log.roll()
    rig.replicas.append_messages(T0, one(), 1)
    yield disks


@pytest.fixture
def dead(disks: Disks, monkeypatch: pytest.MonkeyPatch) -> Dead:
    return Dead(monkeypatch, disks.a)


def configure(disks: Disks, **changes: str) -> Log:
    log = disks.rig.logs.logs[T0]
    log.config = log.config.override({key.replace("_", "."): v for key, v in changes.items()})
    return log


def append(disks: Disks) -> None:
    assert disks.rig.produce(("t", 0, bytes(one()))) == {("t", 0): (6, -1)}


def append_and_roll(disks: Disks) -> None:
    configure(disks, segment_ms="1")
    disks.rig.clock.now += 10
    append(disks)


def fetch(disks: Disks) -> None:
    assert disks.rig.fetch(("t", 0, 2, 1000))["t", 0][0] == 6


def follower_fetches(disks: Disks) -> None:
    assert disks.rig.fetch(("t", 0, 2, 1000), replica_id=PEER)["t", 0][0] == 6


def offsets_by_time(disks: Disks) -> None:
    asked = OffsetsTopic("t", [OffsetsPartition(0, 5, 10)])
    assert disks.rig.call(OffsetsRequest(-1, [asked])).topics[0].partitions[0].error == 6


def flush(disks: Disks) -> None:
    configure(disks, flush_ms="0")
    disks.report(*disks.rig.logs.flush_dirty())


def recovery_points(disks: Disks) -> None:
    disks.report(*disks.rig.logs.checkpoint_recovery_points())


def high_watermarks(disks: Disks) -> None:
    disks.rig.checkpoint_high_watermarks()


def retention(disks: Disks) -> None:
    configure(disks, retention_ms="1")
    disks.rig.clock.now += 10**9
    disks.report(*disks.rig.logs.cleanup())


def deleted_files(disks: Disks) -> None:
    disks.rig.logs.logs[T0].delete_files([f"{disks.a}/t-0/x.deleted"])
    disks.rig.clock.now += 10**9
    disks.report(*disks.rig.logs.delete_due_files())


def rolled_segment(disks: Disks) -> None:
    rig = disks.rig
    tasks = LogMaintenance(rig.config, rig.runtime, rig.logs, rig.effects, rig.replicas.disk_failed)
    rig.effects.rolled(rig.logs.logs[T0])
    tasks.start(Scheduler(rig.runtime))
    rig.runtime.step("log-flusher")


def deletion(disks: Disks) -> None:
    disks.rig.call(StopReplicaRequest(9, 1, True, [StopReplicaPartition("t", 0)]))


@pytest.mark.parametrize(
    "meet",
    [
        append,
        append_and_roll,
        fetch,
        follower_fetches,
        offsets_by_time,
        flush,
        recovery_points,
        high_watermarks,
        retention,
        deleted_files,
        rolled_segment,
        deletion,
    ],
)
def test_met_first_by(disks: Disks, dead: Dead, meet: Callable[[Disks], None]) -> None:
    dead.die()
    meet(disks)
    assert dead.met
    assert disks.rig.logs.log_dirs == [disks.b]
    assert disks.rig.logs.offline == {T0}
    gone = 3 if meet is deletion else 6
    assert disks.rig.produce(("t", 0, bytes(one()))) == {("t", 0): (gone, -1)}
    disks.rig.lead("t", 1)
    assert disks.rig.produce(("t", 1, bytes(one()))) == {("t", 1): (0, 0)}


@pytest.mark.parametrize("is_gone", [True, False])
def test_the_disk_s_error_is_the_cause_of_what_is_answered(disks: Disks, is_gone: bool) -> None:
    """Also from compiled modules: such an answer is not logged for each request."""
    replicas = disks.rig.replicas
    error = OSError(errno.EIO if is_gone else errno.ENOSPC, "as told")
    answered = replicas.disk_error(replicas.partitions[T0], error)
    assert answered.__cause__ is error


def test_the_disk_s_error_is_the_cause_of_a_refused_append(
    disks: Disks, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OSError(errno.ENOSPC, "No space left on device")

    def refuse(*_: Any) -> int:
        raise error

    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(NotLeaderForPartitionError) as raised:
        disks.rig.replicas.append_messages(T0, one(), 1)
    assert raised.value.__cause__ is error


class TestOffsetsTopic:
    """The committed offsets are in a log on the disk that fails."""

    @pytest.fixture
    def group(self, make_rig: Callable[..., Rig], tmp_path: Path) -> Disks:
        rig = make_rig(
            log_dirs=f"{tmp_path / 'a'},{tmp_path / 'b'}", offsets_topic_num_partitions=1
        )
        self.key = GroupPartition("g", "t", 0)
        rig.lead(OFFSETS_TOPIC, 0)
        rig.runtime.run_spawned()
        assert rig.offsets.commit("g", {self.key: Committed(7, "", 1)}) == 0
        rig.replicas.partitions[OFFSETS].high_watermark = 1
        disks = Disks.__new__(Disks)
        disks.rig, disks.a, disks.b = rig, str(tmp_path / "a"), str(tmp_path / "b")
        return disks

    def test_a_load_that_cannot_be_read_is_done_again(
        self, group: Disks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Half of the offsets would have consumers begin elsewhere."""
        rig = group.rig
        real, failures = os.pread, [errno.EMFILE, errno.ENOMEM]

        def pread(*args: Any) -> bytes:
            if failures:
                raise OSError(failures.pop(), "for a moment")
            return real(*args)

        rig.lead(OFFSETS_TOPIC, 0)
        rig.offsets.leadership_changed(rig.replicas.partitions[OFFSETS], True)
        monkeypatch.setattr(os, "pread", pread)
        assert rig.offsets.check_coordinator("g") == 14
        rig.runtime.run_spawned()
        assert not failures
        assert rig.offsets.check_coordinator("g") == 0
        committed = rig.offsets.fetch(self.key)
        assert committed is not None and committed.offset == 7

    def test_a_load_from_a_failed_disk_ends(
        self, group: Disks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rig = group.rig
        rig.offsets.leadership_changed(rig.replicas.partitions[OFFSETS], True)
        dead = Dead(monkeypatch, group.a)
        dead.die()
        rig.runtime.run_spawned()
        assert dead.met and rig.logs.offline == {OFFSETS}
        assert rig.offsets.check_coordinator("g") == 16
