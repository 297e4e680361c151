"""The tools that show and steer groups, beside the original's on the same cluster."""

from __future__ import annotations

import json
import re
import uuid
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from integration import original
from integration.harness import (
    Broker,
    Process,
    Result,
    Tools,
    properties,
    zookeeper_client,
)
from integration.wire import entry, wait_until

CHECKER = "kafka.tools.ConsumerOffsetChecker"
VERIFIER = "kafka.tools.VerifyConsumerRebalance"
GROUPS = "kafka.admin.ConsumerGroupCommand"
CONSOLE = "kafka.tools.ConsoleConsumer"


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools("ours", tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    if not original.available():
        pytest.skip(original.missing())
    return Tools("original", tmp_path_factory.mktemp("original"))


def nodes(broker: Broker) -> AbstractContextManager[KazooClient]:
    return zookeeper_client(broker.zookeeper)


class Scene:
    """A topic of three partitions with 10, 20 and 30 messages, and groups to read it."""

    def __init__(self, broker: Broker, tools: Tools) -> None:
        self.broker = broker
        self.tools = tools
        self.topic, self.group = unique("seen"), unique("group")
        broker.create_topic(self.topic, 3)
        with broker.wire() as wire:
            for partition in range(3):
                count = 10 * (partition + 1)
                wire.produce(self.topic, partition, b"".join([entry(None, b"x")] * count))

    def run(self, *words: str, by: str = "zookeeper", code: int = 0) -> Result:
        where = self.broker.zookeeper if by == "zookeeper" else self.broker.address
        done = self.tools.run(GROUPS, f"--{by}", where, *words)
        assert done.code == code, (done.out, done.err)
        assert "Traceback" not in done.err
        return done

    def rows(self, *words: str, by: str = "zookeeper") -> list[list[str]]:
        """The cells of a table, without its blank line, its header and the group in front."""
        done = self.run(*words, by=by)
        assert done.lines[:1] == [""], (done.out, done.err)
        rows = [line.split() for line in done.lines[2:]]
        assert {row[0] for row in rows} <= {self.group}
        return [row[1:] for row in rows]

    def progress(self, by: str = "zookeeper") -> dict[int, list[str]]:
        """Partition -> offset, log end, lag."""
        rows = self.rows("--describe", "--group", self.group, by=by)
        return {int(row[1]): row[2:5] for row in rows}

    def consume(self, **settings: object) -> Process:
        """A console consumer of the group, once it owns everything."""
        config = self.tools.directory / f"{self.group}.properties"
        values = {"group.id": self.group, "auto.offset.reset": "smallest", **settings}
        config.write_text(properties({k.replace("_", "."): v for k, v in values.items()}))
        words = ["--zookeeper", self.broker.zookeeper, "--topic", self.topic]
        process = self.tools.background(CONSOLE, *words, "--consumer.config", str(config))
        with nodes(self.broker) as client:
            path = f"/consumers/{self.group}/owners/{self.topic}"

            def owned() -> bool:
                return client.exists(path) is not None and len(client.get_children(path)) == 3

            try:
                wait_until("the console consumer", 60, owned)
            except TimeoutError:
                process.kill()
                raise AssertionError(process.log) from None
        return process

    def store(self, **offsets: int) -> None:
        """ZooKeeper's offsets: p0=5."""
        with nodes(self.broker) as client:
            for name, offset in offsets.items():
                path = f"/consumers/{self.group}/offsets/{self.topic}/{name[1:]}"
                client.ensure_path(path)
                client.set(path, str(offset).encode())

    def commit(self, **offsets: int) -> None:
        """Kafka's offsets."""
        with self.broker.wire() as wire:
            wait_until("coordinator", 60, lambda: wire.coordinator_error(self.group) == 0)
            for name, offset in offsets.items():
                partition = int(name[1:])
                wait_until(
                    "commit",
                    60,
                    lambda p=partition, o=offset: wire.commit(self.group, self.topic, p, o) == 0,
                )


@pytest.fixture
def scene(broker: Broker, ours: Tools) -> Scene:
    return Scene(broker, ours)


def normalised(done: Result) -> tuple[int, list[str], list[str]]:
    """Exit status, lines without times and stack traces, and the broker table by id."""
    lines = [re.sub(r"^\[[-0-9 :,]+\]", "[time]", line) for line in done.lines]
    lines = [line for line in lines if not re.match(r"\s+at |\t|Caused by", line)]
    at = lines.index("BROKER INFO") if "BROKER INFO" in lines else len(lines)
    return done.code, lines[:at], sorted(lines[at:])


def test_offset_checker_equals_the_originals(scene: Scene, theirs: Tools) -> None:
    """ZooKeeper's offsets, Kafka's, both, none, a live group, and every failure."""
    zk = ["--zookeeper", scene.broker.zookeeper]

    def same(*words: str) -> Result:
        mine = scene.tools.run(CHECKER, *zk, *words)
        his = theirs.run(CHECKER, *zk, *words)
        assert normalised(mine) == normalised(his), (mine, his)
        return mine

    group, topic = scene.group, scene.topic
    absent = same("--group", group)
    assert absent.lines[0].startswith("Exiting due to: org.apache.zookeeper.KeeperException$NoNode")
    same("--group", group, "--topic", topic)
    same("--group", group, "--topic", "never-made")
    scene.store(p0=5)
    partly = same("--group", group, "--topic", topic)
    assert partly.lines[1].split() == [group, topic, "0", "5", "10", "5", "none"]
    assert partly.lines[2].split() == [group, topic, "1", "-1", "20", "unknown", "none"]
    same("--group", group, "--topic", f"{topic},never-made", "--broker-info")
    scene.commit(p1=7, p0=6)
    both = same("--group", group, "--topic", topic, "--socket.timeout.ms", "3000")
    assert [line.split()[3] for line in both.lines[1:]] == ["6", "7", "-1"]
    scene.store(p2=30)
    live = scene.consume(offsets_storage="kafka", auto_commit_interval_ms=100)
    try:
        wait_until("the end", 60, lambda: scene.progress()[1] == ["20", "20", "0"])
        owned = same("--group", group, "--broker-info")
        assert owned.lines[1].split()[6].startswith(f"{group}_")
        assert owned.lines[-1] == f"0 -> 127.0.0.1:{scene.broker.port}"
    finally:
        live.stop()
    same("--group", group)
    same("--group", group, "--topic", topic, "--retry.backoff.ms", "x")


@pytest.mark.parametrize("tool", [CHECKER, VERIFIER])
@pytest.mark.parametrize(
    "words", [[], ["--help"], ["--group"], ["--nope"], ["--topic", "t"]], ids=str
)
def test_command_lines_end_alike(ours: Tools, theirs: Tools, tool: str, words: list[str]) -> None:
    mine, his = ours.run(tool, *words), theirs.run(tool, *words)
    assert (mine.code, without_ours(mine.out)) == (his.code, his.out)
    assert mine.err.splitlines()[:1] == his.err.splitlines()[:1]


def without_ours(usage: str) -> str:
    """A table of options without those of ours for connections."""
    ours = r"^--(?:command-config|zk-tls-config-file) .*\n(?: .*\n|(?!--)\S.*\n)*"
    return re.sub(ours, "", usage, flags=re.MULTILINE)


def test_verifier_says_what_the_original_cannot(scene: Scene, theirs: Tools) -> None:
    where = ["--zookeeper.connect", scene.broker.zookeeper, "--group", scene.group]
    for tools in (scene.tools, theirs):
        # No such group: nobody subscribed, so nothing is missing.
        assert tools.run(VERIFIER, *where).lines == ["Rebalance operation successful !"]
    live = scene.consume()
    try:
        wait_until(
            "success",
            30,
            lambda: scene.tools.run(VERIFIER, *where).lines == ["Rebalance operation successful !"],
        )
        assert theirs.run(VERIFIER, *where).lines == ["Rebalance operation failed !"]
    finally:
        live.stop()
    # Nobody subscribed: nothing is missing.
    for tools in (scene.tools, theirs):
        assert tools.run(VERIFIER, *where).lines == ["Rebalance operation successful !"]
    with nodes(scene.broker) as client:
        # Members that do not act on what they see.
        base = f"/consumers/{scene.group}"
        node = {"version": 1, "subscription": {scene.topic: 1}, "pattern": "static"}
        client.create(
            f"{base}/ids/{scene.group}_m", json.dumps({**node, "timestamp": "1"}).encode()
        )
        client.create(f"{base}/owners/{scene.topic}/0", f"{scene.group}_m-0".encode())
        client.create(f"{base}/owners/{scene.topic}/1", b"stranger-0")
    failed, his = scene.tools.run(VERIFIER, *where), theirs.run(VERIFIER, *where)
    assert failed.lines == his.lines == ["Rebalance operation failed !"]
    for text in (
        f"No owner for partition [{scene.topic},2]",
        f"Owner stranger-0 for partition [{scene.topic},1] is not a valid member of consumer "
        f"group {scene.group}",
    ):
        assert text in failed.err
        assert text in his.err
    assert f"[{scene.topic},0]" not in failed.err
    assert f"[{scene.topic},0]" in his.err


# --- kafka-consumer-groups


def test_list_shows_groups_of_both_storages(scene: Scene, broker: Broker, ours: Tools) -> None:
    scene.store(p0=1)
    other = Scene(broker, ours)
    other.commit(p0=1)
    by_zookeeper = scene.run("--list").lines
    assert {scene.group, other.group} <= set(by_zookeeper)
    by_brokers = scene.run("--list", by="bootstrap-server").lines
    assert other.group in by_brokers
    assert scene.group not in by_brokers


@pytest.mark.parametrize("by", ["zookeeper", "bootstrap-server"])
def test_describe_finds_offsets_in_both_storages(scene: Scene, by: str) -> None:
    unknown = scene.run("--describe", "--group", scene.group, by=by)
    assert unknown.out == f"Error: Consumer group '{scene.group}' does not exist.\n"
    scene.store(p0=4)
    scene.commit(p2=31)
    assert scene.progress(by) == {0: ["4", "10", "6"], 2: ["31", "30", "-1"]}
    header = scene.run("--describe", "--group", scene.group, by=by).lines[1].split()
    assert header == [
        "GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID",
        "HOST", "CLIENT-ID",
    ]  # fmt: skip


def test_a_live_group_is_described_and_not_steered(scene: Scene) -> None:
    group, topic = scene.group, scene.topic
    live = scene.consume(auto_commit_interval_ms=100)
    try:
        wait_until("the end", 30, lambda: scene.progress()[2] == ["30", "30", "0"])
        [member] = scene.rows("--describe", "--group", group, "--members", "--verbose")
        assert member[0].startswith(f"{group}_") and member[0].count("-") >= 2
        assert member[3:] == ["3", f"{topic}:0,1,2"]
        [state] = scene.rows("--describe", "--group", group, "--state")
        assert state[:2] == [scene.broker.address, "(0)"]
        assert state[-2:] == ["Stable", "1"]
        words = ["--reset-offsets", "--group", group, "--topic", topic, "--to-earliest"]
        refused = scene.run(*words, "--execute")
        assert refused.lines[0] == (
            f"Error: Assignments can only be reset if the group '{group}' is inactive, "
            "but the current state is Stable."
        )
        assert len(refused.lines) == 3
        by_brokers = scene.run(*words, "--execute", by="bootstrap-server")
        if scene.broker.kind == "ours":
            assert by_brokers.out == refused.out
            view = ["--describe", "--group", group, "--members", "--verbose"]
            assert scene.rows(*view, by="bootstrap-server") == [member]
            told = scene.run("--delete", "--group", group, by="bootstrap-server")
            assert "could not be deleted due to" in told.out
        else:
            assert f"Whether group '{group}' has members was not checked" in by_brokers.err
            words = ["--describe", "--group", group, "--members"]
            told = scene.run(*words, by="bootstrap-server")
            assert "Brokers of 0.8.2.2 do not report the members of a group" in told.out
            return
        refused = scene.run("--delete", "--group", group)
        assert refused.out == (
            f"Error: Delete for group '{group}' failed because its consumers are still active.\n"
        )
        kept = scene.run("--delete-offsets", "--group", group, "--topic", topic)
        assert kept.out.count("Error: GROUP_SUBSCRIBED_TO_TOPIC") == 3
        assert scene.progress()[2] == ["30", "30", "0"]
    finally:
        live.stop()
    empty = scene.run("--describe", "--group", group)
    assert f"Consumer group '{group}' has no active members." in empty.err


@pytest.mark.parametrize(
    ("by", "storage"),
    [
        ("zookeeper", "zookeeper"),
        ("bootstrap-server", "kafka"),
        ("bootstrap-server", "both"),
        pytest.param("zookeeper", "kafka", marks=pytest.mark.slow),
        pytest.param("zookeeper", "both", marks=pytest.mark.slow),
        pytest.param("bootstrap-server", "zookeeper", marks=pytest.mark.slow),
    ],
)
def test_every_scenario(scene: Scene, by: str, storage: str, tmp_path: Path) -> None:
    group, topic = scene.group, scene.topic
    if storage != "kafka":
        scene.store(p0=5, p1=5, p2=5)
    if storage != "zookeeper":
        scene.commit(p0=5, p1=5, p2=5)

    def reset(*words: str) -> list[int]:
        rows = scene.rows("--reset-offsets", "--group", group, *words, "--execute", by=by)
        assert [row[:2] for row in rows] == [[topic, row[1]] for row in rows]
        stored = scene.progress(by)
        for row in rows:
            assert stored[int(row[1])][0] == row[2]
        return [int(row[2]) for row in rows]

    everything = ["--topic", topic]
    assert reset(*everything, "--to-latest") == [10, 20, 30]
    assert reset("--topic", f"{topic}:0,2", "--to-earliest") == [0, 0]
    assert reset("--all-topics", "--shift-by", "-3") == [0, 17, 0]
    assert reset("--all-topics", "--shift-by", "15") == [10, 20, 15]
    assert reset("--all-topics", "--to-offset", "12") == [10, 12, 12]
    assert reset(*everything, "--to-current") == [10, 12, 12]
    assert reset(*everything, "--by-duration", "P1D") == [0, 0, 0]
    assert reset(*everything, "--to-datetime", "2999-01-01T00:00:00.000") == [10, 20, 30]
    assert reset(*everything, "--to-datetime", "1999-01-01T00:00:00.000+01:00") == [0, 0, 0]
    plan = tmp_path / "plan.csv"
    words = ["--reset-offsets", "--group", group, *everything]
    exported = scene.run(*words, "--to-latest", "--export", by=by)
    assert exported.lines == [f"{topic},0,10", f"{topic},1,20", f"{topic},2,30", ""]
    plan.write_text(exported.out.replace(",30", ",29"))
    assert scene.progress(by)[2][0] == "0", "a dry run wrote"
    assert reset("--from-file", str(plan)) == [10, 20, 29]
    with nodes(scene.broker) as client, scene.broker.wire() as wire:
        path = f"/consumers/{group}/offsets/{topic}/2"
        in_zookeeper = client.get(path)[0] if client.exists(path) else None
        in_kafka = wire.committed(group, topic, 2)[0]
    assert in_zookeeper == (None if storage == "kafka" else b"29")
    assert in_kafka == (-1 if storage == "zookeeper" else 29)


def test_what_a_reset_refuses(scene: Scene, tmp_path: Path) -> None:
    group, topic = scene.group, scene.topic
    words = ["--reset-offsets", "--group", group]
    for wrong, text in [
        (["--topic", topic], "requires one of the following scenarios"),
        (["--to-latest"], "One of the reset scopes should be defined"),
        (["--topic", topic, "--to-latest", "--to-earliest"], 'Option "[to-earliest]" can\'t be'),
        (["--topic", topic, "--to-latest", "--execute", "--dry-run"], "only accepts one of"),
    ]:
        assert text in scene.run(*words, *wrong, code=1).err
    for wrong, text in [
        (["--topic", "never-made", "--to-latest"], "Topic never-made doesn't exist"),
        (["--topic", f"{topic}:7", "--to-latest"], f"Partition [{topic},7] doesn't exist"),
        (["--topic", f"{topic}:x", "--to-latest"], "is not a topic, nor a topic:0,1,2"),
        (["--topic", topic, "--shift-by", "1"], "there is no current committed offset"),
        (["--topic", topic, "--to-datetime", "yesterday"], "yesterday is not a time"),
        (["--topic", topic, "--by-duration", "1d"], "1d is not a duration"),
        (["--from-file", str(tmp_path / "none")], "No such file"),
    ]:
        done = scene.run(*words, *wrong, "--execute")
        assert done.lines[0].startswith("Error: Executing consumer group command failed due to")
        assert text in done.lines[0]
    with nodes(scene.broker) as client:
        assert client.exists("/brokers/topics/never-made") is None


def test_a_reset_group_goes_on_from_there(scene: Scene, theirs: Tools) -> None:
    """The original's consumer, offsets in both storages: it starts at the higher one."""
    scene.store(p0=10, p1=20, p2=30)
    scene.commit(p0=10, p1=20, p2=30)
    words = ["--reset-offsets", "--group", scene.group, "--topic", scene.topic]
    scene.run(*words, "--shift-by", "-4", "--execute")
    config = scene.tools.directory / "dual.properties"
    values = {"group.id": scene.group, "offsets.storage": "kafka", "dual.commit.enabled": "true"}
    config.write_text(properties({**values, "consumer.timeout.ms": 5000}))
    where = ["--zookeeper", scene.broker.zookeeper, "--topic", scene.topic]
    done = theirs.run(CONSOLE, *where, "--consumer.config", str(config))
    assert "Consumed 12 messages" in done.err


def test_deleting(scene: Scene, broker: Broker, ours: Tools) -> None:
    group, topic = scene.group, scene.topic
    scene.store(p0=1, p1=2)
    scene.commit(p1=3, p2=4)
    done = scene.run("--delete-offsets", "--group", group, "--topic", f"{topic}:0,1")
    assert done.lines[0].startswith("Request succeed for deleting offsets")
    assert scene.progress() == {2: ["4", "30", "26"]}
    done = scene.run("--delete", "--group", group)
    assert done.out == (
        f"Deleted all consumer group information for group '{group}' in zookeeper.\n"
    )
    assert "does not exist" in scene.run("--describe", "--group", group).out
    assert group not in scene.run("--list").lines
    again = scene.run("--delete", "--group", group)
    assert again.out == f"Error: Delete for group '{group}' failed because group does not exist.\n"

    only_kafka = Scene(broker, ours)
    only_kafka.commit(p0=3)
    done = only_kafka.run("--delete", "--group", only_kafka.group, by="bootstrap-server")
    assert done.out == (
        f"Deletion of requested consumer groups ('{only_kafka.group}') was successful.\n"
    )
    assert only_kafka.group not in only_kafka.run("--list", by="bootstrap-server").lines
    done = only_kafka.run("--delete", "--group", only_kafka.group, by="bootstrap-server")
    assert done.lines[1].endswith("could not be deleted due to: GROUP_ID_NOT_FOUND")


def test_delete_of_one_topic(scene: Scene, broker: Broker) -> None:
    group, topic = scene.group, scene.topic
    with nodes(broker) as client:
        for name in (topic, "another"):
            client.create(f"/consumers/{group}/offsets/{name}/0", b"1", makepath=True)
        done = scene.run("--delete", "--group", group, "--topic", topic)
        assert done.out == (
            f"Deleted consumer group information for group '{group}' topic '{topic}' in "
            "zookeeper.\n"
        )
        assert client.get_children(f"/consumers/{group}/offsets") == ["another"]
        scene.run("--delete", "--topic", "another")
        assert client.exists(f"/consumers/{group}") is None


def test_garbage_in_a_groups_nodes_is_named(scene: Scene) -> None:
    group, topic = scene.group, scene.topic
    with nodes(scene.broker) as client:
        base = f"/consumers/{group}"
        client.create(f"{base}/ids/odd", b'{"subscription": [', makepath=True)
        client.create(f"{base}/owners/{topic}/0", b"\xff\xfe", makepath=True)
        client.create(f"{base}/owners/{topic}/zero", b"x", makepath=True)
        client.create(f"{base}/offsets/{topic}/0", b"many", makepath=True)
        client.create(f"{base}/offsets/{topic}/1", b"3", makepath=True)
        done = scene.run("--describe", "--group", group)
        assert f"Malformed data at {base}/ids/odd" in done.err
        assert f"Malformed data at {base}/offsets/{topic}/0" in done.err
        assert [line.split()[2:4] for line in done.lines[2:4]] == [["0", "-"], ["1", "3"]]
        client.delete(f"{base}/ids/odd")
        words = ["--reset-offsets", "--group", group, "--topic", topic, "--to-earliest"]
        scene.run(*words, "--execute")
        assert client.get(f"{base}/offsets/{topic}/0")[0] == b"0"


def test_registrations_of_any_kind_count(scene: Scene) -> None:
    """A filter that only another release's member understands keeps a group alive as well."""
    with nodes(scene.broker) as client:
        node = {"version": 1, "subscription": {"(?<x>a)": 1}, "pattern": "white_list"}
        path = f"/consumers/{scene.group}/ids/java"
        client.create(path, json.dumps(node).encode(), makepath=True)
        words = ["--reset-offsets", "--group", scene.group, "--topic", scene.topic, "--to-latest"]
        assert "is inactive" in scene.run(*words, "--execute").out
