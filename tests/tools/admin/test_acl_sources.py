"""kafka-acls through a broker: the same lines and nodes as with ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.server.admin_support import AdminRig
from tools import bootstrap
from tools.admin import acls

BOB = ("--allow-principal", "User:bob")


class Tool:
    def __init__(self, rig: AdminRig, capsys: pytest.CaptureFixture[str]) -> None:
        self.rig = rig
        self._capsys = capsys

    def run(self, *words: str) -> str:
        assert acls.main(["--bootstrap-server", "host1:9091", *words]) == 0
        printed = self._capsys.readouterr()
        assert printed.err == ""
        return printed.out

    def fail(self, *words: str) -> str:
        assert acls.main(["--bootstrap-server", "host1:9091", *words]) == 1
        told = self._capsys.readouterr().err
        assert told.startswith("Error while executing ACL command: ")
        return told.removeprefix("Error while executing ACL command: ").rstrip()


@pytest.fixture
def make_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Tool]:
    def make(**settings: Any) -> Tool:
        rig = AdminRig(tmp_path, **settings)
        monkeypatch.setattr(bootstrap, "AdminClient", rig.client)
        return Tool(rig, capsys)

    return make


def test_rules_are_added_listed_and_removed(make_tool: Callable[..., Tool]) -> None:
    tool = make_tool(modern=True)
    added = tool.run("--add", "--producer", *BOB, "--topic", "t")
    adding, current = added.split("Current")
    assert adding.replace("Adding", "Current") == "Current" + current
    node, _ = tool.rig.zk.get("/kafka-acl/Topic/t")
    assert node.count(b'"principal":"User:bob"') == 3
    prefixed = ("--topic", "pre", "--resource-pattern-type", "prefixed")
    tool.run("--add", "--deny-principal", "User:eve", "--deny-host", "10.0.0.1", *prefixed)
    assert tool.run("--list").count("Current ACLs") == 2
    match = tool.run("--list", "--topic", "prefix", "--resource-pattern-type", "match")
    assert "(principal=User:eve, host=10.0.0.1, operation=ALL, permissionType=DENY)" in match
    tool.run("--remove", "--force", *BOB, "--operation", "Write", "--topic", "t")
    left = tool.run("--list", "--topic", "t")
    assert "WRITE" not in left
    assert left.count("User:bob") == 2
    tool.run("--remove", "--force", "--topic", "t")
    tool.run("--remove", "--force", *prefixed)
    assert tool.run("--list") == ""


def test_rules_that_cannot_be_read_are_shown_as_they_work(make_tool: Callable[..., Tool]) -> None:
    tool = make_tool(modern=True)
    tool.rig.zk.create("/kafka-acl/Topic/t", b"x", makepath=True)
    assert "principal=User:*, host=*, operation=ALL, permissionType=DENY" in tool.run("--list")
    assert "/kafka-acl/Topic/t" in tool.fail("--add", *BOB, "--topic", "t")
    tool.run("--remove", "--force", "--topic", "t")
    assert tool.run("--list") == ""


def test_a_broker_without_an_authorizer_is_named(make_tool: Callable[..., Tool]) -> None:
    tool = make_tool(modern=True, has_authorizer=False)
    for words in (("--list",), ("--add", *BOB, "--topic", "t"), ("--remove", "--topic", "t")):
        told = tool.fail(*words, *(["--force"] if words[0] == "--remove" else []))
        assert told == "No Authorizer is configured."


def test_a_broker_without_these_requests_is_named(make_tool: Callable[..., Tool]) -> None:
    assert make_tool().fail("--list") == (
        "host1:9091 closed the connection over a request of later releases, as a broker with "
        "api.versions.enable=false does"
    )
