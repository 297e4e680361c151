from __future__ import annotations

import io
import re

import pytest

from tests.tools.command import Printed
from tests.zk.conftest import chroot, client  # noqa: F401
from tools.admin import zookeeper_shell
from zk.client import ZkClient

GREETING = "\nWATCHER::\n\nWatchedEvent state:SyncConnected type:None path:null\n"


class Runner:
    def __init__(
        self,
        connect: str,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.connect = connect
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def type(self, *lines: str) -> Printed:
        """Run an interactive session; its output behind the greeting."""
        self._monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        assert zookeeper_shell.main([self.connect]) == 0
        printed = self._capsys.readouterr()
        greeting = (
            f"Connecting to {self.connect}\nWelcome to ZooKeeper!\nJLine support is disabled\n"
            + GREETING
        )
        assert printed.out.startswith(greeting)
        return Printed(printed.out.removeprefix(greeting), printed.err)

    def once(self, *argv: str) -> Printed:
        """Run one command given as arguments."""
        assert zookeeper_shell.main(list(argv)) == 0
        printed = self._capsys.readouterr()
        greeting = f"Connecting to {self.connect}\n{GREETING}"
        assert printed.out.startswith(greeting)
        return Printed(printed.out.removeprefix(greeting), printed.err)


@pytest.fixture
def shell(
    client: ZkClient,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Runner:
    return Runner(client.connect, capsys, monkeypatch)


def test_data_on_stdout_stats_and_complaints_on_stderr(shell: Runner) -> None:
    printed = shell.type(
        'create /a "two words"', "create -s /a/s x", "ls /a", "get /a", "create /a y", "get /no"
    )
    assert printed.out == "[s0000000000]\ntwo words\n"
    lines = printed.err.splitlines()
    assert lines[:2] == ["Created /a", "Created /a/s0000000000"]
    assert [line.split(" = ")[0] for line in lines[2:13]] == [
        "cZxid",
        "ctime",
        "mZxid",
        "mtime",
        "pZxid",
        "cversion",
        "dataVersion",
        "aclVersion",
        "ephemeralOwner",
        "dataLength",
        "numChildren",
    ]
    assert lines[10:13] == ["ephemeralOwner = 0x0", "dataLength = 9", "numChildren = 1"]
    assert re.fullmatch(r"ctime = \w{3} \w{3} \d\d \d\d:\d\d:\d\d \w+ \d{4}", lines[3])
    assert lines[13:] == ["Node already exists: /a", "Node does not exist: /no"]


def test_changing_nodes(shell: Runner, client: ZkClient) -> None:  # noqa: F811
    printed = shell.type(
        "create /a x",
        "create /a/b x",
        "delete /a",
        "set /a new 7",
        "set /a new",
        "create -e /e x",
        "create /e/x x",
        "get a",
        "rmr /no",
        "delete /a/b",
        "create /c x digest:me:cr",
    )
    assert client.get("/a")[0] == b"new"
    assert client.children("/a") == []
    assert client.exists("/e") is None
    lines = printed.err.splitlines()
    assert "Node not empty: /a" in lines
    assert "version No is not valid : /a" in lines
    assert "Ephemerals cannot have children: /e/x" in lines
    assert "Node does not exist: /no" in lines
    assert lines[-1].startswith("Command failed: ")
    assert (
        "Command failed: java.lang.IllegalArgumentException: Path must start with / character"
        in lines
    )
    shell.type("rmr /a")
    assert client.exists("/a") is None


def test_acls_sync_and_auth(shell: Runner) -> None:
    printed = shell.type(
        "create /a x", "getAcl /a", "setAcl /a world:anyone:rd", "getAcl /a", "sync /a",
        "addauth digest me:secret",
    )  # fmt: skip
    assert printed.out == "'world,'anyone\n: cdrwa\n'world,'anyone\n: dr\nSync returned 0\n"
    assert "aclVersion = 1" in printed.err


def test_history_redo_and_the_rest(shell: Runner) -> None:
    printed = shell.type(
        "ls /", "history", "redo 0", "redo 9", "printwatches off", "printwatches", "foo", "get",
        "close", "ls /", "", "quit", "ls /",
    )  # fmt: skip
    assert printed.out == (
        "[]\n0 - ls /\n1 - history\n[]\nCommand index out of range\nprintwatches is off\n"
        "Not connected\nQuitting...\n"
    )
    assert printed.err.startswith("ZooKeeper -server host:port cmd args\n\tstat path [watch]\n")


def test_watches_are_printed(client: ZkClient, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    shell = zookeeper_shell.Shell(zookeeper_shell.Options(client.connect))
    shell.connect()
    try:
        client.create("/a")
        shell.execute("ls / watch")
        shell.execute("create /b x")
        # The answer to a later request comes behind the event; its printing behind the answer.
        shell._zk._handler.stop()
    finally:
        shell.close()
    assert "WatchedEvent state:SyncConnected type:NodeChildrenChanged path:/\n" in (
        capsys.readouterr().out
    )


def test_quotas(shell: Runner) -> None:
    host = shell.connect.partition("/")[0]
    path = "/" + shell.connect.partition("/")[2]
    shell.connect = host
    printed = shell.type(
        f"listquota {path}", f"setquota -n 5 {path}", f"setquota -b 9 {path}",
        f"listquota {path}", f"delquota {path}", f"listquota {path}",
    )  # fmt: skip
    lines = printed.err.splitlines()
    assert lines[0] == f"absolute path is /zookeeper/quota{path}/zookeeper_limits"
    assert lines[1] == f"quota for {path} does not exist."
    assert f"Output quota for {path} count=5,bytes=9" in lines
    assert lines[-1] == f"quota for {path} does not exist."


def test_a_command_as_arguments(shell: Runner, client: ZkClient) -> None:  # noqa: F811
    client.create("/a", b"hello")
    assert shell.once(shell.connect, "get", "/a").out == "hello\n"
    assert shell.once("-server", shell.connect, "-timeout", "9000", "-r", "ls", "/").out == "[a]\n"


def test_no_argument_prints_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert zookeeper_shell.main([]) == 1
    assert capsys.readouterr().out.endswith(" zookeeper_host:port[/path] [args...]\n")
    assert zookeeper_shell.wrapper_main(["-what"]) == 1


def test_words() -> None:
    assert zookeeper_shell.split_words('create  -s /a \'x "y\' ""') == [
        "create",
        "-s",
        "/a",
        'x "y',
        "",
    ]
