"""kafka08.console.access.asking."""

from __future__ import annotations

from typing import Any

import pytest
from werkzeug.exceptions import Conflict
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from kafka08.client import acls
from kafka08.client.admin import RemoteError
from kafka08.console.access.asking import (
    FAILED,
    ORIGINALS,
    Gap,
    asked,
    changing,
    needed,
    originals,
)
from kafka08.console.site import Visit
from kafka08.errors import AdminOperationError, KafkaError
from kafka08.protocol import acl_schemas as a
from kafka08.security.acl_filters import ALL_ACLS, PatternFilter, ResourceFilter
from kafka08.security.users import User
from tests.console.access.served import AccessScene

EVERYTHING = ResourceFilter(None, None, PatternFilter.ANY)


def visit_of(scene: AccessScene) -> Visit:
    return Visit(scene.site, Request(EnvironBuilder().get_environ()), User("", "admin"))


def read(call: Any) -> Any:
    return acls.describe(call, EVERYTHING, ALL_ACLS)


def test_the_controller_is_asked_or_another_broker_that_can_be() -> None:
    scene = AccessScene()
    assert asked(visit_of(scene), "rules", read) == []
    assert scene.cluster.took(1, a.DescribeAclsRequest)
    scene.server.remove("/controller")
    scene.look()
    assert asked(visit_of(scene), "rules", read) == []
    assert scene.cluster.took(2, a.DescribeAclsRequest) == []


def test_why_nobody_can_be_asked() -> None:
    scene = AccessScene()
    assert originals(visit_of(scene), "rules") is None
    scene.only_originals()
    gap = originals(visit_of(scene), "rules")
    assert gap and gap.kind == ORIGINALS
    assert gap == asked(visit_of(scene), "rules", read)
    with pytest.raises(Conflict), changing(visit_of(scene), "rules"):
        raise RemoteError(1, "not reached", "")
    scene.server.remove("/brokers/ids/2")
    scene.look()
    assert asked(visit_of(scene), "rules", read) == Gap(FAILED, "No broker is up.")


def test_forms_cannot_do_without_an_answer() -> None:
    scene = AccessScene()
    assert needed(visit_of(scene), "rules", read) == []
    scene.cluster.down = {9091}
    with pytest.raises(KafkaError, match="did not answer"):
        needed(visit_of(scene), "rules", read)
    scene.only_originals()
    with pytest.raises(AdminOperationError, match="does not know them"):
        needed(visit_of(scene), "rules", read)


def test_refusals_in_words() -> None:
    visit = visit_of(AccessScene())

    def refused(call: Any) -> Any:
        raise RemoteError(42, "it is nonsense", "")

    assert asked(visit, "rules", refused) == Gap(FAILED, "A broker refused: it is nonsense.")
    with pytest.raises(AdminOperationError, match="needs Alter"), changing(visit, "rules"):
        raise RemoteError(31, None, "")
    with pytest.raises(OSError), changing(visit, "rules"):
        raise ConnectionResetError("gone")
