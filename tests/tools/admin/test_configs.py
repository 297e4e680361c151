"""kafka-configs: the lines that Kafka 2.8.2 printed, and the nodes that it wrote."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from kafka08 import admin
from kafka08.security.scram import credential_of, decode_credential
from tests.tools.command import Command
from tests.zk.conftest import chroot, client  # noqa: F401
from tools.admin import configs
from tools.options import UsageError
from zk import entities, entity_configs
from zk.client import ZkClient

DONE = "Completed updating config for entity: "


class Configs(Command):
    def __init__(self, client: ZkClient, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
        super().__init__(configs.main, "--zookeeper", client.connect, capsys=capsys)
        self.client = client

    def fail(self, *words: str) -> str:
        printed = self.call(*words, status=1)
        assert printed.out == ""
        return printed.err

    def alter(self, *words: str) -> list[str]:
        return self.run("--alter", *words)

    def describe(self, *words: str) -> list[str]:
        return self.run("--describe", *words)

    def node(self, path: str) -> str:
        return self.client.get(path)[0].decode()

    def notices(self) -> list[str]:
        names = sorted(self.client.children_if_exists("/config/changes"))
        return [self.node(entities.config_change_path(name)) for name in names]


@pytest.fixture
def tool(client: ZkClient, capsys: pytest.CaptureFixture[str]) -> Configs:  # noqa: F811
    return Configs(client, capsys)


CLIENT = ("--entity-type", "clients", "--entity-name", "throttled")
CAROL = ("--entity-type", "users", "--entity-name", "carol")


def test_a_client(tool: Configs) -> None:
    rates = "producer_byte_rate=1000,consumer_byte_rate=1000"
    assert tool.alter(*CLIENT, "--add-config", rates) == [f"{DONE}client-id 'throttled'."]
    assert tool.node("/config/clients/throttled") == (
        '{"version":1,"config":{"producer_byte_rate":"1000","consumer_byte_rate":"1000"}}'
    )
    assert tool.notices() == ['{"version":2,"entity_path":"clients/throttled"}']
    line = "Configs for client-id 'throttled' are producer_byte_rate=1000,consumer_byte_rate=1000"
    assert tool.describe(*CLIENT) == tool.describe("--entity-type", "clients") == [line]


def test_a_user_and_a_default_client_of_the_user(tool: Configs) -> None:
    words = ("--entity-type", "users", "--entity-name", "CN=a b,O=x")
    both = (*words, "--entity-type", "clients", "--entity-default")
    assert tool.alter(*both, "--add-config", "consumer_byte_rate=5") == [
        f"{DONE}user-principal 'CN=a b,O=x', default client-id."
    ]
    assert tool.notices() == [
        '{"version":2,"entity_path":"users/CN%3Da%20b%2CO%3Dx/clients/<default>"}'
    ]
    assert tool.client.exists("/config/users/CN%3Da%20b%2CO%3Dx/clients/<default>")
    line = "Configs for user-principal 'CN=a b,O=x', default client-id are consumer_byte_rate=5"
    assert tool.describe(*both) == [line]
    reverse = ("--entity-type", "clients", "--entity-default", *words)
    assert tool.describe(*reverse) == [line]
    assert tool.describe("--entity-type", "users", "--entity-type", "clients") == [line]
    assert tool.describe(*words, "--entity-type", "clients") == [line]
    # The user has a node because of the client, and no settings.
    assert tool.describe("--entity-type", "users") == []


def test_an_address(tool: Configs) -> None:
    words = ("--entity-type", "ips", "--entity-name", "10.0.0.1")
    assert tool.alter(*words, "--add-config", "connection_creation_rate=50") == [
        f"{DONE}ips '10.0.0.1'."
    ]
    assert tool.node("/config/ips/10.0.0.1") == (
        '{"version":1,"config":{"connection_creation_rate":"50"}}'
    )
    assert tool.notices() == ['{"version":2,"entity_path":"ips/10.0.0.1"}']
    default = ("--entity-type", "ips", "--entity-default")
    assert tool.alter(*default, "--add-config", "connection_creation_rate=9") == [
        f"{DONE}default ips."
    ]
    assert tool.describe("--entity-type", "ips") == [
        "Configs for ips '10.0.0.1' are connection_creation_rate=50",
        "Configs for default ips are connection_creation_rate=9",
    ]
    tool.alter(*words, "--delete-config", "connection_creation_rate")
    assert tool.describe(*words) == ["Configs for ips '10.0.0.1' are "]
    error = tool.fail(
        "--alter", "--entity-type", "ips", "--entity-name", "x", "--add-config", "a=b"
    )
    assert error == "The entity name for ips must be a valid IP, but it is: x\n"


def test_defaults(tool: Configs) -> None:
    words = ("--entity-type", "users", "--entity-default")
    assert tool.alter(*words, "--add-config", "producer_byte_rate=7") == [
        f"{DONE}default user-principal."
    ]
    assert tool.describe(*words) == ["Configs for default user-principal are producer_byte_rate=7"]
    assert tool.client.exists("/config/users/<default>")


def test_a_credential_leaves_other_settings_and_is_not_shown(tool: Configs) -> None:
    tool.alter(*CAROL, "--add-config", "producer_byte_rate=7")
    credential = "SCRAM-SHA-256=[iterations=8192,password=pencil]"
    assert tool.alter(*CAROL, "--add-config", credential) == [f"{DONE}user-principal 'carol'."]
    assert tool.describe(*CAROL) == [
        "Configs for user-principal 'carol' are SCRAM-SHA-256=iterations=8192,producer_byte_rate=7"
    ]
    stored = entity_configs.fetch(tool.client, "users/carol")
    found = decode_credential("SCRAM-SHA-256", stored["SCRAM-SHA-256"])
    assert found == credential_of("SCRAM-SHA-256", "pencil", found.salt, 8192)
    tool.alter(*CAROL, "--delete-config", "SCRAM-SHA-256")
    assert tool.describe(*CAROL) == ["Configs for user-principal 'carol' are producer_byte_rate=7"]


def stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_a_password_comes_from_standard_input(
    tool: Configs, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin(monkeypatch, "pencil 1\r\nother\n")
    tool.alter(*CAROL, "--add-config", "SCRAM-SHA-256=[iterations=4096],SCRAM-SHA-512=")
    stored = entity_configs.fetch(tool.client, "users/carol")
    for mechanism, password in (("SCRAM-SHA-256", "pencil 1"), ("SCRAM-SHA-512", "other")):
        found = decode_credential(mechanism, stored[mechanism])
        assert found == credential_of(mechanism, password, found.salt, 4096)


def test_no_password_comes(tool: Configs, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, "")
    said = tool.fail("--alter", *CAROL, "--add-config", "SCRAM-SHA-256=")
    assert said == "The password for SCRAM-SHA-256 is empty\n"
    assert tool.client.exists("/config/users/carol") is None


def test_settings_come_from_a_file_or_standard_input(
    tool: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "SCRAM-SHA-256=[password=pencil]\nproducer_byte_rate=5\n"
    (tmp_path / "carol.properties").write_text(text)
    stdin(monkeypatch, text)
    for name in (str(tmp_path / "carol.properties"), "-"):
        tool.alter(*CAROL, "--add-config-file", name, "--add-config", "consumer_byte_rate=6")
        stored = entity_configs.fetch(tool.client, "users/carol")
        assert stored.pop("SCRAM-SHA-256").startswith("salt=")
        assert stored == {"producer_byte_rate": "5", "consumer_byte_rate": "6"}
        tool.client.delete("/config/users/carol")


def test_a_topic(tool: Configs) -> None:
    admin.create_topic_with_assignment(tool.client, "t", {0: [1]}, {"retention.ms": "1"})
    words = ("--entity-type", "topics", "--entity-name", "t")
    added = "cleanup.policy=[compact,delete],min.insync.replicas=2"
    assert tool.alter(*words, "--add-config", added) == [f"{DONE}topic 't'."]
    assert tool.alter(*words, "--delete-config", "retention.ms") == [f"{DONE}topic 't'."]
    assert tool.notices() == ['"t"', '"t"']  # as brokers of 0.8.2.2 read them
    line = "Configs for topic 't' are cleanup.policy=compact,delete,min.insync.replicas=2"
    assert tool.describe(*words) == tool.describe("--entity-type", "topics") == [line]


def test_a_broker(tool: Configs) -> None:
    words = ("--entity-type", "brokers", "--entity-name", "1")
    tool.alter(*words, "--add-config", "log.retention.ms=5")
    assert tool.describe(*words) == ["Configs for brokers '1' are log.retention.ms=5"]
    said = tool.fail("--alter", *words, "--add-config", "ssl.keystore.password=secret")
    assert said.startswith("ssl.keystore.password is a secret")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--describe",), "At least one --entity-type must be specified"),
        (("--describe", "--entity-type", "racks"), "Invalid entity type racks"),
        (
            ("--describe", "--entity-type", "topics", "--entity-type", "users"),
            "Only 'users' and 'clients' entity types may be specified together",
        ),
        (
            ("--alter", "--entity-type", "users", "--add-config", "a=b"),
            "--entity-name or --entity-default must be specified with --alter of users",
        ),
        (
            ("--alter", "--entity-type", "topics", "--add-config", "a=b"),
            "--entity-name must be specified with --alter of topics",
        ),
        (
            ("--alter", *CAROL, "--entity-type", "clients", "--add-config", "a=b"),
            "--entity-name or --entity-default must be specified with each --entity-type",
        ),
        (("--alter", *CAROL), "At least one of --add-config, --add-config-file"),
        (("--alter", *CAROL, "--add-config", "a"), 'the format "key=val"'),
        (("--alter", *CAROL, "--add-config", "a=b"), "Unknown Dynamic Configuration: Set(a)."),
        (("--alter", *CAROL, "--delete-config", "a, b"), "Invalid config(s): a,b"),
        (("--alter", *CLIENT, "--add-config", "SCRAM-SHA-256=[password=x]"), "SCRAM credentials"),
        (
            ("--alter", "--entity-type", "topics", "--entity-name", "t", "--add-config", "a=b"),
            "Topic 't' does not exist.",
        ),
        (("--describe", "--entity-type", "brokers", "--entity-name", "x"), "a valid integer"),
        (
            ("--describe", "--entity-type", "topics", "--entity-default"),
            "--entity-default must not",
        ),
        (("--describe", "--entity-type", "topics", "--entity-name", "a/b"), "is not the name"),
        (("--describe", *CAROL, "--entity-name", "x"), "more entity names than entity types"),
    ],
)
def test_refused_commands(tool: Configs, words: tuple[str, ...], error: str) -> None:
    assert error in tool.fail(*words)
    assert tool.client.children_if_exists("/config") == []


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--zookeeper", "h:1"), "exactly one action: --describe, --alter"),
        (("--zookeeper", "h:1", "--alter", "--describe"), "exactly one action"),
        (("--describe", "--entity-type", "users"), 'Missing required argument "[zookeeper]"'),
        (
            ("--zookeeper", "h:1", "--describe", "--add-config", "a=b"),
            'Option "[describe]" can\'t be used with option"[add-config]"',
        ),
        ((), "Add/Remove entity config"),
    ],
)
def test_refused_with_the_usage(words: tuple[str, ...], error: str) -> None:
    with pytest.raises(UsageError) as raised:
        configs.main(list(words))
    assert error in str(raised.value)
    assert "--entity-type" in str(raised.value)


def test_a_node_that_makes_no_sense_is_kept(tool: Configs) -> None:
    tool.client.create("/config/users/carol", b"{", makepath=True)
    said = tool.fail("--alter", *CAROL, "--add-config", "producer_byte_rate=7")
    assert "Malformed data at /config/users/carol" in said
    assert tool.node("/config/users/carol") == "{"
