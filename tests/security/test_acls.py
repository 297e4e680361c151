"""The decision about a request, beside a naive model and in the cases that releases agree on."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka08.security.acls import (
    EVERYONE,
    RULE_FIELDS,
    SUPPORTED,
    Acl,
    AclIndex,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
    decide,
    rule_words,
)

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
ALLOW, DENY = Permission.ALLOW, Permission.DENY
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
ALICE, HERE = "User:alice", "127.0.0.1"

PRINCIPALS = st.sampled_from([ALICE, "User:bob", EVERYONE])
HOSTS = st.sampled_from([HERE, "127.0.0.2", "*"])
NAMES = st.text("ab", max_size=3)
ACLS = st.builds(Acl, PRINCIPALS, st.sampled_from(Permission), st.sampled_from(Operation), HOSTS)
RESOURCES = st.builds(
    Resource, st.sampled_from([TOPIC, GROUP]), NAMES | st.just("*"), st.sampled_from(PatternType)
)
RULES = st.dictionaries(RESOURCES, st.lists(ACLS, max_size=3), max_size=6)

# The permissions that allow an operation, written out by hand.
IMPLIED = {
    DESCRIBE: {"READ", "WRITE", "DELETE", "ALTER", "DESCRIBE", "ALL"},
    Operation.DESCRIBE_CONFIGS: {"DESCRIBE_CONFIGS", "ALTER_CONFIGS", "ALL"},
}


def belongs(resource: Resource, kind: ResourceType, name: str) -> bool:
    if resource.type is not kind:
        return False
    if resource.pattern is PatternType.PREFIXED:
        return name.startswith(resource.name)
    return resource.name in (name, "*")


def model(
    rules: Mapping[Resource, list[Acl]],
    kind: ResourceType,
    name: str,
    principal: str,
    host: str,
    operation: Operation,
) -> bool | None:
    acls = [acl for at, each in rules.items() if belongs(at, kind, name) for acl in each]
    if not acls:
        return None
    allowed = False
    for acl in acls:
        if acl.principal not in (principal, "User:*") or acl.host not in (host, "*"):
            continue
        if acl.permission is DENY:
            if acl.operation in (operation, Operation.ALL):
                return False
        elif acl.operation.name in IMPLIED.get(operation, {operation.name, "ALL"}):
            allowed = True
    return allowed


@pytest.mark.scenario("security-31")
@settings(max_examples=60, deadline=None)
@given(RULES, st.sampled_from([TOPIC, GROUP]), NAMES, st.sampled_from(Operation))
def test_it_decides_as_the_model(
    rules: dict[Resource, list[Acl]], kind: ResourceType, name: str, operation: Operation
) -> None:
    found = decide(AclIndex(rules).matching(kind, name), ALICE, HERE, operation)
    assert found is model(rules, kind, name, ALICE, HERE, operation)


@settings(max_examples=60, deadline=None)
@given(RULES, st.sampled_from(Operation))
def test_any_of_a_type_is_allowed_if_one_name_of_it_is(
    rules: dict[Resource, list[Acl]], operation: Operation
) -> None:
    """The names of all rules, and those with another letter, stand for all that there are."""
    names = {"c", *(at.name + "c" for at in rules), *(at.name for at in rules if at.name != "*")}
    found = {model(rules, TOPIC, name, ALICE, HERE, operation) for name in names}
    expected = True if True in found else None if None in found else False
    assert AclIndex(rules).allows_any(TOPIC, ALICE, HERE, operation) is expected


@settings(max_examples=60, deadline=None)
@given(RULES, RULES)
def test_changes_one_by_one_give_the_same_index(
    before: dict[Resource, list[Acl]], after: dict[Resource, list[Acl]]
) -> None:
    index = AclIndex(before)
    for resource in before.keys() | after.keys():
        index.put(resource, after.get(resource, []))
    fresh = AclIndex(after)
    for name in ("", "a", "ab", "aba", "b", "bb"):
        assert sorted(index.matching(TOPIC, name)) == sorted(fresh.matching(TOPIC, name))


def allows(rules: Mapping[Resource, list[Acl]], operation: Operation, name: str = "t") -> bool:
    found = decide(AclIndex(rules).matching(TOPIC, name), ALICE, HERE, operation)
    assert found is not None
    return found


LITERAL, ALL_TOPICS = Resource(TOPIC, "t"), Resource(TOPIC, "*")
PREFIX = Resource(TOPIC, "t", PatternType.PREFIXED)


@pytest.mark.scenario("security-31")
@pytest.mark.parametrize(
    ("rules", "operation"),
    [
        (
            {ALL_TOPICS: [Acl(EVERYONE, ALLOW, READ)], LITERAL: [Acl(ALICE, DENY, Operation.ALL)]},
            READ,
        ),
        ({PREFIX: [Acl(ALICE, DENY, READ)], LITERAL: [Acl(ALICE, ALLOW, READ)]}, READ),
        ({LITERAL: [Acl(ALICE, DENY, DESCRIBE), Acl(ALICE, ALLOW, READ)]}, DESCRIBE),
    ],
)
def test_deny_wins(rules: dict[Resource, list[Acl]], operation: Operation) -> None:
    assert not allows(rules, operation)
    allowing = {at: [a for a in acls if a.permission is ALLOW] for at, acls in rules.items()}
    assert allows(allowing, operation)


@pytest.mark.scenario("security-31")
def test_deny_implies_nothing() -> None:
    assert allows({LITERAL: [Acl(ALICE, DENY, READ), Acl(ALICE, ALLOW, DESCRIBE)]}, DESCRIBE)


@pytest.mark.scenario("security-32")
@pytest.mark.parametrize("host", ["127.0.0.2", "localhost", "127.0.0.0/8"])
def test_hosts_are_addresses(host: str) -> None:
    assert not allows({LITERAL: [Acl(ALICE, ALLOW, READ, host)]}, READ)
    assert allows({LITERAL: [Acl(ALICE, ALLOW, READ, HERE)]}, READ)


def test_names_are_compared_as_they_are() -> None:
    rule = [Acl("User:Alice", ALLOW, READ), Acl("User:alic", ALLOW, READ)]
    assert not allows({LITERAL: rule}, READ)
    assert not allows({Resource(TOPIC, "T"): [Acl(ALICE, ALLOW, READ)], LITERAL: rule}, READ)


def test_labels_are_the_names_in_zookeeper() -> None:
    assert [each.label for each in ResourceType] == [
        "Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User"
    ]  # fmt: skip
    assert Operation.IDEMPOTENT_WRITE.label == "IdempotentWrite"
    assert str(PREFIX) == "Topic:PREFIXED:t"


def test_a_rule_in_words() -> None:
    binding = PREFIX, Acl(ALICE, ALLOW, Operation.CLUSTER_ACTION, HERE)
    assert list(rule_words(binding)) == list(RULE_FIELDS)
    texts = ["TOPIC", "t", "PREFIXED", ALICE, HERE, "CLUSTER_ACTION", "ALLOW"]
    assert list(rule_words(binding).values()) == texts


def test_every_type_has_operations() -> None:
    assert set(SUPPORTED) == set(ResourceType)
    assert all(
        Operation.ALL not in each and len(set(each)) == len(each) for each in SUPPORTED.values()
    )
