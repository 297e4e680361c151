"""kafka-configs --bootstrap-server --entity-type users: the lines that later releases print."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from kafka08.security.scram import credential_of, decode_credential
from tests.server.admin_support import AdminRig
from tests.tools.command import Command
from tools import brokers
from tools.admin import configs

ALICE = ("--entity-type", "users", "--entity-name", "alice o'x")
NODE = "/config/users/alice%20o%27x"


class RemoteUsers(Command):
    def __init__(self, rig: AdminRig, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(configs.main, "--bootstrap-server", "host1:9091", capsys=capsys)
        self.rig = rig

    def text(self, *words: str, status: int = 0) -> str:
        printed = self.call(*words, status=status)
        return printed.err if status else printed.out

    def stored(self) -> dict[str, str]:
        found: dict[str, str] = json.loads(self.rig.zk.get(NODE)[0])["config"]
        return found


@pytest.fixture
def tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> RemoteUsers:
    rig = AdminRig(tmp_path, modern=True)
    monkeypatch.setattr(brokers, "AdminClient", rig.client)
    return RemoteUsers(rig, capsys)


def test_a_user_is_made_described_and_deleted(
    tool: RemoteUsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("asked for\n"))
    added = "SCRAM-SHA-256=[iterations=8192,password=pencil],SCRAM-SHA-512=[iterations=4096]"
    said = tool.text("--alter", *ALICE, "--add-config", added)
    assert said == "Completed updating config for user alice o'x.\n"
    for mechanism, password in (("SCRAM-SHA-256", "pencil"), ("SCRAM-SHA-512", "asked for")):
        found = decode_credential(mechanism, tool.stored()[mechanism])
        assert found == credential_of(mechanism, password, found.salt, found.iterations)
    line = "SCRAM credential configs for user-principal 'alice o'x' are SCRAM-SHA-256=iterations="
    assert tool.text("--describe", *ALICE) == f"{line}8192, SCRAM-SHA-512=iterations=4096\n"
    tool.text("--alter", *ALICE, "--delete-config", "SCRAM-SHA-512")
    assert tool.text("--describe", *ALICE[:2]) == f"{line}8192\n"
    tool.text("--alter", *ALICE, "--delete-config", "SCRAM-SHA-256")
    assert tool.text("--describe", *ALICE) == ""
    assert tool.stored() == {}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            (*ALICE, "--add-config", "producer_byte_rate=5,SCRAM-SHA-256=[password=pencil]"),
            "producer_byte_rate need --zookeeper",
        ),
        ((*ALICE, "--delete-config", "consumer_byte_rate"), "need --zookeeper"),
        ((*ALICE, "--delete-config", "SCRAM-SHA-256"), "does not exist"),
        ((*ALICE, "--add-config", "SCRAM-SHA-256=[iterations=1,password=pencil]"), "minimum 4096"),
        ((*ALICE, "--add-config", "SCRAM-SHA-256=pencil"), "is expected"),
        (
            (*ALICE[:2], "--entity-default", "--add-config", "SCRAM-SHA-256=[password=pencil]"),
            "others need --zookeeper",
        ),
        (
            ("--entity-type", "clients", "--entity-name", "c", "--add-config", "x=1"),
            "others need --zookeeper",
        ),
    ],
)
def test_what_is_refused(tool: RemoteUsers, words: tuple[str, ...], message: str) -> None:
    error = tool.text("--alter", *words, status=1)
    assert message in error
    assert "pencil" not in error
    assert tool.rig.zk.exists(NODE) is None


def test_brokers_of_0_8_2_2_say_so(tool: RemoteUsers) -> None:
    tool.rig.originals = {9091, 9092}
    assert "administrative request" in tool.text("--describe", *ALICE, status=1)
