from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka08.runtime import Scheduler
from kafka08.server.access.room import AccessControl
from kafka08.server.optional import NoLogins
from tests.server.support import Rig

AUTHORIZER = "kafka.security.auth.SimpleAclAuthorizer"


def access_of(rig: Rig) -> AccessControl:
    runtime: Any = rig.runtime
    zk: Any = rig.zk
    return AccessControl(rig.config, runtime, zk, NoLogins(), lambda sessions: None)


def test_without_an_authorizer_nothing_is_guarded(rig: Rig) -> None:
    access = access_of(rig)
    runtime: Any = rig.runtime
    assert access.guard(rig.handlers, rig.cache) is rig.handlers
    assert [part.name for part in access.tasks(Scheduler(runtime))] == ["credentials"]
    assert access.watched() == []
    access.load()


def test_rules_are_read_before_they_are_refreshed(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(authorizer_class_name=AUTHORIZER)
    access = access_of(rig)
    runtime: Any = rig.runtime
    parts = access.tasks(Scheduler(runtime))
    assert next(parts).name == "the authorizer"
    assert rig.runtime.tasks == []
    assert next(parts).name == "credentials"
    assert [task.name for task in rig.runtime.tasks] == ["acl-refresh", "audit-log"]
    assert access.guard(rig.handlers, rig.cache)[0] is not rig.handlers[0]
