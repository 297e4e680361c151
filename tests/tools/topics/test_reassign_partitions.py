from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka08 import admin
from kafka08.common import TopicPartition
from tests.fakes.runtime import FakeClock
from tests.tools.command import Command
from tests.tools.zk_support import failure_of, fake_zookeeper, put_topic
from tools.admin_command import STRICT_EXIT
from tools.options import UsageError
from tools.topics import reassign_partitions
from zk import znodes
from zk.errors import ZkConnectionError

MOVE = '{"topic":"t","partition":0,"replicas":[2,3]}'
STAY = '{"topic":"t","partition":1,"replicas":[2,3]}'
CURRENT = (
    '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]},'
    '{"topic":"t","partition":1,"replicas":[2,3]}]}'
)


class Reassignment(Command):
    """The command on topic t, partitions 0 on 1,2 and 1 on 2,3."""

    def __init__(self, zk: Any, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(reassign_partitions.main, "--zookeeper", "z", capsys=capsys)
        self.zk = zk
        self._directory = directory
        put_topic(zk, "t", [1, 2], [2, 3])

    def file(self, text: str) -> str:
        path = self._directory / "input.json"
        path.write_text(text)
        return str(path)

    def moves(self, *entries: str) -> str:
        return self.file(f'{{"version":1,"partitions":[{",".join(entries)}]}}')

    def run(self, *words: str, status: int = 0) -> list[str]:
        lines = super().run(*words, status=status)
        assert self.zk.closed
        return lines

    def execute(self, *entries: str, status: int = 0) -> list[str]:
        return self.run(
            "--execute", "--reassignment-json-file", self.moves(*entries), status=status
        )

    def verify(self, *entries: str) -> list[str]:
        return self.run("--verify", "--reassignment-json-file", self.moves(*entries))

    def refused(self, *words: str) -> str:
        lines = self.run(*words)
        message = lines[0].removeprefix("Partitions reassignment failed due to ")
        assert message != lines[0]
        [trace] = failure_of(lines, lines[0])
        assert trace.endswith(f": {message}")
        return message


@pytest.fixture
def tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Reassignment:
    return Reassignment(fake_zookeeper(monkeypatch), tmp_path, capsys)


def test_generate(tool: Reassignment) -> None:
    put_topic(tool.zk, "other", [9])
    topics = tool.file('{"topics":[{"topic":"t"},{"topic":"unknown"}],"version":1}')
    words = ["--generate", "--topics-to-move-json-file", topics, "--broker-list", "5,6,7"]
    lines = tool.run(*words)
    assert lines[:4] == [
        "Current partition replica assignment", "", CURRENT,
        "Proposed partition reassignment configuration",
    ]  # fmt: skip
    assert lines[4] == ""
    proposed = json.loads(lines[5])
    assert [(e["topic"], e["partition"]) for e in proposed["partitions"]] == [("t", 0), ("t", 1)]
    for entry in proposed["partitions"]:
        assert len(set(entry["replicas"]) & {5, 6, 7}) == 2
    assert lines[5:] == [json.dumps(proposed, separators=(",", ":"))]


@pytest.mark.parametrize(
    ("topics", "brokers", "message"),
    [
        ('[{"topic":"t"}]', "1,1,2,2", "Broker list contains duplicate entries: 1,2"),
        ('[{"topic":"t"}]', "1,x", 'For input string: "x"'),
        ('[{"topic":"t"}]', "1", "replication factor: 2 larger than available brokers: 1"),
        (
            '[{"topic":"t"},{"topic":"t"}]', "1",
            "List of topics to reassign contains duplicate entries: t",
        ),
    ],
)  # fmt: skip
def test_generate_refused(tool: Reassignment, topics: str, brokers: str, message: str) -> None:
    file = tool.file(f'{{"topics":{topics}}}')
    words = ["--generate", "--topics-to-move-json-file", file, "--broker-list", brokers]
    assert tool.refused(*words) == message


@pytest.mark.parametrize("text", ["", "no json", "{}", '{"topics":[]}'])
def test_generate_for_nothing(tool: Reassignment, text: str) -> None:
    words = ["--topics-to-move-json-file", tool.file(text), "--broker-list", "1"]
    assert tool.run("--generate", *words)[2::3] == ['{"version":1,"partitions":[]}'] * 2


def test_execute(tool: Reassignment) -> None:
    assert tool.execute(MOVE) == [
        "Current partition replica assignment",
        "",
        CURRENT,
        "",
        "Save this to use as the --reassignment-json-file option during rollback",
        f'Successfully started reassignment of partitions {{"version":1,"partitions":[{MOVE}]}}',
    ]
    assert admin.fetch_reassignments(tool.zk) == {TopicPartition("t", 0): (2, 3)}


def test_execute_skips_what_does_not_exist(
    tool: Reassignment, caplog: pytest.LogCaptureFixture
) -> None:
    assert tool.execute(MOVE, MOVE.replace("0", "7"))[-1].startswith("Successfully started")
    assert admin.fetch_reassignments(tool.zk) == {TopicPartition("t", 0): (2, 3)}
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        (
            "kafka.admin.ReassignPartitionsCommand",
            "Skipping reassignment of partition [t,7] since it doesn't exist",
        )
    ]


