"""High watermarks outlive the process, those of deleted partitions do not."""

from __future__ import annotations

from collections.abc import Callable

from kafka08.common import TopicPartition
from kafka08.log.checkpoint import OffsetCheckpoint
from kafka08.protocol.schemas import StopReplicaPartition, StopReplicaRequest
from tests.server.support import ME, PEER, Rig

T = TopicPartition("t", 0)


def test_high_watermarks_survive_a_restart(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig()
    rig.lead(replicas=[ME, PEER])
    rig.append("a", "b", "c")
    rig.fetch(("t", 0, 2, 0), replica_id=PEER)
    rig.checkpoint_high_watermarks()
    rig.close()
    rig = make_rig()
    # what the controller has not assigned yet stays on record
    rig.checkpoint_high_watermarks()
    path = rig.directory / "replication-offset-checkpoint"
    assert OffsetCheckpoint(str(path)).read() == {T: 2}
    assert rig.follow().high_watermark == 2


def test_deleted_partitions_leave_the_checkpoint(rig: Rig) -> None:
    rig.lead()
    rig.append("a")
    rig.checkpoint_high_watermarks()
    rig.call(StopReplicaRequest(9, 1, True, [StopReplicaPartition(*T)]))
    rig.checkpoint_high_watermarks()
    assert OffsetCheckpoint(str(rig.directory / "replication-offset-checkpoint")).read() == {}
