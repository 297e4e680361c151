"""kafka-acls: the lines that Kafka 2.8.2 printed, and the nodes that it wrote."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable

import pytest

from kafka08.errors import AdminOperationError
from tests.fakes.zookeeper import FakeZooKeeper, Session
from tests.tools.command import Command
from tools import admin_command
from tools.admin import acls
from tools.options import UsageError

WHERE = ("--authorizer-properties", "zookeeper.connect=z:1")
BOB = ("--allow-principal", "User:bob")
PRODUCER = """\
Adding ACLs for resource `ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)`: 
 \t(principal=User:bob, host=*, operation=DESCRIBE, permissionType=ALLOW)
\t(principal=User:bob, host=*, operation=CREATE, permissionType=ALLOW)
\t(principal=User:bob, host=*, operation=WRITE, permissionType=ALLOW) 

"""  # noqa: W291
CURRENT = PRODUCER.replace("Adding", "Current")


class Acls(Command):
    def __init__(self, server: FakeZooKeeper, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(acls.main, *WHERE, capsys=capsys)
        self.server = server

    def text(self, *words: str, status: int = 0) -> str:
        printed = self.call(*words, status=status)
        assert bool(printed.err) == bool(status)
        return printed.err if status else printed.out

    def listed(self, *words: str) -> list[tuple[str, str]]:
        """(resource, rule) of each line, shortened."""
        found, resource = [], ""
        for line in self.text("--list", *words).splitlines():
            if line.startswith("Current"):
                resource = ":".join(part.split("=")[1] for part in line.split(")")[0].split(", "))
            elif "principal=" in line:
                found.append((resource, line.strip()))
        return found


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Acls:
    server = FakeZooKeeper()
    connected: list[str] = []

    def connect(urls: str, _security: object) -> Session:
        connected.append(urls)
        return Session(server)

    monkeypatch.setattr(admin_command, "connect", connect)
    return Acls(server, capsys)


@pytest.mark.scenario("security-38")
def test_a_producer_is_added_and_listed(tool: Acls) -> None:
    assert tool.text("--add", "--producer", *BOB, "--topic", "t") == PRODUCER + CURRENT
    assert tool.text("--list", "--topic", "t") == CURRENT
    assert tool.text("--list") == CURRENT
    assert tool.text("--list", "--topic", "u") == ""
    assert tool.server.below("/kafka-acl-changes") == ["acl_changes_0000000000"]


@pytest.mark.scenario("security-38")
def test_the_nodes_are_those_of_kafka(tool: Acls) -> None:
    words = ("--allow-principal", "User:alice", "--allow-host", "127.0.0.1", "--operation", "Read")
    tool.text("--add", *words, "--group", "g")
    assert tool.server.text("/kafka-acl/Group/g") == (
        '{"version":1,"acls":[{"principal":"User:alice","permissionType":"Allow",'
        '"operation":"Read","host":"127.0.0.1"}]}'
    )
    assert tool.server.text("/kafka-acl-changes/acl_changes_0000000000") == "GROUP:g"
    tool.text("--add", *words, "--topic", "pre", "--resource-pattern-type", "prefixed")
    assert "/kafka-acl-extended/prefixed/Topic/pre" in tool.server.nodes
    assert tool.server.text("/kafka-acl-extended-changes/acl_changes_0000000000") == (
        '{"version":1,"resourceType":"TOPIC","name":"pre","patternType":"PREFIXED"}'
    )


def operations(lines: Iterable[tuple[str, str]], resource: str) -> set[str]:
    return {line.split("operation=")[1].split(",")[0] for named, line in lines if named == resource}


def test_roles(tool: Acls) -> None:
    words = ("--topic", "t", "--group", "g", "--transactional-id", "x")
    tool.text("--add", "--producer", "--consumer", "--idempotent", *BOB, *words)
    lines = tool.listed()
    assert operations(lines, "TOPIC:t:LITERAL") == {"READ", "WRITE", "DESCRIBE", "CREATE"}
    assert operations(lines, "GROUP:g:LITERAL") == {"READ"}
    assert operations(lines, "TRANSACTIONAL_ID:x:LITERAL") == {"WRITE", "DESCRIBE"}
    assert operations(lines, "CLUSTER:kafka-cluster:LITERAL") == {"IDEMPOTENT_WRITE"}
    tool.text("--remove", "--force", "--producer", *BOB, "--topic", "t")
    assert operations(tool.listed(), "TOPIC:t:LITERAL") == {"READ"}


def test_several_of_everything(tool: Acls) -> None:
    tool.text(
        *("--add", "--allow-principal", "User:a", "--allow-principal", "User:CN=b,OU=o"),
        *("--allow-host", "h1", "--allow-host", "h2", "--deny-principal", "User:c"),
        *("--operation", "Read", "--operation", "write", "--topic", "t", "--topic", "*"),
    )
    lines = tool.listed()
    assert len(lines) == 2 * (2 * 2 * 2 + 2)
    assert {resource for resource, _ in lines} == {"TOPIC:t:LITERAL", "TOPIC:*:LITERAL"}
    assert len(tool.listed("--principal", "User:CN=b,OU=o")) == 8


def test_without_an_operation_all_are_meant(tool: Acls) -> None:
    tool.text("--add", "--deny-principal", "User:c", "--deny-host", "h", "--cluster")
    assert tool.listed() == [
        (
            "CLUSTER:kafka-cluster:LITERAL",
            "(principal=User:c, host=h, operation=ALL, permissionType=DENY)",
        )
    ]


def test_patterns_in_lists(tool: Acls) -> None:
    for name, pattern in (("test", "literal"), ("*", "literal"), ("te", "prefixed")):
        words = ("--add", *BOB, "--topic", name, "--resource-pattern-type", pattern)
        tool.text(*words)

    def found(name: str, pattern: str) -> set[str]:
        words = ("--topic", name, "--resource-pattern-type", pattern)
        return {resource for resource, _ in tool.listed(*words)}

    assert found("test", "match") == {"TOPIC:test:LITERAL", "TOPIC:*:LITERAL", "TOPIC:te:PREFIXED"}
    assert found("te", "any") == {"TOPIC:te:PREFIXED"}
    assert found("te", "literal") == set()
    assert found("te", "prefixed") == {"TOPIC:te:PREFIXED"}
    tool.text("--remove", "--force", "--topic", "test", "--resource-pattern-type", "match")
    assert tool.listed() == []
    assert tool.server.below("/kafka-acl/Topic") == []


@pytest.mark.parametrize(("answer", "is_kept"), [("y\n", False), ("n\n", True), ("", True)])
def test_a_removal_is_asked_about(
    tool: Acls, monkeypatch: pytest.MonkeyPatch, answer: str, is_kept: bool
) -> None:
    tool.text("--add", *BOB, "--operation", "Read", "--topic", "t")
    for words, question in (
        ((*BOB, "--operation", "Write"), "remove ACLs: \n \t(principal=User:bob, host=*, "),
        ((), "delete all ACLs for resource filter `ResourcePattern(resourceType=TOPIC, name=t, "),
    ):
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        out = tool.text("--remove", "--topic", "t", *words)
        assert out.startswith(f"Are you sure you want to {question}")
        assert "? (y/n)\n" in out
    assert bool(tool.listed()) is is_kept


def test_rules_that_cannot_be_read_are_told_and_can_be_removed(
    tool: Acls, capsys: pytest.CaptureFixture[str]
) -> None:
    tool.server.put("/kafka-acl/Topic/t", b"garbage")
    assert acls.main([*WHERE, "--list"]) == 0
    assert "/kafka-acl/Topic/t" in capsys.readouterr().err
    error = tool.text("--add", *BOB, "--topic", "t", status=1)
    assert error.startswith("Error while executing ACL command: Malformed data at /kafka-acl/Topic")
    tool.text("--remove", "--force", "--topic", "t")
    assert tool.listed() == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Command must include exactly one action: --list, --add, --remove. "),
        (("--list", "--add"), "Command must include exactly one action"),
        (("--add", *BOB), "You must specify at least one resource"),
        (("--add", "--topic", "t"), "You must specify one of: --allow-principal"),
        (("--add", "--producer", *BOB, "--group", "g"), "With --producer you must specify a"),
        (("--add", "--consumer", *BOB, "--topic", "t"), "With --consumer you must specify a"),
        (
            ("--add", "--consumer", *BOB, "--topic", "t", "--group", "g", "--cluster"),
            "With --consumer you must specify a",
        ),
        (("--add", "--idempotent", *BOB, "--topic", "t"), "The --idempotent option is only"),
        (("--list", *BOB), 'Option "[list]" can\'t be used with option"[allow-principal]"'),
        (
            ("--add", "--producer", *BOB, "--topic", "t", "--operation", "Read"),
            'Option "[producer]" can\'t be used with option"[operation]"',
        ),
        (("--add", *BOB, "--topic", "t", "--operation", "Fly"), "Fly is not an operation"),
        (
            ("--add", *BOB, "--group", "g", "--operation", "Write"),
            "ResourceType GROUP only supports operations READ, DESCRIBE, DELETE, ALL",
        ),
        (("--add", "--allow-principal", "bob", "--topic", "t"), "expected a string in format"),
        (("--add", "--allow-principal", "User:", "--topic", "t"), "expected a string in format"),
        (
            ("--add", *BOB, "--topic", "t", "--resource-pattern-type", "match"),
            "A '--resource-pattern-type' value of 'Match' is not valid when adding acls.",
        ),
        (("--list", "--resource-pattern-type", "x"), "--resource-pattern-type is one of"),
        (("--remove", "--principal", "User:b", "--topic", "t"), "The --principal option is only"),
        (("--list", "--authorizer", "a.B"), "The authorizer a.B is not known"),
    ],
)
def test_wrong_command_lines(tool: Acls, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        acls.main([*WHERE, *words])
    assert str(caught.value).startswith(message)
    assert "--allow-principal" in str(caught.value)
    assert tool.server.writes == []


def test_it_is_told_where_the_rules_are(tool: Acls) -> None:
    with pytest.raises(UsageError, match="authorizer-properties"):
        acls.main(["--list"])
    with pytest.raises(UsageError, match=r"must have zookeeper\.connect="):
        acls.main(["--list", "--authorizer-properties", "a=b"])
    over_the_wire = ("--list", "--bootstrap-server", "h:1")
    with pytest.raises(UsageError, match="can only be used with --authorizer option"):
        acls.main([*over_the_wire, *WHERE])
    with pytest.raises(UsageError, match="Only one of --bootstrap-server or --authorizer"):
        acls.main([*over_the_wire, "--authorizer", "kafka.security.auth.SimpleAclAuthorizer"])
    with pytest.raises(UsageError, match="can only be used with --bootstrap-server option"):
        acls.main(["--list", *WHERE, "--command-config", "c"])


def test_a_name_that_cannot_be_stored_is_refused(tool: Acls) -> None:
    with pytest.raises(AdminOperationError, match="cannot be stored"):
        acls.main([*WHERE, "--add", *BOB, "--topic", "a/b"])