def test_execute_with_nothing_that_exists(
    tool: Reassignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The original would leave an empty node, which blocks every later reassignment."""
    entry = MOVE.replace('"t"', '"no"')
    last = "Failed to reassign partitions List(([no,0],List(2, 3)))"
    assert tool.execute(entry)[-1] == last
    assert tool.zk.exists(znodes.REASSIGN_PARTITIONS) is None
    monkeypatch.setenv(STRICT_EXIT, "1")
    assert tool.execute(entry, status=1)[-1] == last


def test_execute_while_another_is_under_way(tool: Reassignment) -> None:
    tool.execute(MOVE)
    lines = tool.execute(STAY)
    message = (
        "Partition reassignment currently in progress for "
        "Map([t,0] -> ReassignedPartitionsContext(List(2, 3),null)). Aborting operation"
    )
    first = f"Partitions reassignment failed due to {message}"
    assert failure_of(lines, first) == [f"kafka.common.AdminCommandFailedException: {message}"]
    assert admin.fetch_reassignments(tool.zk) == {TopicPartition("t", 0): (2, 3)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Partition reassignment data file FILE is empty"),
        ("no json", "Partition reassignment data file FILE is empty"),
        ("{}", "Partition reassignment data file FILE is empty"),
        ("[]", "Malformed data at FILE: not a JSON object"),
        ('{"partitions":[{"topic":"t"}]}', "Malformed data at FILE: replicas is missing"),
        (
            f'{{"partitions":[{MOVE},{MOVE}]}}',
            "Partition reassignment contains duplicate topic partitions: [t,0]",
        ),
        (
            f'{{"partitions":[{MOVE.replace("2,3", "2,2")},{STAY.replace("2,3", "1,3,1,3")}]}}',
            "Partition replica lists may not contain duplicate entries: [t,0] contains multiple "
            "entries for 2. [t,1] contains multiple entries for 1,3",
        ),
    ],
)
def test_execute_refused(tool: Reassignment, text: str, message: str) -> None:
    path = tool.file(text)
    words = ["--execute", "--reassignment-json-file", path]
    assert tool.refused(*words) == message.replace("FILE", path)
    assert tool.zk.exists(znodes.REASSIGN_PARTITIONS) is None


def test_no_such_file(tool: Reassignment) -> None:
    words = ["--execute", "--reassignment-json-file", "/no/such"]
    assert tool.refused(*words) == "/no/such (No such file or directory)"


def test_verify(tool: Reassignment) -> None:
    tool.execute(MOVE)
    assert tool.verify(MOVE, STAY, MOVE.replace("0", "7")) == [
        "Status of partition reassignment:",
        "ERROR: Assigned replicas () don't match the list of replicas for reassignment (2,3) "
        "for partition [t,7]",
        "Reassignment of partition [t,0] is still in progress",
        "Reassignment of partition [t,1] completed successfully",
        "Reassignment of partition [t,7] failed",
    ]
    tool.zk.delete(znodes.REASSIGN_PARTITIONS)
    assert tool.verify(MOVE)[1:] == [
        "ERROR: Assigned replicas (1,2) don't match the list of replicas for reassignment (2,3) "
        "for partition [t,0]",
        "Reassignment of partition [t,0] failed",
    ]


def test_wait(tool: Reassignment, capsys: pytest.CaptureFixture[str]) -> None:
    tool.execute(MOVE, STAY)
    clock = FakeClock()
    left = [STAY]
    path = tool.moves(MOVE, STAY)

    def sleep(seconds: float) -> None:
        """A move ends each minute."""
        assert seconds == 1
        clock.advance(60)
        tool.zk.delete(znodes.REASSIGN_PARTITIONS)
        if left:
            move = f'{{"version":1,"partitions":[{left.pop()}]}}'
            tool.zk.create(znodes.REASSIGN_PARTITIONS, move.encode())

    reassign_partitions.wait(tool.zk, path, sleep=sleep, millis=clock.millis)
    assert capsys.readouterr().err.splitlines() == [
        "Reassignment: 1 of 2 partitions (50 %)",
        "Reassignment: 2 of 2 partitions (100 %)",
    ]


def test_wait_for_moves_that_have_ended(tool: Reassignment) -> None:
    words = ["--verify", "--wait", "--reassignment-json-file", tool.moves(STAY)]
    assert tool.run(*words) == [
        "Status of partition reassignment:",
        "Reassignment of partition [t,1] completed successfully",
    ]


def test_strict_exit(tool: Reassignment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STRICT_EXIT, "1")
    tool.zk.fails[znodes.REASSIGN_PARTITIONS] = ZkConnectionError("gone")
    words = ["--verify", "--reassignment-json-file", tool.moves(MOVE)]
    lines = tool.run(*words, status=1)
    assert lines[:2] == [
        "Status of partition reassignment:",
        "Partitions reassignment failed due to gone",
    ]


@pytest.mark.parametrize(
    ("words", "first_line"),
    [
        ([], "This command moves topic partitions between replicas."),
        (
            ["--zookeeper", "z", "--verify", "--execute"],
            "Command must include exactly one action: --generate, --execute or --verify",
        ),
        (["--verify"], 'Missing required argument "[zookeeper]"'),
        (
            ["--zookeeper", "z", "--execute", "--wait"],
            'Option "[wait]" can only be used with option "[verify]"',
        ),
        (
            ["--zookeeper", "z", "--verify"],
            "If --verify option is used, command must include --reassignment-json-file that was "
            "used during the --execute option",
        ),
        (
            ["--zookeeper", "z", "--execute"],
            "If --execute option is used, command must include --reassignment-json-file that was "
            "output during the --generate option",
        ),
        (
            ["--zookeeper", "z", "--generate", "--broker-list", "1"],
            "If --generate option is used, command must include both "
            "--topics-to-move-json-file and --broker-list options",
        ),
    ],
)
def test_usage(words: list[str], first_line: str) -> None:
    with pytest.raises(UsageError) as caught:
        reassign_partitions.main(words)
    assert str(caught.value).splitlines()[0] == first_line
    assert "--topics-to-move-json-file" in str(caught.value)
