"""The tool that shows, resets and deletes groups, around fakes of ZooKeeper and of one broker."""

from __future__ import annotations

import pytest

from kafka08.client.cluster import NoBrokerError
from kafka08.common import OFFSETS_TOPIC, TopicPartition
from kafka08.message.sets import encode_set
from kafka08.protocol import schemas
from kafka08.protocol.codec import encode
from tests.tools.groups.world import T0, T1, ClusterWithGroups
from tools.groups import consumer_groups
from tools.options import OptionError, UsageError


def test_describe(world: ClusterWithGroups) -> None:
    world.store(p0=4)
    world.member("ab.cd-1440000000000-1a2b", T0)
    world.member("idle")
    lines = world.groups("--describe", "--group", "g")
    assert lines[0] == ""
    assert lines[1].split()[-3:] == ["CONSUMER-ID", "HOST", "CLIENT-ID"]
    assert [line.split() for line in lines[2:]] == [
        ["g", "t", "0", "4", "10", "6", "g_ab.cd-1440000000000-1a2b", "ab.cd", "-"],
        ["g", "t", "1", "-", "20", "-", "-", "-", "-"],
        ["g", "-", "-", "-", "-", "-", "g_idle", "-", "-"],
    ]
    assert world.stderr == "Warning: Consumer group 'g' is rebalancing.\n"
    lines = world.groups("--describe", "--group", "g", "--members", "--verbose")
    assert [line.split() for line in lines[2:]] == [
        ["g", "g_ab.cd-1440000000000-1a2b", "ab.cd", "-", "1", "t:0"],
        ["g", "g_idle", "-", "-", "0", "-"],
    ]
    lines = world.groups("--describe", "--group", "g", "--state")
    assert lines[2].split() == ["g", "b0:9090", "(0)", "-", "PreparingRebalance", "2"]


def test_several_groups_have_a_column(world: ClusterWithGroups) -> None:
    world.store(p0=1)
    world.store("h", p1=2)
    lines = world.groups("--describe", "--all-groups")
    rows = [line.split()[:4] for line in lines if line and not line.startswith("GROUP")]
    assert rows == [["g", "t", "0", "1"], ["h", "t", "1", "2"]]
    words = ["--reset-offsets", "--all-groups", "--topic", "t:1", "--to-latest", "--export"]
    assert world.groups(*words) == ["g,t,1,20", "h,t,1,20", ""]


def test_list_replays_the_offsets_topic(world: ClusterWithGroups) -> None:
    world.store(p0=1)
    world.cluster.create(OFFSETS_TOPIC, 1)

    def entry(group: str, offset: int | None, version: int = 0) -> tuple[bytes, bytes | None]:
        key = bytes(encode(schemas.OffsetKey(version, group, "t", 0)))
        value = None if offset is None else bytes(encode(schemas.OffsetValue(0, offset, "", 1)))
        return key, value

    entries = [
        entry("alive", 1),
        entry("expired", 1),
        entry("expired", None),
        entry("deleted", 1),
        entry("deleted", -1),
        entry("later", 1, version=3),
        (b"\0", b"\0"),
    ]
    log = world.cluster.logs[TopicPartition(OFFSETS_TOPIC, 0)]
    log += [(offset, encode_set([pair], 0, offset)) for offset, pair in enumerate(entries)]
    assert world.groups("--list") == ["alive", "g"]


def test_reset_writes_where_the_group_keeps_offsets(world: ClusterWithGroups) -> None:
    words = ["--reset-offsets", "--group", "g", "--topic", "t", "--to-latest"]
    assert [line.split() for line in world.groups(*words, "--dry-run")[2:]] == [
        ["g", "t", "0", "10"],
        ["g", "t", "1", "20"],
    ]
    assert "/consumers/g" not in world.ensemble.nodes
    world.cluster.committed["g", T0] = 1
    world.groups(*words, "--execute")
    assert world.cluster.committed == {("g", T0): 10, ("g", T1): 20}
    assert "/consumers/g" not in world.ensemble.nodes
    world.store(p0=1)
    world.groups(
        "--reset-offsets", "--group", "g", "--all-topics", "--shift-by", "-99", "--execute"
    )
    assert world.offset(0) == world.offset(1) == "0"
    assert world.cluster.committed == {("g", T0): 0, ("g", T1): 0}


def test_a_new_groups_offsets_go_to_zookeeper(world: ClusterWithGroups) -> None:
    words = ["--reset-offsets", "--group", "g", "--topic", "t:1", "--to-offset", "7", "--execute"]
    world.groups(*words)
    assert world.offset(1) == "7"
    assert world.cluster.committed == {}


def test_a_member_that_comes_before_the_write_stops_it(
    world: ClusterWithGroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.store(p0=1)
    world.cluster.script = lambda port, request: (
        world.member("c", T0, T1) if isinstance(request, schemas.OffsetsRequest) else None
    )
    lines = world.groups(
        "--reset-offsets", "--group", "g", "--topic", "t", "--to-latest", "--execute"
    )
    assert lines[0].startswith("Error: Assignments can only be reset if the group 'g' is inactive")
    assert world.offset(0) == "1"


def test_delete_leaves_what_is_alive(world: ClusterWithGroups) -> None:
    world.store(p0=1)
    world.member("c", T0, T1)
    assert "still active" in world.groups("--delete", "--group", "g")[0]
    assert "still active" in world.groups("--delete", "--group", "g", "--topic", "t")[0]
    assert world.offset(0) == "1"
    world.ensemble.remove("/consumers/g/ids/g_c")
    world.groups("--delete", "--group", "g")
    assert "/consumers/g" not in world.ensemble.nodes


def test_failures_are_told(world: ClusterWithGroups, monkeypatch: pytest.MonkeyPatch) -> None:
    world.cluster.down = {9090}
    [line] = world.groups("--describe", "--group", "g")
    assert line.startswith("Error: Executing consumer group command failed due to")
    monkeypatch.setenv("KAFKA_TOOLS_STRICT_EXIT", "1")
    assert consumer_groups.main(["--zookeeper", "z", "--list"]) == 1
    assert issubclass(NoBrokerError, OSError)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--list"],
        ["--zookeeper", "z"],
        ["--zookeeper", "z", "--list", "--describe"],
        ["--zookeeper", "z", "--bootstrap-server", "b:1", "--list"],
        ["--zookeeper", "z", "--list", "--group", "g"],
        ["--zookeeper", "z", "--describe"],
        ["--zookeeper", "z", "--describe", "--group", "g", "--members", "--state"],
        ["--zookeeper", "z", "--delete"],
        ["--bootstrap-server", "b:1", "--delete", "--group", "g", "--topic", "t"],
        ["--bootstrap-server", "b", "--list"],
        ["--zookeeper", "z", "--delete-offsets", "--group", "g"],
    ],
)
def test_refused_command_lines(world: ClusterWithGroups, words: list[str]) -> None:
    with pytest.raises(UsageError):
        consumer_groups.main(words)


def test_no_prefixes(world: ClusterWithGroups) -> None:
    with pytest.raises(OptionError):
        consumer_groups.main(["--zookeeper", "z", "--desc", "--group", "g"])
