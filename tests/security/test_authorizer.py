"""Super users, resources without rules, and decisions that are remembered."""

from __future__ import annotations

import logging

import pytest

from kafka08.errors import ConfigError
from kafka08.security import authorizer
from kafka08.security.acls import Acl, AclIndex, Operation, Permission, Resource, ResourceType
from kafka08.security.audit import AuditLog
from kafka08.security.authorizer import AclAuthorizer, Requester
from kafka08.settings.broker import BrokerConfig
from tests.fakes.runtime import FakeClock

TOPIC = ResourceType.TOPIC
READ, WRITE = Operation.READ, Operation.WRITE
ALICE, BOB = Requester("User:alice", "127.0.0.1"), Requester("User:bob", "127.0.0.1")
T = Resource(TOPIC, "t")
BOB_READS = Acl(BOB.principal, Permission.ALLOW, READ)


def made(*super_users: str, allow_everyone: bool = False) -> AclAuthorizer:
    return AclAuthorizer(super_users, allow_everyone, AuditLog(FakeClock()))


def test_without_rules_only_super_users_are_allowed() -> None:
    found = made("User:alice")
    assert found.is_allowed(ALICE, READ, TOPIC, "t")
    assert not found.is_allowed(BOB, READ, TOPIC, "t")
    assert found.is_allowed_on_any(ALICE, WRITE, TOPIC)
    assert not found.is_allowed_on_any(BOB, WRITE, TOPIC)


@pytest.mark.scenario("security-29")
def test_without_rules_everyone_may_be_allowed() -> None:
    found = made(allow_everyone=True)
    assert found.is_allowed(ALICE, READ, TOPIC, "t")
    assert found.is_allowed_on_any(ALICE, WRITE, TOPIC)
    found.put(T, [BOB_READS])
    assert not found.is_allowed(ALICE, READ, TOPIC, "t")
    assert found.is_allowed(BOB, READ, TOPIC, "t")
    assert found.is_allowed(ALICE, READ, TOPIC, "u")


def test_super_users_pass_a_denial() -> None:
    found = made("User:alice")
    found.put(T, [Acl("User:*", Permission.DENY, Operation.ALL)])
    assert found.is_allowed(ALICE, READ, TOPIC, "t")


def test_a_decision_holds_until_a_rule_changes() -> None:
    found = made()
    assert not found.is_allowed(BOB, READ, TOPIC, "t")
    before = found.changes
    found.put(T, [BOB_READS])
    assert found.changes > before
    assert found.is_allowed(BOB, READ, TOPIC, "t")
    found.replace(AclIndex())
    assert not found.is_allowed(BOB, READ, TOPIC, "t")


def test_names_of_clients_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorizer, "_MAX_DECISIONS", 10)
    found = made()
    found.put(T, [BOB_READS])
    for number in range(100):
        assert not found.is_allowed(BOB, READ, TOPIC, f"t{number}")
        assert len(found._decisions) <= 10
    assert found.is_allowed(BOB, READ, TOPIC, "t")


def test_refusals_go_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kafka.authorizer.logger")
    found = made("User:bob")
    assert found.authorize(BOB, READ, TOPIC, "t", "Fetch")
    assert not found.authorize(ALICE, READ, TOPIC, "t", "Fetch")
    assert [line[:31] for line in caplog.messages] == ["Principal = User:alice is Denie"]


def config(**settings: str) -> BrokerConfig:
    named = {key.replace("_", "."): value for key, value in settings.items()}
    given = {"broker.id": "0", "log.dirs": "/d", "zookeeper.connect": "z:1", **named}
    return BrokerConfig.from_properties(given)


@pytest.mark.scenario("security-43")
def test_super_users_are_separated_by_semicolons() -> None:
    text = "User:CN=a b,OU=x ;User:CN=a b,OU=x\\,y;; User:admin"
    assert config(super_users=text).super_principals == (
        "User:CN=a b,OU=x", "User:CN=a b,OU=x\\,y", "User:admin"
    )  # fmt: skip
    found = made(*config(super_users=text).super_principals)
    for name, allowed in (("User:CN=a b,OU=x", True), ("User:CN=a b", False), ("User:CN=a", False)):
        assert found.is_allowed(Requester(name, "h"), READ, TOPIC, "t") is allowed


@pytest.mark.parametrize("text", ["admin", "User:a;b", "User:"])
def test_a_super_user_has_a_type_and_a_name(text: str) -> None:
    with pytest.raises(ConfigError, match=r"super\.users has value"):
        config(super_users=text)


def test_the_authorizer_is_one_of_two_names() -> None:
    for name in (
        "kafka.security.auth.SimpleAclAuthorizer",
        "kafka.security.authorizer.AclAuthorizer",
    ):
        assert config(authorizer_class_name=name).authorizer_class_name == name
    with pytest.raises(ConfigError, match=r"authorizer\.class\.name"):
        config(authorizer_class_name="com.example.Authorizer")


def test_rules_are_in_the_brokers_zookeeper() -> None:
    name = "kafka.security.authorizer.AclAuthorizer"
    same = config(authorizer_class_name=name, authorizer_zookeeper_url="z:1")
    assert same.authorizer_zookeeper_url == "z:1"
    with pytest.raises(ConfigError, match=r"authorizer\.zookeeper\.url has value y:1"):
        config(authorizer_class_name=name, authorizer_zookeeper_url="y:1")
