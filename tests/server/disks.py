"""A broker with two data directories, one of which will fail: what the tests of that share."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

from kafka08.common import TopicPartition
from kafka08.log.disk import DiskFailure
from kafka08.protocol.schemas import LeaderAndIsrRequest
from tests.server.support import BROKERS, ME, PEER, Rig, message_set, partition_state
from zk import znodes

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
        """The code in the answer to a LeaderAndIsr for a partition."""
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
