"""Access rules over the wire: refusals, and answers that make no sense here."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.client import acls
from kafka08.client.admin import RemoteError
from kafka08.errors import ProtocolError
from kafka08.protocol import acl_schemas as a
from kafka08.security.acl_filters import ALL_ACLS, PatternFilter, ResourceFilter, RuleFilter
from kafka08.security.acls import Acl, Operation, PatternType, Permission, Resource, ResourceType

TOPIC = ResourceType.TOPIC
EVERYTHING = ResourceFilter(None, None, PatternFilter.ANY)
ACL = Acl("User:a", Permission.ALLOW, Operation.READ, "h")


class AclAdmin:
    """An AdminClient with one answer; keeps the requests."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.requests: list[Any] = []

    def call(self, request: Any) -> Any:
        self.requests.append(request)
        return self.answer


def answering(answer: Any) -> Any:
    return AclAdmin(answer)


def test_filters_and_rules_on_the_wire() -> None:
    told = a.DescribedAcls(2, "t", [a.DescribedAcl("User:a", "h", 3, 3)], 4)
    admin = answering(a.DescribeAclsResponse(0, 0, None, [told]))
    resource = Resource(TOPIC, "t", PatternType.PREFIXED)
    assert acls.describe(admin.call, EVERYTHING, ALL_ACLS) == [(resource, [ACL])]
    assert admin.requests == [a.DescribeAclsRequest(1, None, None, None, 1, 1, 1)]
    admin = answering(a.CreateAclsResponse(0, [a.CreatedAcl(0, None)]))
    acls.create(admin.call, resource, [ACL])
    assert admin.requests == [a.CreateAclsRequest([a.NewAcl(2, "t", "User:a", "h", 3, 3, 4)])]
    gone = a.DeletedAcl(0, None, 2, "t", "User:a", "h", 3, 3, 4)
    admin = answering(a.DeleteAclsResponse(0, [a.DeletedAcls(0, None, [gone])]))
    one = RuleFilter("User:a", None, Operation.READ, Permission.DENY)
    filters = [(ResourceFilter(TOPIC, "t", PatternFilter.MATCH), one)]
    assert acls.delete(admin.call, filters) == [(resource, ACL)]
    assert admin.requests == [a.DeleteAclsRequest([a.AclFilter(2, "t", "User:a", None, 3, 2, 2)])]


def test_refusals() -> None:
    admin = answering(a.DescribeAclsResponse(0, 31, None, []))
    with pytest.raises(RemoteError, match=r"^Cluster authorization failed\.$"):
        acls.describe(admin.call, EVERYTHING, ALL_ACLS)
    admin = answering(a.CreateAclsResponse(0, [a.CreatedAcl(0, None), a.CreatedAcl(42, "no")]))
    with pytest.raises(RemoteError, match=r"^no$"):
        acls.create(admin.call, Resource(TOPIC, "t"), [ACL])
    gone = a.DeletedAcl(-1, "lost", 2, "t", "User:a", "h", 3, 3)
    admin = answering(a.DeleteAclsResponse(0, [a.DeletedAcls(0, None, [gone])]))
    with pytest.raises(RemoteError, match="lost"):
        acls.delete(admin.call, [(EVERYTHING, ALL_ACLS)])


@pytest.mark.parametrize(
    "told",
    [
        a.DescribedAcls(99, "t", []),
        a.DescribedAcls(2, "t", [a.DescribedAcl("User:a", "h", 99, 3)]),
    ],
)
def test_rules_of_a_later_release(told: a.DescribedAcls) -> None:
    admin = answering(a.DescribeAclsResponse(0, 0, None, [told]))
    with pytest.raises(ProtocolError, match="later release"):
        acls.describe(admin.call, EVERYTHING, ALL_ACLS)
