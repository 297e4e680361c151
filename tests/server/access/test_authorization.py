"""The parts of a broker's authorizer together: settings, rules in ZooKeeper, the audit log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from kafka08.runtime import Scheduler
from kafka08.security.acl_store import AclStore
from kafka08.security.acls import Acl, Operation, Permission, Resource, ResourceType
from kafka08.server.access.authorization import Authorization
from kafka08.server.requests.dispatch import Dispatcher
from tests.server.support import Rig

ANONYMOUS = "User:ANONYMOUS"


def test_rules_in_zookeeper_decide_about_requests(
    make_rig: Callable[..., Rig], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kafka.authorizer.logger")
    rig = make_rig(super_users="User:admin")
    rig.lead("t")
    rig.lead("u")
    zk: Any = rig.zk
    runtime: Any = rig.runtime
    rule = Acl(ANONYMOUS, Permission.ALLOW, Operation.READ)
    AclStore(zk, rig.runtime.sleep).add(Resource(ResourceType.TOPIC, "t"), [rule])
    authorization = Authorization(rig.config, runtime, zk)
    rig.dispatcher = Dispatcher(runtime, authorization.guard(rig.handlers, rig.cache), rig.apis)
    assert rig.fetch(("t", 0, 0, 100))[("t", 0)][0] == 29
    authorization.start()
    both = rig.fetch(("t", 0, 0, 100), ("u", 0, 0, 100))
    assert (both[("t", 0)][0], both[("u", 0)][0]) == (0, 29)
    rig.fetch(("u", 0, 0, 100))
    caplog.clear()
    rig.clock.advance(60)
    authorization.stop()
    assert [each.message[-20:] for each in caplog.records if "Denied" in each.message] == [
        "resourceRefCount = 1"
    ]


def test_it_reads_again_and_flushes_from_time_to_time(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig()
    runtime: Any = rig.runtime
    zk: Any = rig.zk
    authorization = Authorization(rig.config, runtime, zk)
    authorization.schedule(Scheduler(runtime))
    assert {each.name for each in rig.runtime.tasks} >= {"acl-refresh", "audit-log"}
