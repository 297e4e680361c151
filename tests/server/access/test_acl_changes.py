"""A broker's rules follow ZooKeeper, also when notices are missed or nodes hold garbage."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.security.acl_nodes import CHANGES, encode_acls, encode_change, resource_path
from kafka08.security.acl_store import AclStore
from kafka08.security.acls import Acl, Operation, PatternType, Permission, Resource, ResourceType
from kafka08.security.audit import AuditLog
from kafka08.security.authorizer import AclAuthorizer, Requester
from kafka08.server.access.acl_changes import AclChanges
from kafka08.server.cluster_view.watched_children import NOTICE_EXPIRY_MS
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk.client import SessionState
from zk.errors import ZkConnectionError

TOPIC = ResourceType.TOPIC
T, U = Resource(TOPIC, "t"), Resource(TOPIC, "u")
PREFIX = Resource(TOPIC, "pre", PatternType.PREFIXED)
READ = Operation.READ
ALICE = Requester("User:alice", "127.0.0.1")
ALICE_READS = Acl(ALICE.principal, Permission.ALLOW, READ)
ADMIN = Requester("User:admin", "127.0.0.1")


class FollowedAcls:
    """A broker's rules, and another session that changes them."""

    def __init__(self, allow_everyone: bool = False) -> None:
        self.server = FakeZooKeeper()
        self.runtime = FakeRuntime()
        self.runtime.clock.now = 0  # when all the fake's nodes are made
        self.session = Session(self.server)
        runtime: Any = self.runtime
        self.authorizer = AclAuthorizer(
            [ADMIN.principal], allow_everyone, AuditLog(self.runtime.clock)
        )
        zk: Any = self.session
        self.own_store = AclStore(zk, self.runtime.sleep)
        self.changes = AclChanges(runtime, zk, self.own_store, self.authorizer)
        other: Any = Session(self.server)
        self.store = AclStore(other, self.runtime.sleep)

    @property
    def waiting(self) -> list[int]:
        """How many readings of each kind of notices are due."""
        return [each._queue.qsize() for each in self.changes.notices]

    def step(self) -> None:
        for each, count in zip(self.changes.notices, self.waiting, strict=True):
            if count:
                each.step()

    def reads(self, topic: str, requester: Requester = ALICE) -> bool:
        return self.authorizer.is_allowed(requester, READ, TOPIC, topic)

    def silently(self, resource: Resource, data: bytes) -> None:
        """Write rules without a notice."""
        self.server.put(resource_path(resource), data)

    def notify(self, resource: Resource) -> None:
        prefix = f"{CHANGES[resource.pattern]}/acl_changes_"
        self.server.put(self.server.sequenced(prefix), encode_change(resource))


@pytest.fixture
def followed() -> FollowedAcls:
    return FollowedAcls()


@pytest.mark.scenario("security-38")
def test_rules_from_before_the_start_hold(followed: FollowedAcls) -> None:
    followed.store.add(T, [ALICE_READS])
    followed.store.add(PREFIX, [ALICE_READS])
    followed.changes.start()
    assert [followed.reads(name) for name in ("t", "prefixed", "u")] == [True, True, False]


@pytest.mark.scenario("security-38")
def test_changes_are_followed(followed: FollowedAcls) -> None:
    followed.changes.start()
    for resource, name in ((T, "t"), (PREFIX, "pre-x")):
        followed.store.add(resource, [ALICE_READS])
        followed.step()
        assert followed.reads(name)
        followed.store.remove(resource, [ALICE_READS])
        followed.step()
        assert not followed.reads(name)


def test_a_change_during_the_first_reading_is_not_missed(followed: FollowedAcls) -> None:
    """The watch is armed before anything is read."""
    original = followed.own_store.resources

    def late() -> Any:
        yield from original()
        followed.store.add(T, [ALICE_READS])

    followed.own_store.resources = late  # type: ignore[method-assign]
    followed.changes.start()
    followed.own_store.resources = original  # type: ignore[method-assign]
    followed.step()
    assert followed.reads("t")


@pytest.mark.scenario("security-39")
@pytest.mark.parametrize(
    "data", [b"", b"garbage", b'{"version":2,"acls":[]}', b'{"version":1,"acls":[{}]}']
)
@pytest.mark.parametrize("everyone", [False, True])
def test_what_cannot_be_read_is_refused(
    data: bytes, everyone: bool, caplog: pytest.LogCaptureFixture
) -> None:
    followed = FollowedAcls(allow_everyone=everyone)
    followed.silently(T, data)
    followed.store.add(U, [ALICE_READS])
    followed.changes.start()
    for _ in range(3):
        followed.notify(T)
        followed.step()
    assert not followed.reads("t")
    assert followed.reads("t", ADMIN)
    assert followed.reads("u")
    assert followed.reads("other") is everyone
    errors = [each for each in caplog.records if each.levelname == "ERROR"]
    assert len(errors) == 1
    assert "Topic:LITERAL:t is refused to all but super users" in errors[0].message
    followed.silently(T, encode_acls([ALICE_READS]))
    followed.notify(T)
    followed.step()
    assert followed.reads("t")


