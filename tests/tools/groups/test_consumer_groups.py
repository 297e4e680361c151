"""The three tools that look at groups, around fakes of ZooKeeper and of one broker."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.client.cluster import NoBrokerError
from kafka08.common import OFFSETS_TOPIC, Broker, TopicPartition
from kafka08.consumer.assignors import thread_ids
from kafka08.errors import ProtocolError
from kafka08.message.sets import encode_set
from kafka08.protocol import admin_schemas as a
from kafka08.protocol import schemas
from kafka08.protocol.codec import encode
from kafka08.server.apis.group_members import DescribeGroupsApi
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from tools import admin_command
from tools.groups import consumer_groups, consumer_offset_checker, members
from tools.groups import service as group_service
from tools.groups import verify_consumer_rebalance as verifier
from tools.options import OptionError, UsageError
from zk import znodes
from zk.znodes import ConsumerRegistration

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class World:
    """A broker with topic t of two partitions, 10 and 20 messages long."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.runtime = FakeRuntime()
        self.ensemble = FakeZooKeeper()
        self.cluster = FakeCluster([Broker(0, "b0", 9090)])
        self.put("/brokers/ids/0", znodes.encode_broker(znodes.BrokerRegistration("b0", 9090)))
        self.put("/brokers/topics/t", znodes.encode_topic({0: [0], 1: [0]}))
        for partition, count in enumerate((10, 20)):
            path = znodes.partition_state_path("t", partition)
            state = znodes.PartitionStateNode(0, 0, 1, (0,))
            self.put(path, znodes.encode_partition_state(state))
            self.cluster.create("t", 2) if not partition else None
            self.cluster.append("t", partition, *[b"x"] * count)
        monkeypatch.setattr(admin_command, "connect", lambda urls: Session(self.ensemble))
        real = group_service.GroupService

        def service(*args: Any, **options: Any) -> Any:
            return real(*args, runtime=self.runtime, channel=self.cluster.channel, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(consumer_groups, "GroupService", service)
        checker = consumer_offset_checker.OffsetChecker

        def make_checker(*args: Any) -> Any:
            return checker(*args, runtime=self.runtime, channel=self.cluster.channel)  # type: ignore[arg-type]

        monkeypatch.setattr(consumer_offset_checker, "OffsetChecker", make_checker)

    def put(self, path: str, data: bytes = b"") -> None:
        self.ensemble.put(path, data)

    def store(self, group: str = "g", **offsets: int) -> None:
        for name, offset in offsets.items():
            self.put(f"/consumers/{group}/offsets/t/{name[1:]}", str(offset).encode())

    def member(self, name: str, *owned: TopicPartition, streams: int = 1) -> None:
        consumer = f"g_{name}"
        node = znodes.encode_consumer(ConsumerRegistration({"t": streams}))
        self.put(f"/consumers/g/ids/{consumer}", node)
        for tp, thread in zip(owned, thread_ids(consumer, streams) * 9, strict=False):
            self.put(znodes.consumer_owner_path("g", *tp), thread.encode())

    def offset(self, partition: int) -> str:
        return self.ensemble.text(f"/consumers/g/offsets/t/{partition}")

    def groups(self, *words: str) -> list[str]:
        assert consumer_groups.main(["--zookeeper", "z", *words]) == 0
        printed = self.capsys.readouterr()
        self.stderr = printed.err
        return printed.out.splitlines()

    def check(self, *words: str, group: str = "g") -> list[str]:
        assert consumer_offset_checker.main(["--zookeeper", "z", "--group", group, *words]) == 0
        return self.capsys.readouterr().out.splitlines()

    def verify(self) -> str:
        assert verifier.main(["--zookeeper.connect", "z", "--group", "g"]) == 0
        return self.capsys.readouterr().out


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> World:
    return World(monkeypatch, capsys)


# --- kafka-consumer-offset-checker


def test_checker_prints_a_row_by_partition(world: World) -> None:
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


def test_checker_without_offset_leader_or_group(world: World) -> None:
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


def test_checker_tells_offsets_the_coordinator_refuses(world: World) -> None:
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


# --- VerifyConsumerRebalance


def test_verifier(world: World, caplog: pytest.LogCaptureFixture) -> None:
    good, bad = "Rebalance operation successful !\n", "Rebalance operation failed !\n"
    assert world.verify() == good
    world.member("c", T0, T1, streams=2)
    assert world.verify() == good
    world.put("/consumers/g/owners/t/1", b"g_c-2")
    assert world.verify() == bad
    assert (
        "Owner g_c-2 for partition [t,1] is not a valid member of consumer group g" in caplog.text
    )
    world.ensemble.remove("/consumers/g/owners/t/0")
    world.ensemble.remove("/consumers/g/owners/t/1")
    assert world.verify() == bad
    assert "No owner for partition [t,0]" in caplog.text
    assert "No owners for any partitions for topic t" in caplog.text


# --- kafka-consumer-groups


def test_describe(world: World) -> None:
    world.store(p0=4)
    world.member("ab.cd-1440000000000-1a2b", T0)
    world.member("idle")
    lines = world.groups("--describe", "--group", "g")
    assert lines[0] == ""
    assert lines[1].split()[-1] == "CONSUMER-ID"
    assert [line.split() for line in lines[2:]] == [
        ["t", "0", "4", "10", "6", "g_ab.cd-1440000000000-1a2b"],
        ["t", "1", "-", "20", "-", "-"],
        ["-", "-", "-", "-", "-", "g_idle"],
    ]
    assert world.stderr == "Warning: Consumer group 'g' is rebalancing.\n"
    lines = world.groups("--describe", "--group", "g", "--members", "--verbose")
    assert [line.split() for line in lines[2:]] == [
        ["g_ab.cd-1440000000000-1a2b", "ab.cd", "-", "1", "t(0)"],
        ["g_idle", "-", "-", "0", "-"],
    ]
    lines = world.groups("--describe", "--group", "g", "--state")
    assert lines[2].split() == ["b0:9090", "(0)", "-", "PreparingRebalance", "2"]


def test_several_groups_have_a_column(world: World) -> None:
    world.store(p0=1)
    world.store("h", p1=2)
    lines = world.groups("--describe", "--all-groups")
    rows = [line.split()[:4] for line in lines if line and not line.startswith("GROUP")]
    assert rows == [["g", "t", "0", "1"], ["h", "t", "1", "2"]]
    words = ["--reset-offsets", "--all-groups", "--topic", "t:1", "--to-latest", "--export"]
    assert world.groups(*words) == ["g,t,1,20", "h,t,1,20", ""]


def test_list_replays_the_offsets_topic(world: World) -> None:
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


def test_reset_writes_where_the_group_keeps_offsets(world: World) -> None:
    words = ["--reset-offsets", "--group", "g", "--topic", "t", "--to-latest"]
    assert [line.split() for line in world.groups(*words, "--dry-run")[2:]] == [
        ["t", "0", "10"],
        ["t", "1", "20"],
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


def test_a_new_groups_offsets_go_to_zookeeper(world: World) -> None:
    words = ["--reset-offsets", "--group", "g", "--topic", "t:1", "--to-offset", "7", "--execute"]
    world.groups(*words)
    assert world.offset(1) == "7"
    assert world.cluster.committed == {}


def test_a_member_that_comes_before_the_write_stops_it(
    world: World, monkeypatch: pytest.MonkeyPatch
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


def test_delete_leaves_what_is_alive(world: World) -> None:
    world.store(p0=1)
    world.member("c", T0, T1)
    assert "still active" in world.groups("--delete", "--group", "g")[0]
    assert "still active" in world.groups("--delete", "--group", "g", "--topic", "t")[0]
    assert world.offset(0) == "1"
    world.ensemble.remove("/consumers/g/ids/g_c")
    world.groups("--delete", "--group", "g")
    assert "/consumers/g" not in world.ensemble.nodes


def test_failures_are_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.cluster.down = {9090}
    [line] = world.groups("--describe", "--group", "g")
    assert line.startswith("Error: Executing consumer group command failed due to")
    monkeypatch.setenv("KAFKA_TOOLS_STRICT_EXIT", "1")
    assert consumer_groups.main(["--zookeeper", "z", "--list"]) == 1
    assert issubclass(NoBrokerError, OSError)


def test_what_a_broker_tells_of_members_reads_as_zookeeper_does(world: World) -> None:
    world.member("a", T0, streams=2)
    world.member("b")
    world.put("/consumers/g/owners/t/1", b"stranger-0")
    client: Any = Session(world.ensemble)
    seen = members.read_group(client, "g")
    described = DescribeGroupsApi(client)._in_zookeeper("g")
    assert members.from_described(described, {"t": [0, 1], "u": [0]}) == seen
    assert seen.misplaced() == [T1]
    other = described._replace(members=[a.GroupMember("x", "", "", b"{}", b"\0\0")])
    with pytest.raises(ProtocolError, match="in other words"):
        members.from_described(other, {})


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
def test_refused_command_lines(world: World, words: list[str]) -> None:
    with pytest.raises(UsageError):
        consumer_groups.main(words)


def test_no_prefixes(world: World) -> None:
    with pytest.raises(OptionError):
        consumer_groups.main(["--zookeeper", "z", "--desc", "--group", "g"])
