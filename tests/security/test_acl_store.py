"""Rules in ZooKeeper: read, and changed by several writers at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka08.errors import AdminOperationError
from kafka08.security.acl_nodes import encode_acls
from kafka08.security.acl_store import AclStore, read_or_refuse
from kafka08.security.acls import Acl, Operation, PatternType, Permission, Resource, ResourceType
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk.znodes import MalformedNodeError

TOPIC = ResourceType.TOPIC
T = Resource(TOPIC, "t")
PREFIX = Resource(TOPIC, "pre", PatternType.PREFIXED)
NODE = "/kafka-acl/Topic/t"
CHANGES, EXTENDED = "/kafka-acl-changes", "/kafka-acl-extended-changes"


def acl(principal: str = "User:alice", operation: Operation = Operation.READ) -> Acl:
    return Acl(principal, Permission.ALLOW, operation)


class StoredAcls:
    def __init__(self) -> None:
        self.server = FakeZooKeeper()
        self.session = Session(self.server)
        self.runtime = FakeRuntime()
        self.store = AclStore(self.session, self.runtime.sleep)  # type: ignore[arg-type]

    def when(self, call: str, path: str, act: Callable[[], object], times: int = 1) -> None:
        """Do something right before a call, ``times`` times."""
        left = times

        def before(name: str, at: str) -> None:
            nonlocal left
            if (name, at) == (call, path) and left:
                left -= 1
                act()

        self.session.before = before


@pytest.fixture
def stored() -> StoredAcls:
    return StoredAcls()


def test_rules_are_added_and_told(stored: StoredAcls) -> None:
    stored.store.add(T, [acl()])
    stored.store.add(T, [acl(), acl(operation=Operation.WRITE)])
    stored.store.add(PREFIX, [acl()])
    assert stored.store.read(T).acls == (acl(), acl(operation=Operation.WRITE))
    assert list(stored.store.resources()) == [T, PREFIX]
    assert stored.server.below(CHANGES) == ["acl_changes_0000000000", "acl_changes_0000000001"]
    assert stored.server.text(f"{CHANGES}/acl_changes_0000000001") == "TOPIC:t"
    assert '"PREFIXED"' in stored.server.text(f"{EXTENDED}/acl_changes_0000000000")


def test_what_is_there_already_is_not_written(stored: StoredAcls) -> None:
    stored.store.add(T, [acl()])
    before = list(stored.server.writes)
    stored.store.add(T, [acl()])
    stored.store.remove(T, [acl("User:bob")])
    stored.store.remove(Resource(TOPIC, "other"), [acl()])
    stored.store.remove_all(Resource(TOPIC, "other"))
    assert stored.server.writes == before


def test_the_last_rule_takes_the_node_with_it(stored: StoredAcls) -> None:
    stored.store.add(T, [acl(), acl("User:bob")])
    stored.store.remove(T, [acl()])
    assert stored.store.read(T).acls == (acl("User:bob"),)
    stored.store.remove(T, [acl("User:bob")])
    assert NODE not in stored.server.nodes
    assert len(stored.server.below(CHANGES)) == 3


@pytest.mark.parametrize("call", ["create", "set", "delete"])
def test_a_faster_writer_is_not_overwritten(stored: StoredAcls, call: str) -> None:
    other = acl("User:bob")
    if call != "create":
        stored.server.put(NODE, encode_acls([acl()]))
    stored.when(call, NODE, lambda: stored.server.put(NODE, encode_acls([acl(), other])))
    if call == "delete":
        stored.store.remove(T, [acl()])
        assert stored.store.read(T).acls == (other,)
    else:
        stored.store.add(T, [acl("User:carol")])
        assert stored.store.read(T).acls == (acl(), other, acl("User:carol"))


def test_a_node_that_goes_meanwhile_is_made_again(stored: StoredAcls) -> None:
    stored.server.put(NODE, encode_acls([acl()]))
    stored.when("set", NODE, lambda: stored.server.remove(NODE))
    stored.store.add(T, [acl("User:bob")])
    assert stored.store.read(T).acls == (acl("User:bob"),)


def test_a_writer_that_never_wins_gives_up(stored: StoredAcls) -> None:
    stored.server.put(NODE, encode_acls([]))
    numbers = iter(range(100))
    stored.when(
        "set",
        NODE,
        lambda: stored.server.put(NODE, encode_acls([acl(f"User:{next(numbers)}")])),
        times=100,
    )
    with pytest.raises(AdminOperationError, match="Topic:LITERAL:t were changed by others 10"):
        stored.store.add(T, [acl()])
    assert next(numbers) == 10


def test_what_cannot_be_read_is_not_overwritten(stored: StoredAcls) -> None:
    stored.server.put(NODE, b"garbage")
    for change in (stored.store.add, stored.store.remove):
        with pytest.raises(MalformedNodeError, match=NODE):
            change(T, [acl()])
    assert stored.server.text(NODE) == "garbage"
    assert isinstance(read_or_refuse(stored.store, T), MalformedNodeError)
    stored.store.remove_all(T)
    assert read_or_refuse(stored.store, T) == ()


def test_a_name_that_cannot_be_stored_is_refused(stored: StoredAcls) -> None:
    with pytest.raises(AdminOperationError, match="'a/b' cannot be stored"):
        stored.store.add(Resource(TOPIC, "a/b"), [acl()])
    assert stored.server.writes == []


def test_unknown_types_are_passed_over_with_one_warning(
    stored: StoredAcls, caplog: pytest.LogCaptureFixture
) -> None:
    stored.store.add(T, [acl()])
    stored.server.put("/kafka-acl/Thing/x", b"")
    stored.server.put("/kafka-acl/topic/x", b"")
    for _ in range(2):
        assert list(stored.store.resources()) == [T]
    assert len(caplog.messages) == 2


def test_the_paths_are_made(stored: StoredAcls) -> None:
    stored.store.ensure_paths()
    assert {"/kafka-acl", "/kafka-acl-extended/prefixed", CHANGES, EXTENDED} <= set(
        stored.server.nodes
    )
