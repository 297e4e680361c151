"""kafka-configs --bootstrap-server: the lines that Kafka 2.8 prints, and for users those of later
releases."""

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
from tools.options import UsageError

TOPIC = ("--entity-type", "topics", "--entity-name", "t")


class RemoteConfigs(Command):
    def __init__(self, rig: AdminRig, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(configs.main, "--bootstrap-server", "host1:9091", capsys=capsys)
        self.rig = rig

    def fail(self, *words: str) -> str:
        return super().fail(*words).rstrip()


@pytest.fixture
def tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> RemoteConfigs:
    rig = AdminRig(tmp_path, later=True, ssl_key_password="secret")
    monkeypatch.setattr(brokers, "AdminClient", rig.client)
    rig.create("t", [1, 2], retention_ms="1000")
    return RemoteConfigs(rig, capsys)


def test_a_topic_is_altered_and_described(tool: RemoteConfigs) -> None:
    assert tool.run("--describe", *TOPIC) == [
        "Dynamic configs for topic t are:",
        "  retention.ms=1000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000, "
        "DEFAULT_CONFIG:log.retention.ms=604800000}",
    ]
    change = ("--add-config", "flush.ms=5,max.message.bytes=100", "--delete-config", "retention.ms")
    assert tool.run("--alter", *TOPIC, *change) == ["Completed updating config for topic t."]
    assert tool.rig.config("t") == {"flush.ms": "5", "max.message.bytes": "100"}
    [heading, *lines] = tool.run("--describe", "--all", *TOPIC)
    assert heading == "All configs for topic t are:"
    assert lines == sorted(lines)
    assert any(
        line.startswith(
            "  max.message.bytes=100 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:"
            "max.message.bytes=100, DEFAULT_CONFIG:message.max.bytes="
        )
        for line in lines
    )


def test_all_topics_are_described(tool: RemoteConfigs) -> None:
    tool.rig.create("u", [1])
    assert tool.run("--describe", "--entity-type", "topics")[::2] == [
        "Dynamic configs for topic t are:",
        "Dynamic configs for topic u are:",
    ]


def test_brokers_are_described_without_secrets(tool: RemoteConfigs) -> None:
    own = str(tool.rig.broker_id)
    name = ("--entity-type", "brokers", "--entity-name", own)
    assert tool.run("--describe", *name) == [f"Dynamic configs for broker {own} are:"]
    [heading, *lines] = tool.run("--describe", "--all", *name)
    assert heading == f"All configs for broker {own} are:"
    [line] = [line for line in lines if line.startswith("  ssl.key.password=")]
    assert line.startswith("  ssl.key.password=null sensitive=true synonyms={")
    assert "secret" not in "".join(lines)
    default = ("--entity-type", "brokers", "--entity-default")
    assert tool.run("--describe", *default) == ["Default configs for brokers in the cluster are:"]


def test_the_rates_of_brokers_are_altered_and_described(tool: RemoteConfigs) -> None:
    key, own = "leader.replication.throttled.rate", str(tool.rig.broker_id)
    name = ("--entity-type", "brokers", "--entity-name", own)
    default = ("--entity-type", "brokers", "--entity-default")
    for entity, rate in ((default, "500"), (name, "70")):
        tool.run("--alter", *entity, "--add-config", f"{key}={rate}")
    assert tool.run("--describe", *name)[1:] == [
        f"  {key}=70 sensitive=false synonyms={{DYNAMIC_BROKER_CONFIG:{key}=70, "
        f"DYNAMIC_DEFAULT_BROKER_CONFIG:{key}=500, DEFAULT_CONFIG:{key}=9223372036854775807}}",
    ]
    tool.run("--alter", *name, "--delete-config", key)
    [line] = tool.run("--describe", *default)[1:]
    assert line.startswith(f"  {key}=500 ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--alter", *TOPIC, "--delete-config", "flush.ms"), "Invalid config(s): flush.ms"),
        (("--alter", *TOPIC, "--add-config", "retention.ms=x"), "For input string"),
        (("--describe", *TOPIC[:3], "none"), "Topic none does not exist"),
        (
            ("--alter", "--entity-type", "brokers", "--entity-name", "1", "--add-config", "a=b"),
            "a is not a setting of this broker that can be changed while it runs.",
        ),
        (
            ("--describe", "--entity-type", "brokers", "--entity-name", "9"),
            "There is no broker with the id 9",
        ),
        (
            ("--describe", "--entity-type", "clients"),
            "--bootstrap-server is for topics, brokers and users with a name; others need",
        ),
    ],
)
def test_failures(tool: RemoteConfigs, words: tuple[str, ...], message: str) -> None:
    before = tool.rig.config("t")
    assert message in tool.fail(*words)
    assert tool.rig.config("t") == before


def test_zookeeper_and_brokers_do_not_go_together(tool: RemoteConfigs) -> None:
    with pytest.raises(UsageError, match="Only one of --bootstrap-server or --zookeeper"):
        configs.main(["--bootstrap-server", "h:1", "--zookeeper", "z:1", "--describe", *TOPIC])
    with pytest.raises(UsageError, match="zookeeper"):
        configs.main(["--describe", *TOPIC])


# Users

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
def users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> RemoteUsers:
    rig = AdminRig(tmp_path, later=True)
    monkeypatch.setattr(brokers, "AdminClient", rig.client)
    return RemoteUsers(rig, capsys)


def test_a_user_is_made_described_and_deleted(
    users: RemoteUsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("asked for\n"))
    added = "SCRAM-SHA-256=[iterations=8192,password=pencil],SCRAM-SHA-512=[iterations=4096]"
    said = users.text("--alter", *ALICE, "--add-config", added)
    assert said == "Completed updating config for user alice o'x.\n"
    for mechanism, password in (("SCRAM-SHA-256", "pencil"), ("SCRAM-SHA-512", "asked for")):
        found = decode_credential(mechanism, users.stored()[mechanism])
        assert found == credential_of(mechanism, password, found.salt, found.iterations)
    line = "SCRAM credential configs for user-principal 'alice o'x' are SCRAM-SHA-256=iterations="
    assert users.text("--describe", *ALICE) == f"{line}8192, SCRAM-SHA-512=iterations=4096\n"
    users.text("--alter", *ALICE, "--delete-config", "SCRAM-SHA-512")
    assert users.text("--describe", *ALICE[:2]) == f"{line}8192\n"
    users.text("--alter", *ALICE, "--delete-config", "SCRAM-SHA-256")
    assert users.text("--describe", *ALICE) == ""
    assert users.stored() == {}


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
def test_what_of_users_is_refused(users: RemoteUsers, words: tuple[str, ...], message: str) -> None:
    error = users.text("--alter", *words, status=1)
    assert message in error
    assert "pencil" not in error
    assert users.rig.zk.exists(NODE) is None


def test_brokers_of_0_8_2_2_know_no_users(users: RemoteUsers) -> None:
    users.rig.originals = {9091, 9092}
    assert "administrative request" in users.text("--describe", *ALICE, status=1)
