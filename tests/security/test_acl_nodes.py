"""Payloads as Kafka 2.8 wrote them, and those that must not be taken for a rule."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka08.errors import AdminOperationError
from kafka08.security import acl_nodes
from kafka08.security.acls import Acl, Operation, PatternType, Permission, Resource, ResourceType
from zk.znodes import MalformedNodeError

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
ALICE_READS = Acl("User:alice", Permission.ALLOW, Operation.READ, "127.0.0.1")
STORED = (
    b'{"version":1,"acls":[{"principal":"User:alice","permissionType":"Allow",'
    b'"operation":"Read","host":"127.0.0.1"}]}'
)
PREFIXED_CHANGE = b'{"version":1,"resourceType":"TOPIC","name":"pre","patternType":"PREFIXED"}'


def test_rules_are_stored_as_kafka_stores_them() -> None:
    assert acl_nodes.encode_acls([ALICE_READS]) == STORED
    assert acl_nodes.decode_acls("/a", STORED) == (ALICE_READS,)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.builds(
            Acl,
            st.text().map("User:{}".format),
            st.sampled_from(Permission),
            st.sampled_from(Operation),
            st.text(),
        ),
        unique=True,
    )
)
def test_what_is_written_is_read(acls: list[Acl]) -> None:
    assert list(acl_nodes.decode_acls("/a", acl_nodes.encode_acls(acls))) == acls


def test_names_in_a_node_may_be_in_any_case() -> None:
    data = STORED.replace(b"Allow", b"ALLOW").replace(b"Read", b"clusterACTION")
    (acl,) = acl_nodes.decode_acls("/a", data)
    assert acl.operation is Operation.CLUSTER_ACTION


@pytest.mark.scenario("security-39")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no JSON",
        b"[]",
        b"null",
        b'{"acls":[]}',
        b'{"version":2,"acls":[]}',
        b'{"version":true,"acls":[]}',
        b'{"version":1}',
        b'{"version":1,"acls":{}}',
        b'{"version":1,"acls":["Allow"]}',
        STORED.replace(b'"host":"127.0.0.1"', b'"host":1'),
        STORED.replace(b"Read", b"TwoPhaseCommit"),
        STORED.replace(b"Allow", b"Perhaps"),
        STORED.replace(b"User:alice", b"alice"),
        STORED[:-3],
        b'{"version":1,"acls":[%s]}' % b",".join([STORED[21:-2]] * 60_000),
        b"\xff",
        b"[" * 100_000,
    ],
    ids=range(18),
)
def test_what_is_not_understood_is_an_error(data: bytes) -> None:
    with pytest.raises(MalformedNodeError) as caught:
        acl_nodes.decode_acls("/kafka-acl/Topic/t", data)
    assert "/kafka-acl/Topic/t" in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("resource", "path", "change"),
    [
        (Resource(TOPIC, "t"), "/kafka-acl/Topic/t", b"TOPIC:t"),
        (Resource(GROUP, "a:b"), "/kafka-acl/Group/a:b", b"GROUP:a:b"),
        (
            Resource(ResourceType.TRANSACTIONAL_ID, "*"),
            "/kafka-acl/TransactionalId/*",
            b"TRANSACTIONAL_ID:*",
        ),
        (
            Resource(TOPIC, "pre", PREFIXED),
            "/kafka-acl-extended/prefixed/Topic/pre",
            PREFIXED_CHANGE,
        ),
    ],
)
def test_paths_and_notices(resource: Resource, path: str, change: bytes) -> None:
    assert acl_nodes.resource_path(resource) == path
    assert acl_nodes.encode_change(resource) == change
    assert acl_nodes.decode_change(resource.pattern, "/c", change) == resource


def test_notices_of_0_9_are_read() -> None:
    assert acl_nodes.decode_change(LITERAL, "/c", b"Topic:t") == Resource(TOPIC, "t")
    found = acl_nodes.decode_change(LITERAL, "/c", b"TransactionalId:x")
    assert found.type is ResourceType.TRANSACTIONAL_ID


def test_notices_are_below_two_nodes() -> None:
    assert acl_nodes.change_path_prefix(LITERAL) == "/kafka-acl-changes/acl_changes_"
    assert acl_nodes.change_path_prefix(PREFIXED) == "/kafka-acl-extended-changes/acl_changes_"
    path = acl_nodes.change_path(LITERAL, "acl_changes_0000000000")
    assert path == "/kafka-acl-changes/acl_changes_0000000000"


@pytest.mark.parametrize(
    ("pattern", "data"),
    [
        (LITERAL, b""),
        (LITERAL, b"Topic"),
        (LITERAL, b"Topic:"),
        (LITERAL, b"Topic:a/b"),
        (LITERAL, b"Thing:t"),
        (LITERAL, b"\xff:t"),
        (PREFIXED, b"TOPIC:t"),
        (PREFIXED, PREFIXED_CHANGE.replace(b"1", b"2")),
        (PREFIXED, PREFIXED_CHANGE.replace(b"PREFIXED", b"INFIXED")),
        (PREFIXED, PREFIXED_CHANGE.replace(b"TOPIC", b"THING")),
        (PREFIXED, PREFIXED_CHANGE.replace(b'"pre"', b"7")),
    ],
)
def test_other_notices_are_an_error(pattern: PatternType, data: bytes) -> None:
    with pytest.raises(MalformedNodeError):
        acl_nodes.decode_change(pattern, "/c", data)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0", "a\n", "\ud800", "\U0001f600"])
def test_some_names_cannot_be_stored(name: str) -> None:
    with pytest.raises(AdminOperationError):
        acl_nodes.check_name(name)


def test_other_names_can() -> None:
    for name in ("*", "t", "CN=a b,O=x", "grüße", "..."):
        acl_nodes.check_name(name)
