from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08 import admin
from kafka08.common import TopicPartition
from tests.tools.zk_support import failure_of, fake_zookeeper, put_topic
from tools import admin_command
from tools.options import UsageError
from tools.topics import preferred_replica_election
from zk import znodes
from zk.errors import ZkConnectionError

FAILED = "Failed to start preferred replica election"
STARTED = "Successfully started preferred replica election for partitions "


@pytest.fixture
def zk(monkeypatch: pytest.MonkeyPatch) -> Any:
    fake = fake_zookeeper(monkeypatch)
    put_topic(fake, "u", [1])
    put_topic(fake, "t", [1, 2], [2, 1])
    return fake


def run(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> list[str]:
    assert preferred_replica_election.main(["--zookeeper", "z", *words]) == status
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out.splitlines()


def test_every_partition(zk: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys) == [f"{STARTED}Set([t,0], [t,1], [u,0])"]
    assert zk.closed
    assert zk.get(znodes.PREFERRED_REPLICA_ELECTION)[0] == (
        b'{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"t","partition":1},'
        b'{"topic":"u","partition":0}]}'
    )


def test_those_of_a_file_that_exist(
    zk: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "p.json"
    path.write_text('{"partitions":[{"topic":"t","partition":1},{"topic":"no","partition":4}]}')
    assert run(capsys, "--path-to-json-file", str(path)) == [f"{STARTED}Set([t,1], [no,4])"]
    assert admin.fetch_preferred_elections(zk) == [TopicPartition("t", 1)]
    assert caplog.messages == [
        "Skipping preferred replica leader election for partition [no,4] since it doesn't exist"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "kafka.admin.AdminOperationException: Preferred replica election data is empty"),
        ("{}", "kafka.admin.AdminOperationException: Preferred replica election data is empty"),
        ("[]", "not a JSON object"),
        ('{"partitions":[{"topic":"t"}]}', "partition is missing"),
        (
            '{"partitions":[{"topic":"t","partition":0},{"topic":"t","partition":0}]}',
            "kafka.admin.AdminOperationException: Preferred replica election data contains "
            "duplicate partitions: [t,0]",
        ),
    ],
)
def test_files_refused(
    zk: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    [trace] = failure_of(run(capsys, "--path-to-json-file", str(path)), FAILED)
    assert trace.endswith(message)
    assert zk.exists(znodes.PREFERRED_REPLICA_ELECTION) is None


def test_no_such_file(zk: Any, capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, "--path-to-json-file", "/no/such")
    assert failure_of(lines, FAILED) == [
        "java.io.FileNotFoundException: /no/such (No such file or directory)"
    ]


def test_while_another_is_pending(zk: Any, capsys: pytest.CaptureFixture[str]) -> None:
    admin.start_preferred_election(zk, [TopicPartition("t", 0)])
    assert failure_of(run(capsys), FAILED) == [
        "kafka.common.AdminCommandFailedException: Admin command failed",
        "Caused by: kafka.admin.AdminOperationException: Preferred replica leader election "
        "currently in progress for Set([t,0]). Aborting operation",
    ]


def test_without_zookeeper(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(urls: str, _security: object) -> Any:
        raise ZkConnectionError("no answer")

    monkeypatch.setattr(admin_command, "connect", fail)
    monkeypatch.setenv(admin_command.STRICT_EXIT, "1")
    [trace] = failure_of(run(capsys, status=1), FAILED)
    assert trace == "org.I0Itec.zkclient.exception.ZkTimeoutException: no answer"


@pytest.mark.parametrize(
    ("words", "start"),
    [
        ([], "This tool causes leadership for each partition to be transferred back"),
        (["--path-to-json-file", "x"], 'Missing required argument "[zookeeper]"'),
    ],
)
def test_usage(words: list[str], start: str) -> None:
    with pytest.raises(UsageError) as caught:
        preferred_replica_election.main(words)
    assert str(caught.value).startswith(start)