@pytest.mark.scenario("security-39")
def test_unknown_types_are_passed_over(followed: FollowedAcls) -> None:
    followed.server.put("/kafka-acl/Thing/t", b"garbage")
    followed.store.add(T, [ALICE_READS])
    followed.changes.start()
    assert followed.reads("t")


@pytest.mark.scenario("security-40")
def test_without_zookeeper_the_last_rules_hold(followed: FollowedAcls) -> None:
    followed.store.add(T, [ALICE_READS])
    followed.changes.start()
    followed.session.down = True
    followed.session.reconnect()
    followed.store.add(U, [ALICE_READS])
    followed.store.remove(T, [ALICE_READS])
    followed.step()
    assert (followed.reads("t"), followed.reads("u")) == (True, False)
    followed.session.down = False
    followed.step()
    assert (followed.reads("t"), followed.reads("u")) == (False, True)


def test_a_start_without_zookeeper_fails(followed: FollowedAcls) -> None:
    followed.session.down = True
    with pytest.raises(ZkConnectionError):
        followed.changes.start()


def test_a_new_session_reads_everything(followed: FollowedAcls) -> None:
    followed.changes.start()
    followed.session.lose_session()
    followed.server.drop_watches()
    followed.silently(T, encode_acls([ALICE_READS]))
    followed.session.renew_session()
    followed.step()
    assert followed.reads("t")
    followed.store.add(U, [ALICE_READS])
    followed.step()
    assert followed.reads("u")


def test_a_change_without_a_notice_is_found_after_a_while(followed: FollowedAcls) -> None:
    followed.changes.start()
    followed.silently(T, encode_acls([ALICE_READS]))
    followed.runtime.clock.advance(60)
    followed.changes.refresh()
    followed.step()
    assert followed.reads("t")
    followed.changes.refresh()
    followed.changes.refresh()  # one reading is enough
    assert followed.waiting[0] == 1


def test_slow_readings_are_rare(followed: FollowedAcls) -> None:
    for number in range(10):
        followed.store.add(Resource(TOPIC, f"t{number}"), [ALICE_READS])
    followed.session.before = lambda call, path: followed.runtime.clock.advance(1)
    followed.changes.start()
    followed.session.before = None
    followed.runtime.clock.advance(60)
    followed.changes.refresh()
    assert followed.waiting[0] == 0
    followed.runtime.clock.advance(3600)
    followed.changes.refresh()
    assert followed.waiting[0] == 1


def test_a_notice_that_is_not_understood_has_everything_read(
    followed: FollowedAcls, caplog: pytest.LogCaptureFixture
) -> None:
    followed.changes.start()
    followed.silently(T, encode_acls([ALICE_READS]))
    followed.server.put(f"{CHANGES[PatternType.LITERAL]}/acl_changes_x", b"garbage")
    followed.step()
    assert followed.reads("t")
    assert "All access rules are read again" in caplog.text


def test_old_notices_are_removed(followed: FollowedAcls) -> None:
    followed.changes.start()
    followed.store.add(T, [ALICE_READS])
    followed.step()
    (name,) = followed.server.below(CHANGES[PatternType.LITERAL])
    followed.runtime.clock.now_ms = NOTICE_EXPIRY_MS
    followed.notify(T)
    followed.step()
    assert name in followed.server.below(CHANGES[PatternType.LITERAL])
    followed.runtime.clock.now_ms += 1
    followed.notify(T)
    followed.step()
    assert name not in followed.server.below(CHANGES[PatternType.LITERAL])


def test_notices_may_begin_again_at_zero(followed: FollowedAcls) -> None:
    """After somebody has removed the node of the notices."""
    followed.changes.start()
    followed.store.add(T, [ALICE_READS])
    followed.step()
    root = CHANGES[PatternType.LITERAL]
    followed.server.remove(f"{root}/acl_changes_0000000000")
    followed.step()
    followed.silently(T, encode_acls([]))
    followed.server.put(f"{root}/acl_changes_0000000000", encode_change(T))
    followed.step()
    assert not followed.reads("t")


def test_it_ends(followed: FollowedAcls) -> None:
    followed.changes.start()
    followed.changes.stop()
    followed.session.tell(SessionState.CONNECTED)
    assert all(each.ended for each in followed.runtime.tasks)
