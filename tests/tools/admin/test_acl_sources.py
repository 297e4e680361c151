"""kafka-acls through a broker: the same lines and nodes as with ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.server.admin_support import AdminRig
from tests.tools.command import Command
from tools import brokers
from tools.admin import acls

BOB = ("--allow-principal", "User:bob")


class RemoteAcls(Command):
    def __init__(self, rig: AdminRig, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(acls.main, "--bootstrap-server", "host1:9091", capsys=capsys)
        self.rig = rig

    def text(self, *words: str) -> str:
        printed = self.call(*words)
        assert printed.err == ""
        return printed.out

    def fail(self, *words: str) -> str:
        error = super().fail(*words)
        assert error.startswith("Error while executing ACL command: ")
        return error.removeprefix("Error while executing ACL command: ").rstrip()


@pytest.fixture
def make_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., RemoteAcls]:
    def make(**settings: Any) -> RemoteAcls:
        rig = AdminRig(tmp_path, **settings)
        monkeypatch.setattr(brokers, "AdminClient", rig.client)
        return RemoteAcls(rig, capsys)

    return make


def test_rules_are_added_listed_and_removed(make_tool: Callable[..., RemoteAcls]) -> None:
    tool = make_tool(later=True)
    added = tool.text("--add", "--producer", *BOB, "--topic", "t")
    adding, current = added.split("Current")
    assert adding.replace("Adding", "Current") == "Current" + current
    node, _ = tool.rig.zk.get("/kafka-acl/Topic/t")
    assert node.count(b'"principal":"User:bob"') == 3
    prefixed = ("--topic", "pre", "--resource-pattern-type", "prefixed")
    tool.text("--add", "--deny-principal", "User:eve", "--deny-host", "10.0.0.1", *prefixed)
    assert tool.text("--list").count("Current ACLs") == 2
    match = tool.text("--list", "--topic", "prefix", "--resource-pattern-type", "match")
    assert "(principal=User:eve, host=10.0.0.1, operation=ALL, permissionType=DENY)" in match
    tool.text("--remove", "--force", *BOB, "--operation", "Write", "--topic", "t")
    left = tool.text("--list", "--topic", "t")
    assert "WRITE" not in left
    assert left.count("User:bob") == 2
    tool.text("--remove", "--force", "--topic", "t")
    tool.text("--remove", "--force", *prefixed)
    assert tool.text("--list") == ""


def test_rules_that_cannot_be_read_are_shown_as_they_work(
    make_tool: Callable[..., RemoteAcls],
) -> None:
    tool = make_tool(later=True)
    tool.rig.zk.create("/kafka-acl/Topic/t", b"x", makepath=True)
    assert "principal=User:*, host=*, operation=ALL, permissionType=DENY" in tool.text("--list")
    assert "/kafka-acl/Topic/t" in tool.fail("--add", *BOB, "--topic", "t")
    tool.text("--remove", "--force", "--topic", "t")
    assert tool.text("--list") == ""


def test_a_broker_without_an_authorizer_is_named(make_tool: Callable[..., RemoteAcls]) -> None:
    tool = make_tool(later=True, has_authorizer=False)
    for words in (("--list",), ("--add", *BOB, "--topic", "t"), ("--remove", "--topic", "t")):
        told = tool.fail(*words, *(["--force"] if words[0] == "--remove" else []))
        assert told == "No Authorizer is configured."


def test_a_broker_without_these_requests_is_named(make_tool: Callable[..., RemoteAcls]) -> None:
    assert make_tool().fail("--list") == (
        "host1:9091 closed the connection over a request of later releases, as a broker with "
        "api.versions.enable=false does"
    )
