"""A handler behind a rule: who is asked about, and that it fails as it would alone."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.network.peer import Peer, current_peer
from kafka08.protocol.schemas import MetadataRequest, RequestHeader
from kafka08.security.acls import Acl, Operation, Permission, Resource, ResourceType
from kafka08.security.audit import AuditLog
from kafka08.security.authorizer import AclAuthorizer
from kafka08.server.access.guard import Check, guarded
from tests.server.support import Rig

TOPIC = ResourceType.TOPIC
HEADER = RequestHeader(3, 0, 1, "c")


def checks_of(rig: Rig) -> tuple[list[Check], Any, AclAuthorizer]:
    """The checks that a rule got, a guarded Metadata handler, and its authorizer."""
    seen: list[Check] = []
    authorizer = AclAuthorizer([], False, AuditLog(rig.clock))

    def rule(check: Check, request: Any) -> Any:
        seen.append(check)
        return check.handle(request)

    runtime: Any = rig.runtime
    (handler,) = guarded(
        [each for each in rig.handlers if each.key == 3], {3: rule}, runtime, authorizer
    )
    return seen, handler, authorizer


def test_the_peer_of_the_connection_is_asked_about(rig: Rig) -> None:
    seen, handler, authorizer = checks_of(rig)
    authorizer.put(Resource(TOPIC, "t"), [Acl("User:bob", Permission.ALLOW, Operation.READ, "::1")])
    for peer, allowed in (
        (Peer("::1:99", "User:bob"), True),
        (Peer("::2:99", "User:bob"), False),
        (Peer("::1:99"), False),
        (None, False),
    ):
        token = current_peer.set(peer)
        handler.handle(HEADER, MetadataRequest([]))
        current_peer.reset(token)
        assert seen[-1].allows(Operation.READ, TOPIC, "t") is allowed
        names = ["t", "u", "t"]
        expected = {"u"} if allowed else {"t", "u"}
        assert seen[-1].refused(Operation.READ, TOPIC, names) == expected
        assert seen[-1].visible(Operation.READ, TOPIC, names) == {"t", "u"} - expected


def test_a_change_of_rules_is_noticed(rig: Rig) -> None:
    seen, handler, authorizer = checks_of(rig)
    handler.handle(HEADER, MetadataRequest([]))
    assert not seen[0].is_outdated()
    authorizer.put(Resource(TOPIC, "t"), [])
    assert seen[0].is_outdated()


def test_it_stands_for_the_handler(rig: Rig) -> None:
    _, handler, _ = checks_of(rig)
    assert (handler.key, handler.last_version) == (3, 8)
    failed = handler.failure(HEADER, MetadataRequest(["t"]), -1)
    assert [(each.topic, each.error) for each in failed.topics] == [("t", -1)]


def test_an_api_without_a_rule_is_not_served(rig: Rig) -> None:
    authorizer = AclAuthorizer([], False, AuditLog(rig.clock))
    runtime: Any = rig.runtime
    with pytest.raises(KeyError):
        guarded(rig.handlers, {}, runtime, authorizer)
