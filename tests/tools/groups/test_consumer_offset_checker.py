"""The rows that kafka-consumer-offset-checker prints of a group."""

from __future__ import annotations

from typing import Any

from kafka08.protocol import schemas
from tests.tools.groups.world import T0, T1, ClusterWithGroups


def test_checker_prints_a_row_by_partition(world: ClusterWithGroups) -> None:
    world.store(p0=4)
    world.cluster.committed["g", T1] = 25
    world.member("host-1-a", T0)
    assert world.check("--topic", "t", "--broker-info") == [
        "Group           Topic                          Pid Offset          logSize         "
        "Lag             Owner",
        "g               t                              0   4               10              "
        "6               g_host-1-a-0",
        "g               t                              1   25              20              "
        "-5              none",
        "BROKER INFO",
        "0 -> b0:9090",
    ]
    assert world.check() == world.check("--topic", "t")


def test_checker_without_offset_leader_or_group(world: ClusterWithGroups) -> None:
    world.store(p0=4)
    world.ensemble.remove("/brokers/topics/t/partitions/1/state")
    rows = world.check("--topic", "t")
    assert rows[1].split() == ["g", "t", "0", "4", "10", "6", "none"]
    assert rows[2] == "No broker for partition t - 1"
    world.ensemble.remove("/brokers/ids/0")
    world.put("/brokers/ids/0", b"{}")
    [line] = world.check("--topic", "t")
    assert line == "Exiting due to: no broker is known."
    [line] = world.check(group="h")
    assert line.endswith("KeeperErrorCode = NoNode for /consumers/h/owners.")


def test_checker_tells_offsets_the_coordinator_refuses(world: ClusterWithGroups) -> None:
    def refuse(port: int, request: Any) -> Any:
        if isinstance(request, schemas.OffsetFetchRequest):
            entries = [schemas.OffsetFetchPartitionResponse(p, -1, "", 14) for p in (0, 1)]
            return schemas.OffsetFetchResponse([schemas.OffsetFetchTopicResponse("t", entries)])
        return None

    world.cluster.script = refuse
    lines = world.check("--topic", "t")
    assert lines[0] == (
        "Could not fetch offset for [t,0] due to kafka.common.OffsetsLoadInProgressException."
    )
    assert lines[3].split() == ["g", "t", "0", "unknown", "10", "unknown", "none"]
